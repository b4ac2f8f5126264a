import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.quantile.pair import STEEPNESS, Pair, score_spread, scored_end, tie_segments
from confide.mechanism.quantile.rank import order_statistics
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally
from tests.mechanism.segments import drawn_weight
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, seen, tallied

QUANTILES = [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(1, 7)]
DOMAIN = (0, 4)


def _exponents(end, tally, domain=DOMAIN):
    """One exponent per value of the domain."""
    starts, sizes, exponents = end.segments(tally, domain)
    each = np.full(domain[1] - domain[0] + 1, -1)
    for start, size, exponent in zip(starts, sizes, exponents, strict=True):
        assert (each[start - domain[0] : start - domain[0] + size] == -1).all(), "a value is in two segments"
        each[start - domain[0] : start - domain[0] + size] = exponent
    assert (each >= 0).all(), "a value is in no segment"
    return each


@pytest.mark.parametrize("rows", range(5))
def test_segments_have_the_ranks_of_their_values(rows):
    for data in data_sets(range(5), rows):
        starts, sizes, below, upto = tie_segments(tallied(data), DOMAIN)
        for start, size, less, no_more in zip(starts, sizes, below, upto, strict=True):
            for value in range(start, start + size):
                assert less == sum(x < value for x in data)
                assert no_more == sum(x <= value for x in data)
        assert sizes.sum() == 5


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("steepness", STEEPNESS)
@pytest.mark.parametrize("q", QUANTILES)
def test_the_spread_of_the_score_by_brute_force(q, steepness, relation):
    """Over all neighbours with up to 5 rows; also that it is reached, so that no noise is wasted."""
    setting = Setting(DOMAIN, Fraction(1), 0.9, relation)
    reached = 0
    unit = 16 * q.denominator
    for shift_rows, most_rows in ((1, 10**6), (2, 10**6), (1, 1), (1, 2), (2, 3)):
        end = scored_end(q, Fraction(100), 0.5, setting, steepness)
        end = replace(end, shift=shift_rows * unit, most=most_rows * unit)
        each = {data: _exponents(end, tallied(data)) for rows in range(6) for data in data_sets(range(5), rows)}
        for one, two in neighbours(range(5), 5, relation):
            changes = each[two] - each[one]
            reached = max(reached, int(changes.max() - changes.min()))
    claimed = 16 * score_spread(q, steepness, relation)
    assert end.mechanism.spread == claimed
    assert reached <= claimed
    if q == Fraction(1, 2):
        assert reached == claimed


@pytest.mark.parametrize("steepness", STEEPNESS)
@pytest.mark.parametrize("q", QUANTILES)
def test_rows_outside_of_the_window_may_be_anywhere_there(q, steepness):
    """Over all data with up to 6 rows: the same ranks inside the window, whatever the values outside of it are."""
    setting = Setting(DOMAIN, Fraction(1), 0.9, "add-remove")
    moved = 0
    for most in (7, 16, 40):
        end = scored_end(q, Fraction(100), 0.5, setting, steepness)
        end = replace(end, shift=5, most=most * q.denominator)
        for rows in range(7):
            first, last = end.window(rows)
            same = {}
            for data in data_sets(range(5), rows):
                exponents = tuple(_exponents(end, tallied(data)))
                assert same.setdefault(seen(data, DOMAIN, first, last), exponents) == exponents
                condensed = tallied(data).condensed(first, last)
                assert tuple(_exponents(end, condensed)) == exponents
                moved += condensed.values.tolist() != sorted(set(data))
    assert moved


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(3, 4), Fraction(1)])
def test_no_value_is_more_likely_on_a_neighbour_than_the_loss_allows(q, relation):
    epsilon = Fraction(1, 2)
    end = Pair(Setting(DOMAIN, Fraction(1), 0.9, relation), q).lower(q, epsilon, 0.05)
    logs = {}

    def log_probabilities(data):
        if data not in logs:
            weights = -float(end.mechanism.rate) * _exponents(end, tallied(data))
            logs[data] = weights - np.logaddexp.reduce(weights)
        return logs[data]

    for one, two in neighbours(range(5), 5, relation):
        assert np.abs(log_probabilities(one) - log_probabilities(two)).max() <= float(epsilon) + 1e-12


@pytest.mark.parametrize("q", QUANTILES)
def test_a_value_above_the_quantile_is_as_rare_as_said(q):
    """The exact probability of an end that is too high, over all small data sets; an upper end is the mirror image."""
    miss = 0.05
    for relation in RELATIONS:
        end = Pair(Setting(DOMAIN, Fraction(4), 0.9, relation), q).lower(q, Fraction(2), miss)
        for rows in range(7):
            for data in data_sets(range(5), rows):
                weights = np.exp(-float(end.mechanism.rate) * _exponents(end, tallied(data)))
                quantile = data[order_statistics(q, rows)[0] - 1] if rows else 0
                assert weights[quantile + 1 :].sum() / weights.sum() <= miss


def test_the_choice_of_slopes_narrows_the_interval():
    setting = Setting((0, 10**7), Fraction(1), 0.9, "replace-one")
    chosen = Pair(setting, Fraction(1, 2)).lower(Fraction(1, 2), Fraction(1, 2), 0.05)
    even = scored_end(Fraction(1, 2), Fraction(1, 2), 0.05, setting, 1)
    assert chosen.ranks < 0.8 * even.ranks
    assert even.ranks == pytest.approx(4 * math.log(2 * (10**7 + 1) / 0.1), rel=1e-6)


def test_one_row_per_unit_costs_less_than_many():
    one, many = (Pair(Setting((0, 99), Fraction(1), 0.9, "add-remove", rows), Fraction(1, 2)) for rows in (1, 10))
    assert many.forecast.ranks == pytest.approx(10 * one.forecast.ranks, rel=0.01)


def test_the_plan_is_known_before_it_runs():
    plan = Pair(Setting((0, 10**7), Fraction(1), 0.9, "replace-one"), Fraction(1, 2), Expectation(48_842, 208_000))
    assert plan.loss.epsilon == 1
    assert plan.zcdp.rho == Fraction(1, 16)
    assert plan.name == "pair"
    assert plan.assumes == "always"
    assert plan.condition == ""
    assert 150 < plan.forecast.half_width < 320
    assert Pair(Setting((0, 9), Fraction(1), 0.9, "replace-one"), Fraction(0)).zcdp.rho == Fraction(1, 8)


def test_an_unbounded_column_is_refused_and_another_mechanism_named():
    with pytest.raises(ParameterError, match="svt"):
        Pair(Setting(None, Fraction(1), 0.9, "add-remove"), Fraction(1, 2))


@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 2), Fraction(1)])
def test_many_rows_give_a_narrow_interval_around_the_quantile(q):
    tally = Tally(np.arange(1, 1001), np.full(1000, 50))
    plan = Pair(Setting((0, 2000), Fraction(1), 0.9, "add-remove"), q)
    result = plan.measure(tally, TestRandomness(1))
    truth = {0: 1, Fraction(1, 2): 500, 1: 1000}[q]
    assert truth in result.interval
    assert abs(result.estimate - truth) < 5


def test_no_rows_leave_the_whole_domain():
    plan = Pair(Setting((-5, 99), Fraction(1), 0.99, "add-remove"), Fraction(1, 2))
    result = plan.measure(Tally.of([]), TestRandomness(2))
    assert result.whole
    assert (result.interval.low, result.interval.high) == (-5, 99)


def test_values_far_away_are_drawn_as_often_as_they_weigh():
    """A domain of 2^61 values at a miss rate of 10^-9: exponents are cut where a value weighs e^-90."""
    end = scored_end(Fraction(1, 2), Fraction(1, 2), 5e-10, Setting((0, 2**61), Fraction(1), 0.9, "add-remove"), 1)
    rate, logarithms = end.mechanism.rate, []
    for rows in (2_000, 320, 319, 318, 317):
        _, sizes, exponents = end.segments(Tally(np.array([5]), np.array([rows])), (0, 2**61))
        relative = int(exponents[-1] - exponents[sizes > 0].min())
        logarithms.append(math.log(drawn_weight(exponents, sizes, rate, len(sizes) - 1)))
        assert logarithms[-1] == pytest.approx(math.log(int(sizes[-1])) - float(rate) * relative)
    assert float(rate) * end.most > 90

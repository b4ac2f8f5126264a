from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.quantile.rank import order_statistics
from confide.mechanism.quantile.svt import Walk, stream_sensitivity, walked_end
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import REACH, Tally
from tests.conformance.sparse_vector import output_probabilities
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, seen, tallied

QUANTILES = [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1)]
DOMAIN = (0, 4)


def _margins(end, data, domain=DOMAIN):
    stream = end.stream(tallied(data), domain)
    return np.repeat(stream.margins, stream.lengths)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_rise_and_spread_of_the_counts_by_brute_force(q, relation):
    whole = walked_end(q, Fraction(1), relation, 0.05)
    rise, spread = stream_sensitivity(q, relation)
    most_rise = most_spread = 0
    for end in (whole, replace(whole, shift=2, least=-1, most=3), replace(whole, shift=1, least=-4, most=1)):
        each = {data: _margins(end, data) for rows in range(6) for data in data_sets(range(5), rows)}
        for one, two in neighbours(range(5), 5, relation):
            changes = each[two] - each[one]
            most_rise = max(most_rise, np.abs(changes).max())
            most_spread = max(most_spread, max(changes.max(), 0) - min(changes.min(), 0))
    assert (most_rise, most_spread) == (rise, spread)  # not exceeded, and reached


@pytest.mark.parametrize("q", QUANTILES)
def test_rows_outside_of_the_window_may_be_anywhere_there(q):
    """Over all data with up to 6 rows: the same margins, whatever the values outside of the window are."""
    whole = walked_end(q, Fraction(1), "add-remove", 0.05)
    moved = 0
    for least, most in ((-3, 4), (-5, 2), (-1, 1)):
        end = replace(whole, shift=2, least=least, most=most)
        for rows in range(7):
            first, last = end.window(rows)
            same = {}
            for data in data_sets(range(5), rows):
                margins = tuple(_margins(end, data))
                assert same.setdefault(seen(data, DOMAIN, first, last), margins) == margins
                condensed = tallied(data).condensed(first, last)
                stream = end.stream(condensed, DOMAIN)
                assert tuple(np.repeat(stream.margins, stream.lengths)) == margins
                moved += condensed.values.tolist() != sorted(set(data))
    assert moved


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_no_end_is_more_likely_on_a_neighbour_than_the_loss_allows(q, relation):
    epsilon = Fraction(2)
    end = walked_end(q, epsilon, relation, 0.05)
    scales = float(end.mechanism.threshold_scale), float(end.mechanism.query_scale)
    logs = {}

    def log_probabilities(data):
        if data not in logs:
            logs[data] = np.log(output_probabilities(_margins(end, data), *scales))
        return logs[data]

    for one, two in neighbours(range(5), 5, relation):
        assert np.abs(log_probabilities(one) - log_probabilities(two)).max() <= float(epsilon) + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_an_end_above_the_quantile_is_as_rare_as_said(q, relation):
    miss = 0.05
    end = walked_end(q, Fraction(2), relation, miss)
    scales = float(end.mechanism.threshold_scale), float(end.mechanism.query_scale)
    for rows in range(7):
        for data in data_sets(range(5), rows):
            chances = output_probabilities(_margins(end, data), *scales)
            quantile = data[order_statistics(q, rows)[0] - 1] if rows else 0
            assert chances[quantile + 1 : -1].sum() <= miss * (1 + 1e-9)  # without a stop the lowest value is reported


def test_the_walk_stays_in_the_domain_whatever_happens():
    setting = Setting((3, 3), Fraction(1), 0.9, "add-remove")
    result = Walk(setting, Fraction(1, 2)).measure(Tally.of([3, 3]), TestRandomness(1))
    assert (result.interval.low, result.estimate, result.interval.high) == (3, 3, 3)
    end = walked_end(Fraction(1), Fraction(100), "replace-one", 0.4)
    assert end([Tally.of([])], (-7, 7), TestRandomness(1)) == [-7]


@pytest.mark.parametrize("q", [Fraction(1, 4), Fraction(1, 2), Fraction(1)])
def test_an_unbounded_domain(q):
    values = np.arange(-300, 701)
    tally = Tally(values * 10**9, np.full(len(values), 20))
    result = Walk(Setting(None, Fraction(1), 0.9, "add-remove"), q).measure(tally, TestRandomness(3))
    truth = int(np.quantile(values, float(q), method="inverted_cdf")) * 10**9
    assert truth in result.interval
    assert abs(result.estimate - truth) <= 10 * 10**9
    if q != 1:
        assert result.interval.high - result.interval.low < 30 * 10**9
    else:
        assert result.interval.high == REACH


def test_no_rows_leave_the_whole_domain():
    for domain in ((-5, 99), None):
        result = Walk(Setting(domain, Fraction(1), 0.99, "add-remove"), Fraction(1, 2)).measure(
            Tally.of([]), TestRandomness(2)
        )
        assert (result.interval.low, result.interval.high) == (domain or (-REACH, REACH))
        assert result.whole == (domain is not None)


def test_the_plan_is_known_before_it_runs():
    plan = Walk(Setting((0, 10**7), Fraction(1), 0.9, "replace-one"), Fraction(1, 2), Expectation(48_842, 208_000))
    assert plan.loss.epsilon == 1
    assert plan.zcdp.rho == Fraction(1, 2)
    assert (plan.name, plan.assumes, plan.condition) == ("svt", "always", "")
    assert 70 < plan.forecast.half_width < 150
    many = Walk(
        Setting((0, 10**7), Fraction(1), 0.9, "replace-one", rows=4), Fraction(1, 2), Expectation(48_842, 208_000)
    )
    assert many.forecast.half_width > 3.5 * plan.forecast.half_width

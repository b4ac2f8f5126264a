import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.quantile import em as quantile_em
from confide.mechanism.quantile.em import FlippedPair
from confide.mechanism.quantile.rank import order_statistics
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally
from tests.mechanism.segments import drawn_weight
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, tallied

DOMAIN = (0, 2)
QUANTILES = [Fraction(1, 2), Fraction(3, 4), Fraction(1)]


def _flipped(data, copies, q, shift):
    """-u_L of every candidate, by equation (1) of the paper, and last that of the candidate below the domain."""
    seen, points = {}, []
    for value in data:
        points.append(copies * value + seen.get(value, 0))
        seen[value] = seen.get(value, 0) + 1
    place = max(1, order_statistics(q, len(data))[0])
    exponents = []
    for candidate in range(copies * DOMAIN[0], copies * (DOMAIN[1] + 1)):
        below, upto = (sum(point < candidate for point in points), sum(point <= candidate for point in points))
        utility = -max(0, below - (place - 1), place - upto)
        exponents.append(abs(utility + shift) if below < place else shift - utility)
    return [*exponents, max(0, place - shift)]


def _end(q, relation, epsilon=Fraction(4)):
    return FlippedPair(Setting(DOMAIN, epsilon, 0.9, relation), q).lower(q, epsilon / 2, 0.05)


@pytest.fixture
def few_copies(monkeypatch):
    monkeypatch.setattr(quantile_em, "COPIES", 6)
    return 6


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_the_flipped_utility_has_twice_the_sensitivity(q, relation, few_copies):
    """Lemma 3.3, over all neighbours with up to 4 rows; replace-one has n copies, add-remove a fixed number."""
    for shift in (1, 2, 3):
        for one, two in neighbours(range(3), 4, relation):
            copies = len(one) if relation == "replace-one" else few_copies
            pair = [np.array(_flipped(data, copies, q, shift)) for data in (one, two)]
            assert np.abs(pair[0] - pair[1]).max() <= 2


def test_sampling_as_if_the_sensitivity_were_one_would_not_be_private():
    """What the published code does: there is a pair of neighbours between which the flipped utility moves by 2."""
    moved = [
        np.abs(np.subtract(*(_flipped(data, len(data), Fraction(1, 2), 2) for data in pair))).max()
        for pair in neighbours(range(3), 4, "replace-one")
    ]
    assert max(moved) == 2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_segments_weigh_what_the_paper_says(q, relation, few_copies):
    """The total weight of each released value, against the definition."""
    end = _end(q, relation)
    rate = float(end.mechanism.rate)
    for rows in range(1, 5):
        for data in data_sets(range(3), rows):
            tally = tallied(data)
            copies = end.copies(rows)
            exact = np.array(_flipped(data, copies, q, end.shift(rows)))
            expected = np.exp(-rate * np.minimum(exact, end._far(rows)))
            by_value = expected[:-1].reshape(3, copies).sum(axis=1)
            by_value[0] += expected[-1]
            _, sizes, exponents = end.segments(tally, DOMAIN)
            weights = np.zeros(3)
            for segment in range(len(sizes)):
                for place in range(int(sizes[segment])):
                    chosen = type(
                        "Chosen", (), {"select": lambda *_, s=segment, p=place: (np.array([s]), np.array([p]))}
                    )
                    released = _released(end, tally, chosen)
                    weights[released] += math.exp(-rate * exponents[segment])
            assert weights == pytest.approx(by_value)


def _released(end, tally, chosen):
    """Which value is released if this candidate is chosen."""

    class Told:
        epsilon, rate = end.mechanism.epsilon, end.mechanism.rate
        select = staticmethod(chosen.select)

    told = type(end)(Told(), end.q, end.miss, end.setting)
    return told([tally], DOMAIN, TestRandomness(1))[0]


def test_many_ties_are_one_segment():
    end = FlippedPair(Setting((0, 9), Fraction(1), 0.9, "add-remove"), Fraction(1, 2)).lower(
        Fraction(1, 2), Fraction(1, 2), 0.05
    )
    tally = Tally(np.array([3, 7]), np.array([10**8, 10**8]))
    assert len(end.segments(tally, (0, 9))[0]) < 10_000
    assert end([tally], (0, 9), TestRandomness(1)) == [3]


@pytest.mark.parametrize("relation", RELATIONS)
def test_many_rows_give_an_interval_around_the_quantile(relation):
    tally = Tally(np.arange(1, 1001), np.full(1000, 50))
    for q, truth in ((Fraction(0), 1), (Fraction(1, 2), 500), (Fraction(1), 1000)):
        result = FlippedPair(Setting((0, 2000), Fraction(1), 0.9, relation), q).measure(tally, TestRandomness(1))
        assert truth in result.interval
        assert abs(result.estimate - truth) < 30


def test_no_rows_leave_the_whole_domain():
    result = FlippedPair(Setting((-5, 99), Fraction(1), 0.99, "add-remove"), Fraction(1, 2)).measure(
        Tally.of([]), TestRandomness(2)
    )
    assert result.whole


def test_the_plan_is_known_before_it_runs():
    setting = Setting((0, 10**7), Fraction(1), 0.9, "replace-one")
    plan = FlippedPair(setting, Fraction(1, 2), Expectation(48_842, 208_000))
    assert plan.loss.epsilon == 1
    assert plan.zcdp.rho == Fraction(1, 16)
    assert (plan.name, plan.assumes, plan.condition) == ("em", "always", "")
    assert plan.forecast.ranks == math.ceil(9 * math.log(2 * ((10**7 + 1) * 48_842 + 1) / 0.1)) + 1


def test_what_is_too_large_is_refused_from_public_facts():
    with pytest.raises(ParameterError, match="svt"):
        FlippedPair(Setting(None, Fraction(1), 0.9, "replace-one"), Fraction(1, 2))
    many = Expectation(rows=2**31 + 1)
    with pytest.raises(ParameterError, match="pair or svt"):
        FlippedPair(Setting((0, 9), Fraction(1), 0.9, "add-remove"), Fraction(1, 2), many)
    assert FlippedPair(Setting((0, 9), Fraction(1), 0.9, "replace-one"), Fraction(1, 2), many).loss.epsilon == 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_domains_beyond_64_bits_of_copies_are_held(relation):
    tally = Tally(np.arange(1, 2001) + 2**60, np.full(2000, 5))
    result = FlippedPair(Setting((0, 2**61), Fraction(4), 0.9, relation), Fraction(1, 2)).measure(
        tally, TestRandomness(1)
    )
    assert 2**60 + 1000 in result.interval
    assert result.interval.high - result.interval.low < 2_000


@pytest.mark.parametrize("rows", [2**31 - 1, 2**31, 2**31 + 1, 2**40])
def test_no_segment_is_negative_however_many_rows_are_equal(rows):
    """More rows of one value than copies count as so many; one row more changes at most one of them."""
    end = FlippedPair(Setting((0, 9), Fraction(1), 0.9, "add-remove"), Fraction(1, 2)).lower(
        Fraction(1, 2), Fraction(1, 2), 0.05
    )
    tallies = [end.countable(Tally(np.array([3, 7]), np.array([number, 10]))) for number in (rows, rows + 1)]
    assert all((end.segments(tally, (0, 9))[1] >= 0).all() for tally in tallies)
    assert 0 <= tallies[1].rows - tallies[0].rows <= 1
    assert end(tallies, (0, 9), TestRandomness(1)) == [3, 3]


@pytest.mark.parametrize("q", QUANTILES)
def test_neighbours_with_more_rows_than_copies_stay_neighbours(q, monkeypatch):
    """With two copies of a value, on all data of up to five rows: weights of all that may be released move by e^ε."""
    monkeypatch.setattr(quantile_em, "COPIES", 2)
    end = _end(q, "add-remove")
    laws = {}

    def law(data):
        if data not in laws:
            tally = end.countable(tallied(data))
            _, sizes, exponents = end.segments(tally, DOMAIN)
            weights = np.zeros(3)
            for segment, place in ((s, p) for s in range(len(sizes)) for p in range(int(sizes[s]))):
                chosen = type("Chosen", (), {"select": lambda *_, s=segment, p=place: (np.array([s]), np.array([p]))})
                weights[_released(end, tally, chosen)] += math.exp(-float(end.mechanism.rate) * exponents[segment])
            laws[data] = np.log(weights / weights.sum())
        return laws[data]

    for one, two in neighbours(range(3), 5, "add-remove"):
        assert np.abs(law(tuple(one)) - law(tuple(two))).max() <= float(end.mechanism.epsilon) + 1e-9


def test_what_is_far_away_is_drawn_as_often_as_its_weight_says():
    """2^31 values with their copies, and 10^-9 for the miss rate: those above all rows weigh some 10^-16."""
    domain = (0, 2**31 - 2)
    setting = Setting(domain, Fraction(4), 1 - 1e-9, "add-remove")
    end = FlippedPair(setting, Fraction(1, 2)).lower(Fraction(1, 2), Fraction(2), 5e-10)
    laws = []
    for rows in range(24, 32):
        _, sizes, exponents = end.segments(Tally(np.array([5]), np.array([rows])), domain)
        weight = drawn_weight(exponents, sizes, end.mechanism.rate, 1)
        relative = int(exponents[1] - exponents[sizes > 0].min())
        assert float(weight) == pytest.approx(int(sizes[1]) * math.exp(-float(end.mechanism.rate) * relative))
        assert 79 < end.mechanism.rate * relative < 82
        laws.append(weight)
    assert all(abs(math.log(two / one)) <= end.mechanism.epsilon + 1e-9 for one, two in pairwise(laws))

from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally, bucketed
from confide.mechanism.total.race_sum import RacedSum
from confide.mechanism.total.summation import Summed
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, tallied

HEAVY = Tally(np.array([1, 2, 3, 10, 100, 5000]), np.array([4000, 3000, 2000, 500, 40, 3]))


@pytest.mark.parametrize(("largest", "top"), [(1, 2), (2, 2), (3, 4), (1000, 1024), (1024, 1024), (1025, 2048)])
def test_the_largest_truncation_drops_nothing(largest, top):
    race = RacedSum(Setting((0, largest), Fraction(1), 0.9, "add-remove"))
    assert race.edges(False)[-1] == top
    assert race.edges(False)[0] == 2


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_changes_the_sum_up_to_an_edge_by_at_most_the_edge(relation):
    """By brute force. Of the two signs together, twice that under replace-one and once under add-remove."""
    race = RacedSum(Setting((-5, 5), Fraction(1), 0.9, relation))
    edges, values = race.edges(False), range(-5, 6)
    sums = {
        data: np.cumsum(bucketed(tallied(data), edges).sums, axis=1)
        for rows in range(4)
        for data in data_sets(values, rows)
    }
    parts = 2 if relation == "replace-one" else 1
    for one, two in neighbours(values, 3, relation):
        changes = np.abs(sums[one] - sums[two]) / np.array(edges)
        assert changes.max() <= 1
        assert changes.max(axis=1).sum() <= parts
    lanes = race._lanes(Fraction(1), 0.1, False)
    assert lanes.sensitivities == edges
    assert lanes.epsilon == Fraction(1, parts)


@pytest.mark.parametrize("domain", [(0, 10**6), (-(10**6), 10**6), (-(10**6), 0)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_estimate_is_rarely_above_the_sum(domain, relation):
    setting = Setting(domain, Fraction(1), 0.9, relation)
    tally = HEAVY.mirrored() if domain[1] == 0 else HEAVY
    plan, source = Summed(setting, "total", RacedSum(setting)), TestRandomness(2)
    results = [plan.measure(tally, source) for _ in range(100)]
    truth = tally.total()
    assert np.mean([truth in result.interval for result in results]) >= 0.9
    if domain[0] == 0:
        assert np.mean([result.estimate <= truth for result in results]) >= 0.9
        assert all(result.estimate == result.interval.low for result in results)
    assert all(result.estimate in result.interval for result in results)


def test_a_thin_tail_costs_less_than_the_domain():
    setting = Setting((0, 2**24), Fraction(1), 0.9, "add-remove")
    plan, source = Summed(setting, "total", RacedSum(setting), Expectation(None, 5000)), TestRandomness(2)
    errors = [HEAVY.total() - plan.measure(HEAVY, source).estimate for _ in range(20)]
    assert max(errors) <= HEAVY.total() < 2**24
    assert plan.forecast.half_width > 2**24
    with pytest.raises(ParameterError, match="svt"):
        RacedSum(Setting(None, Fraction(1), 0.9, "add-remove"))

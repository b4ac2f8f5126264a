from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally, bucketed
from confide.mechanism.total.summation import Summed
from confide.mechanism.total.tail_sum import Tail
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, tallied

HEAVY = Tally(np.array([1, 2, 3, 10, 100, 5000]), np.array([40_000, 30_000, 20_000, 5000, 400, 3]))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_changes_the_buckets_by_no_more_than_their_edges_allow(relation):
    """Σ |change of a bucket's sum| / edge, by brute force: the loss in units of ε before it is shared."""
    tail = Tail(Setting((-9, 9), Fraction(1), 0.9, relation))
    edges, values = tail.edges(False), range(-9, 10)
    sums = {data: bucketed(tallied(data), edges).sums for rows in range(3) for data in data_sets(values, rows)}
    worst = max((np.abs(sums[one] - sums[two]) / np.array(edges)).sum() for one, two in neighbours(values, 2, relation))
    assert worst == (2 if relation == "replace-one" else 1)
    shares = [level.loss.epsilon for level in tail._levels(np.array(edges), Fraction(1))]
    assert shares == [Fraction(1, int(worst))] * len(edges)


def test_all_buckets_stay_within_their_margins_as_often_as_said():
    tail = Tail(Setting((0, 10**9), Fraction(1), 0.9, "add-remove"))
    levels = tail._levels(np.array(tail.edges(False)), Fraction(1))
    margins = tail._margins(levels, 0.1, 2)
    missed = sum(2 * level.law.tail(margin) for level, margin in zip(levels, margins, strict=True))
    assert 0.03 < 2 * missed <= 0.1


@pytest.mark.parametrize("domain", [(0, 10**9), (-(10**9), 10**9), (-(10**9), 0)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_lower_end_does_not_pay_for_the_domain(domain, relation):
    setting = Setting(domain, Fraction(1), 0.9, relation)
    tally = HEAVY.mirrored() if domain[1] == 0 else HEAVY
    plan, source = Summed(setting, "total", Tail(setting)), TestRandomness(2)
    results = [plan.measure(tally, source) for _ in range(60)]
    truth = tally.total()
    assert np.mean([truth in result.interval for result in results]) >= 0.9
    assert all(result.estimate in result.interval for result in results)
    assert np.median([abs(result.estimate - truth) for result in results]) < 10**6
    if domain[0] == 0:
        assert np.median([truth - result.interval.low for result in results]) < 10**6
        assert np.median([result.interval.high - truth for result in results]) > 10**9


def test_the_plan_is_known_before_it_runs():
    setting = Setting((0, 10**9), Fraction(1), 0.9, "add-remove")
    plan = Summed(setting, "total", Tail(setting), Expectation(None, 5000))
    assert plan.assumes == "always"
    assert plan.name == "tail"
    width = np.mean(
        [
            (result.interval.high - result.interval.low) / 2
            for source in [TestRandomness(3)]
            for result in (plan.measure(HEAVY, source) for _ in range(40))
        ]
    )
    assert 0.7 < width / plan.forecast.half_width < 1.3
    with pytest.raises(ParameterError, match="svt"):
        Tail(Setting(None, Fraction(1), 0.9, "add-remove"))

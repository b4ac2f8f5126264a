from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.noise.additive import laplace
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally
from confide.mechanism.total.laplace_sum import DeclaredRange, FoundRange, noised
from confide.mechanism.total.summation import Summed
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours

SKEWED = Tally(np.arange(0, 5000, 5), np.linspace(200, 20, 1000).astype(np.int64))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("domain", [(0, 4), (-2, 2), (3, 7), (-4, -1)])
def test_a_sum_changes_by_no_more_than_its_noise_is_made_for(domain, centred, relation):
    """By brute force; under add-remove a sum about a centre goes with a count, which has its own noise."""
    summer = DeclaredRange(Setting(domain, Fraction(1), 0.9, relation))
    values, centre = range(domain[0], domain[1] + 1), summer._centre(centred)
    sums = {data: sum(value - centre for value in data) for rows in range(4) for data in data_sets(values, rows)}
    changes = [abs(sums[one] - sums[two]) for one, two in neighbours(values, 3, relation)]
    assert max(changes) == summer._sensitivity(centred)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_declared_range_gives_the_laplace_interval(relation):
    plan = Summed(
        Setting((0, 10), Fraction(1), 0.9, relation),
        "total",
        DeclaredRange(Setting((0, 10), Fraction(1), 0.9, relation)),
    )
    result = plan.measure(Tally.of([1, 2, 3] * 100), TestRandomness(1))
    half_width = laplace(10, Fraction(1)).law.half_width(0.9)
    assert result.interval.high - result.estimate == half_width
    assert plan.forecast.half_width == half_width
    assert plan.assumes == "always"
    assert plan.condition == ""


def test_a_declared_range_needs_one():
    with pytest.raises(ParameterError, match="svt"):
        DeclaredRange(Setting(None, Fraction(1), 0.9, "add-remove"))


def test_noise_is_added_to_the_exact_sum():
    span = noised(Tally.of([10**18] * 50), 3, 0, Fraction(1), 0.1, TestRandomness(1))
    assert (span.low, span.estimate, span.high) == (50 * (10**18 - 3),) * 3


@pytest.mark.parametrize("domain", [(0, 10**9), (-(10**9), 10**9), None])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("statistic", ["total", "mean"])
def test_a_found_range_is_far_narrower_than_a_loose_one(statistic, relation, domain):
    setting = Setting(domain, Fraction(1), 0.9, relation)
    plan = Summed(setting, statistic, FoundRange(setting), Expectation(SKEWED.rows, 5000))
    result = plan.measure(SKEWED, TestRandomness(3))
    truth = SKEWED.total() / (SKEWED.rows if statistic == "mean" else 1)
    width = result.interval.high - result.interval.low
    assert truth in result.interval
    assert abs(result.estimate - truth) <= width
    assert plan.assumes == result.interval.assumes == "density"
    assert "rows" in plan.condition or "values" in plan.condition
    assert width / 2 < 3 * plan.forecast.half_width
    if domain is not None:
        loose = Summed(setting, statistic, DeclaredRange(setting))
        assert plan.forecast.half_width < loose.forecast.half_width / 1000


def test_the_shares_of_the_cost_add_up_exactly():
    summer = FoundRange(Setting((0, 9), Fraction(1), 0.9, "add-remove"))
    for centred in (False, True):
        assert sum(summer._shares(Fraction(1, 7), centred)) == Fraction(1, 7)
        assert (summer._shares(Fraction(1, 7), centred)[0] == 0) != centred


def test_the_interval_is_shifted_back_at_both_ends():
    """The printed Algorithm 6 adds the radius at one end, which puts the interval off by twice the radius."""
    setting = Setting((-(10**6), 10**6), Fraction(50), 0.9, "replace-one")
    tally = Tally(np.arange(500_000, 500_100), np.full(100, 100))
    result = Summed(setting, "mean", FoundRange(setting)).measure(tally, TestRandomness(1))
    assert result.interval.low <= 500_049.5 <= result.interval.high
    assert result.interval.high - result.interval.low < 10


def test_finer_radii_are_narrower():
    widths = []
    for base in (2.0, 2**0.25):
        setting, source = Setting(None, Fraction(1), 0.9, "add-remove"), TestRandomness(5)
        plan = Summed(setting, "total", FoundRange(setting, base), Expectation(SKEWED.rows, 5000))
        intervals = [plan.measure(SKEWED, source).interval for _ in range(40)]
        widths.append(np.median([interval.high - interval.low for interval in intervals]))
    assert widths[1] < widths[0]

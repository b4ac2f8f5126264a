"""Coverage of quantiles, sums and means on forty data sets: at least nominal, whatever the data are.

An interval that assumes a density is held to it only where the data have it. Each case is an exact binomial test at
level 10⁻⁴ in the ordinary runs and 10⁻⁷ in the audits; seeds are fixed, so a case passes or fails for good.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from confide.mechanism import KernelRandomness, TestRandomness
from confide.mechanism.quantile.choice import MAKERS, quantile_plan
from confide.mechanism.quantile.rank import order_statistics
from confide.mechanism.total.choice import SUMMERS, mean_plan, total_plan
from tests.mechanism.small_data import RELATIONS
from tests.statistical.data_sets import DATA, DOMAIN

QUANTILES = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 100), Fraction(0), Fraction(1)]
FEW, MANY = 10, 300


def _not_below(covered, confidence):
    level = 1e-4 if len(covered) < 100 else 1e-7
    misses = len(covered) - sum(covered)
    assert binom.sf(misses - 1, len(covered), 1 - confidence) > level, f"{misses} misses in {len(covered)} runs"


def _covers(tally, q, interval, whole):
    """Whether every definition of the quantile is inside; without rows, whether the interval is the domain."""
    if tally.rows == 0:
        return whole
    low, high = tally.order_statistics(np.array(order_statistics(q, tally.rows)), *DOMAIN)
    return interval.low <= low and high <= interval.high


def _quantile_case(name, relation, q, data, runs, confidence, source, epsilon=Fraction(1)):
    plan = quantile_plan(q, DOMAIN, epsilon, confidence, relation, mechanism=name)
    results = [plan.measure(DATA[data], source) for _ in range(runs)]
    assert all(result.estimate in result.interval for result in results)
    _not_below([_covers(DATA[data], q, result.interval, result.whole) for result in results], confidence)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_quantiles(name, relation):
    source = TestRandomness(1)
    for number, data in enumerate(DATA):
        _quantile_case(name, relation, QUANTILES[number % 5], data, FEW, 0.7, source)
        _quantile_case(name, relation, Fraction(1, 2), data, FEW, 0.7, source)


def _dense(plan, tally):
    """Whether the data are as dense at the rim as the plan assumes, about any centre within their range."""
    if tally.rows == 0:
        return True
    needed = int("".join(part for part in plan.condition.split("rows")[0].split("values")[0] if part.isdigit()))
    low, high = int(tally.values[0]), int(tally.values[-1])
    if "quarter" in plan.condition:
        first = tally.counts[tally.values <= low + (high - low) / 4].sum()
        last = tally.counts[tally.values >= high - (high - low) / 4].sum()
        return min(first, last) >= needed
    largest = max(-low, high)
    return tally.counts[np.abs(tally.values) >= largest / 2].sum() >= needed


def _sum_case(make, name, relation, data, runs, confidence, source, epsilon=Fraction(1)):
    tally, plan = DATA[data], make(DOMAIN, epsilon, confidence, relation, mechanism=name)
    if plan.assumes == "density" and not _dense(plan, tally):
        return False
    results = [plan.measure(tally, source) for _ in range(runs)]
    assert all(result.estimate in result.interval for result in results)
    if make is total_plan:
        covered = [tally.total() in result.interval for result in results]
    elif tally.rows:
        covered = [tally.total() / tally.rows in result.interval for result in results]
    else:
        covered = [result.whole for result in results]
    _not_below(covered, confidence)
    return True


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(SUMMERS))
@pytest.mark.parametrize("make", [total_plan, mean_plan])
def test_sums_and_means(make, name, relation):
    source = TestRandomness(2)
    held = [_sum_case(make, name, relation, data, FEW, 0.7, source) for data in DATA]
    assert sum(held) >= (15 if name == "svt" else 40)


def test_the_coverage_test_can_fail():
    """Half the width is not enough."""
    plan, source = total_plan(DOMAIN, Fraction(1), 0.7, "add-remove", mechanism="laplace"), TestRandomness(3)
    tally = DATA["even"]
    results = [plan.measure(tally, source) for _ in range(400)]
    halved = [
        abs(tally.total() - result.estimate) <= (result.interval.high - result.estimate) / 2 for result in results
    ]
    with pytest.raises(AssertionError, match="misses"):
        _not_below(halved, 0.7)


@pytest.mark.audit
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_audit_quantiles(name, data):
    for relation in RELATIONS:
        for q in (Fraction(1, 2), Fraction(9, 10)):
            _quantile_case(name, relation, q, data, MANY, 0.9, KernelRandomness())


@pytest.mark.audit
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", sorted(SUMMERS))
def test_audit_sums_and_means(name, data):
    for relation in RELATIONS:
        for make in (total_plan, mean_plan):
            _sum_case(make, name, relation, data, MANY, 0.9, KernelRandomness())

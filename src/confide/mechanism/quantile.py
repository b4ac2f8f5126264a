"""Quantiles of groups, each with an interval: the choice of a mechanism, and one call for all groups."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Final

from confide.mechanism.interval import Assumes, Ends, Interval, Intervals
from confide.mechanism.quantile_em import FlippedPair
from confide.mechanism.quantile_pair import Pair
from confide.mechanism.quantile_smooth import SmoothQuantile
from confide.mechanism.quantile_svt import Walk
from confide.mechanism.randomness import Randomness
from confide.mechanism.rank import parse_quantile
from confide.mechanism.statistic import (
    NOTHING_EXPECTED,
    Estimated,
    Expectation,
    Setting,
    StatisticPlan,
    choose,
    measured,
)
from confide.mechanism.tally import Domain, Neighbours, Tally

MAKERS: Final[dict[str, Callable[[Setting, Fraction, Expectation], StatisticPlan]]] = {
    "pair": Pair,
    "em": FlippedPair,
    "svt": Walk,
    "smooth": SmoothQuantile,
}


def quantile_plan(
    q: object,
    domain: Domain | None,
    epsilon: Fraction,
    confidence: float,
    neighbours: Neighbours,
    rows: int = 1,
    mechanism: str = "auto",
    expectation: Expectation = NOTHING_EXPECTED,
) -> StatisticPlan:
    """What a q-quantile of values in the domain will cost and how far it will be off. `auto` takes the narrowest
    forecast.

    MIN and MAX are the quantiles 0 and 1, MEDIAN is 1/2. A domain of None is unbounded.
    """
    exact, setting = parse_quantile(q), Setting(domain, epsilon, confidence, neighbours, rows)
    return choose({name: partial(make, setting, exact, expectation) for name, make in MAKERS.items()}, mechanism)


def window_of(plan: StatisticPlan) -> Callable[[int], Domain] | None:
    """From a number of rows, the ranks between which the plan looks at values (see `rank`); None if at all of them."""
    return plan.window() if isinstance(plan, Pair | Walk) else None


def quantile_intervals(
    tallies: Sequence[Tally],
    q: object,
    domain: Domain | None,
    epsilon: Fraction,
    confidence: float,
    neighbours: Neighbours,
    rows: int = 1,
    mechanism: str = "auto",
    *,
    expectation: Expectation = NOTHING_EXPECTED,
    randomness: Randomness,
) -> tuple[Ends, Intervals, str]:
    """An estimate and an interval for each group, and the name of the mechanism. Each group costs ε of its own."""
    plan = quantile_plan(q, domain, epsilon, confidence, neighbours, rows, mechanism, expectation)
    return *measured(plan, tallies, confidence, randomness), plan.name


def difference(upper: Estimated, lower: Estimated) -> Estimated:
    """One quantile minus another, such as the interquartile range: it is not negative.

    The miss rates of the two add up.
    """
    low = max(upper.interval.low - lower.interval.high, 0)
    high = max(upper.interval.high - lower.interval.low, 0)
    confidence = max(0.0, upper.interval.confidence + lower.interval.confidence - 1)
    assumes: Assumes = "density" if "density" in (upper.interval.assumes, lower.interval.assumes) else "always"
    estimate = min(max(upper.estimate - lower.estimate, low), high)
    return Estimated(estimate, Interval(low, high, confidence, assumes), upper.whole and lower.whole)

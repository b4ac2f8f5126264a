"""Quantiles, and sums and means on wide domains: which mechanism, and what it gives for every group."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import inf
from typing import Any

import numpy as np

from confide.mechanism import Randomness
from confide.mechanism.commonest import commonest_plan
from confide.mechanism.quantile.choice import MAKERS, quantile_plan
from confide.mechanism.statistic import Expectation, Setting, StatisticEstimate, StatisticPlan, choose
from confide.mechanism.tally import Tally
from confide.mechanism.total.choice import SUMMERS, mean_plan, total_plan
from confide.privacy.amount import root
from confide.query.grid import EvenGrid
from confide.query.question import Statistic
from confide.query.sensitivity import Stability, of_histogram
from confide.release.answer.estimate import Estimate


def plan_statistic(
    statistic: Statistic,
    epsilon: Fraction,
    confidence: float,
    rows: int | None,
    mechanism: str | None = None,
    delta: Fraction = Fraction(0),
    spread: float | None = None,
) -> StatisticPlan:
    """The plan of one statistic at ε; `rows` is what is publicly expected of a group, for forecasts and for `auto`.

    With a δ, ε stands for ρ = ε²/2. `spread`, over which most values are believed to lie, is for forecasts only: what
    is measured has none.
    """
    domain = None if statistic.low is None or statistic.high is None else (statistic.low, statistic.high)
    named = mechanism or statistic.mechanism
    expectation = Expectation(rows, spread)
    if statistic.kind == "mode":
        setting = Setting(domain, epsilon, confidence, statistic.neighbours, statistic.rows, delta)
        changed = of_histogram(Stability(statistic.rows, 1, statistic.neighbours, grouped=False))
        return commonest_plan(setting, statistic.places, changed.l1, changed.l2_squared, named)
    shared = (domain, epsilon, confidence, statistic.neighbours, statistic.rows, named, expectation)
    if statistic.kind == "quantile":
        return quantile_plan(statistic.q, *shared, delta)
    return total_plan(*shared) if statistic.kind == "total" else mean_plan(*shared)


def plan_within(
    statistic: Statistic, rho: Fraction, delta: Fraction, confidence: float, rows: int | None
) -> StatisticPlan:
    """The plan of one statistic at ρ and up to δ. `auto` is the narrowest forecast of what each may have at ρ."""
    if statistic.kind == "mode":
        return plan_statistic(statistic, root(2 * rho), confidence, rows, delta=delta)
    names = MAKERS if statistic.kind == "quantile" else SUMMERS

    def make(name: str) -> StatisticPlan:
        return _enlarged(statistic, rho, delta, confidence, rows, name)

    return choose({name: partial(make, name) for name in names}, statistic.mechanism)


def _enlarged(
    statistic: Statistic, rho: Fraction, delta: Fraction, confidence: float, rows: int | None, name: str
) -> StatisticPlan:
    """One mechanism at ρ: some cost less ρ than ε²/2, and then may have a larger ε."""
    epsilon = root(2 * rho)
    plan = plan_statistic(statistic, epsilon, confidence, rows, name, delta)
    larger = epsilon * root(rho / plan.zcdp.rho)
    if larger > epsilon:
        better = plan_statistic(statistic, larger, confidence, rows, name, delta)
        if better.zcdp.rho <= rho:
            return better
    return plan


def measure_statistic(
    plan: StatisticPlan, statistic: Statistic, counts: Sequence[Any], randomness: Randomness
) -> Estimate:
    """One estimate and interval for each group, in the units of the column."""
    results = plan.measure_each([_tally(parts, statistic) for parts in counts], randomness)
    if statistic.kind == "mode":
        return _commonest(results)
    grain = statistic.grain
    ends = [_ends(result, statistic) for result in results]
    parts = [[result.estimate for result in results], [low for low, _ in ends], [high for _, high in ends]]
    whole = grain.denominator == 1 and all(isinstance(number, int) for part in parts for number in part)
    middle, low, high = (np.array([_worth(number, grain, whole) for number in part], dtype=object) for part in parts)
    domain = (statistic.low, statistic.high)
    unknown = np.array([r.whole or both == domain for r, both in zip(results, ends, strict=True)], dtype=bool)
    if whole:
        return Estimate(middle, low, high, whole=True, empty=unknown, assumes=plan.assumes)
    return Estimate(middle.astype(float), low.astype(float), high.astype(float), empty=unknown, assumes=plan.assumes)


def _commonest(results: Sequence[StatisticEstimate]) -> Estimate:
    """Places of values, and which of them are possible."""
    parts = ([r.estimate, r.interval.low, r.interval.high] for r in results)
    middle, low, high = np.array(list(parts), dtype=np.int64).reshape(-1, 3).T
    possible = np.empty(len(results), dtype=object)
    possible[:] = [result.possible for result in results]
    unknown = np.array([result.whole for result in results], dtype=bool)
    return Estimate(middle, low, high, whole=True, empty=unknown, possible=possible)


def _tally(parts: Sequence[Any], statistic: Statistic) -> Tally:
    values, counts, *sums = parts
    return Tally(values, counts, sums[0] if sums else None, statistic.grid)


def _ends(result: StatisticEstimate, statistic: Statistic) -> tuple[float, float]:
    """The ends of an interval: of the points of cells a quantile is known, so it covers their cells whole."""
    low, high = result.interval.low, result.interval.high
    if statistic.grid is None or statistic.kind != "quantile":
        return low, high
    return statistic.grid.cover(int(low), int(high))


def expect_statistic(plan: StatisticPlan, statistic: Statistic) -> Estimate:
    """A forecast as if it had been measured: the middle of where values lie, give or take the expected half-width."""
    grain = float(statistic.grain)
    middle = 0.0
    if statistic.typical is not None:
        middle = grain * float(sum(statistic.typical)) / 2
    elif statistic.low is not None and statistic.high is not None:
        middle = grain * (statistic.low + statistic.high) / 2
    half = plan.forecast.half_width * grain
    if statistic.kind == "mode":  # how many rows tell values apart
        middle = 0.0
    if isinstance(statistic.grid, EvenGrid):
        half += statistic.grid.step * grain / 2
    if half == inf:
        return Estimate(np.array([middle]), np.array([-inf]), np.array([inf]), assumes=plan.assumes)
    return Estimate(np.array([middle]), np.array([middle - half]), np.array([middle + half]), assumes=plan.assumes)


def _worth(number: float, grain: Fraction, whole: bool) -> float:
    if whole:
        return int(number) * grain.numerator
    return float(Fraction(number) * grain) if number not in (inf, -inf) else number

"""Quantiles, each with an interval: the choice of a mechanism."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Final

from confide.mechanism.quantile.em import FlippedPair
from confide.mechanism.quantile.pair import Pair
from confide.mechanism.quantile.rank import parse_quantile
from confide.mechanism.quantile.smooth_noise import SmoothQuantile
from confide.mechanism.quantile.svt import Walk
from confide.mechanism.statistic import NOTHING_EXPECTED, Expectation, Setting, StatisticPlan, choose
from confide.mechanism.tally import Domain, Neighbours

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
    delta: Fraction = Fraction(0),
) -> StatisticPlan:
    """What a q-quantile of values in the domain will cost and how far it will be off. `auto` takes the narrowest
    forecast.

    MIN and MAX are the quantiles 0 and 1, MEDIAN is 1/2. A domain of None is unbounded.
    With a δ, ε stands for ρ = ε²/2.
    """
    exact, setting = parse_quantile(q), Setting(domain, epsilon, confidence, neighbours, rows, delta)
    return choose({name: partial(make, setting, exact, expectation) for name, make in MAKERS.items()}, mechanism)

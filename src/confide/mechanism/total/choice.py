"""Sums and means, each with an interval: the choice of a mechanism."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Final

from confide.mechanism.statistic import NOTHING_EXPECTED, Expectation, Setting, choose
from confide.mechanism.tally import Domain, Neighbours
from confide.mechanism.total.laplace_sum import FINE, DeclaredRange, FoundRange
from confide.mechanism.total.race_sum import RacedSum
from confide.mechanism.total.summation import Statistic, Summed, Summer
from confide.mechanism.total.tail_sum import Tail

SUMMERS: Final[dict[str, Callable[[Setting, float], Summer]]] = {
    "laplace": lambda setting, _: DeclaredRange(setting),
    "svt": FoundRange,
    "r2t": lambda setting, _: RacedSum(setting),
    "tail": lambda setting, _: Tail(setting),
}


def total_plan(
    domain: Domain | None,
    epsilon: Fraction,
    confidence: float,
    neighbours: Neighbours,
    rows: int = 1,
    mechanism: str = "auto",
    expectation: Expectation = NOTHING_EXPECTED,
    base: float = FINE,
) -> Summed:
    """What a sum will cost and how far it will be off. `auto` takes the narrowest forecast; `base` is that of `svt`."""
    return _plan("total", Setting(domain, epsilon, confidence, neighbours, rows), mechanism, expectation, base)


def mean_plan(
    domain: Domain | None,
    epsilon: Fraction,
    confidence: float,
    neighbours: Neighbours,
    rows: int = 1,
    mechanism: str = "auto",
    expectation: Expectation = NOTHING_EXPECTED,
    base: float = FINE,
) -> Summed:
    """What a mean will cost and how far it will be off. `auto` and `base` as for a sum."""
    return _plan("mean", Setting(domain, epsilon, confidence, neighbours, rows), mechanism, expectation, base)


def _plan(statistic: Statistic, setting: Setting, mechanism: str, expectation: Expectation, base: float) -> Summed:
    def make(name: str) -> Summed:
        return Summed(setting, statistic, SUMMERS[name](setting, base), expectation)

    return choose({name: partial(make, name) for name in SUMMERS}, mechanism)

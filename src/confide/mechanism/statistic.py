"""What the mechanisms for quantiles, sums and means have in common: their setting, their plans, their results."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, TypeVar, get_args

from confide.errors import ParameterError
from confide.mechanism.interval.interval import Assumes, Interval
from confide.mechanism.noise.law import miss_rate
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.tally import REACH, Domain, Neighbours, Tally
from confide.privacy.loss import ZCDP, PureDP

TYPICAL_ROWS: Final = 10_000  # what a forecast takes where nobody says how many rows to expect


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about one statistic: the domain of its values, its cost, who is protected.

    `rows` is the most rows that one unit has. A change of `rows` rows is a chain of `rows` changes of one row, each
    within `row_epsilon` = ε / rows; so a mechanism that is `row_epsilon`-DP for rows is ε-DP for units, under both
    relations. Where a budget adds up ρ, ε stands for ρ = ε²/2, and a mechanism may use `delta` beside that.
    """

    domain: Domain | None
    epsilon: Fraction
    confidence: float
    neighbours: Neighbours
    rows: int = 1
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        miss_rate(self.confidence)
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ParameterError("epsilon must be an exact number above 0")
        if self.neighbours not in get_args(Neighbours):
            raise ParameterError(
                f"neighbours must be one of {', '.join(get_args(Neighbours))}; got {self.neighbours!r}"
            )
        if self.rows < 1:
            raise ParameterError(f"a unit has at least one row; got rows = {self.rows}")
        if self.domain is not None and not -REACH <= self.domain[0] <= self.domain[1] <= REACH:
            raise ParameterError("a domain goes from its smallest to its largest value, both within 2^62 of zero")

    @property
    def ends(self) -> Domain:
        return (-REACH, REACH) if self.domain is None else self.domain

    @property
    def size(self) -> int:
        low, high = self.ends
        return high - low + 1

    @property
    def row_epsilon(self) -> Fraction:
        return self.epsilon / self.rows

    @property
    def miss(self) -> float:
        return miss_rate(self.confidence)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    def bound(self, mechanism: str, instead: str) -> Domain:
        """The domain, for a mechanism that needs one."""
        if self.domain is None:
            raise ParameterError(
                f"the mechanism {mechanism} needs a bounded column; for an unbounded one use {instead}"
            )
        return self.domain


@dataclass(frozen=True, slots=True)
class Expectation:
    """What somebody expects of the data, from public knowledge: how many rows, and over how wide a range most lie."""

    rows: int | None = None
    spread: float | None = None


NOTHING_EXPECTED: Final = Expectation()


@dataclass(frozen=True, slots=True)
class StatisticForecast:
    """The expected half-width, from public facts. `basis` says what it rests on, or what it would take to know."""

    half_width: float
    basis: str
    ranks: float | None = None
    """For quantiles: how many rows lie between the quantile and an end. This needs no guess about the data."""


@dataclass(frozen=True, slots=True)
class StatisticEstimate:
    """A released number inside its interval. `whole`: the interval is all that was possible, so nothing was learnt.

    `possible`, where it is told: which numbers between the ends it may be.
    """

    estimate: float
    interval: Interval
    whole: bool = False
    possible: tuple[int, ...] = ()


class StatisticPlan(Protocol):
    """One statistic, decided from public facts: its cost and its forecast are known before anything is read."""

    @property
    def name(self) -> str: ...

    @property
    def setting(self) -> Setting: ...

    @property
    def loss(self) -> PureDP | ZCDP: ...

    @property
    def zcdp(self) -> ZCDP:
        """The same cost as concentrated privacy, for a budget that adds up ρ."""

    @property
    def assumes(self) -> Assumes: ...

    @property
    def condition(self) -> str:
        """What the data must be like for the interval to hold; empty if nothing is assumed."""

    @property
    def forecast(self) -> StatisticForecast: ...

    def measure(self, tally: Tally, randomness: Randomness) -> StatisticEstimate: ...

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        """The same for several tallies, each with noise of its own."""

    def window(self) -> Callable[[int], Domain] | None:
        """From a number of rows, the ranks between which it looks at values (see `quantile.rank`); None: at all."""


def inside(
    estimate: float, low: float, high: float, setting: Setting, assumes: Assumes = "always"
) -> StatisticEstimate:
    """The estimate and its interval, within the domain; the estimate is moved into the interval."""
    if setting.domain is not None:
        estimate, low, high = possible(estimate, low, high, *setting.domain)
    estimate = min(max(estimate, low), high)
    whole = (low, high) == (setting.domain or (-math.inf, math.inf))
    return StatisticEstimate(estimate, Interval(low, high, setting.confidence, assumes), whole)


def possible(estimate: float, low: float, high: float, least: float, most: float) -> tuple[float, float, float]:
    """An estimate and the ends of its interval between `least` and `most`, where what is estimated lies.

    An estimate beyond an end moves to it, and the interval with it where that makes it wider. So nothing is lost but
    what is impossible, and something is left: cutting alone would leave a point, which looks certain.
    """
    nearest = min(max(estimate, least), most)
    low, high = min(low, low + nearest - estimate), max(high, high + nearest - estimate)
    return nearest, min(max(low, least), most), min(max(high, least), most)


Plan = TypeVar("Plan", bound=StatisticPlan)


def choose(makers: Mapping[str, Callable[[], Plan]], name: str) -> Plan:
    """The plan of that name; for `auto` the one with the narrowest forecast, of those that public facts allow."""
    if name != "auto":
        if name not in makers:
            raise ParameterError(f"there is no mechanism {name!r} for this; there are auto, {', '.join(makers)}")
        return makers[name]()
    plans, refusals = [], []
    for make in makers.values():
        try:
            plans.append(make())
        except ParameterError as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[-1]
    return min(plans, key=lambda plan: plan.forecast.half_width)

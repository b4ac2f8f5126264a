"""Sums and means with intervals: what every way to sum has in common, and means as quotients."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Protocol

import numpy as np

from confide.mechanism.interval.interval import Assumes, Interval
from confide.mechanism.interval.ratio import ratio_estimates, ratio_intervals
from confide.mechanism.noise.additive import Additive, Measurement, laplace
from confide.mechanism.noise.law import Law, NoNoise
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.statistic import (
    NOTHING_EXPECTED,
    TYPICAL_ROWS,
    Expectation,
    Setting,
    StatisticEstimate,
    StatisticForecast,
    possible,
)
from confide.mechanism.tally import Domain, Tally
from confide.privacy.conversion import rho_of_pure
from confide.privacy.loss import ZCDP, PureDP

Statistic = Literal["total", "mean"]
COUNT_MISS: Final = 0.2  # of the miss rate, for the number of rows where that is private


@dataclass(frozen=True, slots=True)
class SumSpan:
    """Σ(x - centre) over the rows: an estimate, and ends between which it lies.

    If the estimate is the exact sum plus noise of one law, `law` says which, and `miss` how often it is outside.
    """

    centre: int
    estimate: int
    low: int
    high: int
    law: Law | None = None
    miss: float = 0.0


class Summer(Protocol):
    """A way to sum privately. `centred`: whether it may sum about a centre of its own, because n is known or
    measured.
    """

    @property
    def name(self) -> str: ...

    @property
    def assumes(self) -> Assumes: ...

    @property
    def count_share(self) -> Fraction:
        """Of ε, for the number of rows where a mean needs it."""

    def condition(self, epsilon: Fraction, miss: float, centred: bool) -> str: ...

    def prepare(self, epsilon: Fraction, miss: float, centred: bool) -> None:
        """Refuses an ε that is too small, before anything is charged."""

    def expected(self, epsilon: Fraction, miss: float, centred: bool, expectation: Expectation) -> float:
        """The half-width of the sum to expect."""

    def off_centre(self, expectation: Expectation) -> float:
        """How far from its centre the mean may be expected: so much of the error of the count goes into a mean."""

    def span(self, tally: Tally, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness) -> SumSpan: ...


@dataclass(frozen=True, slots=True)
class Summed:
    """Releases a sum, or a mean as a sum divided by the number of rows, which is measured too where it is private.

    Neighbours: add-remove (n private) or replace-one (n public); `rows` rows per unit.
    Loss: ε-DP, the summer's and for a mean under add-remove that of a count with discrete Laplace noise.
    Interval: what the summer's is. A mean of no rows does not exist; then the interval is the whole domain.
    """

    setting: Setting
    statistic: Statistic
    summer: Summer
    expectation: Expectation = NOTHING_EXPECTED

    def __post_init__(self) -> None:
        self.summer.prepare(self._sum_epsilon, self._sum_miss, self._centred)
        if self._counts:
            _ = self._count

    @property
    def name(self) -> str:
        return self.summer.name

    @property
    def assumes(self) -> Assumes:
        return self.summer.assumes

    @property
    def condition(self) -> str:
        return self.summer.condition(self._sum_epsilon, self._sum_miss, self._centred)

    @property
    def loss(self) -> PureDP:
        return self.setting.loss

    @property
    def zcdp(self) -> ZCDP:
        return ZCDP(rho_of_pure(self.setting.epsilon))

    @property
    def forecast(self) -> StatisticForecast:
        half_width = self.summer.expected(self._sum_epsilon, self._sum_miss, self._centred, self.expectation)
        rows = self.expectation.rows or TYPICAL_ROWS
        basis = f"{rows} rows" if self.statistic == "mean" else "any number of rows"
        if self.expectation.spread is None:
            basis += ", values over the whole domain (say what spread to expect if it is less)"
        else:
            basis += f", values over {self.expectation.spread:.6g}"
        if self.statistic == "mean":
            low, high = self.setting.ends
            if self._counts:
                count = self._count.law.half_width(1 - Fraction(self.setting.miss * COUNT_MISS))
                half_width += count * self.summer.off_centre(self.expectation)
            half_width = min(half_width / rows, (high - low) / 2)
        return StatisticForecast(half_width, basis)

    def window(self) -> None:
        """It looks at all values."""

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        return [self.measure(tally, randomness) for tally in tallies]

    def measure(self, tally: Tally, randomness: Randomness) -> StatisticEstimate:
        clipped = tally.clipped(*self.setting.ends)
        if self._pointless(clipped.rows):
            return self._nothing()
        span = self.summer.span(clipped, self._sum_epsilon, self._sum_miss, self._centred, randomness)
        return self._finished(span, clipped.rows, randomness)

    def _pointless(self, rows: int) -> bool:
        """Whether it is known without looking that a mean can only be reported as the domain."""
        return self.statistic == "mean" and (self.setting.size == 1 or (self._n_public and rows == 0))

    def _finished(self, span: SumSpan, rows: int, randomness: Randomness) -> StatisticEstimate:
        if self.statistic == "total":
            return self._total(span, rows if self._n_public else None)
        if self._n_public:
            return self._mean(span, rows, rows, rows)
        count = self._count.measure(np.array([rows]), randomness)
        if span.law is not None:
            return self._ratio(span, count)
        noised, half_width = int(count.values[0]), count.law.half_width(1 - Fraction(self.setting.miss * COUNT_MISS))
        return self._mean(span, noised, noised - half_width, noised + half_width)

    @property
    def _n_public(self) -> bool:
        return self.setting.neighbours == "replace-one"

    @property
    def _centred(self) -> bool:
        return self._n_public or self.statistic == "mean"

    @property
    def _counts(self) -> bool:
        return self.statistic == "mean" and not self._n_public

    @property
    def _sum_epsilon(self) -> Fraction:
        return self.setting.row_epsilon * (1 - self.summer.count_share if self._counts else 1)

    @property
    def _sum_miss(self) -> float:
        return self.setting.miss * (1 - COUNT_MISS if self._counts else 1)

    @property
    def _count(self) -> Additive:
        return laplace(1, self.setting.row_epsilon * self.summer.count_share)

    def _total(self, span: SumSpan, rows: int | None) -> StatisticEstimate:
        """The ends cut to what is possible: no less than n times the lowest value if n is public, or not negative."""
        shift = span.centre * (rows or 0)
        ends = span.estimate + shift, span.low + shift, span.high + shift
        estimate, low, high = (int(part) for part in possible(*ends, *self._possible(rows)))
        return StatisticEstimate(estimate, Interval(low, high, self.setting.confidence, self.assumes))

    def _possible(self, rows: int | None) -> tuple[float, float]:
        if self.setting.domain is None:
            return -math.inf, math.inf
        low, high = self.setting.domain
        if rows is not None:
            return rows * low, rows * high
        return 0 if low >= 0 else -math.inf, 0 if high <= 0 else math.inf

    def _mean(self, span: SumSpan, rows: int, least_rows: int, most_rows: int) -> StatisticEstimate:
        if least_rows < 1:
            return self._nothing()
        low = Fraction(span.low, least_rows if span.low < 0 else most_rows)
        high = Fraction(span.high, most_rows if span.high < 0 else least_rows)
        numbers = [float(span.centre + part) for part in (low, Fraction(span.estimate, rows), high)]
        margin = 2.0**-52 * max(abs(number) for number in numbers)  # rounding to doubles, outwards
        return self._inside(numbers[0] - margin, numbers[1], numbers[2] + margin)

    def _ratio(self, span: SumSpan, count: Measurement) -> StatisticEstimate:
        """By the joint law of the two noises."""
        least, most = self.setting.domain or (-math.inf, math.inf)
        top = np.array([span.estimate], dtype=object)
        intervals = ratio_intervals(
            top,
            count.values,
            span.law or NoNoise(),
            count.law,
            1 - Fraction(span.miss) - Fraction(self.setting.miss * COUNT_MISS),
            low=least - span.centre,
            high=most - span.centre,
            denominator_nonnegative=True,
        )
        estimate = float(ratio_estimates(top, count.values, intervals, denominator_nonnegative=True)[0])
        low, high = float(intervals.low[0]), float(intervals.high[0])
        margin = 2.0**-50 * max(abs(span.centre), *(abs(end) for end in (low, high) if math.isfinite(end)), 0)
        return self._inside(span.centre + low - margin, span.centre + estimate, span.centre + high + margin)

    def _nothing(self) -> StatisticEstimate:
        low, high = self.setting.domain or (-math.inf, math.inf)
        return self._inside(low, 0.0 if self.setting.domain is None else (low + high) / 2, high)

    def _inside(self, low: float, estimate: float, high: float) -> StatisticEstimate:
        least, most = self.setting.domain or (-math.inf, math.inf)
        estimate, low, high = possible(estimate, low, high, least, most)
        interval = Interval(float(low), float(high), self.setting.confidence, self.assumes)
        return StatisticEstimate(float(min(max(estimate, low), high)), interval, (low, high) == (least, most))


def centre_of(domain: Domain, centred: bool) -> int:
    """The value of the domain nearest to zero, if sums may be taken about it; else zero."""
    return min(max(0, domain[0]), domain[1]) if centred else 0


def shifted(tally: Tally, centre: int) -> Tally:
    if centre == 0:
        return tally
    sums = None if tally.sums is None else tally.sums - centre * tally.counts.astype(object)
    return Tally(tally.values - centre, tally.counts, sums)


def sensitivity(low: int, high: int, setting: Setting) -> int:
    """By how much one row changes a sum of values in [low, high]."""
    return high - low if setting.neighbours == "replace-one" else max(abs(low), abs(high))

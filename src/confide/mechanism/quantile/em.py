"""A quantile and its interval as [Sun2023] builds it from the exponential mechanism (EMCI)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.law import MOST_ROWS, keep_shift
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.quantile.rank import TwoEnds, order_statistics, rank_forecast
from confide.mechanism.selection.exponential import AnyIntegers, Exponential
from confide.mechanism.statistic import NOTHING_EXPECTED, Expectation, Setting, StatisticEstimate, StatisticForecast
from confide.mechanism.tally import REACH, Domain, Integers, Tally
from confide.privacy.conversion import rho_of_exponential
from confide.privacy.loss import ZCDP, PureDP

COPIES: Final = 2**31
"""Under add-remove n is private: so many places for the copies of one value, in place of n. More rows of one value than
that count as so many, which changes at most one row where one row changes: neighbours stay neighbours.
"""
FLIPPED: Final = 2  # the sensitivity of a flipped utility, twice that of the utility (Lemma 3.3)
STEP: Final = 1  # the utility is 1-Lipschitz once no two values are equal
FAR: Final = (
    128  # utilities whose weight is below e^-128 of the peak's are cut off there, which keeps their sensitivity
)


@dataclass(frozen=True, slots=True)
class FlippedPair:
    """Releases two ends around every q-quantile (see `rank`), and their middle: EMCI, at exactly ε.

    Neighbours: add-remove or replace-one; the path length has sensitivity 1 under both. `rows` rows per unit.
    Loss: ε-DP and ε²/16-zCDP: two exponential mechanisms at ε/2 on flipped utilities of sensitivity 2 (Lemma 3.3).
    Interval: always valid (Theorem 3.4), s = 9 ln(2|Y|/β)/ε over the domain with the copies of a value apart (3.2), of
    which it has n under replace-one and COPIES otherwise.
    Deviation: below the lowest value stands one candidate more, so that a quantile too close to it is still covered.
    """

    setting: Setting
    q: Fraction
    expectation: Expectation = NOTHING_EXPECTED
    name: ClassVar[str] = "em"
    assumes: ClassVar[Assumes] = "always"
    condition: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.setting.bound(self.name, "svt")
        if self.setting.neighbours == "add-remove" and (self.expectation.rows or 0) > COPIES:
            raise ParameterError("the mechanism em takes up to 2^31 rows; use pair or svt for this table")
        for end in self._ends.made():
            if isinstance(end, FlippedEnd):
                keep_shift(2 * end._far(MOST_ROWS), "a quantile's exponents")

    @property
    def loss(self) -> PureDP:
        return self.setting.loss

    @property
    def zcdp(self) -> ZCDP:
        sides = self._ends.sides
        return ZCDP(sides * rho_of_exponential(self.setting.epsilon / sides))

    @property
    def forecast(self) -> StatisticForecast:
        sides = self._ends.sides
        end = self.lower(self.q, self.setting.row_epsilon / sides, self.setting.miss / sides)
        return rank_forecast(end.shift(self.expectation.rows or COPIES), self.setting, self.expectation, self.q)

    def lower(self, q: Fraction, epsilon: Fraction, miss: float) -> "FlippedEnd":
        return FlippedEnd(Exponential(epsilon, 2 * FLIPPED), q, miss, self.setting)

    def measure(self, tally: Tally, randomness: Randomness) -> StatisticEstimate:
        return self.measure_each([tally], randomness)[0]

    def window(self) -> None:
        """It looks at all values."""

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        return self._ends.measure_each(tallies, randomness)

    @property
    def _ends(self) -> TwoEnds:
        return TwoEnds(self, self.setting, self.q)


@dataclass(frozen=True, slots=True)
class FlippedEnd:
    """A lower end by one exponential mechanism on u_L, equation (1): the path length -u, flipped at s + l."""

    mechanism: Exponential
    q: Fraction
    miss: float
    setting: Setting

    def __call__(self, tallies: Sequence[Tally], domain: Domain, randomness: Randomness) -> list[int]:
        return [self._one(tally, domain, randomness) for tally in tallies]

    def _one(self, tally: Tally, domain: Domain, randomness: Randomness) -> int:
        tally = self.countable(tally)
        values, sizes, exponents = self.segments(tally, domain)
        segments, places = self.mechanism.select(exponents, sizes, randomness)
        segment, place = int(segments[0]), int(places[0])
        gaps = len(tally.values) + 1
        if segment < gaps:  # between two data points: its copies of free values, and those left of the value before
            taken = int(tally.counts[segment - 1]) if segment else 0
            return int(values[segment]) + (taken + place) // self.copies(tally.rows)
        if segment == len(values) - 1:
            return domain[0]
        ranks = self._ranks(tally.rows)[segment - gaps] + place + 1
        return int(tally.order_statistics(np.array([ranks]), *domain)[0])

    def window(self, rows: int) -> None:
        """Every row matters: a candidate is a place among the copies of values that rows take."""

    def countable(self, tally: Tally) -> Tally:
        """With no more rows of one value than it has copies."""
        most = self.copies(tally.rows)
        if not len(tally.counts) or tally.counts.max() <= most:
            return tally
        return Tally(tally.values, np.minimum(tally.counts, most))

    def copies(self, rows: int) -> int:
        return max(rows, 1) if self.setting.neighbours == "replace-one" else COPIES

    def shift(self, rows: int) -> int:
        """s + l, from s = 9Δu ln(2|Y|/β)/ε for the whole ε, twice this end's."""
        candidates = self.setting.size * self.copies(rows) + 1
        distance = 9 / (2 * float(self.mechanism.epsilon)) * math.log(candidates / self.miss)
        return max(math.ceil(distance * (1 + 1e-9)), 2) + STEP

    def segments(self, tally: Tally, domain: Domain) -> tuple[Integers, AnyIntegers, Integers]:
        """Segments by rank: the gap after each value, single data points by rank, then the candidate below the domain.

        Data points far from the peak share one exponent, so those on each side are one segment.
        """
        low, high = domain
        copies, rows = self.copies(tally.rows), tally.rows
        cumulative = tally.cumulative()
        ends = np.append(tally.values, high + 1)
        starts = np.insert(tally.values, 0, low)
        taken = np.insert(tally.counts, 0, 0)
        spans: AnyIntegers = ends - starts
        if self.setting.size * copies > REACH:
            spans = spans.astype(object)
        gap_sizes = spans * copies - taken
        ranks = self._ranks(rows)
        single_sizes = np.diff(np.append(ranks, rows))
        gaps = self.exponents(cumulative, cumulative, rows)
        singles = self.exponents(ranks, ranks + 1, rows)
        below = np.array([max(0, self._place(rows) - self.shift(rows))])
        return (
            np.concatenate([starts, np.zeros(len(ranks) + 1, dtype=np.int64)]),
            np.concatenate([gap_sizes, single_sizes, [1]]),
            np.minimum(np.concatenate([gaps, singles, below]), self._far(rows)),
        )

    def exponents(self, below: Integers, upto: Integers, rows: int) -> Integers:
        """-u_L for a candidate with so many data points below it and at or below it; u = -(path length)."""
        place, shift = self._place(rows), self.shift(rows)
        left = place - upto  # on the left of the quantile its path length
        right = below - (place - 1)
        return np.where(right <= 0, np.abs(shift - np.maximum(left, 0)), right + shift)

    def _place(self, rows: int) -> int:
        return max(1, order_statistics(self.q, rows)[0])

    def _far(self, rows: int) -> int:
        return max(math.ceil(FAR / float(self.mechanism.rate)), self.shift(rows) + 1)

    def _ranks(self, rows: int) -> Integers:
        """First ranks of the segments of single data points: each near the peak alone, the others together."""
        peak, far = self._place(rows) - self.shift(rows), self._far(rows)
        near = np.arange(max(0, peak - far - 1), min(rows, peak + far + 1), dtype=np.int64)
        cuts = np.concatenate([[0], near, near[-1:] + 1]) if len(near) else np.zeros(1, dtype=np.int64)
        return np.unique(cuts[cuts < rows]).astype(np.int64)

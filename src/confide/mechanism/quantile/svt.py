"""A quantile and its interval by sparse vectors that walk towards it from both ends of the domain."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.quantile.rank import TwoEnds, rank_forecast, target
from confide.mechanism.selection.sparse_vector import SparseVector, Stream
from confide.mechanism.statistic import (
    NOTHING_EXPECTED,
    TYPICAL_ROWS,
    Expectation,
    Setting,
    StatisticEstimate,
    StatisticForecast,
)
from confide.mechanism.tally import Domain, Neighbours, Tally
from confide.privacy.conversion import rho_of_pure
from confide.privacy.loss import ZCDP, PureDP

SURE: Final = 29  # margins are cut where all stops together, or walking on, have a chance of e^-29
LARGEST: Final = 2**63  # of a domain, in values


@dataclass(frozen=True, slots=True)
class Walk:
    """Releases two ends around every q-quantile (see `rank`), and their middle. The domain may be unbounded.

    Neighbours: add-remove (n private) or replace-one (n public); `rows` rows per unit.
    Loss: ε-DP: two sparse vectors at ε/2 ([Sun2023], Algorithms 2 and 5, Theorem 4.3).
    Interval: always valid. The walk up stops at or before the quantile unless it misses there, one event: no union
    over the domain is needed. Deviation: for the upper end Algorithm 3 walks past the quantile and needs that union,
    log(i²); we walk down with Algorithm 2 instead. Its thresholds, lowered by log(i²) as well, are lowered by a
    constant. Margins are cut on both sides, so that only rows near the quantile matter (see `window`).
    """

    setting: Setting
    q: Fraction
    expectation: Expectation = NOTHING_EXPECTED
    name: ClassVar[str] = "svt"
    assumes: ClassVar[Assumes] = "always"
    condition: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self._ends.made()

    @property
    def loss(self) -> PureDP:
        return self.setting.loss

    @property
    def zcdp(self) -> ZCDP:
        return ZCDP(rho_of_pure(self.setting.epsilon))

    @property
    def forecast(self) -> StatisticForecast:
        sides = self._ends.sides
        end = self.lower(max(self.q, 1 - self.q), self.setting.row_epsilon / sides, self.setting.miss / sides)
        low, high = self.setting.ends
        values_per_row = (self.expectation.spread or (high - low)) / (self.expectation.rows or TYPICAL_ROWS)
        forecast = rank_forecast(end.ranks(values_per_row), self.setting, self.expectation, self.q)
        return replace(forecast, ranks=end.ranks(self.setting.size))

    def lower(self, q: Fraction, epsilon: Fraction, miss: float) -> "WalkedEnd":
        return walked_end(q, epsilon, self.setting.neighbours, miss, self.setting.size)

    def measure(self, tally: Tally, randomness: Randomness) -> StatisticEstimate:
        return self.measure_each([tally], randomness)[0]

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        return self._ends.measure_each(tallies, randomness)

    def window(self) -> Callable[[int], Domain]:
        """From a number of rows, the ranks between which values are looked at."""
        return self._ends.window()

    @property
    def _ends(self) -> TwoEnds:
        return TwoEnds(self, self.setting, self.q)


@dataclass(frozen=True, slots=True)
class WalkedEnd:
    """A lower end of the q-quantile: the first y, from the lowest on, at which d·#{x<=y} seems to reach target -
    shift.

    Margins are cut to [least, most]. That leaves each change of one between 0 and what it was, so `stream_sensitivity`
    bounds them still; and a margin that is at least `shift`, as at the quantile, stays so.
    """

    mechanism: SparseVector
    q: Fraction
    shift: int
    least: int
    most: int

    def __call__(self, tallies: Sequence[Tally], domain: Domain, randomness: Randomness) -> list[int]:
        places = self.mechanism.first_of_each([self.stream(tally, domain) for tally in tallies], randomness)
        # Without a stop nothing is known; the lowest value is never too high.
        return [domain[0] + max(place, 0) for place in places.tolist()]

    def stream(self, tally: Tally, domain: Domain) -> Stream:
        low, high = domain
        d, (first, last) = self.q.denominator, self.window(tally.rows)
        # Ranks are cut where margins would be, so that a product with them is near [least, most], however many rows.
        ranks = np.clip(tally.cumulative(), first, last) - first
        margins = d * ranks + (d * first - target(self.q, tally.rows) + self.shift)
        edges = np.concatenate([[low], tally.values, [high + 1]])
        # Margins increase, so those that are cut are at both ends: one run each.
        begin, end = int(np.searchsorted(margins, self.least, side="right")), int(np.searchsorted(margins, self.most))
        lengths = np.diff(np.concatenate([[low], edges[begin : end + 1], [high + 1]]))
        cut = np.concatenate([[self.least], margins[begin:end], [self.most]])
        return Stream(cut[lengths > 0], lengths[lengths > 0])

    def window(self, rows: int) -> Domain:
        """Ranks r and R: where #{x<=y} is at most r, or at least R, all margins are cut, whatever the data are."""
        middle, d = target(self.q, rows) - self.shift, self.q.denominator
        return (middle + self.least) // d, -((-middle - self.most) // d)

    def ranks(self, values_per_row: float) -> float:
        """How many rows below the quantile it may be expected to stop, with so many values to each row."""
        noise, threshold = float(self.mechanism.query_scale), float(self.mechanism.threshold_scale)
        early = noise * math.log(max(1.0, values_per_row * noise / self.q.denominator) * math.e)
        return max(0.5, (self.shift + early - threshold) / self.q.denominator)


@lru_cache(maxsize=1024)
def walked_end(q: Fraction, epsilon: Fraction, neighbours: Neighbours, miss: float, size: int = LARGEST) -> WalkedEnd:
    """One that is too high with probability at most `miss`, in a domain of so many values."""
    mechanism = SparseVector(epsilon, *stream_sensitivity(q, neighbours))
    shift = mechanism.missed_below(miss)
    least = -math.ceil((SURE + math.log(size)) * float(mechanism.query_scale))
    return WalkedEnd(mechanism, q, shift, least, shift + math.ceil(SURE * mechanism.threshold_scale))


def stream_sensitivity(q: Fraction, neighbours: Neighbours) -> tuple[int, int]:
    """Rise and spread of d·#{x<=y} - p(n-1), q = p/d.

    Replace-one: all counts move in one direction, by one row. Add-remove: those from the row on by d - p, the others
    by -p.
    """
    p, d = q.numerator, q.denominator
    return (d, d) if neighbours == "replace-one" else (max(p, d - p), d)

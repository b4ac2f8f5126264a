"""A quantile and its interval by two exponential mechanisms, one for each end."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.law import keep_shift
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.quantile.rank import TwoEnds, rank_forecast, target
from confide.mechanism.selection.exponential import Exponential
from confide.mechanism.statistic import NOTHING_EXPECTED, Expectation, Setting, StatisticEstimate, StatisticForecast
from confide.mechanism.tally import Domain, Integers, Neighbours, Tally
from confide.privacy.conversion import rho_of_exponential
from confide.privacy.loss import ZCDP, PureDP

STEEPNESS: Final = (
    1,
    2,
    3,
    4,
)  # how much steeper the score may fall on the wrong side of its peak than on the right one
GRAIN: Final = 16  # shifts are multiples of this part of a row
SPARE: Final = 32  # an exponent is cut where its weight is e^-32 of that of a value that is too high


@dataclass(frozen=True, slots=True)
class Pair:
    """Releases two ends around every q-quantile (see `rank`), and their middle.

    Neighbours: add-remove (n private) or replace-one (n public); `rows` rows per unit.
    Loss: ε-DP and ε²/16-zCDP: two exponential mechanisms at ε/2 with a tie-aware score whose spread is in
    `score_spread`.
    Interval: always valid. A lower end that is too high scores at most -s, some value scores 0, and of N values at
    most N are too high, so s = ln(2N/β) / (rate of the steep side). [Tao2025] 4.8.1; [Sun2023] 3.2, without
    its flipped utility. Exponents are cut from above, so that only rows near the quantile matter (see `window`).
    """

    setting: Setting
    q: Fraction
    expectation: Expectation = NOTHING_EXPECTED
    name: ClassVar[str] = "pair"
    assumes: ClassVar[Assumes] = "always"
    condition: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.setting.bound(self.name, "svt")
        self._ends.made()

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
        end = self.lower(max(self.q, 1 - self.q), self.setting.row_epsilon / sides, self.setting.miss / sides)
        return rank_forecast(end.ranks, self.setting, self.expectation, self.q)

    def lower(self, q: Fraction, epsilon: Fraction, miss: float) -> "ScoredEnd":
        return _narrowest(q, epsilon, miss, self.setting)

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
class ScoredEnd:
    """A lower end of the q-quantile by one exponential mechanism.

    With T = target - shift, the exponent of y is steepness·(#{x<y} - T)⁺ + (T - #{x<=y})⁺, or `most` if that is less.
    The lowest value of the domain is never too high, so its own rank begins at -∞; then some value has exponent 0
    whatever the data are. A cut leaves each change between 0 and what it was, and `score_spread` adds up the largest
    rise and the largest fall, so it bounds the cut exponents too.
    """

    mechanism: Exponential
    q: Fraction
    steepness: int
    shift: int  # in units of 1/(GRAIN·d) rows
    most: int  # of an exponent, in the same units
    ranks: float

    def __call__(self, tallies: Sequence[Tally], domain: Domain, randomness: Randomness) -> list[int]:
        return [self._one(tally, domain, randomness) for tally in tallies]

    def _one(self, tally: Tally, domain: Domain, randomness: Randomness) -> int:
        starts, sizes, exponents = self.segments(tally.condensed(*self.window(tally.rows)), domain)
        segments, places = self.mechanism.select(exponents, sizes, randomness)
        return int(starts[segments[0]]) + int(places[0])

    def segments(self, tally: Tally, domain: Domain) -> tuple[Integers, Integers, Integers]:
        """First value, number of values, and exponent of each segment of the domain; a segment may be empty.

        Exponents fall to the peak and then rise, so those that are cut are at both ends: two segments.
        """
        starts, sizes, below, upto = tie_segments(tally, domain)
        unit, (first, last) = self._unit, self.window(tally.rows)
        # Ranks are cut where exponents are, so that products with them are near `most`, however many rows there are.
        peak = self._peak(tally.rows) - first * unit
        too_high = np.maximum((np.clip(below, first, last) - first) * unit - peak, 0)
        too_high[0] = 0
        too_low = np.maximum(peak - (np.clip(upto, first, last) - first) * unit, 0)
        exponents = np.minimum(self.steepness * too_high + too_low, self.most)
        near = np.flatnonzero(exponents < self.most)
        begins = np.unique(np.concatenate([[0], np.arange(near[0], near[-1] + 1), [near[-1] + 1]]))
        begins = begins[begins < len(starts)]
        return starts[begins], np.add.reduceat(sizes, begins), exponents[begins]

    def window(self, rows: int) -> Domain:
        """Ranks r and R: where #{x<=y} <= r, and where #{x<y} >= R, all exponents are cut, whatever the data are."""
        peak = self._peak(rows)
        return (peak - self.most) // self._unit, -((-peak - -(-self.most // self.steepness)) // self._unit)

    @property
    def _unit(self) -> int:
        return self.q.denominator * GRAIN

    def _peak(self, rows: int) -> int:
        return GRAIN * target(self.q, rows) - self.shift


def tie_segments(tally: Tally, domain: Domain) -> tuple[Integers, Integers, Integers, Integers]:
    """The domain cut into its lowest value, the values that occur, and the gaps between: start, size, #{x<y},
    #{x<=y}.
    """
    low, high = domain
    values, cumulative = tally.values, tally.cumulative()
    starts = np.empty(2 * len(values) + 2, dtype=np.int64)
    sizes, below, upto = np.empty_like(starts), np.empty_like(starts), np.empty_like(starts)
    starts[0], starts[1] = low, low + 1
    starts[2::2], starts[3::2] = values, values + 1
    sizes[2::2] = 1
    sizes[1::2] = np.append(values, high + 1) - starts[1::2]
    below[1::2] = upto[1::2] = cumulative
    below[2::2], upto[2::2] = cumulative[:-1], cumulative[1:]
    sizes[0], below[0], upto[0] = 1, 0, 0
    if len(values) and values[0] == low:  # the lowest value occurs: the first segment stands for it
        sizes[1] = sizes[2] = 0
        upto[0] = cumulative[1]
    return starts, sizes, below, upto


@lru_cache(maxsize=1024)
def _narrowest(q: Fraction, epsilon: Fraction, miss: float, setting: Setting) -> ScoredEnd:
    choices = (scored_end(q, epsilon, miss, setting, steepness) for steepness in STEEPNESS)
    return min(choices, key=lambda end: end.ranks)


def scored_end(q: Fraction, epsilon: Fraction, miss: float, setting: Setting, steepness: int) -> ScoredEnd:
    unit = q.denominator * GRAIN
    mechanism = Exponential(epsilon, GRAIN * score_spread(q, steepness, setting.neighbours))
    gentle = float(mechanism.rate) * unit  # per row
    steep = steepness * gentle
    distance = math.log(setting.size / miss) / steep
    # Where values are dense, the end falls to both sides of its peak in proportion to how far each side reaches.
    drift = (1 / gentle**2 - 1 / steep**2) / (1 / gentle + 1 / steep)
    shift = math.ceil(distance * unit * (1 + 1e-9))
    most = steepness * shift + math.ceil(SPARE / float(mechanism.rate))
    keep_shift(steepness * most, "a quantile's exponents")
    return ScoredEnd(mechanism, q, steepness, shift, most, distance + drift)


def score_spread(q: Fraction, steepness: int, neighbours: Neighbours) -> int:
    """By how much the changes of two exponents can differ, in units of 1/d rows; q = p/d, steepness k.

    Replace-one moves ranks by one row, all in one direction: exponents above the peak by k, below by 1, oppositely.
    Add-remove moves the ranks above the new row by d - p against the target and those below by -p. A row below the peak
    changes the exponents above it by k(d-p), and on the other side of it by p or -(d-p); a row above likewise.
    """
    p, d = q.numerator, q.denominator
    if neighbours == "replace-one":
        return (steepness + 1) * d
    return max(p, steepness * (d - p)) + max(d - p, steepness * p)

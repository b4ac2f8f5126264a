"""A quantile and its interval by noise scaled to its smooth sensitivity (SSCI)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.smooth.gaussian import BOUND_MISS, SmoothGaussian, tuned
from confide.mechanism.smooth.smooth import SMALLEST_SCALE, Smooth
from confide.mechanism.statistic import (
    NOTHING_EXPECTED,
    TYPICAL_ROWS,
    Expectation,
    Setting,
    StatisticEstimate,
    StatisticForecast,
    inside,
)
from confide.mechanism.tally import Domain, Integers, Neighbours, Tally
from confide.privacy.conversion import rho_of_pure
from confide.privacy.loss import ZCDP, PureDP

SAFETY: Final = 1e-10  # the sensitivity is computed to within this factor and enlarged by it
BLOCK: Final = 1 << 18
MOST_TOUCHED: Final = 4_000
"""Rows of a unit, and so groups it may be in, with which Gaussian noise is taken."""
_LARGEST_DELTA: Final = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class SmoothQuantile:
    """Releases the ⌈qn⌉-th smallest value plus noise; the middle of the domain where n = 0.

    Neighbours: add-remove (n private) or replace-one (n public); `rows` rows per unit.
    Loss: ε-DP, see `smooth` ([Sun2023], Algorithm 7 and Theorem 5.4, section 5.2); with a δ, ε²/2-zCDP but for that,
    see `gaussian`.
    Interval: always valid, for every definition of the quantile: another differs from this one by at most the gap to
    the next value, which is part of the sensitivity.
    """

    setting: Setting
    q: Fraction
    expectation: Expectation = NOTHING_EXPECTED
    name: ClassVar[str] = "smooth"
    assumes: ClassVar[Assumes] = "always"
    condition: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.setting.bound(self.name, "svt")
        _ = self.mechanism

    @property
    def mechanism(self) -> Smooth | SmoothGaussian:
        setting = self.setting
        if not self._delta:
            return Smooth(setting.row_epsilon)
        return SmoothGaussian(rho_of_pure(setting.epsilon), self._delta, setting.rows, tuned(1))

    @property
    def _delta(self) -> Fraction:
        """What Gaussian noise may use of δ; none where pure noise is taken, since a unit may be in too many groups.

        Each group has a bound S of its own, released on its own. With aᵢ of a unit's `rows` rows in group i: growth is
        convex, so the squares of all answers' changes are no more than those of one group with all rows. But ln S is
        rounded up to a step in every group, so its part is Σ ⌈64 aᵢ / rows⌉² of 65², which passes the share that the
        answers leave unused from about 10,000 groups on. Group i has too small a bound with a probability of at most
        aᵢ/rows · δ, since e^T need only reach √(aᵢ / rows) of S there; that needs a δ of no more than about 0.18.
        """
        return min(self.setting.delta, _LARGEST_DELTA) if self.setting.rows <= MOST_TOUCHED else Fraction(0)

    @property
    def loss(self) -> PureDP | ZCDP:
        return self.mechanism.loss if self._delta else self.setting.loss

    @property
    def zcdp(self) -> ZCDP:
        return ZCDP(rho_of_pure(self.setting.epsilon), self._delta)

    @property
    def forecast(self) -> StatisticForecast:
        """For values that lie evenly over their spread, in the middle of the domain."""
        low, high = self.setting.ends
        rows = self.expectation.rows or TYPICAL_ROWS
        spread = self.expectation.spread or (high - low)
        gap, alpha = spread / rows, float(self.mechanism.alpha)
        best = max(0.0, min(1 / alpha - 1, rows * float(min(self.q, 1 - self.q))))
        beyond = (high - low) * math.exp(-alpha * rows * float(min(self.q, 1 - self.q)))
        half_width = self._half_width(max(gap * (best + 1) * math.exp(-alpha * best), beyond))
        known = self.expectation.rows and self.expectation.spread
        said = "" if known else " (a guess: say how many rows and what spread to expect)"
        return StatisticForecast(min(half_width, (high - low) / 2), f"{rows} rows evenly over {spread:.6g}{said}")

    def _half_width(self, sensitivity: float) -> float:
        smooth, miss = self.mechanism, self.setting.miss
        if isinstance(smooth, SmoothGaussian):
            return smooth.expected_half_width(sensitivity, miss) + smooth.expected_scale(sensitivity, BOUND_MISS * miss)
        scale = smooth.expected_scale(sensitivity, miss)
        return smooth.half_width(scale, miss) + scale

    def window(self) -> None:
        """It looks at all values."""

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        return [self.measure(tally, randomness) for tally in tallies]

    def measure(self, tally: Tally, randomness: Randomness) -> StatisticEstimate:
        domain, smooth, miss = self.setting.ends, self.mechanism, self.setting.miss
        clipped = tally.clipped(*domain)
        exact = quantile(clipped, self.q, domain)
        bound = smooth_sensitivity(clipped, self.q, domain, float(smooth.alpha), self.setting.neighbours)
        if isinstance(smooth, SmoothGaussian):
            released = smooth.release([exact], bound, miss, randomness)
            answer, half_width = released.values[0], released.half_width + math.ceil(released.bound)
        else:
            answer, scale = smooth.measure(exact, bound, miss, randomness)
            # An integer moves by at most ⌊w + ½⌋ when a real number within w is added and the sum rounded.
            half_width = math.floor(min(smooth.half_width(scale, miss) + scale + 0.5, 2.0**63))
        return inside(answer, answer - half_width, answer + half_width, self.setting)


def quantile(tally: Tally, q: Fraction, domain: Domain) -> int:
    """The ⌈qn⌉-th smallest value, the first for q = 0; the middle of the domain if there is none."""
    low, high = domain
    if tally.rows == 0:
        return (low + high) // 2
    place = max(1, math.ceil(q * tally.rows))
    return int(tally.order_statistics(np.array([place]), low, high)[0])


def smooth_sensitivity(tally: Tally, q: Fraction, domain: Domain, alpha: float, neighbours: Neighbours) -> float:
    """An α-smooth upper bound on the local sensitivity of `quantile`, or SMALLEST_SCALE if that is larger.

    Computed in doubles as a logarithm with an error below 10^-10, then enlarged by that: at least the exact bound,
    and α-smooth up to 2·10^-10.
    """
    low, high = domain
    if low == high:
        return SMALLEST_SCALE
    logarithm = (_replaced if neighbours == "replace-one" else _added)(tally, q, domain, alpha)
    return math.exp(max(logarithm, math.log(SMALLEST_SCALE)) + SAFETY)


def _farthest(domain: Domain, alpha: float) -> int:
    """Beyond so many changes even the whole domain counts for less than SMALLEST_SCALE."""
    return math.ceil(math.log((domain[1] - domain[0]) / SMALLEST_SCALE) / alpha) + 2


def _added(tally: Tally, q: Fraction, domain: Domain, alpha: float) -> float:
    """Add-remove: max over k of exp(-αk)·(U_k - L_k), where no k + 1 changes take the quantile out of [L_k, U_k].

    A change moves #{x<y} - qn by at most Δ = max(q, 1-q). So a value that is the quantile after k + 1 changes has now
    #{x<y} - qn <= (k+1)Δ and qn - #{x<=y} <= (k+1)Δ; L_k and U_k are the ends of such values. A neighbour's window for
    k + 1 contains this one for k, so the bound is smooth; for k = 0 it contains both quantiles, so it bounds the local
    sensitivity.
    """
    p, d = q.numerator, q.denominator
    reach = min(_farthest(domain, alpha), 2 * tally.rows * d // max(p, d - p) + 2)
    whole, part = divmod(p * tally.rows, d)  # apart, since the product may pass 64 bits
    largest = -math.inf
    # In blocks: of many rows and a small ε there may be a hundred million steps, more than memory holds.
    for begin in range(0, reach + 1, BLOCK):
        steps = np.arange(begin, min(begin + BLOCK, reach + 1), dtype=np.int64)
        drift = (steps + 1) * max(p, d - p)
        upper = tally.order_statistics(whole + (part + drift) // d + 1, *domain)
        lower = tally.order_statistics(whole - (drift - part) // d, *domain)
        largest = max(largest, float((_log(upper - lower) - alpha * steps).max()))
    return largest


def _replaced(tally: Tally, q: Fraction, domain: Domain, alpha: float) -> float:
    """Replace-one, exactly: max of (x_j - x_i)·exp(-α(j-i-1)) over i <= m <= j, i < j; x_0 and x_(n+1) end the domain.

    Of equal values only the nearest to m matters. ln(r - l) has increasing differences in l and r, so the best r moves
    with l, and divide and conquer finds all of them.
    """
    rows = tally.rows
    if rows == 0:
        return math.log(domain[1] - domain[0])
    place = max(1, math.ceil(q * rows))
    cumulative = tally.cumulative()
    middle = int(np.searchsorted(cumulative[1:], place))
    value, reach = tally.values[middle], _farthest(domain, alpha)
    left_values = np.concatenate([[value], tally.values[:middle][::-1], [domain[0]]])
    left_steps = np.concatenate([[0], place - cumulative[1 : middle + 1][::-1], [place]])
    right_values = np.concatenate([[value], tally.values[middle + 1 :], [domain[1]]])
    right_steps = np.concatenate([[0], cumulative[middle + 1 : -1] + 1 - place, [rows + 1 - place]])
    left, right = left_steps <= reach, right_steps <= reach
    return _largest(left_values[left], left_steps[left], right_values[right], right_steps[right], alpha)


def _largest(
    left_values: Integers, left_steps: Integers, right_values: Integers, right_steps: Integers, alpha: float
) -> float:
    """max ln(r - l) - α(steps - 1) over pairs, level by level: the middle left of each block scans its block's
    rights.
    """
    best = -math.inf
    first, last = np.array([0]), np.array([len(left_values) - 1])
    begin, end = np.array([0]), np.array([len(right_values) - 1])
    while len(first):
        middle = (first + last) // 2
        lengths = end - begin + 1
        offsets = np.cumsum(lengths) - lengths
        block = np.repeat(np.arange(len(middle)), lengths)
        right = np.arange(lengths.sum()) - np.repeat(offsets - begin, lengths)
        left = middle[block]
        steps = left_steps[left] + right_steps[right] - 1
        scores = _log(right_values[right] - left_values[left]) - alpha * np.maximum(steps, 0)
        tops = np.maximum.reduceat(scores, offsets)
        best = max(best, float(tops.max()))
        chosen = np.minimum.reduceat(np.where(scores == tops[block], right, len(right_values)), offsets)
        # Lefts run outwards, so further lefts go with rights no further out.
        first, last, begin, end = (
            np.concatenate(pair) for pair in ((first, middle + 1), (middle - 1, last), (chosen, begin), (end, chosen))
        )
        kept = first <= last
        first, last, begin, end = first[kept], last[kept], begin[kept], end[kept]
    return best


def _log(differences: Integers) -> NDArray[np.float64]:
    logarithms: NDArray[np.float64] = np.where(differences > 0, np.log(np.maximum(differences, 1)), -np.inf)
    return logarithms

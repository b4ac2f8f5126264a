"""Intervals for a ratio of two noised integers that cover at least as often as they say, for every size of the group.

Measured are A + X and B + Y with independent noise. At the true ratio m = A/B the noise of B cancels against that of A:
(A + X) - m(B + Y) = X - mY. So {m : |A + X - m(B + Y)| <= q(m)} contains the true ratio with the confidence for which
q(m) bounds |X - mY| ([Fieller1954], with the exact laws in place of the normal one). What is reported is the hull of
that set within the range that is possible. If B could be zero, the ratio need not exist, and the whole range is
reported; so the interval also holds for an empty group, with the same confidence.

Noise may take the ratio beyond what is possible, and then nothing of the set may be left. So A + X is first moved to
the nearest multiple of B + Y that is possible: to M(B + Y) if it is above that, where M is the largest ratio. At the
true ratio m <= M, with B + Y > 0, this makes |A + X - m(B + Y)| no larger, so m stays in the set if it was in it; and M
itself is always in it, as are all m with (M - m)(B + Y) <= q(m). The same holds below the smallest ratio.

q is tabulated in steps, which rests on a lemma. If X is symmetric and unimodal on the integers and |c| <= |d|, then
P(|X - c| <= t + ½) >= P(|X - d| <= t). Proof, for 0 <= c <= d: the integers within t of d form a block whose centre b
satisfies 2b >= floor(2d). Move it down by r = d - c rounded to an integer: it then lies within t + ½ of c; and 0 <= r
<= 2b, so its centre is no further from zero than before and it weighs no less. Hence a t that serves at one m and with
|Y| rounded up serves, with ½ added, for all smaller |m|.

Only the steps that released numbers reach are tabulated. Bounding X and Y one by one gives a wider q, in closed form,
and so a wider set; beyond its furthest end no m is in the narrower set either. So the noise has a say in which bound is
used at an m, but it chooses among a few fixed numbers, each of which |X - mY| exceeds no more often than is allowed;
the least of them is such a number too, and whenever m is left out, |X - mY| exceeds that one.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Intervals
from confide.mechanism.noise.law import Confidence, DiscreteGaussian, DiscreteLaplace, Floats, Law, NoNoise, miss_rate

FINE_STEPS: Final = 70  # q grows by at most 1 % from node to node, until it has doubled
COARSE_STEPS: Final = 130  # and by at most 2 % up to 27 times
STEPS_TOGETHER: Final = 8
CELLS: Final = 256  # cells of |Y|
HALVINGS: Final = 11
GUESSED_VARIANCE: Final = (10_000, 50)
NEWTON_STEPS: Final = 5
GUESS_STEPS: Final = (0.005, 0.02)  # tried around a guess, as shares of it
ROUNDING: Final = 2.0**-49  # covers each handful of double operations below
CHUNK: Final = 1 << 13  # small enough for numpy to reuse its memory
SMALLEST_TABULATED: Final = 1e-9  # for rarer misses the two noises are bounded one by one

AnyIntegers = NDArray[Any]


def ratio_intervals(
    numerator: AnyIntegers,
    denominator: AnyIntegers,
    numerator_law: Law,
    denominator_law: Law,
    confidence: Confidence,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    denominator_nonnegative: bool = False,
) -> Intervals:
    """Intervals for A/B from A + X and B + Y, given that A/B lies between `low` and `high`.

    At least the nominal coverage for every A and B; where B = 0, covering means to report the whole range. Say
    `denominator_nonnegative` if B is a count: it narrows the small groups.
    """
    if low > high:
        raise ValueError("no ratio is possible: low is above high")
    miss = miss_rate(confidence)
    sign = np.where(denominator < 0, -1, 1)
    top, bottom = (sign * numerator).astype(np.float64), np.abs(denominator).astype(np.float64)
    if denominator_nonnegative:
        whole = (denominator <= denominator_law.upper(confidence)).astype(bool)
    else:
        whole = bottom <= float(denominator_law.half_width(confidence))
    bottom = np.where(whole, 1.0, bottom)
    low, high = float(low), float(high)
    top = np.clip(top, low * bottom, high * bottom)
    limit = max(abs(low), abs(high))
    reach = _apart(numerator_law, denominator_law, miss, limit).largest(_up(np.abs(top[~whole])), bottom[~whole])
    steps = _steps(numerator_law, denominator_law, limit, float(reach.max(initial=0.0)))
    quantile = _quantile(numerator_law, denominator_law, miss, limit, steps)
    lows = np.where(whole, low, np.clip(-quantile.largest(_up(-top), bottom), low, high))
    highs = np.where(whole, high, np.clip(quantile.largest(_up(top), bottom), low, high))
    return Intervals(lows, highs, float(confidence), "always")


def ratio_estimates(
    numerator: AnyIntegers, denominator: AnyIntegers, intervals: Intervals, *, denominator_nonnegative: bool = False
) -> Floats:
    """The noised ratio, moved into its interval; without a usable denominator, the middle of the interval."""
    usable = (denominator >= 1 if denominator_nonnegative else denominator != 0).astype(bool)
    bounded = np.isfinite(intervals.low) & np.isfinite(intervals.high)
    low, high = np.where(bounded, intervals.low, 0.0), np.where(bounded, intervals.high, 0.0)
    ratio = numerator.astype(np.float64) / np.where(usable, denominator.astype(np.float64), 1.0)
    estimates: Floats = np.clip(np.where(usable, ratio, low / 2 + high / 2), intervals.low, intervals.high)
    return estimates


@dataclass(frozen=True, slots=True, eq=False)
class Quantile:
    """An upper bound q(m) of the quantile of |X - mY|, as steps up to the last node and as a line beyond it."""

    nodes: Floats  # increasing; widths[j] serves for nodes[j-1] < |m| <= nodes[j]
    widths: Floats
    intercept: float
    slope: float
    limit: float  # larger ratios are impossible

    def largest(self, top: Floats, bottom: Floats) -> Floats:
        """The largest possible m with m·bottom - q(m) <= top, for bottom > 0, rounded up; -∞ if there is none."""
        shape = top.shape
        top, bottom = top.ravel(), bottom.ravel()
        result = np.empty(len(top))
        rows = max(1, CHUNK // max(1, len(self.nodes)))
        for start in range(0, len(top), rows):
            part = slice(start, start + rows)
            result[part] = self._largest(top[part, np.newaxis], bottom[part, np.newaxis])
        return result.reshape(shape)

    def _largest(self, top: Floats, bottom: Floats) -> Floats:
        starts, ends = np.append(0.0, self.nodes)[:-1], self.nodes
        last = ends[-1] if len(ends) else 0.0
        touch = _up((top + self.widths) / bottom)  # where the line m·bottom leaves the band, piece by piece
        right = np.where(touch >= starts, np.minimum(ends, touch), -np.inf)
        left = np.where(touch >= -ends, np.minimum(-starts, touch), -np.inf)
        if len(ends) and self.limit <= last:
            inside: Floats = np.maximum(right.max(axis=1), left.max(axis=1))
            return inside
        beyond_left = np.minimum(-last, _up((top + self.intercept) / (bottom + self.slope)))
        gap = bottom * (1 - ROUNDING) - self.slope
        beyond_right = _up((top + self.intercept) / np.where(gap > 0, gap, 1.0))
        beyond_right = np.where(gap > 0, np.where(beyond_right > last, beyond_right, -np.inf), np.inf)
        result: Floats = np.concatenate([right, left, beyond_left, beyond_right], axis=1).max(axis=1)
        return result


def _up(values: Floats) -> Floats:
    moved: Floats = values + np.abs(values) * ROUNDING
    return moved


@lru_cache(maxsize=128)
def _quantile(
    numerator_law: Law, denominator_law: Law, miss: float, limit: float, steps: int | None = None
) -> Quantile:
    """The bound for |m| up to `limit`, or up to where so many steps end; tabulated where both numbers are noised."""
    if isinstance(numerator_law, NoNoise) or isinstance(denominator_law, NoNoise) or miss < SMALLEST_TABULATED:
        return _apart(numerator_law, denominator_law, miss, limit)
    # Far out the denominator's noise is all but alone: it gets nearly the whole of the miss rate.
    share = Fraction(miss) / 50
    intercept, slope = numerator_law.half_width(1 - share), denominator_law.half_width(1 - Fraction(miss) + share)
    nodes = _nodes(float(numerator_law.variance), float(denominator_law.variance), limit)
    if steps is not None and steps < len(nodes):
        nodes = nodes[:steps]
        limit = float(nodes[-1])
    widths = _widths(numerator_law, denominator_law, miss, nodes)
    return Quantile(nodes, widths, intercept * (1 + ROUNDING), slope * (1 + ROUNDING), limit)


def _apart(numerator_law: Law, denominator_law: Law, miss: float, limit: float) -> Quantile:
    """The bound that takes the two noises one by one, each with half of the miss rate if there are two."""
    both = not isinstance(numerator_law, NoNoise) and not isinstance(denominator_law, NoNoise)
    covered = 1 - Fraction(miss) / (2 if both else 1)
    intercept, slope = numerator_law.half_width(covered), denominator_law.half_width(covered)
    return Quantile(np.empty(0), np.empty(0), intercept * (1 + ROUNDING), slope * (1 + ROUNDING), limit)


def _steps(numerator_law: Law, denominator_law: Law, limit: float, reach: float) -> int:
    """How many steps it takes to get to `reach`, rounded up so that few tables are made."""
    nodes = _nodes(float(numerator_law.variance), float(denominator_law.variance), limit)
    return -(-(int(np.searchsorted(nodes, reach)) + 1) // STEPS_TOGETHER) * STEPS_TOGETHER


def _nodes(numerator_variance: float, denominator_variance: float, limit: float) -> Floats:
    """Ratios between which the spread of X - mY, √(Var X + m² Var Y), grows by 1 or 2 %."""
    fine = 0.01 * np.arange(1, FINE_STEPS + 1)
    coarse = 0.01 * FINE_STEPS + 0.02 * np.arange(1, COARSE_STEPS + 1)
    unit = math.sqrt(numerator_variance) / max(math.sqrt(denominator_variance), 1e-100)
    nodes: Floats = unit * np.sqrt(np.expm1(2 * np.concatenate([fine, coarse])))
    if limit < nodes[-1]:
        nodes = np.append(nodes[nodes < limit], limit)
    return nodes


def _widths(
    numerator_law: DiscreteLaplace | DiscreteGaussian,
    denominator_law: DiscreteLaplace | DiscreteGaussian,
    miss: float,
    nodes: Floats,
) -> Floats:
    """For each node a width that |X - mY| exceeds with probability at most `miss`, for every |m| up to the node."""
    covered = 1 - Fraction(miss)
    half = 1 - Fraction(miss) / 2
    # Doubles, since a half-width may pass 64 bits, and numpy would go on with Python's integers.
    apart = float(numerator_law.half_width(half)) + nodes * float(denominator_law.half_width(half))  # one by one
    below = np.maximum(float(numerator_law.half_width(covered)), nodes * float(denominator_law.half_width(covered)))
    cells, masses, rest = _cells(denominator_law, miss)
    together = max(1, CHUNK // len(cells))

    def exceeded(widths: Floats) -> Floats:
        """P(|X - mY| > width), rounded up: for Y in a cell, the two tails of X beyond its far end."""
        total = np.empty(len(widths))
        for start in range(0, len(widths), together):
            part = slice(start, start + together)
            width, shifts = widths[part, np.newaxis], nodes[part, np.newaxis] * cells
            slack = ROUNDING * (width + shifts)
            beyond = numerator_law.tails(width + shifts - slack)
            beyond += numerator_law.tails(width - shifts - slack)
            # The sum by parts that `masses` stands for needs a function that grows with |Y|.
            total[part] = np.maximum.accumulate(np.minimum(beyond, 1, out=beyond), axis=1) @ masses * (1 + 1e-12) + rest
        return total

    low, high, found = below * 0.98 - 1, apart.copy(), np.zeros(len(nodes), dtype=bool)
    guesses = _guessed(numerator_law, denominator_law, miss, nodes)
    for step in range(HALVINGS if guesses is None else len(GUESS_STEPS)):
        if guesses is None:
            middle = np.maximum((low + high) / 2, 0)
        else:
            # Near the continuous law's width a few tries are as good as many halvings.
            middle = np.clip(guesses * (1 + GUESS_STEPS[step]) + 100 * GUESS_STEPS[step], low, high)
        enough = exceeded(middle) <= miss
        found |= enough
        low, high = np.where(enough, low, np.maximum(low, middle)), np.where(enough, np.minimum(high, middle), high)
        if guesses is not None and found.all():
            break
    widths = np.where(found, np.minimum(high + 0.5, apart), apart)
    return _up(np.minimum.accumulate(widths[::-1])[::-1])  # what serves up to a node serves up to those before it


def _guessed(numerator_law: Law, denominator_law: Law, miss: float, nodes: Floats) -> Floats | None:
    """About the width of |X - mY|: that of the continuous laws, in closed form, where both are of one kind and wide."""
    if numerator_law.variance < GUESSED_VARIANCE[0] or denominator_law.variance < GUESSED_VARIANCE[1]:
        return None
    match numerator_law, denominator_law:
        case DiscreteGaussian(first), DiscreteGaussian(second):
            deviation = np.sqrt(float(first) + nodes**2 * float(second))
            return deviation * numerator_law.half_width(1 - Fraction(miss)) / math.sqrt(first)
        case DiscreteLaplace(first), DiscreteLaplace(second):
            a, b = np.full(nodes.shape, float(first)), nodes * float(second)
            b = np.where(np.abs(a - b) < 1e-6 * a, a * (1 + 1e-6), b)
            return _laplace_width(a, b, miss)
    return None


def _laplace_width(a: Floats, b: Floats, miss: float) -> Floats:
    """About the t that |X - Y| exceeds with probability `miss`, for continuous Laplace laws of scales a and b.

    Newton's steps on the logarithm of the tail, which is concave: from the second on they fall to the root.
    """
    width = np.maximum(a, b) * math.log(1 / miss)
    for _ in range(NEWTON_STEPS):
        with np.errstate(under="ignore", divide="ignore"):
            first, second = a * np.exp(-width / a), b * np.exp(-width / b)
        tail = a * first - b * second  # times a² - b², like its slope
        width = width + tail / (first - second) * np.log(tail / (a**2 - b**2) / miss)
    return width


def _cells(law: DiscreteLaplace | DiscreteGaussian, miss: float) -> tuple[Floats, Floats, float]:
    """Far ends of the cells of |Y|, weights for a sum over them, and the probability beyond the last.

    For f that grows, E f(|Y|) <= Σ f(cell)·mass + rest, by parts: each mass is a difference of upper bounds of tails.
    """
    last = law.half_width(1 - Fraction(miss) / 1000)
    count = min(last, CELLS - 1)
    cells = np.ceil(float(last) * (np.arange(count + 1) / max(count, 1)) * (1 - ROUNDING))
    tails = np.minimum.accumulate(np.minimum(2 * law.tails(cells), 1))
    return cells, -np.diff(tails, prepend=1.0), float(tails[-1])

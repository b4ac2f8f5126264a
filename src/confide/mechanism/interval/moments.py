"""Intervals for variances and standard deviations from three noised integers, valid for every data set.

Measured are N = n + Y, S = Σw + X₁ and Q = Σw² + X₂ for integers w = v - c with |w| <= R. Let a be the mean of w and V
the variance with divisor n - d (d = 0 for the population, 1 for a sample). Then Σw² - 2aΣw + a²n = V(n - d), so

    Q - 2aS + (a² - V)N + dV = X₂ - 2aX₁ + (a² - V)Y,

a sum of noises with known coefficients: it bounds V(N - d), given a. For a there is the interval of the ratio S/N. The
left side depends on a only through N(a - S/N)², so that interval may have a tenth of the miss rate and still costs
little; the rest of the miss rate goes to the sum of noises. The coefficients themselves depend on a and V: they are
bounded by the interval of a and by what V can be, and once more with the V just found. Where n could be d or less,
there may be no variance, and the whole range is reported; so the interval also holds for groups of no or one member.
"""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Intervals
from confide.mechanism.interval.linear import dominating_half_width
from confide.mechanism.interval.ratio import ratio_intervals
from confide.mechanism.noise.law import Confidence, Floats, Law, miss_rate

MEAN_SHARE: Final = Fraction(1, 10)
STEPS: Final = 12  # coefficients are rounded up to twelfths of their largest values, so that cells share quantiles
ROUNDING: Final = 2.0**-46  # covers the operations below, most of all the cancelling in Q - S²/N
ROUNDS: Final = 2

AnyIntegers = NDArray[Any]


def variance_intervals(
    counts: AnyIntegers,
    sums: AnyIntegers,
    squares: AnyIntegers,
    laws: tuple[Law, Law, Law],
    radius: int,
    confidence: Confidence,
    *,
    sample: bool = True,
) -> Intervals:
    """Intervals for the variance from noised n, Σ(v - c) and Σ(v - c)², with their laws, where |v - c| <= radius."""
    freedom, factor = (1, 2) if sample else (0, 1)  # n / (n - 1) is at most 2
    widest = factor * float(radius) ** 2
    if radius == 0:
        return Intervals(np.zeros(counts.shape), np.zeros(counts.shape), float(confidence), "always")
    miss = Fraction(miss_rate(confidence))
    counts_law, sums_law, _ = laws
    n, s, q = (numbers.astype(np.float64) for numbers in (counts, sums, squares))
    whole = (counts <= freedom + counts_law.upper(confidence)).astype(bool)
    n = np.where(whole, 2.0, n)
    means = ratio_intervals(
        np.where(whole, 0, sums),
        np.where(whole, 2**62, counts),
        sums_law,
        counts_law,
        1 - miss * MEAN_SHARE,
        low=-float(radius),
        high=float(radius),
        denominator_nonnegative=True,
    )
    centre = np.clip(s / n, means.low, means.high)
    furthest = np.maximum(np.abs(means.low - s / n), np.abs(means.high - s / n))
    rest = q - s * s / n
    error = ROUNDING * (np.abs(q) + s * s / n + n * furthest**2)
    least, most = rest + n * (centre - s / n) ** 2 - error, rest + n * furthest**2 + error
    largest_mean = np.maximum(np.abs(means.low), np.abs(means.high))
    smallest_mean = np.where(means.low * means.high <= 0, 0, np.minimum(np.abs(means.low), np.abs(means.high)))
    low = np.zeros(n.shape)
    high = factor * np.maximum(float(radius) ** 2 - smallest_mean**2, 0)
    for _ in range(ROUNDS):
        apart = np.maximum(largest_mean**2 - low, high - smallest_mean**2)
        coefficients = (largest_mean / float(radius), apart / widest)
        width = _widths(coefficients, (2 * radius, factor * radius**2), laws, 1 - miss * (1 - MEAN_SHARE))
        # Noise may take both beyond what is possible; as much is possible then as if they were at its end.
        below, above = np.minimum(least, high * (n - freedom)), np.maximum(most, low * (n - freedom))
        lowest, highest = (below - width) / (n - freedom), (above + width) / (n - freedom)
        low = np.clip(lowest - np.abs(lowest) * ROUNDING, low, high)
        high = np.clip(highest + np.abs(highest) * ROUNDING, low, high)
    return Intervals(np.where(whole, 0.0, low), np.where(whole, widest, high), float(confidence), "always")


def variance_estimates(
    counts: AnyIntegers, sums: AnyIntegers, squares: AnyIntegers, intervals: Intervals, *, sample: bool = True
) -> Floats:
    """The noised variance, moved into its interval; where the noised count is too small, the interval's middle."""
    freedom = 1 if sample else 0
    usable = (counts > freedom).astype(bool)
    n = np.where(usable, counts, freedom + 1).astype(np.float64)
    s, q = sums.astype(np.float64), squares.astype(np.float64)
    estimates: Floats = np.where(usable, (q - s * s / n) / (n - freedom), (intervals.low + intervals.high) / 2)
    return np.clip(estimates, intervals.low, intervals.high)


def deviation_intervals(variances: Intervals) -> Intervals:
    """Intervals for the standard deviation: the square roots of those for the variance, outward."""
    low = np.maximum(np.sqrt(variances.low) * (1 - ROUNDING), 0)
    return Intervals(low, np.sqrt(variances.high) * (1 + ROUNDING), variances.confidence, variances.assumes)


def _widths(
    shares: tuple[Floats, Floats], largest: tuple[int, int], laws: tuple[Law, Law, Law], confidence: Fraction
) -> Floats:
    """A bound of |X₂ + bX₁ + cY| for coefficients given as shares of the largest, from a grid that is no smaller."""
    means, counts = (np.clip(np.ceil(share * STEPS * (1 + ROUNDING)), 0, STEPS).astype(np.int64) for share in shares)
    pairs, places = np.unique(means * (STEPS + 1) + counts, return_inverse=True)
    counts_law, sums_law, squares_law = laws
    widths = []
    for pair in pairs.tolist():
        mean, count = (
            Fraction(most * step, STEPS) for most, step in zip(largest, divmod(pair, STEPS + 1), strict=True)
        )
        width = dominating_half_width(((1, squares_law), (mean, sums_law), (count, counts_law)), confidence)
        widths.append(math.nextafter(float(width), math.inf))
    return np.array(widths)[places].reshape(means.shape)

"""Half-widths of sums of very many discrete noises, each times any real number, from a few facts about the numbers.

Gaussian.  Let X be discrete Gaussians of variances σ² ≥ v, G standard normals, and τ² = 3v/(v − 3), so that
           s² = σ²τ²/(σ² + τ²) ≥ 3. By Poisson summation the density of X + τG is that of N(0, σ² + τ²) times a factor
           of at most 1 + 2.1·exp(−2π²s²) < 1 + 10⁻²⁵; for any number of them together the factors are multiplied. For
           S = Σ cX and N = τ Σ cG, which are independent, P(S > h) · P(N ≥ −t) ≤ P(S + N > h − t). So S has the
           width of a normal of deviation √Σc²(σ² + τ²), and a little more for N.
Laplace.   A discrete Laplace X of scale b is a difference of two geometric numbers, and an exponential number is a
           geometric one plus a part below 1 that is independent of it: so X + D is a continuous Laplace L, with D
           symmetric, within (−1, 1) and independent of X. For S = Σ cX, P(S > h) · P(Σ cD ≥ −t) ≤ P(Σ cL > h − t), and
           P(Σ cD < −t) ≤ exp(−t²/2Σc²) ([Hoeffding1963]).
           Σ cL is a normal number times √V with V = Σ 2(cb)²E, E exponential: of mean μ = 2Σ(cb)² and variance
           4Σ(cb)⁴ = κμ². With z = h/√μ and g(u) = 2Q(z/√u), P(|Σ cL| > h) = E g(V/μ) ≤ g(1) + C(z)κ, where C(z) is so
           large that g(u) ≤ g(1) + g′(1)(u − 1) + C(u − 1)² for all u ≥ 0. Or by Chernoff: ln E exp(t Σ cL) =
           −Σ ln(1 − c²b²t²) is largest, for given Σ(cb)² and largest |cb| ≤ m, where all are m. The lesser is taken.
"""

import math
from functools import lru_cache
from typing import Final

import numpy as np

from confide.mechanism.noise.law import Confidence, Floats, miss_rate

LEAST_VARIANCE: Final = 64.0
"""From here on the smooth bound of Gaussian noise is taken; below, that of Chernoff, which needs nothing."""
MOST_TERMS: Final = 2**50
"""Of noises in one sum: (1 + 10⁻²⁵) to this power is below 1 + 2·10⁻¹⁰."""
TOGETHER: Final = 1 + 1e-9
ROUNDED: Final = 1 + 1e-9
POINTS: Final = 129
PAIRS: Final = 512
STEPS: Final = (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5)


@lru_cache(maxsize=256)
def gaussian_factor(least_variance: float, confidence: Confidence) -> float:
    """h/√(Σc²σ²) such that |Σ cX| ≤ h with the confidence, for discrete Gaussians of at least this variance each."""
    miss = miss_rate(confidence)
    chernoff = math.sqrt(2 * math.log(2 / miss))
    if least_variance < LEAST_VARIANCE:
        return chernoff * ROUNDED
    extra = 3 / (least_variance - 3)  # τ²/v
    widths = []
    for step in STEPS:
        kept = 1 - _tail(step)
        z = _inverse_tail(miss / 2 * kept / TOGETHER)
        widths.append(z * math.sqrt(1 + extra) + step * math.sqrt(extra))
    return min(*widths, chernoff) * ROUNDED


def laplace_widths(second: Floats, fourth: Floats, scale: float, confidence: Confidence) -> Floats:
    """h for Σ cX of discrete Laplaces, from Σ(cb)², Σ(cb)⁴ and the least scale b."""
    miss = miss_rate(confidence)
    spread = np.maximum(second, 1e-140)
    ratio = np.clip(fourth / spread**2 * (1 + 1e-9), 0.0, 1.0)
    # Σc² ≤ Σ(cb)²/b²: what D may add, with a share of the miss rate that makes it least.
    best: Floats | None = None
    for step in (3.0, 4.0, 5.0, 6.0):
        kept = 1 - math.exp(-step * step / 2)
        points, widths = _laplace_table(miss * kept)
        # The table is rounded up to its next point, so it is a bound in between as well.
        place = np.minimum(np.searchsorted(points, ratio), len(points) - 1)
        # Of one term alone the law is known.
        factors = np.where(ratio >= 1, -math.log(miss * kept) / math.sqrt(2), widths[place])
        found = factors * np.sqrt(2 * spread) + step * np.sqrt(spread) / scale
        best = found if best is None else np.minimum(best, found)
    assert best is not None
    result: Floats = np.where(second > 0, best * ROUNDED, 0.0)
    return result


@lru_cache(maxsize=256)
def laplace_pair_width(scale: float, confidence: Confidence) -> float:
    """h for every cX + dY of two discrete Laplaces with (cb)² + (db)² = 1, of at least this scale b.

    One term alone is not the widest of them where the confidence is below about 0.95.
    """
    miss = miss_rate(confidence)
    steps = (3.0, 4.0, 5.0, 6.0)  # as in `laplace_widths`
    return min(_pair_width(miss * (1 - math.exp(-step * step / 2))) + step / scale for step in steps) * ROUNDED


def _pair_width(miss: float) -> float:
    """The least h with a proven P(|aL + dM| > h) ≤ miss for continuous Laplaces of scale 1 and all a² + d² = 1.

    P = (a²·exp(−h/a) − d²·exp(−h/d))/(a² − d²), and it grows with a and with d: both are symmetric and unimodal. So of
    the angles between two points, the larger a of one and the larger d of the other bound all.
    """
    angles = np.linspace(0, math.pi / 4, PAIRS + 1)
    a, d = np.cos(angles[:-1]), np.sin(angles[1:])
    low, high = np.zeros(PAIRS), np.full(PAIRS, -3 * math.log(miss) + 3)
    while float((high - low).max()) > 1e-9:
        middle = (low + high) / 2
        tail = (a**2 * np.exp(-middle / a) - d**2 * np.exp(-middle / d)) / (a**2 - d**2)
        low, high = np.where(tail > miss, middle, low), np.where(tail > miss, high, middle)
    return float(high.max())


@lru_cache(maxsize=64)
def _laplace_table(miss: float) -> tuple[Floats, Floats]:
    """Points of κ and the widths there, in deviations. Both bounds grow with κ."""
    points = np.concatenate([[0.0], np.logspace(-8, 0, POINTS)])
    return points, np.array([_laplace_width(float(point), miss) for point in points])


def _laplace_width(ratio: float, miss: float) -> float:
    """The least z with a proven P(|Σ cL| > z√μ) ≤ miss."""
    low, high = 0.5, _chernoff_width(ratio, miss)
    if _by_moments(high, ratio) > miss:
        return high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if _by_moments(middle, ratio) <= miss else (middle, high)
    return high


def _chernoff_width(ratio: float, miss: float) -> float:
    """By Chernoff: largest |cb| is at most (Σ(cb)⁴)^¼, so there are as if 1/√κ equal terms, each of √κ of all."""
    size = ratio**0.25  # m/√Σ(cb)²
    size = max(size, 1e-3)  # fewer and larger terms: no smaller a bound
    terms = 1 / size**2
    rates = np.linspace(0.002, 0.999, 800)  # t·m
    widths = (np.log(2 / miss) - terms * np.log1p(-(rates**2))) / (rates / size)
    return float(widths.min()) / math.sqrt(2)


def _by_moments(z: float, ratio: float) -> float:
    return 2 * _tail(z) + _curvature(round(z, 6)) * ratio


@lru_cache(maxsize=1 << 14)
def _curvature(z: float) -> float:
    """C(z): the largest of (g(u) − g(1) − g′(1)(u − 1))/(u − 1)² over u ≥ 0, on a fine grid, with room between."""
    offsets = np.concatenate([-np.logspace(0, -2, 400), np.logspace(-2, 3, 800)])
    u = 1 + offsets
    values = 2 * _tails(z / np.sqrt(np.maximum(u, 1e-12)))
    slope = z * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    quotient = (values - 2 * _tail(z) - slope * offsets) / offsets**2
    # At u = 1 the quotient is g″(1)/2; it is smooth, and points are within 1 % of each other.
    at_one = slope * (z * z - 3) / 4
    return max(float(quotient.max()), at_one, 0.0) * 1.02 + 1e-6


def _tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def _tails(z: Floats) -> Floats:
    from scipy.special import erfc  # noqa: PLC0415  heavy, and loaded when used

    found: Floats = erfc(z / math.sqrt(2)) / 2
    return found


@lru_cache(maxsize=1024)
def _inverse_tail(rate: float) -> float:
    """The least z, to within 10⁻⁹ and from above, with Q(z) ≤ rate."""
    low, high = -1.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if _tail(middle) * (1 + 1e-12) <= rate else (middle, high)
    return high

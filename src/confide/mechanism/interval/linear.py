"""Half-widths for sums of noised integers, each times a fixed number.

Every bound here is proven; the least of them is taken, so the result is never worse than bounding the terms one by one.

Spread.    Spread each X over the unit cell around it: X + U, with U uniform, has a symmetric unimodal density, and Σ aX
           moves by at most ½Σ|a|. Among such densities P(|Σ aX| > t) grows with every |a|, and when a term gives way to
           one that is symmetric, unimodal and stochastically larger in absolute value ([Wintner1938]; [Birnbaum1948]).
           Levelling a density within the cells of a grid makes it such a term. Levelled terms add up to a convolution
           on the grid, and one uniform cell for each term, which moves the sum by at most half a cell.
Chernoff.  P(|S| > h) <= 2 E exp(tS) exp(-th) for every t > 0. The moments of the discrete Laplace are known in closed
           form; those of the discrete Gaussian are at most those of the normal ([Canonne2020]).
Many.      Of more terms than are convolved: what `many` proves of sums of smooth noises.
Exact.     Where the coefficients have a small common grain, the law of the sum itself, by convolution.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Final

import numpy as np

from confide.mechanism.interval.many import gaussian_factor, laplace_widths
from confide.mechanism.noise.law import (
    SUMMED_VARIANCE,
    Confidence,
    DiscreteGaussian,
    DiscreteLaplace,
    Floats,
    Law,
    NoNoise,
    miss_rate,
)

Noise = DiscreteLaplace | DiscreteGaussian
Terms = tuple[tuple[Fraction, Noise], ...]  # absolute coefficients and laws

MOST_CONVOLVED: Final = 16
MOST_EXACT: Final = 64
SMALLEST_CONVOLVED: Final = 1e-5  # rarer misses are left to Chernoff
NUMERICAL: Final = 1e-8  # more than all rounding in a convolution of probabilities, its sum included
CELLS_PER_SPREAD: Final = 300
EXACT_SUPPORT: Final = 1 << 14
FAR: Final = Fraction(1 << 200)  # a factor beyond which the squares of coefficients are kept out of doubles


def combined_half_width(terms: Sequence[tuple[int | Fraction, Law]], confidence: Confidence) -> Fraction:
    """h such that |Σ a·X| <= h with at least the confidence, for independent noises X of the given laws.

    A number that is used twice is one term with the sum of its coefficients: the terms must be independent.
    """
    miss = miss_rate(confidence)
    kept = _kept(terms)
    if not kept:
        return Fraction(0)
    grain = reduce(common_grain, (coefficient for coefficient, _ in kept))
    if len(kept) == 1:
        return grain * kept[0][1].half_width(confidence)
    exact = _exact(tuple((coefficient / grain, law) for coefficient, law in kept), miss)
    return exact * grain if exact is not None else _bounded(kept, miss)


def dominating_half_width(terms: Sequence[tuple[int | Fraction, Law]], confidence: Confidence) -> Fraction:
    """Like `combined_half_width`, and it also serves for all coefficients that are no larger in absolute value."""
    kept = _kept(terms)
    return _bounded(kept, miss_rate(confidence)) if kept else Fraction(0)


def _kept(terms: Sequence[tuple[int | Fraction, Law]]) -> Terms:
    return tuple((abs(Fraction(number)), law) for number, law in terms if number != 0 and not isinstance(law, NoNoise))


def common_grain(first: Fraction, second: Fraction) -> Fraction:
    denominator = math.lcm(first.denominator, second.denominator)
    return Fraction(math.gcd(int(first * denominator), int(second * denominator)), denominator)


@lru_cache(maxsize=1024)
def _bounded(terms: Terms, miss: float) -> Fraction:
    largest, smallest = (pick(coefficient for coefficient, _ in terms) for pick in (max, min))
    smooth = _smooth(terms, largest, miss)
    if largest > smallest * FAR:
        # The small terms hardly count, and doubles do not hold both.
        return min([_one_by_one(terms, miss), *smooth])
    if largest > FAR or smallest < 1 / FAR:
        return largest * _bounded(tuple((coefficient / largest, law) for coefficient, law in terms), miss)
    widths = [_one_by_one(terms, miss), _chernoff(terms, miss), *smooth]
    if len(terms) <= MOST_CONVOLVED and miss >= SMALLEST_CONVOLVED:
        widths.append(_spread(terms, miss))
    return min(widths)


def _smooth(terms: Terms, largest: Fraction, miss: float) -> list[Fraction]:
    """What `many` proves, of more terms than are convolved and of one kind of noise; nothing of others. A coefficient
    that is no double beside the largest one is far below what that rounds."""
    if len(terms) <= MOST_CONVOLVED:
        return []
    shares = np.array([float(coefficient / largest) for coefficient, _ in terms])
    confidence = 1 - Fraction(miss)
    if all(isinstance(law, DiscreteGaussian) for _, law in terms):
        variances = np.array([float(law.variance) for _, law in terms])
        factor = gaussian_factor(float(variances.min()), confidence)
        return [largest * Fraction(factor * math.sqrt(float((shares**2 * variances).sum())) * (1 + 1e-9))]
    own = [(coefficient * law.scale, law.scale) for coefficient, law in terms if isinstance(law, DiscreteLaplace)]
    if len(own) < len(terms):
        return []
    widest = max(spread for spread, _ in own)  # beside it, fourth powers of any scale are doubles
    squares = np.array([float(spread / widest) for spread, _ in own]) ** 2
    least = float(min(scale for _, scale in own))
    found = laplace_widths(np.array([squares.sum()]), np.array([(squares**2).sum()]), least, confidence)
    return [widest * Fraction(float(found[0]) * (1 + 1e-9))]


def _one_by_one(terms: Terms, miss: float) -> Fraction:
    share = 1 - Fraction(miss) / len(terms)
    return sum((coefficient * law.half_width(share) for coefficient, law in terms), Fraction(0))


def _chernoff(terms: Terms, miss: float) -> Fraction:
    return chernoff_of([(coefficient, law, 1) for coefficient, law in terms], miss)


def chernoff_of(kinds: Sequence[tuple[Fraction, Noise, int]], miss: float) -> Fraction:
    """The least over a grid of t; every t gives a bound, so the grid costs width and nothing else. Each kind of term is
    there so many times.
    """
    laplaces = [coefficient * law.scale for coefficient, law, _ in kinds if isinstance(law, DiscreteLaplace)]
    spread = math.sqrt(sum(count * float(coefficient) ** 2 * float(law.variance) for coefficient, law, count in kinds))
    largest = 0.999 / float(max(laplaces)) if laplaces else 20 * math.sqrt(-math.log(miss)) / spread
    rates = largest * np.linspace(0.005, 1, 200)
    if laplaces and spread > 0:
        # Where there are many terms the best rate is that of the normal law, far below the largest.
        normal = math.sqrt(2 * math.log(2 / miss)) / spread
        rates = np.unique(np.concatenate([rates, np.minimum(normal * np.linspace(0.2, 2, 100), largest)]))
    logarithm = np.zeros(len(rates))
    for coefficient, law, count in kinds:
        steps = rates * float(coefficient)
        if isinstance(law, DiscreteGaussian):
            logarithm += count * float(law.variance) / 2 * steps**2
        else:
            # E exp(sX) = (1 - q)² / ((1 - q e^s)(1 - q e^-s)) with q = exp(-1/scale)
            inverse = law.scale.denominator / law.scale.numerator
            own = 2 * np.log(-np.expm1(-inverse)) - np.log(-np.expm1(steps - inverse))
            logarithm += count * (own - np.log(-np.expm1(-steps - inverse)))
    widths = (np.maximum(logarithm, 0) + math.log(2 / miss)) / rates
    return Fraction(float(widths.min()) * (1 + 1e-9))


def _spread(terms: Terms, miss: float) -> Fraction:
    """The bound by spreading and levelling, on a grid of about `CELLS_PER_SPREAD` cells to the standard deviation."""
    variance = sum(float(coefficient) ** 2 * float(law.variance) for coefficient, law in terms)
    moved = float(sum((coefficient for coefficient, _ in terms), Fraction(0))) / 2
    cell = max(math.sqrt(variance), moved) / CELLS_PER_SPREAD
    cut = Fraction(miss) / (10**4 * len(terms))
    spread = [levelled(float(coefficient), law, cell, cut) for coefficient, law in terms]
    outside = _first_outside(_convolved(spread), miss - float(cut) * len(terms) - NUMERICAL)
    return Fraction(((outside + len(terms) / 2) * cell + moved) * (1 + 1e-12))


def levelled(coefficient: float, law: Noise, cell: float, cut: Fraction) -> Floats:
    """Probabilities of the cells of a·(X + U), from the first left to the last right that matter."""
    count = math.ceil(coefficient * (law.half_width(1 - cut) + 0.5) / cell + 0.5)
    edges = (np.arange(count + 1) + 0.5) * (cell / coefficient)  # right ends of the cells 0, 1, ...
    whole = np.maximum(np.floor(edges - 0.5), 0)
    part = edges - 0.5 - whole
    nearest = law.tails(np.zeros(1))[0]
    # X + U exceeds k + ½ as often as X exceeds k; in between its tail is a straight line, from ½ at zero.
    beyond = np.where(
        edges < 0.5,
        0.5 - edges * (1 - 2 * nearest),
        (1 - part) * law.tails(whole) + part * law.tails(whole + 1),
    )
    right = -np.diff(beyond)
    masses: Floats = np.maximum(np.concatenate([right[::-1], [1 - 2 * beyond[0]], right]), 0)
    return masses


@lru_cache(maxsize=1024)
def _exact(terms: Terms, miss: float) -> int | None:
    """The smallest integer bound that the sum itself keeps, for integer coefficients; None if that is much work."""
    if len(terms) > MOST_EXACT or miss < SMALLEST_CONVOLVED:
        return None
    if any(isinstance(law, DiscreteGaussian) and law.variance > SUMMED_VARIANCE for _, law in terms):
        return None
    cut = Fraction(miss) / (10**6 * len(terms))
    reaches = [law.half_width(1 - cut) for _, law in terms]
    if sum(coefficient * reach for (coefficient, _), reach in zip(terms, reaches, strict=True)) > EXACT_SUPPORT:
        return None
    masses = []
    for (coefficient, law), reach in zip(terms, reaches, strict=True):
        right = -np.diff(law.tails(np.arange(reach + 1, dtype=np.float64)))
        places = np.zeros(2 * int(coefficient) * reach + 1)
        centre = 1 - 2 * law.tails(np.zeros(1))
        places[:: int(coefficient)] = np.concatenate([right[::-1], centre, right])
        masses.append(places)
    return _first_outside(_convolved(masses), miss - float(cut) * len(terms) - NUMERICAL)


def _convolved(masses: list[Floats]) -> Floats:
    length = sum(len(mass) for mass in masses) - len(masses) + 1
    size = 1 << (length - 1).bit_length()
    product = np.prod([np.fft.rfft(mass, size) for mass in masses], axis=0)
    result: Floats = np.maximum(np.fft.irfft(product, size)[:length], 0)
    return result


def _first_outside(probabilities: Floats, miss: float) -> int:
    """The smallest k such that the places further than k from the centre hold at most `miss`."""
    centre = len(probabilities) // 2
    beyond = np.append(np.cumsum(probabilities[:centre:-1])[::-1], 0.0)  # beyond[k]: strictly further right than k
    return int(np.argmax(2 * beyond <= miss))

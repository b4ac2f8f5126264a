"""Half-widths for sums of very many noised integers, each times a number.

`confide.mechanism.interval.linear` proves bounds for a few terms. Here terms with equal coefficients are first added
up: their sum S is an integer, symmetric about zero, and its law is log-concave, so unimodal, because the laws of both
noises are (a convolution of log-concave sequences is log-concave). So the bound by spreading holds for sums of such S
as it does there: S + U with U uniform on a unit cell has a symmetric unimodal density, Σ a·S moves by at most ½Σ|a|,
and levelling within the cells of a grid only moves mass outward ([Wintner1938]; [Birnbaum1948]). Beside it stands
Chernoff's bound; the lesser of the two is taken."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from confide.fit.group import Floats
from confide.fit.problem import NoiseLaw
from confide.mechanism.interval.linear import combined_half_width
from confide.mechanism.noise.law import Confidence, DiscreteLaplace, miss_rate

DIGITS: Final = 1e-9  # coefficients that agree to this are one class, all of them rounded up
NEGLIGIBLE: Final = 1e-7  # coefficients below this share of the largest count as this much
MOST_DIRECT: Final = 16
MOST_CLASSES: Final = 24
LONGEST: Final = 1 << 21  # places in the law of one class
SMALLEST_MISS: Final = 1e-5
CELLS_PER_SPREAD: Final = 300
NUMERICAL: Final = 1e-8  # more than the rounding of the transforms


@dataclass(frozen=True, slots=True)
class Class:
    """So many independent noises of one law with one coefficient."""

    coefficient: float
    law: NoiseLaw
    count: int


def half_width(terms: Sequence[tuple[Floats, NoiseLaw]], confidence: Confidence) -> float:
    """h such that |Σ c·X| <= h with at least the confidence, for independent noises X; one array of c for each law."""
    miss = miss_rate(confidence)
    classes = _classes(terms)
    if 2 * sum(each.count * each.law.tail(0) for each in classes) <= miss:
        return 0.0  # no noise at all, but for a probability that may be missed
    if sum(each.count for each in classes) <= MOST_DIRECT:
        direct = [(Fraction(each.coefficient), each.law) for each in classes for _ in range(each.count)]
        return _up(float(combined_half_width(direct, confidence)))
    width = _chernoff(classes, miss)
    if len(classes) <= MOST_CLASSES and miss >= SMALLEST_MISS:
        spread = _spread(classes, miss)
        width = width if spread is None else min(width, spread)
    return _up(width)


def _classes(terms: Sequence[tuple[Floats, NoiseLaw]]) -> list[Class]:
    largest = max((float(np.abs(values).max(initial=0)) for values, _ in terms), default=0.0)
    classes = []
    for values, law in terms:
        sizes = np.abs(values[values != 0])
        if largest == 0 or len(sizes) == 0:
            continue
        steps = np.ceil(np.log(np.maximum(sizes / largest, NEGLIGIBLE)) / DIGITS)
        for step, count in zip(*np.unique(steps, return_counts=True), strict=True):
            classes.append(Class(_up(largest * math.exp(min(step * DIGITS, 0.0))), law, int(count)))
    return classes


def _chernoff(classes: Sequence[Class], miss: float) -> float:
    """P(|S| > h) <= 2 E exp(tS) exp(−th), the least over a grid of t."""
    spread = math.sqrt(sum(each.count * each.coefficient**2 * float(each.law.variance) for each in classes))
    scales = [each.coefficient * float(each.law.scale) for each in classes if isinstance(each.law, DiscreteLaplace)]
    largest = min(0.999 / max(scales) if scales else math.inf, 20 * math.sqrt(-math.log(miss)) / spread)
    rates = largest * np.linspace(0.005, 1, 200)
    logarithm = np.zeros(len(rates))
    for each in classes:
        steps = rates * each.coefficient
        if isinstance(each.law, DiscreteLaplace):
            inverse = each.law.scale.denominator / each.law.scale.numerator
            moment = 2 * np.log(-np.expm1(-inverse)) - np.log(-np.expm1(steps - inverse))
            moment -= np.log(-np.expm1(-steps - inverse))
        else:
            moment = float(each.law.variance) / 2 * steps**2
        logarithm += each.count * np.maximum(moment, 0)
    return float(((logarithm + math.log(2 / miss)) / rates).min())


def _spread(classes: Sequence[Class], miss: float) -> float | None:
    variance = sum(each.count * each.coefficient**2 * float(each.law.variance) for each in classes)
    moved = sum(each.coefficient for each in classes) / 2
    cell = max(math.sqrt(variance), moved) / CELLS_PER_SPREAD
    cut = miss / (10**4 * len(classes))
    levelled = []
    for each in classes:
        tails = _tails(each.law, each.count, cut)
        if tails is None:
            return None
        levelled.append(_levelled(each.coefficient, tails, cell))
    length = sum(len(mass) for mass in levelled) - len(levelled) + 1
    size = 1 << (length - 1).bit_length()
    product = np.prod([np.fft.rfft(mass, size) for mass in levelled], axis=0)
    masses = np.maximum(np.fft.irfft(product, size)[:length], 0)
    beyond = np.append(np.cumsum(masses[: length // 2 : -1])[::-1], 0.0)
    outside = int(np.argmax(2 * beyond <= miss - 2 * cut * len(classes) - NUMERICAL))
    return (outside + len(levelled) / 2) * cell + moved


def _tails(law: NoiseLaw, count: int, cut: float) -> Floats | None:
    """P(S > k) for k = 0, 1, ... to where it is below `cut`, for the sum S of some noises; None if that is long."""
    reach = math.ceil(_chernoff([Class(1.0, law, count)], cut))
    each = law.half_width(1 - Fraction(cut) / count)
    if reach + each > LONGEST:
        return None
    right = -np.diff(law.tails(np.arange(each + 1, dtype=np.float64)))
    centre = 1 - 2 * float(law.tails(np.zeros(1))[0])
    size = 1 << (2 * (reach + each) + 1).bit_length()
    single = np.zeros(size)
    single[0] = centre
    single[1 : each + 1] = right
    single[-each:] = right[::-1]
    masses = np.fft.irfft(np.fft.rfft(single) ** count, size)  # what wraps around is beyond reach, and below `cut`
    beyond: Floats = np.cumsum(np.maximum(masses[1 : reach + 1], 0)[::-1])[::-1]
    return np.asarray(np.minimum(np.append(beyond, 0.0) + NUMERICAL / 100, 0.5))


def _levelled(coefficient: float, tails: Floats, cell: float) -> Floats:
    """Probabilities of the grid's cells under a·(S + U), from the first left to the last right that matter."""
    reach = len(tails) - 1
    count = math.ceil(coefficient * (reach + 0.5) / cell + 0.5)
    edges = (np.arange(count + 1) + 0.5) * (cell / coefficient)  # right ends of the cells 0, 1, ...
    # S + U exceeds k + ½ as often as S exceeds k; in between its tail is a straight line, from ½ at zero.
    knots = np.concatenate([[0.0], np.arange(reach + 1) + 0.5, [reach + 1.5]])
    beyond = np.interp(edges, knots, np.concatenate([[0.5], tails, [0.0]]), right=0.0)
    right = -np.diff(beyond)
    masses: Floats = np.maximum(np.concatenate([right[::-1], [1 - 2 * beyond[0]], right]), 0)
    return masses


def _up(width: float) -> float:
    return width * (1 + 1e-12)

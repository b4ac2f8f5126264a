"""Half-widths for sums of very many noised integers of few kinds: sums over groups, running sums.

What `linear` proves for sums of any terms grows wide with their number: bounding them one by one by √n, Chernoff by two
fifths. Here the law of the sum is computed: the law of one term, transformed, to the power of how many there are.

Wrapped.   On Z modulo M the law of S is that of S wrapped around, and |S| <= M/2 but for a probability that Chernoff
           bounds. So P(|S| > h) <= P(|wrapped S| > h) + P(|S| > M/2).
Lattice.   Coefficients that are multiples of one grain, if M of them reach far enough: the law itself.
Levelled.  Else every term is spread and levelled, as in `linear`, on a grid. What that moves is a sum of independent
           centred uniform numbers, Σ aU and Σ V, each within its bound by [Hoeffding1963] but for a hundredth of the
           miss rate.
More.      Symmetric unimodal laws on the integers stay so when added up, and P(|S + X| <= t) <= P(|S| <= t) for an
           independent X: of all windows of 2t + 1 integers the middle one weighs most. So a bound for more terms of one
           coefficient serves for fewer, and few different numbers of terms are looked at.
Fewer.     What bounds one by one, Chernoff and what is levelled give serves for smaller coefficients too. So of very
           many different ones those near each other are taken for the largest of them: one transform for each.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Final

import numpy as np

from confide.mechanism.interval.linear import (
    FAR,
    MOST_CONVOLVED,
    NUMERICAL,
    SMALLEST_CONVOLVED,
    Noise,
    chernoff_of,
    combined_half_width,
    common_grain,
    dominating_half_width,
    levelled,
)
from confide.mechanism.noise.law import SUMMED_VARIANCE, Confidence, DiscreteGaussian, Floats, Law, NoNoise, miss_rate

LARGEST_GRID: Final = 1 << 19
CELLS: Final = 1 << 18
FEWER_CELLS: Final = 1 << 14
"""Where many bounds are wanted and a per cent matters less."""
_PARTS: Final = 100
_EXACT_COUNTS: Final = 32
MOST_KINDS: Final = 256
"""Of coefficients and laws whose law is computed: each is transformed, which takes some hundredths of a second."""
_FINE_BITS: Final = 40
_COARSER_BITS: Final = (8, 6, 5, 4, 3, 2, 1)

Kinds = tuple[tuple[Fraction, Noise, int], ...]
"""Absolute coefficients and laws, and how often each is there."""


def repeated_half_width(terms: Sequence[tuple[Fraction, Law, int]], confidence: Confidence) -> Fraction:
    """h such that |Σ a·X| <= h with at least the confidence, for independent noises X, so many of each law."""
    kinds = _kinds(terms)
    if sum(count for *_, count in kinds) <= MOST_CONVOLVED:
        return combined_half_width([(a, law) for a, law, count in kinds for _ in range(count)], confidence)
    largest, smallest = (pick(coefficient for coefficient, *_ in kinds) for pick in (max, min))
    if largest > smallest * FAR:
        return _apart(kinds, miss_rate(confidence))  # the small terms hardly count, and doubles do not hold both
    if len(kinds) > MOST_KINDS:
        return largest * _of_fewer(kinds, largest, miss_rate(confidence))
    kinds = tuple((coefficient / largest, law, count) for coefficient, law, count in kinds)
    if largest == smallest:
        kinds = tuple((coefficient, law, rounded_up(count)) for coefficient, law, count in kinds)
    return largest * _many(kinds, miss_rate(confidence))


def dominating_repeated_half_width(terms: Sequence[tuple[Fraction, Law, int]], confidence: Confidence) -> Fraction:
    """Like `repeated_half_width`, and it also serves for all coefficients that are no larger in absolute value.

    Bounding one by one, Chernoff and what is levelled grow with every coefficient; the law on a lattice need not.
    """
    kinds = _kinds(terms)
    if sum(count for *_, count in kinds) <= MOST_CONVOLVED:
        return dominating_half_width([(a, law) for a, law, count in kinds for _ in range(count)], confidence)
    largest, smallest = (pick(coefficient for coefficient, *_ in kinds) for pick in (max, min))
    if largest > smallest * FAR:
        return _apart(kinds, miss_rate(confidence))
    if len(kinds) > MOST_KINDS:
        return largest * _of_fewer(kinds, largest, miss_rate(confidence))
    kinds = tuple((coefficient / largest, law, count) for coefficient, law, count in kinds)
    kinds = tuple((coefficient, law, rounded_up(count)) for coefficient, law, count in kinds)
    return largest * _many(kinds, miss_rate(confidence), lattice=False)


def cheap_half_width(terms: Sequence[tuple[Fraction, Law, int]], confidence: Confidence) -> Fraction:
    """The same without computing a law: wider, and quick."""
    kinds = _kinds(terms)
    if not kinds:
        return Fraction(0)
    largest, smallest = (pick(coefficient for coefficient, *_ in kinds) for pick in (max, min))
    apart = _apart(kinds, miss_rate(confidence))
    if largest > smallest * FAR:
        return apart
    kinds = tuple((coefficient / largest, law, count) for coefficient, law, count in kinds)
    return min(apart, largest * chernoff_of(kinds, miss_rate(confidence)))


def _kinds(terms: Sequence[tuple[Fraction, Law, int]]) -> Kinds:
    return tuple((abs(a), law, n) for a, law, n in terms if a and n and not isinstance(law, NoNoise))


def _of_fewer(kinds: Kinds, largest: Fraction, miss: float) -> Fraction:
    """In units of the largest coefficient: what serves for all of these, in the time that some hundred take."""
    fine = _raised(kinds, largest, _FINE_BITS)  # short numbers first: sums of many fractions are long ones
    coarser = (_raised(fine, Fraction(1), bits) for bits in _COARSER_BITS)
    fewer = next((own for own in coarser if len(own) <= MOST_KINDS), None)
    widths = [_apart(fine, miss), chernoff_of(fine, miss)]
    return min(widths if fewer is None else [*widths, _many(fewer, miss, lattice=False)])


def _raised(kinds: Kinds, unit: Fraction, bits: int) -> Kinds:
    """Coefficients in a unit, each raised to so many binary digits, and equal ones counted together."""
    found: dict[tuple[Fraction, Noise], int] = {}
    for coefficient, law, count in kinds:
        own = coefficient / unit
        shift = own.denominator.bit_length() - own.numerator.bit_length() + bits
        scaled = own * 2**shift if shift >= 0 else own / 2**-shift
        raised = Fraction(math.ceil(scaled)) / Fraction(2) ** shift
        found[raised, law] = found.get((raised, law), 0) + count
    return tuple((coefficient, law, count) for (coefficient, law), count in found.items())


def rounded_up(count: int) -> int:
    """One of few counts: up to a thirty-second more."""
    if count <= _EXACT_COUNTS:
        return count
    step = 1 << (count.bit_length() - 6)
    return -(-count // step) * step


@lru_cache(maxsize=4096)
def _many(kinds: Kinds, miss: float, *, lattice: bool = True) -> Fraction:
    total = sum(count for *_, count in kinds)
    widths = [_apart(kinds, miss), chernoff_of(kinds, miss)]
    if miss >= SMALLEST_CONVOLVED:
        widths.append(_wrapped(kinds, miss, total, lattice=lattice))
    return min(widths)


def _apart(kinds: Kinds, miss: float) -> Fraction:
    share = 1 - Fraction(miss) / sum(count for *_, count in kinds)
    return sum((a * law.half_width(share) * count for a, law, count in kinds), Fraction(0))


def _wrapped(kinds: Kinds, miss: float, total: int, *, lattice: bool = True) -> Fraction:
    part = miss / _PARTS
    far = chernoff_of(kinds, part)
    cut = Fraction(part) / total
    grain = reduce(common_grain, (coefficient for coefficient, *_ in kinds))
    summed = all(not isinstance(law, DiscreteGaussian) or law.variance <= SUMMED_VARIANCE for _, law, _ in kinds)
    if lattice and summed and far / grain < LARGEST_GRID // 2:
        size = 1 << max(4, (2 * math.ceil(far / grain) + 1).bit_length())
        masses = [(_lattice(int(a / grain), law, cut), count) for a, law, count in kinds]
        return grain * _outside(masses, size, miss - 2 * part - NUMERICAL)
    cells = CELLS if lattice or total > FEWER_CELLS else FEWER_CELLS
    # A term is spread over a unit cell, which next to no noise would make very many cells of the grid.
    cell = max(float(far) / (cells // 2 - 2), 2 / cells)
    masses = [(levelled(float(a), law, cell, cut), count) for a, law, count in kinds]
    outside = _outside(masses, cells, miss - 4 * part - NUMERICAL)
    # Of independent numbers within ±w/2, P(|Σ| > u) <= 2 exp(-2u² / Σw²).
    factor = math.sqrt(math.log(2 / part) / 2)
    squares = sum(float(a) ** 2 * count for a, _, count in kinds)
    return Fraction((outside * cell + factor * (cell * math.sqrt(total) + math.sqrt(squares))) * (1 + 1e-9))


def _lattice(coefficient: int, law: Noise, cut: Fraction) -> Floats:
    """Probabilities of the multiples of a coefficient, from the first to the last that matter."""
    reach = law.half_width(1 - cut)
    right = -np.diff(law.tails(np.arange(reach + 1, dtype=np.float64)))
    places = np.zeros(2 * coefficient * reach + 1)
    places[::coefficient] = np.concatenate([right[::-1], 1 - 2 * law.tails(np.zeros(1)), right])
    return places


def _outside(masses: Sequence[tuple[Floats, int]], size: int, miss: float) -> int:
    """The smallest k such that the wrapped sum is further than k from zero with probability at most `miss`."""
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for mass, count in masses:
        wrapped = np.zeros(size)
        np.add.at(wrapped, (np.arange(len(mass)) - len(mass) // 2) % size, np.maximum(mass, 0))
        spectrum *= np.fft.rfft(wrapped) ** count
    law = np.maximum(np.fft.irfft(spectrum, size), 0)
    middle = size // 2
    both = law[1 : middle + 1].copy()
    both[: middle - 1] += law[:middle:-1]
    beyond = np.append(np.cumsum(both[::-1])[::-1], 0.0)  # beyond[k]: further than k from zero
    return int(np.argmax(beyond <= miss)) if miss > 0 else middle

"""Exact draws of a few numbers, without a table: by inversion, with a logarithm whose error is proven.

Laplace.   floor(-s·ln U) is at least k if and only if U <= exp(-k/s): it is geometric, the law of |X| but for the sign
           of zero. A fair sign follows; a negative zero is drawn again, so that zero is not counted twice. A large |X|
           is m·B + J with m a power of two: B geometric with scale s/m, J uniform below m, kept with probability
           exp(-J/s), which is nearly 1; the product of their weights is exp(-|X|/s).
Gaussian.  Y from the discrete Laplace of scale t = floor(σ) + 1 is kept with probability exp(-r) for
           r = (|Y| - σ²/t)²/2σ²; then its weight is exp(-Y²/2σ²) ([Canonne2020], Algorithm 3).

To keep with probability exp(-r) is to ask whether -ln U > r. 64 bits of U, read as an integer w >= 2⁴⁶, tell -ln U to
within 2⁻⁴⁵: the bits that are not drawn yet move it by less than 1/w; w as a double, by 2⁻⁵³; with w = m·2^e, m within
√2 of 1 and z = (m - 1)/(m + 1), nine terms of ln m = 2(z + z³/3 + ...) leave 2⁻⁵¹; the roundings of sums, products and
quotients in double precision, each at most 13·2⁻⁵³, come to less than 2⁻⁴⁷. So -s·ln U is known to within s·2⁻⁴³, its
own product included, and r, where it is below 14, to within 2⁻⁴⁶; -ln U is never above 13 here. Where an integer, or r,
is nearer than 2⁻⁴³ tells, or w is below 2⁴⁶, exact arithmetic decides, with more bits of the same U. What comes out is
what endless bits would give, so every draw has exactly its law; what it costs does not depend on the data.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from math import floor, isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.coin import bernoulli_exponential
from confide.mechanism.noise.enclosure import exponential
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from confide.mechanism.noise.randomness import Randomness

LARGEST_SCALE: Final = 2**50  # the chance that 64 bits do not hold a draw is below exp(-2^12)
SMALLEST_SCALE: Final = Fraction(1, 2**50)
BLOCK_SCALE_BITS: Final = 21
CERTAIN: Final = 2**46
MARGIN: Final = 2.0**-43
LN_2: Final = 0.6931471805599453
ROOT_HALF: Final = 0.7071067811865476
INVERSE_ODDS: Final = [1 / odd for odd in range(17, 0, -2)]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def draws_few(law: DiscreteLaplace | DiscreteGaussian) -> bool:
    """Whether the scale of a law is one that `few` draws."""
    if isinstance(law, DiscreteLaplace):
        return SMALLEST_SCALE <= law.scale <= LARGEST_SCALE
    return SMALLEST_SCALE**2 <= law.variance <= LARGEST_SCALE**2


def few(law: DiscreteLaplace | DiscreteGaussian, count: int, randomness: Randomness) -> Integers:
    """`count` independent draws of the law."""
    drawn: Integers = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        missing = count - len(drawn)
        proposed = missing + missing // 2 + 8  # so that one round is nearly always enough
        if isinstance(law, DiscreteLaplace):
            fresh = _laplace(law.scale, proposed, randomness)
        else:
            fresh = _gaussian(law.variance, proposed, randomness)
        drawn = np.concatenate([drawn, fresh[:missing]])
    return drawn


def signed(magnitudes: NDArray[Any], randomness: Randomness) -> NDArray[Any]:
    """The magnitudes with fair signs, without those that became a negative zero."""
    count = len(magnitudes)
    bits = np.frombuffer(randomness.bytes(-(-count // 8)), dtype=np.uint8)
    negative = np.unpackbits(bits, count=count).astype(bool)
    both: NDArray[Any] = np.where(negative, -magnitudes, magnitudes)
    kept: NDArray[Any] = both[~negative | (magnitudes != 0)]
    return kept


def _laplace(scale: Fraction, count: int, randomness: Randomness) -> Integers:
    """At most `count` draws; fewer where some were rejected."""
    bits = max(0, floor(scale).bit_length() - BLOCK_SCALE_BITS)
    magnitudes = _geometric(scale / 2**bits, count, randomness)
    if bits:
        within = (randomness.uint64(count) >> np.uint64(64 - bits)).astype(np.int64)
        kept = _kept(within / float(scale), lambda place: int(within[place]) / scale, randomness)
        magnitudes = ((magnitudes << bits) + within)[kept]
    return signed(magnitudes, randomness)


def _geometric(scale: Fraction, count: int, randomness: Randomness) -> Integers:
    """`count` draws of k with weights exp(-k/scale)."""
    words = randomness.uint64(count)
    places, room = logarithms(words) * float(scale), float(scale) * MARGIN
    low, high = np.floor(np.maximum(places - room, 0)), np.floor(places + room)
    drawn: Integers = low.astype(np.int64)
    for place in np.flatnonzero((low != high) | (words < CERTAIN)):
        drawn[place] = inverted(scale, int(words[place]), randomness)
    return drawn


def _gaussian(variance: Fraction, count: int, randomness: Randomness) -> Integers:
    """At most `count` draws; fewer where some were rejected."""
    wider = isqrt(floor(variance)) + 1
    proposed = _laplace(Fraction(wider), count, randomness)

    def exact(place: int) -> Fraction:
        return (abs(int(proposed[place])) * wider - variance) ** 2 / (2 * variance * wider**2)

    rates = (np.abs(proposed) - float(variance / wider)) ** 2 / float(2 * variance)
    return proposed[_kept(rates, exact, randomness)]


def _kept(rates: Floats, exact: Callable[[int], Fraction], randomness: Randomness) -> NDArray[np.bool_]:
    """Coins that fall on True with probability exp(-rate); `exact` is the rate that a double only comes near."""
    words = randomness.uint64(len(rates))
    excess = logarithms(words) - rates
    kept: NDArray[np.bool_] = excess > 0
    for place in np.flatnonzero((np.abs(excess) <= MARGIN) | (words < CERTAIN)):
        kept[place] = bernoulli_exponential(exact(int(place)), randomness, int(words[place]), 64)
    return kept


def logarithms(words: Words) -> Floats:
    """-ln U for U from word/2⁶⁴ up to (word + 1)/2⁶⁴, within 2⁻⁴⁵ for words from 2⁴⁶ on."""
    parts, exponents = np.frexp(words.astype(np.float64))
    below = parts < ROOT_HALF
    parts = np.where(below, 2 * parts, parts)
    exponents = exponents - below
    ratio = (parts - 1) / (parts + 1)
    square = ratio * ratio
    series = np.full(len(words), INVERSE_ODDS[0])
    for term in INVERSE_ODDS[1:]:
        series *= square
        series += term
    result: Floats = (64 - exponents) * LN_2 - 2 * ratio * series
    return result


def inverted(scale: Fraction, word: int, randomness: Randomness) -> int:
    """The k with exp(-(k+1)/scale) < U <= exp(-k/scale), given the first 64 bits of U."""
    known = 64
    while True:
        guess = _guessed(scale, word, known)
        for k in (guess, guess - 1, guess + 1):
            if k >= 0 and _below(word, k / scale, known) and _above(word, (k + 1) / scale, known):
                return k
        word, known = word << 64 | int.from_bytes(randomness.bytes(8)), known + 64


def _guessed(scale: Fraction, word: int, known: int) -> int:
    """About -scale·ln U. Only a guess: what is wrong with it costs time and nothing else."""
    context = Context(prec=known // 3 + 30)
    middle = context.divide(Decimal(2 * word + 1), Decimal(2 ** (known + 1)))
    product = context.multiply(-context.ln(middle), Decimal(scale.numerator))
    return int(context.divide(product, Decimal(scale.denominator)))


def _below(word: int, rate: Fraction, known: int) -> bool:
    """Whether U < exp(-rate) for every U that begins with these bits."""
    return word < exponential(rate, known)[0]


def _above(word: int, rate: Fraction, known: int) -> bool:
    """Whether U >= exp(-rate) for every U that begins with these bits."""
    return word >= exponential(rate, known)[1]

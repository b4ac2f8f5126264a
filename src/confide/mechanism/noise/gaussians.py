"""Exact draws of discrete Gaussians that each have a variance of their own, very many at a time.

As `handful` draws them ([Canonne2020], Algorithm 3), but number by number with its own scale: Y from the discrete
Laplace of scale t = floor(σ) + 1, of any t the same law comes out, is kept with probability exp(-(|Y| - v/t)²/2v).
|Y| is m·B + J with m a power of two, B geometric with scale t/m and J uniform below m, kept with probability
exp(-J/t): both coins are one, of the sum of the rates. Then a fair sign, and a negative zero is drawn again.

The rate in doubles: v is off by 2⁻⁵² relatively, all the rest is as in `handful`, and r, where it is below 14, is known
to within 2⁻⁴⁵. That of -ln U is 2⁻⁴⁵ too; where the two are nearer than 2⁻⁴³, exact arithmetic on the variance as a
fraction decides, with more bits of the same U. So every draw has exactly its law; what it costs does not depend on the
data.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from confide.mechanism.noise.coin import bernoulli_exponential
from confide.mechanism.noise.handful import (
    BLOCK_SCALE_BITS,
    CERTAIN,
    LARGEST_SCALE,
    MARGIN,
    Floats,
    Integers,
    inverted,
    logarithms,
)
from confide.mechanism.noise.randomness import Randomness

BLOCK: Final = 1 << 13
"""Drawn together: their words stay in the cache of a core."""

Exact = Callable[[int], Fraction]


def gaussians(variances: Floats, exact: Exact, randomness: Randomness) -> Integers:
    """One draw for each variance. `exact` is the variance at a place, which its double is within 2⁻⁵² of, relatively;
    it is from 1 to `LARGEST_SCALE`²."""
    if len(variances) and not (float(variances.min()) >= 1 and float(variances.max()) <= float(LARGEST_SCALE) ** 2):
        raise ValueError("variances are from 1 to the square of the largest scale")
    drawn: Integers = np.empty(len(variances), dtype=np.int64)
    for start in range(0, len(variances), BLOCK):
        missing = np.arange(start, min(start + BLOCK, len(variances)))
        while len(missing):
            proposed, kept = _proposed(variances[missing], missing, exact, randomness)
            drawn[missing[kept]] = proposed[kept]
            missing = missing[~kept]
    return drawn


def _proposed(
    variances: Floats, places: Integers, exact: Exact, randomness: Randomness
) -> tuple[Integers, np.typing.NDArray[np.bool_]]:
    """A proposal for each variance, and which are kept."""
    count = len(variances)
    wider = np.floor(np.sqrt(variances)) + 1
    bits = np.maximum(np.frexp(wider)[1].astype(np.int64) - BLOCK_SCALE_BITS, 0)
    blocks = _geometric(np.ldexp(wider, -bits), randomness)
    within = (randomness.uint64(count) & ((np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1))).astype(np.int64)
    magnitudes = (blocks << bits) + within
    rates = (magnitudes - variances / wider) ** 2 / (2 * variances) + within / wider
    words = randomness.uint64(count)
    excess = logarithms(words) - rates
    kept = excess > 0
    for place in np.flatnonzero((np.abs(excess) <= MARGIN) | (words < CERTAIN)).tolist():
        variance, scale = exact(int(places[place])), int(wider[place])
        rate = (int(magnitudes[place]) * scale - variance) ** 2 / (2 * variance * scale**2)
        rate += Fraction(int(within[place]), scale)
        kept[place] = bernoulli_exponential(rate, randomness, int(words[place]), 64)
    signs = np.frombuffer(randomness.bytes(-(-count // 8)), dtype=np.uint8)
    negative = np.unpackbits(signs, count=count).astype(bool)
    kept &= ~negative | (magnitudes != 0)
    return np.where(negative, -magnitudes, magnitudes), kept


def _geometric(scales: Floats, randomness: Randomness) -> Integers:
    """For each scale a draw of k with weights exp(-k/scale); scales are dyadic, and so exact as doubles."""
    words = randomness.uint64(len(scales))
    places, room = logarithms(words) * scales, scales * MARGIN
    low, high = np.floor(np.maximum(places - room, 0)), np.floor(places + room)
    drawn: Integers = low.astype(np.int64)
    for place in np.flatnonzero((low != high) | (words < CERTAIN)).tolist():
        drawn[place] = inverted(Fraction(float(scales[place])), int(words[place]), randomness)
    return drawn

"""Exact draws of integer noise, one or ten million at a time, in memory bounded by blocks.

A few come from `handful`; more from tables. A small scale needs one table of |x| with a sign. Large scales are made of
small tables, exactly:

Laplace.   |X| is geometric but for the sign of zero. Written in digits, |X| = T·2^k + Σ d_i·2^(p_i), the weight
           exp(-|x|/s) is a product over the digits: they are independent, and each is drawn from its own table. A fair
           sign follows; a negative zero is drawn again, so that zero is not counted twice.
Gaussian.  |X| = m·B + J with m = 2^a and σ/m in [64, 128). Propose B from the table of exp(-(mB)²/2σ²), J uniform
           below m, and accept with probability exp(-J(2mB + J)/2σ²): the product is exp(-(mB + J)²/2σ²), the weight of
           |X|. At least 99 of 100 proposals are accepted. Sign and negative zero as above.

The acceptance is an exact coin. 32 bits of U are compared with a polynomial for the exponential whose error, with that
of the argument, is below 2^-32 (terms to degree 10 of r <= 0.32 leave 10^-13; additions and products in double
precision, 10^-14; bits of J below the first 32, 0.32·2^-32); when U is within that of it, big integers decide, with
more bits. Tables are proven in `table`. So every draw has exactly its law; what it costs does not depend on the data.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.coin import bernoulli_exponential
from confide.mechanism.noise.enclosure import ExponentialWeights
from confide.mechanism.noise.handful import draws_few, few, signed
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampling_table import SamplingTable, table

BLOCK: Final = 1 << 16
WIDE_BITS: Final = 48  # from this many bits below the leading digit on, draws are Python integers
DIGIT_BITS: Final = 11
DIRECT_SCALE: Final = 16
DIRECT_VARIANCE: Final = 128**2
FEW: Final = 1024  # up to this many draws a table is not worth the milliseconds that it takes to make
FAST_BITS: Final = 32
FAST_MARGIN: Final = 2.0**-FAST_BITS
FAST_RATE: Final = 0.32
INVERSE_FACTORIALS: Final = [(-1.0) ** degree / math.factorial(degree) for degree in range(10, -1, -1)]

AnyIntegers = NDArray[Any]  # int64, or Python integers where the scale is too large for them


def draw(law: Law, size: int | tuple[int, ...], randomness: Randomness) -> AnyIntegers:
    """Independent draws of the law in an array of the given size or shape: int64, or Python integers for scales from
    about 2⁵⁰.
    """
    shape = size if isinstance(size, tuple) else (int(size),)
    count = math.prod(shape)
    if isinstance(law, NoNoise):
        return np.zeros(shape, dtype=np.int64)
    if count <= FEW and draws_few(law):
        return few(law, count, randomness).reshape(shape)
    return vectorised(law, count, randomness).reshape(shape)


def vectorised(law: DiscreteLaplace | DiscreteGaussian, count: int, randomness: Randomness) -> AnyIntegers:
    """What `draw` does beyond a few numbers: from tables, whatever the count."""
    sampler = _sampler(law)
    drawn = np.empty(count, dtype=object if sampler.wide else np.int64)
    done = 0
    while done < count:
        block = sampler.draw(min(BLOCK, count - done), randomness)
        drawn[done : done + len(block)] = block
        done += len(block)
    return drawn


class _Sampler(Protocol):
    @property
    def wide(self) -> bool: ...

    def draw(self, count: int, randomness: Randomness) -> AnyIntegers:
        """At most `count` draws; fewer where some were rejected."""


@lru_cache(maxsize=32)
def _sampler(law: DiscreteLaplace | DiscreteGaussian) -> _Sampler:
    if isinstance(law, DiscreteLaplace):
        if law.scale <= DIRECT_SCALE:
            return _Direct(table(ExponentialWeights(1 / law.scale, folded=True), signed=True))
        return _digits(law.scale)
    if law.variance <= DIRECT_VARIANCE:
        return _Direct(table(ExponentialWeights(1 / (2 * law.variance), 1 / law.variance, folded=True), signed=True))
    return _blocks(law.variance)


@dataclass(frozen=True, slots=True)
class _Direct:
    table: SamplingTable
    wide: bool = False

    def draw(self, count: int, randomness: Randomness) -> AnyIntegers:
        return self.table.draw(count, randomness)


@dataclass(frozen=True, slots=True)
class _Digits:
    digits: tuple[tuple[SamplingTable, int], ...]  # each with its place: the power of two it counts
    wide: bool

    def draw(self, count: int, randomness: Randomness) -> AnyIntegers:
        kind = object if self.wide else np.int64
        magnitudes: AnyIntegers = np.zeros(count, dtype=kind)
        for digit, place in self.digits:
            magnitudes += digit.draw(count, randomness).astype(kind) << place
        return signed(magnitudes, randomness)


def _digits(scale: Fraction) -> _Digits:
    bits = math.floor(scale).bit_length() - 4  # the leading digit is geometric with a scale in [8, 16)
    tables = [(table(ExponentialWeights(2**bits / scale)), bits)]
    groups = -(-bits // DIGIT_BITS)
    places = [bits * group // groups for group in range(groups + 1)]
    for place, end in pairwise(places):
        tables.append((table(ExponentialWeights(2**place / scale, count=2 ** (end - place))), place))
    return _Digits(tuple(tables), bits >= WIDE_BITS)


@dataclass(frozen=True, slots=True)
class _Blocks:
    block: SamplingTable
    bits: int  # a block holds 2^bits integers
    variance: Fraction
    fast_blocks: int  # in blocks before this one the rate stays below FAST_RATE
    wide: bool

    def draw(self, count: int, randomness: Randomness) -> AnyIntegers:
        blocks = self.block.draw(count, randomness)
        high_bits = min(self.bits, FAST_BITS)
        highs = np.frombuffer(randomness.bytes(4 * count), dtype="<u4") >> np.uint32(FAST_BITS - high_bits)
        words = np.frombuffer(randomness.bytes(4 * count), dtype="<u4")
        accepted, unsure = self._compare(blocks, highs.astype(np.float64) * 2.0**-high_bits, words)
        kind = object if self.wide else np.int64
        within = highs.astype(kind) << (self.bits - high_bits)
        if self.bits > high_bits:
            within = within + _uniform_bits(self.bits - high_bits, count, randomness)
        magnitudes = (blocks.astype(kind) << self.bits) + within
        for place in np.flatnonzero(unsure):
            inside, start = int(within[place]), int(blocks[place]) << self.bits
            rate = inside * (2 * start + inside) / (2 * self.variance)
            accepted[place] = bernoulli_exponential(rate, randomness, int(words[place]), FAST_BITS)
        return signed(magnitudes[accepted], randomness)

    def _compare(
        self, blocks: NDArray[np.int64], parts: NDArray[np.float64], words: NDArray[np.uint32]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which proposals are surely accepted, and of which 32 bits cannot tell."""
        rates = parts * (2 * blocks + parts) * float(4**self.bits / (2 * self.variance))
        chances = np.full(len(rates), INVERSE_FACTORIALS[0])
        for coefficient in INVERSE_FACTORIALS[1:]:
            chances *= rates
            chances += coefficient
        excess = chances - words * FAST_MARGIN  # U lies in [0, margin) beyond words·margin
        small = blocks < self.fast_blocks
        accepted = small & (excess >= 2 * FAST_MARGIN)
        return accepted, ~accepted & ~(small & (excess <= -FAST_MARGIN))


def _blocks(variance: Fraction) -> _Blocks:
    bits = math.isqrt(math.floor(variance)).bit_length() - 7
    weights = ExponentialWeights(4**bits / (2 * variance), 4**bits / variance)
    fast_blocks = math.floor(Fraction(FAST_RATE) / weights.step)  # the rate in block b is below (b + 1)·step
    return _Blocks(table(weights), bits, variance, fast_blocks, bits >= WIDE_BITS)


def _uniform_bits(bits: int, count: int, randomness: Randomness) -> AnyIntegers:
    """`count` integers uniform below 2^bits."""
    if bits <= 63:
        return (randomness.uint64(count) >> np.uint64(64 - bits)).astype(np.int64)
    width = -(-bits // 8)
    drawn = randomness.bytes(width * count)
    values = [
        int.from_bytes(drawn[place : place + width]) >> (8 * width - bits) for place in range(0, width * count, width)
    ]
    return np.array(values, dtype=object)

"""The sparse vector technique on streams of run-length segments, drawn exactly.

A margin is a query minus its threshold, an integer. A query is a top if margin + ν >= z, with fresh noise ν for each
query and one z for the whole stream. Given z, the queries of a run are independent coins with one chance
p = P(ν >= z - margin): the run has a top with probability 1 - (1-p)^length, and given that it has, its first top has a
truncated geometric law. Both are decided exactly. Words of 64 bits are compared with the chance in double precision,
whose error is below 10^-12; where they are within 2^-34 of it, and for the place inside a run, integer enclosures
decide, with as many bits as it takes. Most runs are decided without their chance, by a bound for many at once.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.additive import laplace
from confide.mechanism.noise.enclosure import exponential
from confide.mechanism.noise.law import LARGEST_WALK, SLACK, DiscreteLaplace, keep_scale
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.mechanism.tally import Integers
from confide.privacy.loss import PureDP

BLOCK: Final = 1 << 14
DOUBT: Final = 2.0**-34
SPLIT_GRAIN: Final = 1 << 20
SPARE: Final = 8  # candidates for one draw: each serves with probability above 1/2

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Queries in order, as runs: `lengths[i]` queries in a row have the margin `margins[i]`."""

    margins: Integers
    lengths: Integers

    def __post_init__(self) -> None:
        if self.margins.shape != self.lengths.shape or np.any(self.lengths < 1):
            raise ValueError("every run of a stream has a margin and a positive length")

    def after(self, place: int) -> "Stream":
        """What follows the query at `place`."""
        ends = np.cumsum(self.lengths)
        run = int(np.searchsorted(ends, place, side="right"))
        rest = int(ends[run]) - place - 1
        if rest:
            return Stream(self.margins[run:], np.append(rest, self.lengths[run + 1 :]))
        return Stream(self.margins[run + 1 :], self.lengths[run + 1 :])


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Releases the places of the first `tops` tops, and nothing of the answers: an answer needs fresh noise of its own.

    Neighbours: those between which every margin changes by something in [-a, b], max(a, b) <= rise, a + b <= spread
    (a, b >= 0): spread is 2Δ for queries of sensitivity Δ in general, and Δ if all change in one direction (monotone).
    Loss: ε-DP, ε = ε₁ + ε₂; z geometric of scale rise/ε₁, ν of scale tops·spread/ε₂, ε₁:ε₂ = rise^⅔:(tops·spread)^⅔.
    Proof ([Lyu2017], Theorem 2): moving z up by b keeps every query that is no top, moving ν up by b - change
    keeps each top. Both moves only go up, so noise on one side, P(k) ~ exp(-k/scale) for k >= 0, is enough.
    """

    epsilon: Fraction
    rise: int
    spread: int
    tops: int = 1

    def __post_init__(self) -> None:
        for scale in (self.threshold_scale, self.query_scale):
            keep_scale(scale, LARGEST_WALK, "the noise of a comparison")

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def threshold_scale(self) -> Fraction:
        return _scale(self.rise, self._threshold_epsilon)

    @property
    def query_scale(self) -> Fraction:
        return _scale(self.tops * self.spread, self.epsilon - self._threshold_epsilon)

    @property
    def _threshold_epsilon(self) -> Fraction:
        return self.epsilon * _threshold_share(self.rise, self.tops * self.spread)

    def places(self, stream: Stream, randomness: Randomness) -> list[int]:
        """Where the tops are, counted from 0; fewer than `tops` if the stream ends before."""
        threshold = geometric(self.threshold_scale, 1, randomness)
        found: list[int] = []
        begin = 0
        while len(found) < self.tops and len(stream.lengths):
            place = int(_first(stream, threshold, self.query_scale, randomness)[0])
            if place < 0:
                break
            found.append(begin + place)
            stream, begin = stream.after(place), begin + place + 1
        return found

    def first(self, stream: Stream, randomness: Randomness, count: int = 1) -> Integers:
        """The place of the first top in `count` independent runs of the mechanism; -1 where there is none."""
        if self.tops != 1:
            raise ValueError("the noise of this sparse vector is made for several tops")
        return _first(stream, geometric(self.threshold_scale, count, randomness), self.query_scale, randomness)

    def first_of_each(self, streams: Sequence[Stream], randomness: Randomness) -> Integers:
        """The same for one run of the mechanism on each stream; short streams are drawn for together."""
        if self.tops != 1:
            raise ValueError("the noise of this sparse vector is made for several tops")
        thresholds, scale = geometric(self.threshold_scale, len(streams), randomness), self.query_scale
        places = [np.empty(0, dtype=np.int64)]
        for bunch in _bunches(streams):
            own, drawn = streams[bunch], thresholds[bunch]
            if len(own) == 1:  # it may be longer than a block
                places.append(_first(own[0], drawn, scale, randomness))
            else:
                places.append(_first_of_each(own, drawn, scale, randomness))
        return np.concatenate(places)

    def missed_below(self, miss: float) -> int:
        """The smallest t for which a query with margin t is no top with probability at most `miss`: P(z - ν > t)."""
        first, second = float(1 / self.threshold_scale), float(1 / self.query_scale)
        # P(z > t + ν) = q^(t+1) (1-r) / (1-qr) with q, r the ratios of z and ν.
        spare = math.log(-math.expm1(-second) / -math.expm1(-first - second) / miss)
        return max(0, math.ceil(spare / first * (1 + SLACK)) - 1)

    def stopped_above(self, miss: float) -> int:
        """The smallest t for which a query with margin -t is a top with probability at most `miss`: P(ν - z >= t)."""
        first, second = float(1 / self.threshold_scale), float(1 / self.query_scale)
        spare = math.log(-math.expm1(-first) / -math.expm1(-first - second) / miss)
        return max(0, math.ceil(spare / second * (1 + SLACK)))


def geometric(scale: Fraction, count: int, randomness: Randomness) -> Integers:
    """`count` exact draws of P(k) ~ exp(-k/scale), k = 0, 1, ...: discrete Laplace noise, given that it is not
    negative.
    """
    law = DiscreteLaplace(scale)
    kept = np.empty(0, dtype=np.int64)
    while len(kept) < count:
        drawn = draw(law, 2 * (count - len(kept)) + SPARE, randomness)
        kept = np.concatenate([kept, drawn[drawn >= 0]])
    return kept[:count]


@lru_cache(maxsize=1024)
def _threshold_share(rise: int, spread: int) -> Fraction:
    parts = rise ** (2 / 3), spread ** (2 / 3)
    return Fraction(round(SPLIT_GRAIN * parts[0] / sum(parts)), SPLIT_GRAIN)


@lru_cache(maxsize=1024)
def _scale(sensitivity: int, epsilon: Fraction) -> Fraction:
    law = laplace(sensitivity, epsilon).law
    if not isinstance(law, DiscreteLaplace):
        raise ValueError("the sensitivity of a stream is positive")
    return law.scale


def _bunches(streams: Sequence[Stream]) -> Iterator[slice]:
    """Streams in order, as many at a time as have no more runs than a block."""
    begin = runs = 0
    for place, stream in enumerate(streams):
        runs += len(stream.lengths)
        if place > begin and runs > BLOCK:
            yield slice(begin, place)
            begin, runs = place, len(stream.lengths)
    if begin < len(streams):
        yield slice(begin, len(streams))


def _first_of_each(
    streams: Sequence[Stream], thresholds: Integers, scale: Fraction, randomness: Randomness
) -> Integers:
    """The place of the first top of each stream, whose threshold has the same place."""
    sizes = np.array([len(stream.lengths) for stream in streams])
    lengths = np.concatenate([stream.lengths for stream in streams])
    gaps = np.repeat(thresholds, sizes) - np.concatenate([stream.margins for stream in streams])
    begins = np.cumsum(sizes) - sizes
    filled = sizes > 0
    cuts = begins[filled]
    likeliest = _likeliest(np.minimum.reduceat(gaps, cuts), np.maximum.reduceat(lengths, cuts), scale)
    hits = np.flatnonzero(_has_top(gaps, lengths, np.repeat(likeliest, sizes[filled]), scale, randomness))
    places = np.full(len(streams), -1, dtype=np.int64)
    for row, hit in enumerate(np.searchsorted(hits, begins)):
        if hit < len(hits) and hits[hit] < begins[row] + sizes[row]:
            run = hits[hit]
            inside = _place(int(gaps[run]), int(lengths[run]), scale, randomness)
            places[row] = int(lengths[begins[row] : run].sum()) + inside  # within the stream, lest it pass 64 bits
    return places


def _first(stream: Stream, thresholds: Integers, scale: Fraction, randomness: Randomness) -> Integers:
    places = np.full(len(thresholds), -1, dtype=np.int64)
    starts = np.cumsum(stream.lengths) - stream.lengths
    open_runs = np.arange(len(thresholds))
    width = max(1, BLOCK // max(1, len(thresholds)))
    for begin in range(0, len(stream.lengths), width):
        if not len(open_runs):
            break
        part = slice(begin, begin + width)
        gaps = thresholds[open_runs, np.newaxis] - stream.margins[np.newaxis, part]
        lengths = stream.lengths[part]
        likeliest = _likeliest(gaps.min(axis=1), lengths.max(), scale)
        both = np.broadcast_to(lengths, gaps.shape).ravel(), np.repeat(likeliest, gaps.shape[1])
        tops = _has_top(gaps.ravel(), *both, scale, randomness).reshape(gaps.shape)
        found = tops.any(axis=1)
        for row in np.flatnonzero(found):
            run = int(tops[row].argmax())
            inside = _place(int(gaps[row, run]), int(lengths[run]), scale, randomness)
            places[open_runs[row]] = int(starts[begin + run]) + inside
        open_runs = open_runs[~found]
    return places


def _likeliest(gaps: Integers, lengths: Any, scale: Fraction) -> NDArray[np.uint64]:
    """A word that no chance exceeds: no run's chance is above that of the longest at the smallest gap."""
    return _word(lengths * np.exp(-np.minimum(np.maximum(gaps, 0) * float(1 / scale), 750.0)) + 2 * DOUBT)


def _has_top(
    gaps: Integers, lengths: Integers, likeliest: NDArray[np.uint64], scale: Fraction, randomness: Randomness
) -> NDArray[np.bool_]:
    """For each run, whether ν >= gap for some query of it; its word is a top only up to the likeliest."""
    words = randomness.uint64(len(gaps))
    runs = np.flatnonzero(words <= likeliest)
    excess = _chances(gaps[runs], lengths[runs], scale) - words[runs] * 2.0**-64
    hits = excess > 0
    for place in np.flatnonzero((np.abs(excess) <= DOUBT) & (gaps[runs] > 0)):
        run = runs[place]
        hits[place] = _exact_has_top(int(gaps[run]), int(lengths[run]), scale, int(words[run]), randomness)
    tops = np.zeros(len(gaps), dtype=bool)
    tops[runs] = hits
    return tops


def _word(chances: Floats) -> NDArray[np.uint64]:
    """The first 64 bits of small chances; all ones from a half on."""
    words: NDArray[np.uint64] = (np.minimum(chances, 0.5) * 2.0**64).astype(np.uint64)
    return np.where(chances < 0.5, words, np.uint64(2**64 - 1))


def _chances(gaps: Integers, lengths: Integers, scale: Fraction) -> Floats:
    """1 - (1-p)^length with p = P(ν >= gap) = exp(-gap/scale), nearly; 2, which no word reaches, where p = 1."""
    beyond = np.exp(-np.minimum(np.maximum(gaps, 1) * float(1 / scale), 750.0))
    chances: Floats = -np.expm1(np.maximum(lengths * np.log1p(-beyond), -750.0))
    return np.where(gaps > 0, chances, 2.0)


def _exact_has_top(gap: int, length: int, scale: Fraction, word: int, randomness: Randomness) -> bool:
    known = 64
    while True:
        work = known + length.bit_length() + 32
        low, high = _power(_squares(gap, length, scale, work), length, work)
        one = 1 << work
        if word + 1 << (work - known) <= one - high:
            return True
        if word << (work - known) >= one - low:
            return False
        word, known = word << 64 | int.from_bytes(randomness.bytes(8)), known + 64


def _place(gap: int, length: int, scale: Fraction, randomness: Randomness) -> int:
    """The place of the first top in a run that has one."""
    word, known = 0, 0
    while length > 1 and gap > 0:
        word, known = word << 64 | int.from_bytes(randomness.bytes(8)), known + 64
        found = _place_of(word, known, gap, length, scale)
        if found is not None:
            return found
    return 0


def _place_of(word: int, known: int, gap: int, length: int, scale: Fraction) -> int | None:
    """How many j >= 1 have s^j >= 1 - V·(1 - s^length), s = 1 - p, if the first bits of V tell: the first top's place.

    The largest such j is found bit by bit, from the powers s^1, s^2, s^4, ...
    """
    bits = known + length.bit_length() + 64
    one = 1 << bits
    squares = _squares(gap, length, scale, bits)
    whole_low, whole_high = _power(squares, length, bits)
    most = one - (word * (one - whole_high) >> known)  # 1 - V·(1 - s^length) lies between these
    least = one + (-(word + 1) * (one - whole_low) >> known)
    place, power_low, power_high = 0, one, one
    for bit in reversed(range(len(squares))):
        if place + (1 << bit) >= length:
            continue  # V < 1, so the last place always serves
        low, high = power_low * squares[bit][0] >> bits, -(-power_high * squares[bit][1] >> bits)
        if low >= most:
            place, power_low, power_high = place + (1 << bit), low, high
        elif high >= least:
            return None
    return place


def _squares(gap: int, length: int, scale: Fraction, bits: int) -> list[tuple[int, int]]:
    """s, s², s⁴, ... up to the length, s = 1 - exp(-gap/scale), each between integers at `bits` bits."""
    one = 1 << bits
    beyond_low, beyond_high = exponential(gap / scale, bits)
    low, high = one - beyond_high, one - beyond_low
    squares = [(low, high)]
    for _ in range(1, length.bit_length()):
        low, high = low * low >> bits, -(-high * high >> bits)
        squares.append((low, high))
    return squares


def _power(squares: list[tuple[int, int]], exponent: int, bits: int) -> tuple[int, int]:
    low = high = 1 << bits
    for place, (square_low, square_high) in enumerate(squares):
        if exponent >> place & 1:
            low, high = low * square_low >> bits, -(-high * square_high >> bits)
    return low, high

"""Inverse-transform sampling from a table, exact in law, with constant work per draw.

Let U be uniform on [0, 1), an endless string of fair bits, and F the distribution function of `Weights`. The smallest k
with U < F(k) has the law of the weights. The table only decides it, never changes it:

1.  The first 16 bits of U choose one of 65,536 cells (32,768 if a sign is drawn as well: the 16th bit is then the
    sign). In nearly all cells no F(k) lies inside the cell, so k is the same for every continuation, and it is stored.
2.  In the others 48 (49) more bits make a word of 64. Integers low <= F(k)·2⁶⁴ <= high, proven in `enclosure`, show k
    for every word but the boundary words low <= word < high: about one word for each k, and the last one for all k
    beyond the table.
3.  On a boundary word, U gets 448 more bits and F is enclosed at 512; if that does not tell, both are doubled until it
    does.

Each step reveals bits of the same U, which are drawn only when they are needed; so the k that comes out is exactly the
k of the endless string. A tie that never ends has probability zero. No floating-point number occurs anywhere.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.enclosure import ExponentialWeights
from confide.mechanism.noise.randomness import Randomness

CELL_BITS: Final = 16
UNDECIDED: Final = np.iinfo(np.int16).min
REFINED_BITS: Final = 512

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SamplingTable:
    """Draws k = 0, 1, 2, ... with the law of `weights`; if `signed`, k and -k alike, the weights being folded."""

    weights: ExponentialWeights
    signed: bool
    cells: NDArray[np.int16]  # the value for each 16-bit prefix, or UNDECIDED
    lows: NDArray[np.uint64]  # low for k = 0, 1, ... without a last one that is 1
    boundaries: NDArray[np.uint64]  # high - 1, the last boundary word of k

    def draw(self, count: int, randomness: Randomness) -> Integers:
        prefixes = np.frombuffer(randomness.bytes(2 * count), dtype="<u2")
        values = self.cells[prefixes]
        undecided = np.flatnonzero(values == UNDECIDED)
        drawn: Integers = values.astype(np.int64)
        if undecided.size:
            drawn[undecided] = self._decide(prefixes[undecided], randomness)
        return drawn

    def _decide(self, prefixes: NDArray[np.uint16], randomness: Randomness) -> Integers:
        known = CELL_BITS - self.signed
        fresh = randomness.uint64(len(prefixes)) >> np.uint64(known)
        words = ((prefixes >> self.signed).astype(np.uint64) << np.uint64(64 - known)) | fresh
        indices = np.searchsorted(self.lows, words, side="right").astype(np.int64)
        before = self.boundaries[np.maximum(indices - 1, 0)]
        tied = (indices > 0) & (words <= before)
        if self.weights.count is None:
            tied |= indices == len(self.lows)
        for place in np.flatnonzero(tied):
            indices[place] = _refined(self.weights, int(words[place]), randomness)
        if self.signed:
            indices = np.where(prefixes & 1, -indices, indices)
        return indices


def table(weights: ExponentialWeights, signed: bool = False) -> SamplingTable:
    """The table of some weights, which must have fewer than 32,768 entries that matter."""
    enclosed = weights.cumulative(64)
    inner = slice(None, -1) if enclosed.ends else slice(None)
    lows = np.array(enclosed.lows[inner], dtype=np.uint64)
    boundaries = np.array([high - 1 for high in enclosed.highs[inner]], dtype=np.uint64)
    cell_bits = CELL_BITS - signed
    starts = np.arange(1 << cell_bits, dtype=np.uint64) << np.uint64(64 - cell_bits)
    ends = starts + np.uint64((1 << (64 - cell_bits)) - 1)
    first = np.searchsorted(lows, starts, side="right")
    last = np.searchsorted(lows, ends, side="right")
    tied = (first > 0) & (starts <= boundaries[np.maximum(first - 1, 0)])
    cells = np.where((first == last) & ~tied, first, UNDECIDED).astype(np.int16)
    if signed:
        cells = np.stack([cells, np.where(cells == UNDECIDED, UNDECIDED, -cells)], axis=1).reshape(-1)
    return SamplingTable(weights, signed, cells, lows, boundaries)


def _refined(weights: ExponentialWeights, word: int, randomness: Randomness) -> int:
    """The index that U has, given the first 64 bits of it."""
    known, bits = 64, REFINED_BITS
    while True:
        fresh = randomness.bytes((bits - known) // 8)
        word = (word << (bits - known)) | int.from_bytes(fresh)
        index = _cumulative(weights, bits).index(word)
        if index is not None:
            return index
        known, bits = bits, 2 * bits


_cumulative = lru_cache(maxsize=4)(ExponentialWeights.cumulative)

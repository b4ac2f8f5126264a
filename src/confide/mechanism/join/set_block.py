"""Sets of entities in the order of their members, and sums over them: one of the parts that a program is solved in.

Sets that share their first two members are runs, so that what is added up over them needs no index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.join.sharing import BEND

PARTS: Final = 2
"""So many parts are worked on at the same time, on however many processors: sums do not depend on the machine."""
SMALLEST_PART: Final = 50_000  # of sets; a smaller one takes less time than a thread

_B: Final = float(BEND)
SLOPE: Final = 1 + _B
CURVE: Final = _B * 5 / 4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SetBlock:
    """A part of the sets of a program. Entities have one place more, the last, for none."""

    columns: tuple[Integers, ...]
    """The third member of every set, and later ones."""
    weights: Floats
    begins: Integers
    lengths: Integers
    """Of the runs."""
    heads: tuple[Integers, Integers]
    """The first two members of every run."""
    pairs: tuple[Integers, ...]
    """Numbers of pairs of entities: of every run that of its first two members, of every set those of all others."""

    def best(self, prices: Floats) -> tuple[float, Floats, Floats]:
        """What is gained at these prices, the fourth roots of the shares that gain most, and the loads of these."""
        padded = np.append(prices, 0.0)
        one, two = self.heads
        spare = np.repeat(padded[one] + padded[two], self.lengths)
        for column in self.columns:
            spare += padded.take(column)
        np.subtract(SLOPE, spare, out=spare)
        roots = spare / CURVE
        np.clip(roots, 0.0, 1.0, out=roots)
        kept = roots * roots
        kept *= kept
        kept *= self.weights
        load = self.added(kept, len(padded))
        spare -= _B * roots
        spare *= kept
        return float(spare.sum()), roots, load

    def reached(self, roots: Floats, cut: Floats) -> float:
        """What shares count for when the fourth roots of all sets of an entity are cut to so much of themselves."""
        one, two = self.heads
        least = np.repeat(np.minimum(cut[one], cut[two]), self.lengths)
        for column in self.columns:
            np.minimum(least, cut.take(column), out=least)
        least *= roots
        shares = least * least
        shares *= shares
        shares *= self.weights
        least *= -_B
        least += SLOPE
        least *= shares
        return float(least.sum())

    def curvature(self, roots: Floats, numbers: int) -> Floats:
        """For each of so many pairs of entities how much the dual is curved along both."""
        curved = roots * roots
        curved *= roots
        curved *= self.weights
        curved *= roots < 1
        curved *= 4 / CURVE
        products: Any = np.bincount(self.pairs[0], np.add.reduceat(curved, self.begins), numbers)
        for pair in self.pairs[1:]:
            products += np.bincount(pair, curved, numbers)
        return np.asarray(products)

    def added(self, values: Floats, size: int) -> Floats:
        """Of every entity the sum over its sets."""
        runs = np.add.reduceat(values, self.begins)
        total = np.bincount(self.heads[0], runs, size) + np.bincount(self.heads[1], runs, size)
        for column in self.columns:
            total += np.bincount(column, values, size)
        return np.asarray(total[:-1])


def in_blocks(members: Integers, weights: Floats, size: int) -> tuple[tuple[SetBlock, ...], Integers]:
    """Sets in order, as one block or several, and the codes of all pairs of entities that are in a set together.

    `members`: of every set its entities in order, `size` for none. A pair has the code first × (size + 1) + second.
    """
    members, weights = _sorted(members, weights, size)
    columns = tuple(np.ascontiguousarray(column) for column in members.T)
    heads = columns[0] * (size + 1) + columns[1]
    begins = np.flatnonzero(np.diff(heads, prepend=-1))
    codes = [heads[begins], *(one * (size + 1) + two for one, two in list(combinations(columns, 2))[1:])]
    known = np.unique(np.concatenate([np.unique(code) for code in codes]))
    pairs = [np.searchsorted(known, code) for code in codes]
    parts = min(PARTS, max(1, len(weights) // SMALLEST_PART))
    wanted = [len(weights) * part // parts for part in range(1, parts)]
    cuts = [0, *np.unique(np.searchsorted(begins, wanted)).tolist(), len(begins)]
    ends = np.append(begins, len(weights))
    blocks = [
        _block(columns, weights, begins, pairs, (run, stop), (int(ends[run]), int(ends[stop])))
        for run, stop in pairwise(cuts)
        if run < stop
    ]
    return tuple(blocks), known


def _block(
    columns: Sequence[Integers],
    weights: Floats,
    begins: Integers,
    pairs: Sequence[Integers],
    runs: tuple[int, int],
    sets: tuple[int, int],
) -> SetBlock:
    own = begins[slice(*runs)]
    part = slice(*sets)
    return SetBlock(
        tuple(column[part] for column in columns[2:]),
        weights[part],
        own - sets[0],
        np.diff(own, append=sets[1]),
        (columns[0][own], columns[1][own]),
        (pairs[0][slice(*runs)], *(pair[part] for pair in pairs[1:])),
    )


def _sorted(members: Integers, weights: Floats, size: int) -> tuple[Integers, Floats]:
    """Sets in the order of their members."""
    if (size + 1) ** members.shape[1] < 2**62:
        codes = np.zeros(len(members), dtype=np.int64)
        for column in members.T:
            codes = codes * (size + 1) + column
        order = np.argsort(codes, kind="stable")
    else:
        order = np.lexsort(members.T[::-1])
    return members[order], weights[order]

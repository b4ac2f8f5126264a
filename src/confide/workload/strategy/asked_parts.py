"""What is asked of parts, where cells within each part are taken to be alike, and the strategy that suits it.

An answer cuts parts, and weighs each by the share of its cells that it holds. WᵀW of the cells, summed over two parts
and divided by their cells, is WᵀW of the parts; of boxes it is a product over columns. So a part of a thousand cells
counts for the thousand answers that end in it. Public facts and released parts only.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from confide.workload.asked import AskedTable
from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.hierarchy import tree_for
from confide.workload.strategy.line import AskedLine, Floats, Integers, Kind, LineStrategy, NoiseKind, count_of
from confide.workload.strategy.optimum import optimised_gaussian
from confide.workload.strategy.p_identity import optimised_laplace
from confide.workload.strategy.partition import CellGrid, Partition

MOST_OPTIMISED: Final = 512
"""Parts for which the least error is looked for, in about a second; more are measured by a tree."""
_RIDGE: Final = 1e-5
"""Of the mean weight, for every part by itself: so that a sum that nobody asks for is known too."""
_SOUND: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class AskedParts:
    """A workload by its Gram matrix: what an optimum needs to know of it."""

    matrix: Floats = field(repr=False)

    @property
    def size(self) -> int:
        return len(self.matrix)

    def gram(self) -> Floats:
        return self.matrix

    def diagonal(self) -> Floats:
        return self.matrix.diagonal().copy()

    def apply_gram(self, vectors: Floats) -> Floats:
        """WᵀW·v along the last axis."""
        found: Floats = vectors @ self.matrix
        return found


def asked_of_parts(partition: Partition, sizes: tuple[int, ...], tables: tuple[AskedTable, ...]) -> AskedParts:
    """The workload on the parts, every table counted the same."""
    begins, ends = CellGrid(sizes).boxes(partition)
    total = np.zeros((partition.parts, partition.parts))
    for table in tables:
        asked = dict(zip(table.columns, table.kinds, strict=True))
        own = np.ones_like(total)
        for column, size in enumerate(sizes):
            kind = asked.get(column, "total")
            widths = (ends[column] - begins[column]).astype(np.float64)
            own *= _between(kind, size, begins[column], ends[column]) / np.outer(widths, widths)
            own /= count_of(kind, size)
        total += own
    return AskedParts(total)


def _between(kind: Kind, size: int, begins: Integers, ends: Integers) -> Floats:
    """Of any two stretches of a column the sum of WᵀW over their cells: exact, below 2⁶² for every column there is."""
    ones = _corner(kind, size, ends, ends) - _corner(kind, size, begins, ends)
    others = _corner(kind, size, ends, begins) - _corner(kind, size, begins, begins)
    return (ones - others).astype(np.float64)


def _corner(kind: Kind, size: int, one: Integers, other: Integers) -> Integers:
    """The sum over the cells before `one` and those before `other`, for every pair.

    Where u <= v, WᵀW[u, v] is a(u)·b(v): of prefixes n − v, of ranges (u + 1)(n − v), of totals 1.
    """
    low, high = np.minimum.outer(one, other), np.maximum.outer(one, other)
    if kind == "each":
        return low
    ahead = np.arange(1, size + 1, dtype=np.int64)
    first = ahead if kind == "range" else np.ones(size, dtype=np.int64)
    second = np.ones(size, dtype=np.int64) if kind == "total" else ahead[::-1]
    before, after = _running(first), _running(second)
    square = _running(second * (first + 2 * before[:-1]))
    found: Integers = square[low] + before[low] * (after[high] - after[low])
    return found


def _running(values: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])


def line_for_parts(
    partition: Partition, sizes: tuple[int, ...], tables: tuple[AskedTable, ...], noise: NoiseKind
) -> LineStrategy:
    """The least error there is for what is asked of some parts; of very many, a tree with the best weights."""
    found = None
    if 1 < partition.parts <= MOST_OPTIMISED:
        found = _optimised(asked_of_parts(partition, sizes, tables), noise)
    return tree_of_parts(partition.parts, noise) if found is None else found


def tree_of_parts(parts: int, noise: NoiseKind) -> LineStrategy:
    return tree_for(AskedLine(parts, ("prefix",)), noise)


def _optimised(asked: AskedParts, noise: NoiseKind) -> DenseLine | None:
    """None if parts do not follow from the whole numbers that a search came to."""
    ridge = _RIDGE * float(asked.diagonal().mean())
    whole = AskedParts(asked.matrix + ridge * np.eye(asked.size))
    try:
        found = optimised_gaussian(whole) if noise == "gaussian" else optimised_laplace(whole)
        probe = np.cos(np.arange(1.0, found.size + 1))
        there = found.estimate(found.matrix.astype(np.float64) @ probe)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return found if np.abs(there - probe).max() < _SOUND else None

"""Exact tables: the cells of sets of columns that hold rows, as integers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_KEPT: Final = 2**20
"""Dense tables up to this size are kept for the next time."""
_EXACT: Final = 2**53
_LISTED: Final = 10
"""Of sets with at most so many columns all parts are listed."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseCounts:
    """The occupied cells of one set of columns, in increasing order, and how many rows each holds."""

    columns: tuple[int, ...]
    cells: Integers
    counts: Integers

    def places(self, sizes: tuple[int, ...]) -> list[Integers]:
        """The place in each column, for each occupied cell."""
        return list(np.unravel_index(self.cells, [sizes[column] for column in self.columns])) if self.columns else []

    def reduced(self, columns: tuple[int, ...], sizes: tuple[int, ...]) -> "SparseCounts":
        """The counts of fewer columns."""
        if columns == self.columns:
            return self
        places = dict(zip(self.columns, self.places(sizes), strict=True))
        key = np.ravel_multi_index([places[column] for column in columns], [sizes[column] for column in columns])
        size = math.prod(sizes[column] for column in columns)
        if size <= _KEPT and int(self.counts.sum()) < _EXACT:
            # Sums of whole numbers in doubles, which are exact here, and nothing is sorted.
            dense = np.bincount(key, weights=self.counts, minlength=size)
            occupied = np.flatnonzero(dense)
            return SparseCounts(columns, occupied, dense[occupied].astype(np.int64))
        cells, inverse = np.unique(key, return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, inverse, self.counts)
        return SparseCounts(columns, cells.astype(np.int64), counts)


@dataclass(frozen=True, slots=True, eq=False)
class ExactTables:
    """Exact counts of the sets of columns that were tabulated, and of all sets within them."""

    sizes: tuple[int, ...]
    tables: Mapping[tuple[int, ...], SparseCounts]
    _dense: dict[tuple[int, ...], Integers] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        smallest = min(self.tables.values(), key=lambda table: len(table.cells))
        return int(smallest.counts.sum())

    def sparse(self, columns: tuple[int, ...]) -> SparseCounts:
        if columns in self.tables:
            return self.tables[columns]
        wanted = set(columns)
        holders = [table for own, table in self.tables.items() if wanted <= set(own)]
        if not holders:
            raise KeyError(f"the columns {columns} were not tabulated together")
        return min(holders, key=lambda table: len(table.cells)).reduced(columns, self.sizes)

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Integers:
        shape = [self.sizes[column] for column in columns]
        if columns in self._dense:
            return self._dense[columns].reshape(shape)[start:stop]
        rest = math.prod(shape[1:])
        table = self.sparse(columns)
        low, high = np.searchsorted(table.cells, [start * rest, stop * rest])
        cells = np.zeros((stop - start) * rest, dtype=np.int64)
        cells[table.cells[low:high] - start * rest] = table.counts[low:high]
        if stop - start == shape[0] and len(cells) <= _KEPT:
            self._dense[columns] = cells
        return cells.reshape(stop - start, *shape[1:])


def tables_of(codes: Integers, sizes: tuple[int, ...], sets: tuple[tuple[int, ...], ...]) -> ExactTables:
    """The tables of public rows: `codes` holds the place of each row in each column."""
    found = {}
    for columns in maximal(sets):
        key = np.ravel_multi_index([codes[:, column] for column in columns], [sizes[column] for column in columns])
        cells, counts = np.unique(key, return_counts=True)
        found[columns] = SparseCounts(columns, cells.astype(np.int64), counts.astype(np.int64))
    return ExactTables(sizes, found)


def maximal(sets: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """The sets that are contained in no other: the rest follow from them."""
    inside: set[tuple[int, ...]] = set()
    wide: list[set[int]] = []
    kept = []
    for columns in sorted(set(sets), key=len, reverse=True):
        if columns in inside or any(held.issuperset(columns) for held in wide):
            continue
        kept.append(columns)
        if len(columns) > _LISTED:  # its parts are too many to list
            wide.append(set(columns))
        else:
            inside |= {part for size in range(1, len(columns)) for part in combinations(columns, size)}
    return tuple(sorted(kept))

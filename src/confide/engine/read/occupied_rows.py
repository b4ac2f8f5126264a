"""The rows of a table as places in its columns: an engine keeps them, and tells counts of one set of columns at a time.

Where very many sets are counted, a database takes milliseconds for each, and all tables together take more room than
the rows. Whole numbers throughout: places come packed into words of 64 bits, several columns in each.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.workload.tables import Integers

WORD_BITS: Final = 62


def words_of(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Columns that share a word: the product of their sizes stays below 2⁶²."""
    words: list[list[int]] = [[]]
    cells = 1
    for column, size in enumerate(sizes):
        if cells * size > 1 << WORD_BITS and words[-1]:
            words.append([])
            cells = 1
        words[-1].append(column)
        cells *= size
    return [tuple(word) for word in words]


@dataclass(frozen=True, slots=True, eq=False)
class OccupiedRows:
    """For each column the place of every row, in as few bytes as its size needs. The order of rows says nothing."""

    sizes: tuple[int, ...]
    places: tuple[NDArray[Any], ...]
    _prefix: dict[tuple[int, ...], Integers] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        return len(self.places[0])

    def marginal(self, columns: tuple[int, ...]) -> Integers:
        """How many rows are in each cell of some columns, shaped by them."""
        shape = [self.sizes[column] for column in columns]
        if not columns:
            return np.array(self.rows, dtype=np.int64)
        *first, last = columns
        cells = self._cells(tuple(first)) * self.sizes[last] + self.places[last]
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    def _cells(self, columns: tuple[int, ...]) -> Integers:
        """The cell of each row. What came last is kept: sets of columns come in order, and share how they begin."""
        if columns not in self._prefix:
            found = np.zeros(self.rows, dtype=np.int64)
            for column in columns:
                found *= self.sizes[column]
                found += self.places[column]
            self._prefix.clear()
            self._prefix[columns] = found
        return self._prefix[columns]


def occupied_rows(sizes: tuple[int, ...], batches: Iterable[Mapping[str, Any]]) -> OccupiedRows:
    """From words `w0`, `w1`, ... of `words_of`, some rows at a time."""
    kinds = [np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32 for size in sizes]
    parts: list[list[NDArray[Any]]] = [[np.zeros(0, dtype=kind)] for kind in kinds]
    for batch in batches:
        for number, columns in enumerate(words_of(sizes)):
            left = np.ma.getdata(batch[f"w{number}"]).astype(np.int64)
            for column in reversed(columns):
                left, place = np.divmod(left, sizes[column])
                parts[column].append(place.astype(kinds[column]))
    return OccupiedRows(sizes, tuple(np.concatenate(part) for part in parts))

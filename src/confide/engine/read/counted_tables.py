"""Tables of counts: sets of columns that share cells, read in one statement, and only cells that hold rows."""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import prod
from typing import Final

import numpy as np

from confide.engine.result import Columns, ended
from confide.query.grouping import key_size
from confide.query.tabulation import Tabulation
from confide.query.tree import Summary
from confide.workload.tables import ExactTables, Integers, SparseCounts, maximal

_MOST_CELLS: Final = 1 << 16
"""Sets are read together while their columns have at most so many cells: one grouping of the rows instead of many."""
_MOST_READINGS: Final = 64
"""In one statement."""
_LOOK_BACK: Final = 64
"""A set joins one of so many readings at most, or choosing them would take longer than reading."""

Read = Callable[[Summary, Sequence[Sequence[int]]], Iterable[Columns]]


def tabulated(tabulation: Tabulation, read: Read) -> ExactTables:
    """The exact tables of a tabulation; `read` gives the cells of groups of a summary's keys, some rows at a time."""
    sizes = tuple(key_size(key) or 0 for key in tabulation.keys)
    tables: dict[tuple[int, ...], SparseCounts] = {}
    all_readings = readings(maximal(tabulation.sets), sizes)
    for start in range(0, len(all_readings), _MOST_READINGS):
        together = all_readings[start : start + _MOST_READINGS]
        every = tuple(sorted({column for reading, _ in together for column in reading}))
        groups = [[every.index(column) for column in reading] for reading, _ in together]
        cells, counts = _cells(read(tabulation.summary(every, alone=len(together) == 1), groups))
        ends = accumulate(prod(sizes[column] for column in reading) for reading, _ in together)
        begin = first = 0
        for (reading, sets), end in zip(together, ends, strict=True):
            last = int(np.searchsorted(cells, end))
            found = SparseCounts(reading, cells[begin:last] - first, counts[begin:last])
            tables |= {columns: found.reduced(columns, sizes) for columns in sets}
            begin, first = last, end
    return ExactTables(sizes, tables)


def readings(
    sets: Iterable[tuple[int, ...]], sizes: tuple[int, ...]
) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Sets of columns to read, each with the sets that are reduced from it."""
    found: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = []
    for columns in sets:
        best = None
        for place in range(max(0, len(found) - _LOOK_BACK), len(found)):
            union = tuple(sorted({*found[place][0], *columns}))
            cells = prod(sizes[column] for column in union)
            if cells <= _MOST_CELLS and (best is None or cells < best[0]):
                best = (cells, place, union)
        if best is None:
            found.append((columns, [columns]))
        else:
            found[best[1]] = (best[2], [*found[best[1]][1], columns])
    return found


def _cells(batches: Iterable[Columns]) -> tuple[Integers, Integers]:
    """In an order that does not depend on how the database found them."""
    with ended(batches) as some:
        parts = [[np.ma.getdata(found[name]).astype(np.int64) for name in ("p", "n")] for found in some]
    cells, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(cells)
    return cells[order], counts[order]

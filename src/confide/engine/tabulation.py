"""Tables of counts: few GROUP BYs, each of columns that several sets share, and only cells that hold rows."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.engine.running import Columns
from confide.query.grouping import key_size
from confide.query.tabulation import Tabulation
from confide.query.tree import BinnedKey, DeclaredKey, Summary
from confide.workload.tables import ExactTables, Integers, SparseCounts, maximal

_MOST_CELLS: Final = 1 << 18
"""Sets are read together while their columns have at most so many cells: one reading of the rows instead of many."""
_LOOK_BACK: Final = 64
"""A set joins one of so many readings at most, or choosing them would take longer than reading."""


def tabulated(tabulation: Tabulation, read: Callable[[Summary], Iterable[Columns]]) -> ExactTables:
    """The exact tables of a tabulation; `read` gives the columns of a summary's statement, some rows at a time."""
    sizes = tuple(key_size(key) or 0 for key in tabulation.keys)
    tables: dict[tuple[int, ...], SparseCounts] = {}
    for reading, sets in readings(maximal(tabulation.sets), sizes):
        counts = _counts(reading, read(tabulation.summary(reading)), tabulation, sizes)
        tables |= {columns: counts.reduced(columns, sizes) for columns in sets}
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


def _counts(
    columns: tuple[int, ...], batches: Iterable[Columns], tabulation: Tabulation, sizes: tuple[int, ...]
) -> SparseCounts:
    """Of each row only the number of its cell and its count are held."""
    parts = [_cells(columns, found, tabulation, sizes) for found in batches]
    cells = np.concatenate([part for part, _ in parts])
    counts = np.concatenate([part for _, part in parts])
    # An order that does not depend on how the database found them.
    order = np.argsort(cells)
    return SparseCounts(columns, cells[order], counts[order])


def _cells(
    columns: tuple[int, ...], found: Columns, tabulation: Tabulation, sizes: tuple[int, ...]
) -> tuple[Integers, Integers]:
    counts = np.ma.getdata(found["v0"]).astype(np.int64)
    cells = np.zeros(len(counts), dtype=np.int64)
    for place, column in enumerate(columns):
        cells = cells * sizes[column] + _places(tabulation.keys[column], found[f"k{place}"])
    return cells, counts


def _places(key: DeclaredKey | BinnedKey, values: NDArray[Any]) -> Integers:
    if isinstance(key, BinnedKey):
        return np.ma.getdata(values).astype(np.int64)
    import pyarrow as pa  # noqa: PLC0415  heavy, and only tables of counts need it

    places = {value: place for place, value in enumerate(key.values)}
    encoded = pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values)).dictionary_encode()
    # The last one is for NULL, whose code is −1.
    lookup = np.array([*(places[value] for value in encoded.dictionary.to_pylist()), places.get(None, 0)])
    found: Integers = lookup[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)].astype(np.int64)
    return found

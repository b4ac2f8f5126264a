"""Tables of counts: one GROUP BY for each set of columns that no other set contains, and only cells that hold rows."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.engine.running import Columns
from confide.query.grouping import key_size
from confide.query.tabulation import Tabulation
from confide.query.tree import BinnedKey, DeclaredKey, Summary
from confide.workload.tables import ExactTables, Integers, SparseCounts, maximal


def tabulated(tabulation: Tabulation, read: Callable[[Summary], Iterable[Columns]]) -> ExactTables:
    """The exact tables of a tabulation; `read` gives the columns of a summary's statement, some rows at a time."""
    sizes = tuple(key_size(key) or 0 for key in tabulation.keys)
    tables = {
        columns: _counts(columns, read(tabulation.summary(columns)), tabulation, sizes)
        for columns in maximal(tabulation.sets)
    }
    return ExactTables(sizes, tables)


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
    places = {value: place for place, value in enumerate(key.values)}
    absent = np.ma.getmaskarray(values)
    plain = np.ma.getdata(values).tolist()
    found = (places[None if gone else value] for value, gone in zip(plain, absent.tolist(), strict=True))
    return np.fromiter(found, dtype=np.int64, count=len(plain))

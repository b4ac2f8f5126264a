"""Rows of a result into arrays: every declared group in order, or the groups that exist."""

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Counts, Exact, KeyValue
from confide.engine.result import Columns
from confide.engine.sql.group_codes import groups_of, places
from confide.query.grouping import key_size
from confide.query.tree import Summary

Rows = list[tuple[Any, ...]]


def arrange(rows: Rows, summary: Summary) -> Exact:
    return _open(rows, summary) if summary.open_keys else _declared(rows, summary)


def _declared(rows: Rows, summary: Summary) -> Exact:
    width = len(summary.keys)
    known = [places(key) for key in summary.keys]
    sizes = [size or 0 for size in map(key_size, summary.keys)]
    values: list[list[int]] = [[0] * prod(sizes) for _ in summary.cells]
    for row in rows:
        group = 0
        for value, place, size in zip(row[:width], known, sizes, strict=True):
            assert place is not None
            group = group * size + place[value]
        for cell, column in enumerate(values):
            column[group] = row[width + cell] or 0
    return Exact(tuple(integers(column) for column in values), None)


def _open(rows: Rows, summary: Summary) -> Exact:
    width = len(summary.keys)
    known = [places(key) for key in summary.keys]
    keys = [
        tuple(value if place is None else place[value] for value, place in zip(row[:width], known, strict=True))
        for row in rows
    ]
    # An order that does not depend on how the database found them.
    order = sorted(range(len(rows)), key=lambda place: in_order(keys[place]))
    cells = tuple(integers([rows[place][width + cell] or 0 for place in order]) for cell in range(len(summary.cells)))
    return Exact(cells, tuple(keys[place] for place in order))


def in_order(key: tuple[KeyValue, ...]) -> tuple[tuple[bool, str], ...]:
    """What keys are sorted by: NULL last, and not beside a text that is spelled like it."""
    return tuple((value is None, str(value)) for value in key)


def arrange_tally(
    columns: Columns,
    summary: Summary,
    keys: tuple[tuple[KeyValue, ...], ...] | None,
    sums: NDArray[Any] | None = None,
) -> tuple[Counts, ...]:
    """One tally for every group of a result, in its order; groups without values have an empty one."""
    values, counts = (np.asarray(columns[name]).astype(np.int64, copy=False) for name in ("t", "n"))
    groups, number = groups_of(columns, summary.keys, keys)
    order = _order(groups, values)  # here, which is faster than there
    parts = [part[order] for part in ((values, counts) if sums is None else (values, counts, sums))]
    cuts = np.searchsorted(groups[order], np.arange(number + 1)).tolist()
    return tuple(tuple(part[start:end] for part in parts) for start, end in pairwise(cuts))


def _order(groups: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.intp]:
    """By group, and by value within one."""
    if not len(values):
        return np.empty(0, dtype=np.intp)
    least, most = int(values.min()), int(values.max())
    if (int(groups.max()) + 2) * (most - least + 1) < 2**63:
        return np.argsort(groups * (most - least + 1) + (values - least))
    return np.lexsort((values, groups))


def integers(values: list[int]) -> Any:
    """As an array: of Python's integers where 64 bits might not hold their sums."""
    if not values or (min(values) > -(2**62) and max(values) < 2**62):
        return np.array(values, dtype=np.int64)
    return np.array([int(value) for value in values], dtype=np.object_)

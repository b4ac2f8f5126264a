"""Rows of a result into arrays: every declared group in order, or the groups that exist."""

from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Counts, Exact, KeyValue
from confide.engine.running import Columns
from confide.query.grouping import key_size
from confide.query.tree import BinnedKey, DeclaredKey, Key, Summary

Rows = list[tuple[Any, ...]]


def arrange(rows: Rows, summary: Summary) -> Exact:
    return _open(rows, summary) if summary.open_keys else _declared(rows, summary)


def _declared(rows: Rows, summary: Summary) -> Exact:
    width = len(summary.keys)
    places = [_places(key) for key in summary.keys]
    sizes = [size or 0 for size in map(key_size, summary.keys)]
    values: list[list[int]] = [[0] * prod(sizes) for _ in summary.cells]
    for row in rows:
        group = 0
        for value, place, size in zip(row[:width], places, sizes, strict=True):
            assert place is not None
            group = group * size + place[value]
        for cell, column in enumerate(values):
            column[group] = row[width + cell] or 0
    return Exact(tuple(_integers(column) for column in values), None)


def _open(rows: Rows, summary: Summary) -> Exact:
    width = len(summary.keys)
    places = [_places(key) for key in summary.keys]
    keys = [
        tuple(value if place is None else place[value] for value, place in zip(row[:width], places, strict=True))
        for row in rows
    ]
    # An order that does not depend on how the database found them.
    order = sorted(range(len(rows)), key=lambda place: tuple(str(value) for value in keys[place]))
    cells = tuple(_integers([rows[place][width + cell] or 0 for place in order]) for cell in range(len(summary.cells)))
    return Exact(cells, tuple(keys[place] for place in order))


def arrange_tally(
    columns: Columns,
    summary: Summary,
    keys: tuple[tuple[KeyValue, ...], ...] | None,
    sums: NDArray[Any] | None = None,
) -> tuple[Counts, ...]:
    """One tally for every group of a result, in its order; groups without values have an empty one.

    Under keys, rows come ordered by them, so a group is a run of rows, and its key is looked at once.
    """
    values, counts = (np.asarray(columns[name]).astype(np.int64, copy=False) for name in ("t", "n"))
    parts: Counts = (values, counts) if sums is None else (values, counts, sums)
    if not summary.keys:  # sorted here, which is faster than there
        order = np.argsort(values)
        return (tuple(part[order] for part in parts),)
    named = [columns[f"k{place}"] for place in range(len(summary.keys))]
    starts = _run_starts(named, len(values))
    places = [_places(key) for key in summary.keys]
    sizes = [size or 0 for size in map(key_size, summary.keys)]
    known = None if keys is None else {key: place for place, key in enumerate(keys)}
    empty: Counts = tuple(part[:0] for part in parts)
    result = [empty] * (prod(sizes) if keys is None else len(keys))
    for start, end in pairwise([*starts, len(values)]):
        key = tuple(
            value if place is None else place[value]
            for value, place in zip((_plain(column, start) for column in named), places, strict=True)
        )
        group = known.get(key) if known is not None else _position(key, sizes)
        if group is not None:
            result[group] = tuple(part[start:end] for part in parts)
    return tuple(result)


def _run_starts(named: list[Any], length: int) -> list[int]:
    """Where a key differs from the one before it."""
    if length == 0:
        return []
    changed = np.zeros(length, dtype=bool)
    changed[0] = True
    for column in named:
        mask = np.ma.getmaskarray(column)
        plain = np.ma.getdata(column)
        changed[1:] |= (mask[1:] != mask[:-1]) | (~mask[1:] & ~mask[:-1] & (plain[1:] != plain[:-1]).astype(bool))
    return [int(place) for place in np.flatnonzero(changed)]


def _plain(column: Any, row: int) -> KeyValue:
    value = column[row]
    if np.ma.is_masked(value):
        return None
    plain: KeyValue = value.item() if isinstance(value, np.generic) else value
    return plain


def _position(key: tuple[Any, ...], sizes: list[int]) -> int:
    group = 0
    for place, size in zip(key, sizes, strict=True):
        group = group * size + place
    return group


def _places(key: Key) -> Mapping[KeyValue, int] | None:
    match key:
        case DeclaredKey(values=values):
            return {value: place for place, value in enumerate(values)}
        case BinnedKey(count=count):
            return {place: place for place in range(count)}
    return None


def _integers(values: list[int]) -> Any:
    if not values or (min(values) > -(2**62) and max(values) < 2**62):
        return np.array(values, dtype=np.int64)
    return np.array([int(value) for value in values], dtype=np.object_)

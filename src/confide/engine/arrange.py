"""Rows of a result into arrays: every declared group in order, or the groups that exist."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from confide.engine.protocol import Exact, KeyValue
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


def _places(key: Key) -> Mapping[KeyValue, int] | None:
    match key:
        case DeclaredKey(values=values):
            return {value: place for place, value in enumerate(values)}
        case BinnedKey(count=count):
            return {place: place for place in range(count)}
    return None


def _integers(values: list[int]) -> Any:
    if all(-(2**62) < value < 2**62 for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([int(value) for value in values], dtype=np.object_)

"""Tallies on a public grid: the database moves each value to the point of its cell, counts, and sums exactly."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.engine.running import Columns
from confide.engine.syntax import APART, case, cast, integer
from confide.query.grid import EvenGrid, FloatingGrid, Grid

_PART: Final = 1 << 16
_PARTS: Final = 4
"""A sum of distances from the lowest value is read in parts of 16 bits, each of which fits 64 bits for 2⁴⁷ rows."""


def gridded_rows(rows: str, keys: Sequence[str], grid: Grid, where: str = "x IS NOT NULL") -> str:
    """SELECT the keys, the point `t` of the cell of each known `x`, and `e`, how far x is above the lowest value.

    On an even grid `t` is the number of the cell instead: see `pointed`.
    """
    shown = "".join(f"{key}, " for key in keys)
    known = f"SELECT {shown}x, x - {integer(_origin(grid))} AS d FROM ({rows}) AS {APART} WHERE {where}"
    above = f"x - {integer(grid.low)} AS e"
    if isinstance(grid, EvenGrid):
        return f"SELECT {shown}{cast('d', 'BIGINT')} // {grid.step} AS t, {above} FROM ({known}) AS q"
    moved = f"SELECT {shown}x, d, {_middle(grid)} AS m FROM ({known}) AS q"
    point = case([("d < 0", f"{integer(grid.centre)} - m")], f"{integer(grid.centre)} + m")
    inside = f"GREATEST(LEAST({point}, {integer(grid.high)}), {integer(grid.low)})"
    return f"SELECT {shown}{cast(inside, 'BIGINT')} AS t, {above} FROM ({moved}) AS p"


def pointed(columns: Columns, grid: Grid | None) -> Columns:
    """With points in place of the numbers of an even grid's cells: a number for each cell is less work than for each
    row.
    """
    if not isinstance(grid, EvenGrid):
        return columns
    numbers = np.asarray(columns["t"]).astype(np.int64, copy=False)
    return {**columns, "t": np.minimum(numbers * grid.step + (grid.low + grid.step // 2), grid.high)}


def sum_columns() -> list[str]:
    """What SELECT takes to sum up `e` exactly, in numbers of 64 bits."""
    parts = ("e" if place == 0 else f"{cast('e', 'BIGINT')} // {_PART**place}" for place in range(_PARTS))
    return [f"{cast(f'SUM({part} % {_PART})', 'BIGINT')} AS s{place}" for place, part in enumerate(parts)]


def summed(columns: Columns, grid: Grid) -> NDArray[Any]:
    """The exact sum of the values of each cell."""
    above = sum(np.asarray(columns[f"s{place}"]).astype(object) * _PART**place for place in range(_PARTS))
    result: NDArray[Any] = np.asarray(columns["n"]).astype(object) * grid.low + above
    return result


def _origin(grid: Grid) -> int:
    return grid.low if isinstance(grid, EvenGrid) else grid.centre


def _middle(grid: FloatingGrid) -> str:
    """The distance of a cell's point from the centre, from the nearest cells on."""
    distance = "ABS(d)"
    branches = [(f"{distance} <= {1 << min(grid.digits + 1, grid.bits)}", distance)]
    for bits in range(grid.digits + 2, grid.bits + 1):
        width = 1 << (bits - 1 - grid.digits)
        whole = f"{cast(f'{distance} - 1', 'BIGINT')} // {width} * {width}"
        branches.append((f"{distance} <= {1 << bits}", f"{whole} + {width // 2}"))
    return _halved(branches)


def _halved(branches: Sequence[tuple[str, str]]) -> str:
    """The first branch that holds, by halving: each holds wherever the one before it does, and the last always."""
    if len(branches) == 1:
        return branches[0][1]
    middle = len(branches) // 2
    return case([(branches[middle - 1][0], _halved(branches[:middle]))], _halved(branches[middle:]))

"""Tallies on a public grid: the database moves each value to the point of its cell, counts, and sums exactly."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.engine.result import Columns
from confide.engine.sql.syntax import APART, case, cast, integer
from confide.query.grid import EvenGrid, FloatingGrid, Grid

_PART_BITS: Final = 24
"""A sum of distances from the lowest value is read in parts of 24 bits, each of which fits 64 bits for 2³⁹ rows."""


def gridded_rows(rows: str, keys: Sequence[str], grid: Grid, where: str = "x IS NOT NULL") -> str:
    """SELECT the keys, the point `t` of the cell of each known `x`, and `e`, how far x is above the lowest value.

    On an even grid `t` is the number of the cell instead: see `pointed`.
    """
    shown = "".join(f"{key}, " for key in keys)
    known = f"SELECT {shown}x, x - {integer(_origin(grid))} AS d FROM ({rows}) AS {APART}"
    if where:
        known = f"{known} WHERE {where}"
    above = f"x - {integer(grid.low)} AS e"
    if isinstance(grid, EvenGrid):
        return f"SELECT {shown}{cast('d', 'BIGINT')} // {grid.step} AS t, {above} FROM ({known}) AS q"
    moved = f"SELECT {shown}x, d, {_middle(grid)} AS m FROM ({known}) AS q"
    point = case([("d < 0", f"{integer(grid.centre)} - m")], f"{integer(grid.centre)} + m")
    inside = f"GREATEST(LEAST({point}, {integer(grid.high)}), {integer(grid.low)})"
    # These two pass over NULL, and would make an end of the grid of it.
    told = case([("d IS NOT NULL", cast(inside, "BIGINT"))])
    return f"SELECT {shown}{told} AS t, {above} FROM ({moved}) AS p"


def pointed(columns: Columns, grid: Grid | None) -> Columns:
    """With points in place of the numbers of an even grid's cells: a number for each cell is less work than for each
    row.
    """
    if not isinstance(grid, EvenGrid):
        return columns
    numbers = np.asarray(columns["t"]).astype(np.int64, copy=False)
    return {**columns, "t": np.minimum(numbers * grid.step + (grid.low + grid.step // 2), grid.high)}


def sum_columns(grid: Grid) -> list[str]:
    """What SELECT takes to sum up `e` exactly, in numbers of 64 bits."""
    columns = []
    for place in range(_parts(grid)):
        part = "e" if place == 0 else f"{cast('e', 'BIGINT')} // {1 << _PART_BITS * place}"
        low = part if place == _parts(grid) - 1 else f"{part} % {1 << _PART_BITS}"
        columns.append(f"{cast(f'SUM({low})', 'BIGINT')} AS s{place}")
    return columns


def summed(columns: Columns, grid: Grid) -> NDArray[Any]:
    """The exact sum of the values of each cell."""
    parts = (np.asarray(columns[f"s{place}"]).astype(object) << _PART_BITS * place for place in range(_parts(grid)))
    above = sum(parts)
    result: NDArray[Any] = np.asarray(columns["n"]).astype(object) * grid.low + above
    return result


def _parts(grid: Grid) -> int:
    return max(1, -(-(grid.high - grid.low).bit_length() // _PART_BITS))


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

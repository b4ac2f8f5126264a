"""Grids: points keep the order of values, covers hold whole cells, and there are no more cells than allowed."""

from itertools import pairwise

import pytest

from confide.query.grid import EvenGrid, FloatingGrid, Grid, even_grid, floating_grid

RANGES = ((0, 100), (-100, 100), (-70, 9), (40, 90), (-90, -40), (5, 5))
SMALL: list[Grid] = [EvenGrid(low, high, step) for low, high in RANGES for step in (1, 2, 3, 10, 200)]
SMALL += [
    FloatingGrid(low, high, centre, digits)
    for low, high in RANGES
    for centre in sorted({0, min(max(0, low), high)})
    for digits in range(5)
]


@pytest.mark.parametrize("grid", SMALL, ids=repr)
def test_every_value_of_a_small_domain(grid: Grid) -> None:
    values = range(grid.low, grid.high + 1)
    points = [grid.point(value) for value in values]
    assert all(first <= second for first, second in pairwise(points)), "the order of values is lost"
    assert len(set(points)) <= grid.cells
    cells = {point: [v for v, p in zip(values, points, strict=True) if p == point] for point in points}
    for point, cell in cells.items():
        assert point in cell
        assert grid.cover(point, point) == (cell[0], cell[-1])
        assert {grid.cover(value, value) for value in cell} == {(cell[0], cell[-1])}
    for low in values[:: max(1, len(values) // 12)]:
        for high in range(low, grid.high + 1, 7):
            first, last = grid.cover(low, high)
            held = [v for v, p in zip(values, points, strict=True) if low <= p <= high]
            assert all(first <= value <= last for value in (low, high, *held))


def test_no_cell_of_a_floating_grid_lies_in_two_buckets() -> None:
    for digits in range(4):
        grid = FloatingGrid(-1000, 3000, 0, digits)
        for edge in (2**bits for bits in range(12)):
            assert grid.point(edge) <= edge < grid.point(edge + 1)
            if edge < 1000:
                assert -grid.point(-edge) <= edge < -grid.point(-edge - 1)


@pytest.mark.parametrize("cells", [1, 2, 3, 10, 999, 10**6])
@pytest.mark.parametrize(("low", "high"), [(0, 10**6), (-(10**12), 10**12), (-(2**62) + 1, 2**62 - 1)])
def test_a_grid_has_no_more_cells_than_allowed(low: int, high: int, cells: int) -> None:
    even = even_grid(low, high, cells)
    assert even.cells <= cells
    assert str(even.step).rstrip("0") in ("1", "2", "5")
    assert even.cells * 10 >= min(cells, high - low), "coarser than it need be"
    floating = floating_grid(low, high, 0, cells)
    if floating is None:
        assert cells < 2 * 62 + 2
    else:
        assert floating.cells <= cells
        assert FloatingGrid(low, high, 0, floating.digits + 1).cells > cells

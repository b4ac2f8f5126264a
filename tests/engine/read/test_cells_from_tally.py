"""Cells that a tally tells are what they would be on their own."""

from dataclasses import replace

import pyarrow as pa
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.read.cells_from_tally import teller
from confide.policy import load
from confide.query import bind
from confide.query.grid import EvenGrid, FloatingGrid, Grid
from tests.engine.worlds import CHARGE


@pytest.mark.parametrize(
    ("cell", "expected", "told"),
    [
        ("COUNT(*)", 5, True),
        ("COUNT(x)", 3, True),
        ("SUM(x)", 11, True),
        ("COUNT(x) FILTER (WHERE c = 'a')", 1, False),
        ("COUNT(*) FILTER (WHERE c = 'a')", 2, False),
        ("SUM(x) FILTER (WHERE c = 'a')", 2, False),
    ],
)
def test_a_tally_tells_what_is_asked_beside_it(cell: str, expected: int, told: bool) -> None:
    columns = {"x": {"range": [0, 9]}, "c": {"values": ["a", "b"]}}
    rules = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}})
    engine = DuckDBEngine(rules, {"t": pa.table({"x": [2, 4, 5, None, None], "c": ["a", "b", "b", "a", "b"]})})
    summary = bind(f"SELECT MEDIAN(x) AS m, {cell} AS n FROM t", rules, engine).summary
    assert (teller(summary) is not None) == told
    assert [int(value[0]) for value in engine.evaluate(summary, CHARGE, b"").cells] == [expected]
    engine.close()


@pytest.mark.parametrize(
    "grid", [EvenGrid(-90, 90, 7), FloatingGrid(-90, 90, 0, 0), FloatingGrid(-90, 90, 17, 3)], ids=str
)
def test_what_is_unknown_is_told_apart_on_every_grid(grid: Grid) -> None:
    rules = load(
        {
            "confide": 1,
            "budget": {"epsilon": 1},
            "unit": "row",
            "tables": {"t": {"columns": {"x": {"range": [-90, 90]}}}},
        }
    )
    engine = DuckDBEngine(rules, {"t": pa.table({"x": [2, -40, 85, None, None]})})
    summary = bind("SELECT MEDIAN(x) AS m, COUNT(*) AS n, COUNT(x) AS k, SUM(x) AS s FROM t", rules, engine).summary
    tally = replace(summary.tallies[0], grid=grid)
    exact = engine.evaluate(replace(summary, tallies=(tally,)), CHARGE, b"")
    assert [int(value[0]) for value in exact.cells] == [5, 3, 47]
    assert [part.tolist() for part in exact.tallies[0][0]] == [[grid.point(x) for x in (-40, 2, 85)], [1, 1, 1]]
    engine.close()

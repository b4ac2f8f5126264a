"""Keys of undeclared domain, some at a time: what is not chosen is forgotten, and what is chosen is whole.

Cells that a tally tells are what they would be on their own.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from confide.engine import Engine
from confide.engine.duckdb import running
from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.postgres import engine as postgres_engine
from confide.engine.read.summary_reader import teller
from confide.policy import load
from confide.query import bind
from confide.query.grid import EvenGrid, FloatingGrid, Grid
from tests.engine.postgres_tables import create_engine
from tests.engine.worlds import CHARGE, SECRET
from tests.servers import PostgresServer

POLICY = load(
    {
        "confide": 1,
        "budget": {"epsilon": 1, "delta": 1e-6},
        "unit": "row",
        "tables": {"t": {"columns": {"w": {"type": "text"}, "g": {"values": ["a", "b"]}, "x": {"range": [0, 999]}}}},
    }
)
WORDS = [f"w{place:03}" for place in range(300) for _ in range(1 + place % 7)] + ["it's", 'a "b"', "\\n", "", "ä"] * 9
TABLE = pa.table(
    {"w": WORDS, "g": ["a", "b"] * (len(WORDS) // 2) + ["a"] * (len(WORDS) % 2), "x": list(range(len(WORDS)))}
)
SQL = "SELECT w, COUNT(*) AS n, MEDIAN(x) AS m FROM t GROUP BY w"


@pytest.fixture(params=["duckdb", "postgres"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "duckdb":
        found: Engine = DuckDBEngine(POLICY, {"t": TABLE})
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        found = create_engine(server, request.getfixturevalue("postgres_database"), POLICY, {"t": TABLE})
    yield found
    found.close()


def many(cells: tuple[Any, ...]) -> Any:
    return np.flatnonzero(cells[0] >= 5)


def kept(cells: tuple[Any, ...]) -> Any:
    return many(cells), 10 * cells[0][many(cells)]


@pytest.mark.parametrize("sql", [SQL, SQL.replace("SELECT w,", "SELECT w, g,").replace("BY w", "BY w, g")])
def test_batches_give_what_one_reading_gives(engine: Engine, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    summary = bind(sql, POLICY, engine).summary
    whole = engine.evaluate(summary, CHARGE, SECRET)
    assert whole.keys is not None
    monkeypatch.setattr(running, "BATCH", 40)
    monkeypatch.setattr(postgres_engine, "BATCH", 40)
    sizes: list[int] = []
    lengths: list[int] = []

    def keep(cells: tuple[Any, ...]) -> Any:
        sizes.append(len(cells[0]))
        return kept(cells)

    columns = engine._columns  # type: ignore[attr-defined]

    def counting(statement: str) -> Any:
        found = columns(statement)
        lengths.append(len(found["n"]))
        return found

    monkeypatch.setattr(engine, "_columns", counting)
    some = engine.evaluate(summary, CHARGE, SECRET, keep)
    assert max(sizes) <= 40
    assert sum(sizes) == len(whole.keys)
    shown = many(whole.cells).tolist()
    assert some.keys == tuple(whole.keys[place] for place in shown)
    assert [cell.tolist() for cell in some.cells] == [cell[shown].tolist() for cell in whole.cells]
    assert some.noised is not None
    assert some.noised.tolist() == (10 * whole.cells[0][shown]).tolist()
    for own, place in zip(some.tallies[0], shown, strict=True):
        assert [part.tolist() for part in own] == [part.tolist() for part in whole.tallies[0][place]]
    # Of keys that were not chosen no tally left the engine.
    if len(summary.keys) == 1:
        assert lengths == [sum(len(values) for values, _ in some.tallies[0])]


def test_no_key_at_all(engine: Engine) -> None:
    summary = bind(SQL, POLICY, engine).summary
    none = engine.evaluate(summary, CHARGE, SECRET, lambda cells: (np.empty(0, dtype=np.intp), cells[0][:0]))
    assert none.keys == ()
    assert [len(cell) for cell in none.cells] == [0]
    assert none.tallies == ((),)


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

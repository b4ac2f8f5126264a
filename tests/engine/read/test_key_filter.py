"""Keys of undeclared domain, some at a time: what is not chosen is forgotten, and what is chosen is whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from confide.engine import Engine
from confide.engine.duckdb import running
from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.postgres import engine as postgres_engine
from confide.policy import load
from confide.query import bind
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

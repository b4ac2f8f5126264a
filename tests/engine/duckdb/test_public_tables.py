"""Tables that belong to nobody are read as an engine reads its own, without a charge."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.duckdb.public_tables import PublicTables
from confide.engine.protocol import Engine
from confide.errors import EngineError, SourceError
from confide.policy import Policy
from confide.query import bind
from confide.query.tree import Summary
from tests.engine.worlds import CHARGE

RULES: dict[str, Any] = {
    "budget": {"epsilon": 1},
    "unit": "row",
    "tables": {
        "t": {"columns": {"x": {"range": [0, 9]}, "c": {"values": ["a", "b"]}}},
        "names": {"public": True, "columns": {"c": {"values": ["a", "b"]}}},
        "codes": {"public": True},
    },
}
FRAMES = {
    "t": pa.table({"x": [1, 5, None, 12], "c": ["a", "b", "b", None]}),
    "names": pa.table({"c": ["a", "b"], "title": ["first", "second"]}),
    "codes": pa.table({"c": ["a", "b"], "n": [1, 2]}),
}
POLICY = Policy.parse(RULES)
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT c, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY c",
    "SELECT MEDIAN(x) AS m, COUNT(x) AS n FROM t WHERE c = 'b'",
    "SELECT title, SUM(x) AS s FROM t JOIN names USING (c) GROUP BY title",
)


def unbounded(text: str) -> Summary:
    engine = DuckDBEngine(POLICY, FRAMES)
    try:
        return replace(bind(text, POLICY, engine).summary, bound=None, order_by=())
    finally:
        engine.close()


@pytest.mark.parametrize("text", QUESTIONS)
def test_they_give_what_an_engine_gives_of_the_same_rows(text: str) -> None:
    summary, engine, tables = unbounded(text), DuckDBEngine(POLICY, FRAMES), PublicTables(POLICY, POLICY.tables, FRAMES)
    expected, found = engine.evaluate(summary, CHARGE, b"secret"), tables.evaluate(summary)
    assert found.keys == expected.keys
    for own, other in zip(found.cells, expected.cells, strict=True):
        assert own.tolist() == other.tolist()
    for groups, others in zip(found.tallies, expected.tallies, strict=True):
        counts = [[part.tolist() for part in group] for group in groups]
        assert counts == [[part.tolist() for part in group] for group in others]
    assert tables.version == engine.version, "answers are stored under it"
    engine.close()
    tables.close()


def test_they_are_no_engine() -> None:
    """Neither is taken for the other: what reads private rows asks for a charge, and what does not, cannot."""
    assert list(inspect.signature(PublicTables.evaluate).parameters) == ["self", "summary"]
    assert not issubclass(PublicTables, DuckDBEngine)
    doors = ("tabulate", "occupied", "inquire", "multiplicity", "ready", "remarks")
    assert all(hasattr(DuckDBEngine, name) and not hasattr(PublicTables, name) for name in doors)
    for name in ("evaluate", "tabulate", "occupied", "inquire"):
        assert inspect.signature(getattr(Engine, name)).parameters["charge"].default is inspect.Parameter.empty


def test_where_private_rows_are_is_not_read(tmp_path: Path) -> None:
    """A private table is one of somebody's frames, or not there: the place that the policy names is of private rows."""
    for name, frame in FRAMES.items():
        pq.write_table(frame, tmp_path / f"{name}.parquet")
    rules = Policy.parse({**RULES, "source": {name: f"{name}.parquet" for name in FRAMES}}, base=tmp_path)
    with pytest.raises(ValueError, match="where the private rows are"):
        PublicTables(rules, rules.tables, {name: FRAMES[name] for name in ("names", "codes")})
    tables = PublicTables(rules, rules.tables, {"t": FRAMES["t"]})
    assert tables.evaluate(unbounded(QUESTIONS[0])).cells[0].tolist() == [4]
    tables.close()


def test_a_bound_has_no_place_there() -> None:
    rules = Policy.parse(
        {**RULES, "unit": "t.c", "tables": {"t": {"columns": {"c": {"type": "id"}}, "at_most": {"rows": 2}}}}
    )
    data = {"t": FRAMES["t"].select(["c"])}
    engine, tables = DuckDBEngine(rules, data), PublicTables(rules, rules.tables, data)
    summary = bind("SELECT COUNT(*) AS n FROM t", rules, engine).summary
    assert summary.bound is not None
    with pytest.raises(ValueError, match="nobody"):
        tables.evaluate(summary)
    engine.close()
    tables.close()


def test_tables_that_are_not_read_are_part_of_the_version_alone(tmp_path: Path) -> None:
    for name, frame in FRAMES.items():
        pq.write_table(frame, tmp_path / f"{name}.parquet")
    rules = Policy.parse({**RULES, "source": {name: f"{name}.parquet" for name in FRAMES}}, base=tmp_path)
    own = {"t": FRAMES["t"]}
    whole, part = PublicTables(rules, rules.tables, own), PublicTables(rules, rules.tables, own, {"codes"})
    assert whole.version == part.version
    assert whole.columns == {"t": {"x", "c"}, "names": {"c", "title"}, "codes": {"c", "n"}}
    assert part.columns == {"t": {"x", "c"}, "names": {"c", "title"}}
    pq.write_table(FRAMES["codes"].slice(1), tmp_path / "codes.parquet")
    for tables in (whole, part):
        with pytest.raises(EngineError):
            tables.evaluate(unbounded(QUESTIONS[0]))
        tables.close()
    (tmp_path / "codes.parquet").unlink()
    with pytest.raises(SourceError, match="does not exist"):
        PublicTables(rules, rules.tables, own, {"codes"})


def test_what_fails_says_nothing() -> None:
    tables = PublicTables(POLICY, POLICY.tables, FRAMES)
    tables.close()
    with pytest.raises(EngineError):
        tables.evaluate(unbounded(QUESTIONS[0]))

"""Known attacks that reach the rows: the engine must give both neighbours the same status, shape and error."""

import logging
import math
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import EngineError, SourceError
from confide.policy import Policy, load
from confide.query import bind
from tests.engine.reference import Naive, Reference
from tests.engine.worlds import CHARGE, SECRET

COLUMNS: dict[str, Any] = {
    "x": {"range": [0, 100], "grain": 0.5},
    "i": {"range": [-(2**61), 2**61]},
    "c": {"values": ["a", "b"]},
    "s": {"type": "text"},
}
ROWS = [{"x": 3.0, "i": 5, "c": "a", "s": "plain"}, {"x": 7.5, "i": 7, "c": "b", "s": "text"}] * 3
HARMFUL: dict[str, dict[str, Any]] = {
    "E01 a five": {"x": 5.0, "i": 5, "c": "a", "s": "5"},
    "E03 not a number": {"x": 1.0, "i": 1, "c": "a", "s": "boom"},
    "E04 the largest": {"x": 1.0, "i": 2**63 - 1, "c": "a", "s": ""},
    "E04 the smallest": {"x": 1.0, "i": -(2**63), "c": "b", "s": ""},
    "E07 NaN": {"x": math.nan, "i": 0, "c": "a", "s": ""},
    "E07 inf": {"x": math.inf, "i": 0, "c": "a", "s": ""},
    "E07 -inf": {"x": -math.inf, "i": 0, "c": "a", "s": ""},
    "E07 1e308": {"x": 1e308, "i": 0, "c": "b", "s": ""},
    "M14 a rare category": {"x": 1.0, "i": 0, "c": "never heard of", "s": "unheard"},
    "all NULL": {"x": None, "i": None, "c": None, "s": None},
}
QUESTIONS = (
    "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, VARIANCE(x) AS v, SUM(i) AS t, SUM(i * 1000) AS u FROM t",
    "SELECT c, COUNT(*) AS n, SUM(x * x) AS s, SUM(i + i) AS t, COUNT(DISTINCT s) AS d FROM t GROUP BY c",
    "SELECT BIN(x, 10) AS b, COUNT(*) AS n FROM t WHERE x / 3 < 30 AND i * 2 - 5 <> x GROUP BY b",
    "SELECT SUM(CASE WHEN x = 5 THEN ABS(i) ELSE LEAST(x, 2) END) AS s FROM t",
    "SELECT COUNT(*) FILTER (WHERE s LIKE 'b%' OR s IN ('5', 'boom')) AS b, COUNT(s) AS k FROM t",
)


def policy() -> Policy:
    tables = {"t": {"columns": COLUMNS}}
    return load({"confide": 1, "budget": {"epsilon": 1, "delta": 1e-6}, "unit": "row", "tables": tables})


def table(rows: list[dict[str, Any]]) -> pa.Table:
    types = {"x": pa.float64(), "i": pa.int64(), "c": pa.string(), "s": pa.string()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def evaluated(rows: list[dict[str, Any]], text: str, threads: int | None = None) -> Any:
    rules = policy()
    engine = DuckDBEngine(rules, {"t": table(rows)}, threads=threads)
    try:
        question = bind(text, rules, engine)
        return question, engine.evaluate(question.summary, CHARGE, SECRET)
    finally:
        engine.close()


def changes(measure: Any, first: Any, second: Any) -> tuple[Any, Any]:
    values = [
        sum(
            coefficient * (int(first[place][group]) - int(second[place][group])) for coefficient, place in measure.terms
        )
        for group in range(len(first[0]))
    ]
    return sum(map(abs, values)), sum(value**2 for value in values)


@pytest.mark.parametrize("name", HARMFUL)
@pytest.mark.parametrize("text", QUESTIONS)
def test_one_harmful_row_changes_nothing_but_integers(name: str, text: str) -> None:
    question, without = evaluated(ROWS, text)
    other, with_row = evaluated([*ROWS, HARMFUL[name]], text)
    assert question == other
    assert [cell.shape for cell in without.cells] == [cell.shape for cell in with_row.cells]
    for measure in question.measures:
        l1, l2 = changes(measure, without.cells, with_row.cells)
        assert l1 <= measure.l1
        assert l2 <= measure.l2_squared


def test_without_clamping_such_a_row_would_show() -> None:
    question, _ = evaluated(ROWS, QUESTIONS[0])
    careless = Reference({"t": [*ROWS, HARMFUL["E07 1e308"]]}, Naive(no_clamp=True)).evaluate(question.summary)
    careful = Reference({"t": ROWS}).evaluate(question.summary)
    total = next(measure for measure in question.measures if measure.label == "total")
    assert abs(careless[()][total.terms[0][1]] - careful[()][total.terms[0][1]]) > total.l1


def test_e09_orders_and_threads() -> None:
    """A large table, so that the database does share it out among threads."""
    rng = Random(3)
    rows = [
        {
            "x": rng.choice([0.1, 33.3, 1e17, -5.0, math.nan]),
            "i": rng.randrange(-(2**60), 2**60),
            "c": rng.choice("ab"),
            "s": "x",
        }
        for _ in range(150_000)
    ]
    text = "SELECT c, COUNT(*) AS n, SUM(x) AS s, SUM(i) AS t, SUM(x * x) AS q FROM t GROUP BY c"
    results = []
    for threads in (1, 4):
        for _ in range(2):
            rng.shuffle(rows)
            _, exact = evaluated(rows, text, threads)
            results.append([[int(value) for value in cell] for cell in exact.cells])
    assert results == [results[0]] * 4
    # A float sum of the same rows does heed their order.
    forwards = sum(row["x"] for row in rows if not math.isnan(row["x"]))
    backwards = sum(row["x"] for row in sorted((r for r in rows if not math.isnan(r["x"])), key=lambda r: r["x"]))
    assert forwards != backwards


def test_m13_rows_of_nobody_and_of_a_unit_with_ten_thousand() -> None:
    tables = {
        "p": {"columns": {"k": {"type": "id"}}},
        "v": {"references": {"k": "p.k"}, "at_most": {"rows": 7, "groups": 2}, "columns": COLUMNS},
    }
    rules = load({"confide": 1, "budget": {"epsilon": 1, "delta": 1e-6}, "unit": "p.k", "tables": tables})
    heavy = [{"x": 100.0, "i": place, "c": "ab"[place % 2], "s": str(place)} for place in range(10_000)]
    visits = table([*heavy, *ROWS, ROWS[0]])
    for nobody in (None,):
        keys = pa.array([1] * 10_000 + [2] * len(ROWS) + [nobody], pa.int64())
        engine = DuckDBEngine(rules, {"p": pa.table({"k": [1, 2]}), "v": visits.append_column("k", keys)})
        exact = engine.evaluate(bind("SELECT COUNT(*) AS n FROM v", rules, engine).summary, CHARGE, SECRET)
        assert int(exact.cells[0][0]) == 7 + len(ROWS)
        engine.close()


def test_m14_a_value_of_one_unit_makes_no_group() -> None:
    question, exact = evaluated([*ROWS, HARMFUL["M14 a rare category"]], "SELECT c, COUNT(*) AS n FROM t GROUP BY c")
    assert exact.keys is None
    assert [int(value) for value in exact.cells[0]] == [3, 3]
    assert question.keys[0].values == ("a", "b")


def test_s07_canaries_stay_inside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of private rows are in no message, no log and no file, though every kind of failure is provoked."""
    canary = "canary-19c3e"
    monkeypatch.chdir(tmp_path)
    for name in ("TMPDIR", "TEMP", "TMP", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    rows = [{"x": 1.0, "i": 1, "c": canary, "s": canary}] * 5_000
    said: list[str] = []
    rules = policy()
    with caplog.at_level(logging.DEBUG):
        engine = DuckDBEngine(rules, {"t": table(rows)})
        for text in (*QUESTIONS, "SELECT s, COUNT(*) AS n FROM t GROUP BY s"):
            engine.evaluate(bind(text, rules, engine).summary, CHARGE, SECRET)
        summary = bind(QUESTIONS[1], rules, engine).summary
        engine._database.opened().execute("ALTER TABLE t RENAME TO u")
        engine._database.opened().execute("CREATE VIEW t AS SELECT x, CAST(s AS BIGINT) AS i, c, s FROM u")
        with pytest.raises(EngineError) as failed:
            engine.evaluate(summary, CHARGE, SECRET)
        said.append(repr(failed.value) + "".join(map(str, (failed.value.__cause__, failed.value.__context__))))
        engine.close()
        (tmp_path / "bad.csv").write_text(f"x,i,c,s\n1,2,{canary},{canary}\n1,2,{canary}\n")
        broken = {**{"confide": 1, "budget": {"epsilon": 1}, "unit": "row"}, "source": {"t": "bad.csv"}}
        with pytest.raises(SourceError) as refused:
            DuckDBEngine(Policy.parse({**broken, "tables": {"t": {"columns": COLUMNS}}}, base=tmp_path))
        said.append(repr(refused.value) + "".join(map(str, (refused.value.__cause__, refused.value.__context__))))
        (tmp_path / "bad.csv").unlink()
    said += [record.getMessage() for record in caplog.records]
    assert not [text for text in said if canary in text]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]

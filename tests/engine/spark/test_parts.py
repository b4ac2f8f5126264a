"""Parquet files of one table may store a column in different types: one missing value makes floats of whole numbers."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide import open as open_data
from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.spark import parts as spark_parts
from confide.engine.spark.engine import SparkEngine
from confide.engine.spark.schema import SparkTable
from confide.errors import SourceError
from confide.policy import Policy
from tests.conformance.engine import ask, integers, policy_of
from tests.spark import INTERPRETED

_TIMES = [datetime(2024, 1, 31, tzinfo=UTC), datetime(2024, 2, 1, 8, 30, tzinfo=UTC), None]
_STORED: Mapping[str, list[pa.Array]] = {
    "number": [
        pa.array([1, 2, 50], pa.int64()),
        pa.array([1.0, None, 99.5]),
        pa.array([1, None, 7], pa.int32()),
        pa.array([0.5, 1.0, None], pa.float32()),
        pa.array(["1", " 2.5", "x"]),
        pa.array([True, False, None]),
        pa.array([Decimal("1.25"), Decimal("9.99"), None], pa.decimal128(10, 2)),
        pa.array([Decimal("1.250"), Decimal("8.005"), None], pa.decimal128(12, 3)),
        pa.array([2**64 - 1, 3, None], pa.uint64()),
        pa.nulls(3),
    ],
    "day": [
        pa.array([date(2024, 1, 31), date(2024, 2, 1), None]),
        pa.array(_TIMES, pa.timestamp("us", "UTC")),
        pa.array([moment and moment.replace(tzinfo=None) for moment in _TIMES], pa.timestamp("us")),
        pa.array(["2024-01-31", "2024-02-01 23:59", "none"]),
        pa.array([1, 2, 3], pa.int64()),
        pa.array([None, 1.0, float("nan")]),
        pa.nulls(3),
    ],
    "code": [
        pa.array([1, 2, 3], pa.int64()),
        pa.array([1.0, None, 2.5]),
        pa.array(["1", "2.0", "two"]),
        pa.array(["1", "1", "2"]).dictionary_encode(),
        pa.array([True, False, None]),
        pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(10, 2)),
    ],
    "word": [
        pa.array(["1", "2", "2024-01-31"]),
        pa.array(["1", "true", "x"]).dictionary_encode(),
        pa.array([1, 2, 3], pa.int64()),
        pa.array([1.0, None, 2.5]),
        pa.array([True, False, None]),
        pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(10, 2)),
        pa.array([date(2024, 1, 31), None, None]),
        pa.array(_TIMES, pa.timestamp("us", "UTC")),
    ],
    "person": [
        pa.array([1, 2, 3], pa.int64()),
        pa.array([1.0, None, 2.5]),
        pa.array(["1", "2", "2.5"]),
        pa.array([1, 2, None], pa.int32()),
        pa.array([Decimal(1), Decimal(2), Decimal(10**20)], pa.decimal128(38, 0)),
        pa.array([2**64 - 1, 3, None], pa.uint64()),
    ],
}
_COLUMNS: Mapping[str, tuple[dict[str, Any], str]] = {
    "number": ({"range": [0, 100], "grain": 0.5}, "SELECT COUNT(x) AS n, SUM(x) AS s, COUNT(*) AS m FROM t"),
    "day": (
        {"range": ["2024-01-01", "2024-12-31"]},
        "SELECT COUNT(x) AS n, COUNT(*) FILTER (WHERE x < DATE '2024-02-01') AS m FROM t",
    ),
    "code": ({"values": [1, 2, 3]}, "SELECT x, COUNT(*) AS n FROM t GROUP BY x"),
    "word": ({"values": ["1", "2.5", "true", "2024-01-31"]}, "SELECT x, COUNT(*) AS n FROM t GROUP BY x"),
    "person": ({"type": "id"}, "SELECT COUNT(x) AS n, COUNT(DISTINCT x) AS m FROM t"),
}


def write(folder: Path, parts: Mapping[str, Mapping[str, Any]]) -> Path:
    for label, columns in parts.items():
        (folder / label).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(dict(columns)), folder / label)
    return folder


def on_spark(policy: Policy, where: Path | str, spark: Any, ansi: str = "true") -> SparkEngine:
    engine = SparkEngine(policy, {"t": SparkTable(str(where), files=True)}, spark)
    for setting, value in {**INTERPRETED, "spark.sql.ansi.enabled": ansi}.items():
        engine._session.spark.conf.set(setting, value)
    return engine


def _at(policy: Policy, folder: Path) -> Policy:
    return replace(policy, source={"t": str(folder)})


def found(engine: Any, policy: Policy, question: str) -> Any:
    with closing(engine):
        exact = ask(engine, policy, question)
        tallies = [[[own.tolist() for own in counts] for counts in tally] for tally in exact.tallies]
        return integers(exact), tallies


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("kind", list(_COLUMNS))
def test_files_in_every_type_are_read_as_on_duckdb(kind: str, ansi: str, spark: Any, tmp_path: Path) -> None:
    """All types at once, and each beside the first."""
    column, question = _COLUMNS[kind]
    policy = policy_of({"t": {"columns": {"x": column}}}, unit="row" if kind != "person" else "t.x")
    stored = _STORED[kind]
    pairs = [[stored[0], other] for other in stored[1:]] if ansi == "true" else []
    for place, arrays in enumerate([stored, *pairs]):
        folder = write(tmp_path / str(place), {f"{part}.parquet": {"x": own} for part, own in enumerate(arrays)})
        expected = found(DuckDBEngine(_at(policy, folder)), policy, question)
        assert found(on_spark(policy, folder, spark, ansi), policy, question) == expected, arrays


def test_one_missing_value_in_one_file_changes_nothing_else(spark: Any, tmp_path: Path) -> None:
    """The neighbour without it has the same statuses, charges, and integers of everybody else."""
    tables = {"t": {"columns": {"person": {"type": "id"}, "age": {"range": [0, 100]}, "code": {"values": [1, 2]}}}}
    questions = (
        "SELECT SUM(age) AS s FROM t",
        "SELECT code, COUNT(*) AS n FROM t GROUP BY code",
        "SELECT MEDIAN(age) AS m FROM t",
    )
    seen = []
    for missing in (False, True):
        own = pa.array([7.0, None] if missing else [7, 0], pa.float64() if missing else pa.int64())
        codes = pa.array([1.0, None] if missing else [1, 9], pa.float64() if missing else pa.int64())
        folder = write(
            tmp_path / str(missing),
            {
                "a.parquet": {"person": [1, 2], "age": [30, 40], "code": [1, 2]},
                "b.parquet": {"person": [3, 4], "age": own, "code": codes},
                "c.parquet": {"person": [5, 6], "age": [50, 60], "code": [2, 2]},
            },
        )
        policy = policy_of(tables, unit="t.person")
        cells = [found(on_spark(policy, folder, spark), policy, text) for text in questions[:2]]
        document = {"budget": {"epsilon": 3}, "unit": "t.person", "tables": tables}
        document |= {"ledger": str(tmp_path / f"{missing}.ledger"), "source": {"t": f"spark:{folder}"}}
        with open_data(document, spark, create=True) as session:
            outcomes = []
            for text in questions:
                answer = session.sql(text, epsilon=0.5)
                outcomes.append((len(answer), str(session.budget.spent)))
        seen.append((cells, outcomes))
    assert seen[0] == seen[1]


def test_folders_and_patterns_mean_what_they_did(spark: Any, tmp_path: Path) -> None:
    """Values of folders stay texts, of whichever types the files below are; names may hold anything."""
    tables = {"t": {"columns": {"region": {"values": ["01", "a b%"]}, "x": {"range": [0, 9]}}}}
    policy = policy_of(tables)
    parts = {
        "region=01/a.parquet": {"x": [1, 2], "other": [1, 2]},
        "region=01/b %20[1]{}?.parquet": {"x": [3.0, None], "other": ["a", "b"]},
        "region=a b%25/c.parquet": {"x": [4, 5]},
    }
    folder = write(tmp_path / "t", parts)
    question = "SELECT region, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY region"
    assert found(on_spark(policy, folder, spark), policy, question) == ([[4, 2], [6, 9]], [])
    (folder / "region=01" / "empty.parquet").touch()
    assert found(on_spark(policy, folder, spark), policy, question) == ([[4, 2], [6, 9]], [])
    without = policy_of({"t": {"columns": {"x": {"range": [0, 9]}}}})
    assert found(on_spark(without, f"{folder}/region=01/[ab]*", spark), without, "SELECT SUM(x) AS s FROM t")[0] == [
        [6]
    ]


def test_columns_that_nobody_declared_divide_nothing(spark: Any, tmp_path: Path) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 9]}, "y": {"range": [0, 9]}}}})
    folder = write(tmp_path / "t", {"a": {"x": [1], "z": [1]}, "b": {"x": [2], "z": ["a"], "y": [3]}})
    engine = on_spark(policy, folder, spark)
    assert len(engine._parts["t"]) == 1
    assert found(engine, policy, "SELECT SUM(x) AS s, SUM(y) AS r, COUNT(y) AS n FROM t")[0] == [[3], [3], [1]]


def test_files_that_come_later_may_be_of_another_type(spark: Any, tmp_path: Path) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 9], "grain": 0.5}}}})
    folder = write(tmp_path / "t", {"b": {"x": [1, 2]}, "c": {"x": [3]}})
    question = "SELECT SUM(x) AS s FROM t"
    with closing(on_spark(policy, folder, spark)) as engine:
        assert integers(ask(engine, policy, question)) == [[12]]
        for label, own, expected in (("a", [1.5, None], 15), ("d", ["1"], 17), ("b", [1.0, None], 13), ("a", [1], 12)):
            write(folder, {label: {"x": own}})
            assert integers(ask(engine, policy, question)) == [[expected]]
        (folder / "d").unlink()
        assert integers(ask(engine, policy, question)) == [[10]]


def test_what_cannot_be_read_together_is_said_from_types(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = {"x": {"range": [0, 9]}}
    policy = policy_of({"t": {"columns": number}})
    folder = write(tmp_path / "t", {"a": {"x": [1]}, "b": {"x": [date(2024, 1, 31)]}})
    with pytest.raises(SourceError, match="t, column x is stored as DATE, but the policy makes it a number"):
        on_spark(policy, folder, spark)
    write(folder, {"b": {"x": [1.5]}, "c": {"x": ["1"]}})
    public = policy_of({"p": {"columns": {"y": {"range": [0, 9]}}}, "t": {"columns": number, "public": True}})
    places = {
        "t": SparkTable(str(folder), files=True),
        "p": SparkTable(str(write(tmp_path / "p", {"a": {"y": [1]}})), files=True),
    }
    with pytest.raises(SourceError, match="t: parts store a column unlike the first; write all parts alike"):
        SparkEngine(public, places, spark)
    monkeypatch.setattr(spark_parts, "MOST_KINDS", 2)
    with pytest.raises(SourceError, match=r"stores its columns in more than 2 ways.*; write them alike"):
        on_spark(policy, folder, spark)

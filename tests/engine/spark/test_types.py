"""What Spark stores is told apart as the policy means it, and nothing in a row makes a statement fail."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.engine.spark.engine import SparkEngine
from confide.engine.spark.schema import SparkTable
from confide.engine.spark.types import plain, stored_type
from confide.policy import Identifier, Text
from tests.conformance.engine import ask, integers, policy_of
from tests.engine.spark_tables import create_engine
from tests.spark import INTERPRETED


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("decimal(38,10)", "decimal"),
        ("string collate UTF8_LCASE", "text"),
        ("timestamp_ntz", "timestamp"),
        ("time(6)", "time"),
        ("array<timestamp>", "other"),
        ("struct<a:string>", "other"),
        ("decimal(38,10)>", "other"),
        ("interval day", "other"),
        ("binary", "other"),
    ],
)
def test_types_are_known_by_their_whole_names(name: str, family: str) -> None:
    assert stored_type(name).family == family


def test_blanks_that_fill_up_a_text_are_no_part_of_it() -> None:
    assert plain(Text("x"), "x", stored_type("char(4)"))[1].startswith("TRY_VALIDATE_UTF8(RTRIM(")
    assert plain(Identifier("x"), "x", stored_type("string"))[1] == "TRY_VALIDATE_UTF8(x)"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_float_fails_a_question(ansi: str, spark: Any, tmp_path: Path) -> None:
    policy = policy_of({"t": {"columns": {"k": {"type": "id"}, "kind": {"values": [1, 2]}}}}, unit="t.k")
    odd = [float("inf"), float("-inf"), float("nan"), 2.0**63, -(2.0**63), 1e300]
    table = pa.table({"k": [1.0, 2.0, *odd], "kind": [1.0, 2.0, *odd]})
    settings = {**INTERPRETED, "spark.sql.ansi.enabled": ansi}
    with closing(create_engine(spark, tmp_path, policy, {"t": table}, settings=settings)) as engine:
        question = "SELECT kind, COUNT(*) AS n, COUNT(DISTINCT k) AS m FROM t GROUP BY kind"
        assert integers(ask(engine, policy, question)) == [[1, 1], [1, 1]]


def test_a_folder_does_not_change_what_the_others_mean(spark: Any, tmp_path: Path) -> None:
    """What folders are called are values of a column: Spark would take them for numbers, as long as all of them are."""
    policy = policy_of({"t": {"columns": {"region": {"values": ["01", "02"]}, "x": {"range": [0, 9]}}}})
    for folder, rows in (("01", 3), ("02", 4), ("ab", 1)):
        place = tmp_path / "t" / f"region={folder}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"x": [1] * rows}), place / "part.parquet")
        if folder != "01":
            places = {"t": SparkTable(str(tmp_path / "t"), files=True)}
            with closing(SparkEngine(policy, places, spark)) as engine:
                question = "SELECT region, COUNT(*) AS n FROM t GROUP BY region"
                assert integers(ask(engine, policy, question)) == [[3, 4]]


def test_functions_of_a_session_are_not_called(spark: Any, tmp_path: Path) -> None:
    policy = policy_of({"t": {"columns": {"x": {"range": [0, 100], "grain": 10}}}})
    owner = spark.newSession()
    owner.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    owner.conf.set("spark.sql.path.enabled", "true")
    owner.sql("SET PATH = system.session, system.builtin, current_schema")
    owner.udf.register("floor", lambda _: 7777, "bigint")
    assert owner.sql("SELECT FLOOR(1.5D)").collect()[0][0] == 7777
    with closing(create_engine(owner, tmp_path, policy, {"t": pa.table({"x": [5.0, 50.0]})})) as engine:
        assert integers(ask(engine, policy, "SELECT SUM(x) AS s FROM t")) == [[6]]


def test_quotients_do_not_wrap_around(spark: Any, tmp_path: Path) -> None:
    """An id of more than 64 bits agrees with no number whose index it would have in 64."""
    policy = policy_of(
        {
            "t": {"columns": {"k": {"type": "id"}}},
            "p": {"public": True, "columns": {"x": {"range": [0, 1000], "grain": 5}}},
        }
    )
    tables = {
        "t": pa.table({"k": pa.array([35, 5 * (2**64 + 7), 36], pa.decimal128(38, 0))}),
        "p": pa.table({"x": pa.array([35], pa.int64())}),
    }
    with closing(create_engine(spark, tmp_path, policy, tables, settings=INTERPRETED)) as engine:
        assert integers(ask(engine, policy, "SELECT COUNT(*) AS n FROM t JOIN p ON t.k = p.x")) == [[1]]

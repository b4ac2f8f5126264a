"""A policy whose data are on Spark: the same calls, and clear words for what is wrong."""

import datetime
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.engine.spark.spark_session import _started
from confide.errors import EngineError, SourceError
from confide.policy import Policy
from confide.release.custody.inspection import check_source
from confide.release.custody.spark_place import spark_place
from tests.spark import INTERPRETED, MISSING, has_java

SQL = "SELECT region, COUNT(*) AS n, AVG(age) AS mean, MEDIAN(age) AS middle FROM person GROUP BY region"
NAMED = "SELECT r.name, COUNT(*) AS n FROM person JOIN region_name AS r ON person.region = r.region GROUP BY r.name"
TABLES: dict[str, Any] = {
    "person": {"columns": {"region": {"values": ["N", "S"]}, "age": {"range": [0, 115]}}},
    "region_name": {"public": True},
}


def person(count: int = 3000, **more: Any) -> pa.Table:
    rows = {"region": ["N" if i % 3 == 0 else "S" for i in range(count)], "age": [i % 100 for i in range(count)]}
    return pa.table({**rows, **more})


def regions(*more: tuple[str, str]) -> pa.Table:
    rows = [("N", "North"), ("S", "South"), *more]
    return pa.table({"region": [row[0] for row in rows], "name": [row[1] for row in rows]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(person(), tmp_path / "person.parquet")
    pq.write_table(regions(), tmp_path / "region_name.parquet")
    return tmp_path


def rules(folder: Path, source: Any = "files", **more: Any) -> Policy:
    files = {label: f"spark:{label}.parquet" for label in TABLES}
    facts = {"budget": {"epsilon": 10_000}, "unit": "row", "tables": TABLES, **more}
    if source is not None:
        facts["source"] = files if source == "files" else source
    return Policy.parse(facts, base=folder)


# --- what a policy says -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "master", "table", "files"),
    [
        ("spark", None, "`person`", False),
        ("spark:yarn", "yarn", "`person`", False),
        ("local[4]", "local[4]", "`person`", False),
        ("spark://host:7077?schema=a.b`c", "spark://host:7077", "`a`.`b``c`.`person`", False),
        ("sc://host:15002/;token=x", "sc://host:15002/;token=x", "`person`", False),
        ({"person": "spark:s3a://b/person", "region_name": "spark:db.r"}, None, "s3a://b/person", True),
        (
            {"person": "spark://h:7077?parquet=/data/p", "region_name": "spark://h:7077?table=db.r"},
            "spark://h:7077",
            "/data/p",
            True,
        ),
    ],
)
def test_where_tables_are(tmp_path: Path, source: Any, master: str | None, table: str, files: bool) -> None:
    place = spark_place(rules(tmp_path, source))
    assert place is not None
    assert (place.master, place.tables["person"], "person" in place.files) == (master, table, files)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"person": "spark:p.parquet", "region_name": "r.csv"}, "region_name: spark:PATH"),
        ({"person": "spark:p.parquet"}, "region_name: spark:PATH"),
        ({"person": "spark://h:1?parquet=/p", "region_name": "sc://h:1?parquet=/r"}, "different Sparks"),
        ({"person": "spark://h:1", "region_name": "spark://h:1?parquet=/r"}, r"write \?parquet=PATH"),
        ("sc://host?catalog=x", r"takes \?schema=NAME"),
        ("spark:/data/p", r"\{TABLE: spark:/data/p\}"),
        ("local[x]", r"write local\[4\]"),
        ("local[0]", r"write local\[4\]"),
    ],
)
def test_places_that_make_no_sense(tmp_path: Path, source: Any, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        spark_place(rules(tmp_path, source))


def test_other_sources_are_not_spark(tmp_path: Path) -> None:
    for source in (None, "people.duckdb", "postgresql://h/d", {"person": "local.parquet", "region_name": "r.csv"}):
        assert spark_place(rules(tmp_path, source)) is None


# --- answers ----------------------------------------------------------------------------------------------------------


def test_the_same_calls_answer(spark: Any, folder: Path) -> None:
    with confide.open(rules(folder), spark, folder / "l", create=True) as people:
        assert people.plan(SQL, epsilon=30).affordable
        answer = people.sql(SQL, epsilon=3000)
        assert [row["n"] for row in answer.to_dicts()] == pytest.approx([1000, 2000], abs=3)
        assert [row["mean"] for row in answer.to_dicts()] == pytest.approx([49.5, 49.5], abs=1)
        assert people.sql(SQL, epsilon=3000).to_dicts() == answer.to_dicts()
        named = people.sql(NAMED, epsilon=1000)
        assert [row["n"] for row in named.to_dicts()] == pytest.approx([1000, 2000], abs=3)
        # A public table that repeats more than it did is part of a sensitivity: it ends the question.
        pq.write_table(regions(("N", "Again")), folder / "region_name.parquet")
        with pytest.raises(EngineError):
            people.sql(NAMED, epsilon=2)
        # Rows that came since are read, columns in a type that does not fit are not.
        pq.write_table(person(6000), folder / "person.parquet")
        counted = people.sql("SELECT COUNT(*) AS n FROM person", epsilon=1000)
        assert counted.to_dicts()[0]["n"] == pytest.approx(6000, abs=3)
        pq.write_table(person(10, age=[datetime.date(2024, 1, 31)] * 10), folder / "person.parquet")
        with pytest.raises(EngineError) as caught:
            people.sql("SELECT SUM(age) AS s FROM person", epsilon=5)
        assert str(caught.value) == str(EngineError())
        assert people.budget.spent == 5007


def test_values_of_a_statement_that_failed_are_written_nowhere(
    spark: Any, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """pyspark itself writes what went wrong to standard error, with the value that did."""
    with confide.open(rules(folder), spark, folder / "l", create=True) as people:
        engine: Any = people._holdings.engine
        engine._rows = lambda statement: engine._session.run(
            lambda: engine._session.spark.sql("SELECT CAST('a secret word' AS INT) AS x").collect()
        )
        with pytest.raises(EngineError):
            people.sql("SELECT COUNT(*) AS n FROM person", epsilon=1)
    shown = "".join(capfd.readouterr())
    assert "secret" not in shown


def test_views_and_settings_of_a_given_session(spark: Any, folder: Path) -> None:
    """Its temporary views are tables; its settings do not reach our statements, and ours do not reach it."""
    for label in TABLES:
        spark.read.parquet(str(folder / f"{label}.parquet")).createOrReplaceTempView(label)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        before = sorted(table.name for table in spark.catalog.listTables())
        with confide.open(rules(folder, None), spark, folder / "l", create=True) as people:
            assert people.sql("SELECT COUNT(*) AS n FROM person", epsilon=1000).to_dicts()[0]["n"] == pytest.approx(
                3000, abs=3
            )
            engine: Any = people._holdings.engine
            assert engine._session.spark.conf.get("spark.sql.session.timeZone") == "UTC"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert sorted(table.name for table in spark.catalog.listTables()) == before
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
        for label in TABLES:
            spark.catalog.dropTempView(label)


def test_the_check_says_what_it_read(spark: Any, folder: Path) -> None:
    assert spark is not None
    remarks = check_source(rules(folder))
    assert "person (2 columns), region_name (2 columns)" in remarks[0]


def test_what_does_not_fit_is_said(spark: Any, folder: Path) -> None:
    ledger = folder / "l"
    with pytest.raises(SourceError, match="nowhere is no table"):
        confide.open(rules(folder, dict.fromkeys(TABLES, "spark:nowhere")), spark, ledger, create=True)
    (folder / "torn.parquet").write_bytes(b"PAR1")
    (folder / "empty").mkdir()
    for place, words in (
        ("torn.parquet", "cannot be read as Parquet files"),
        ("./empty", "empty holds no Parquet files$"),
        ("gone.parquet", "gone.parquet is not there"),
    ):
        with pytest.raises(SourceError, match=words) as caught:
            confide.open(rules(folder, dict.fromkeys(TABLES, f"spark:{place}")), spark, ledger, create=True)
        assert caught.value.__context__ is None
    with pytest.raises(SourceError, match=r"local\[7\].*already"):
        confide.open(rules(folder, "local[7]"), ledger=ledger, create=True)
    with pytest.raises(SourceError, match="leave out data="):
        confide.open(rules(folder, "local[7]"), spark, ledger, create=True)
    with pytest.raises(SourceError, match="leave out data="):
        confide.open(rules(folder, "x.duckdb"), spark, ledger, create=True)
    with pytest.raises(SourceError, match="leave out data="):
        confide.open(rules(folder), {"person": {}}, ledger, create=True)
    for table, words in (
        (person().drop_columns("age"), "no column age"),
        (person().rename_columns(["region", "AGE"]), "it has AGE"),
        (person(10, region=["N"] * 10, age=[[1]] * 10), r"stored as the type array<bigint>"),
    ):
        pq.write_table(table, folder / "person.parquet")
        with pytest.raises(SourceError, match=words):
            confide.open(rules(folder), spark, ledger, create=True)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_what_is_read_twice_must_not_change_in_between(spark: Any, folder: Path) -> None:
    from tests.engine.spark_tables import create_engine  # noqa: PLC0415  needs Spark
    from tests.engine.worlds import CHARGE  # noqa: PLC0415

    class Twice:
        def __init__(self, between: Any) -> None:
            self.between = between

        def read(self, statements: Any) -> Any:
            ask = 'SELECT COUNT(*) AS n FROM main."person" AS s'
            first = statements.rows(ask)
            self.between()
            return first, statements.rows(ask)

    engine = create_engine(spark, folder, rules(folder, None), {"person": person(), "region_name": regions()})
    place = Path(engine._places["person"].where)
    assert engine.inquire(Twice(lambda: None), CHARGE) == ([(3000,)], [(3000,)])
    with pytest.raises(EngineError):
        engine.inquire(Twice(lambda: pq.write_table(person(4000), place)), CHARGE)
    assert engine.inquire(Twice(lambda: None), CHARGE) == ([(4000,)], [(4000,)])
    engine.close()


@pytest.mark.parametrize("kind", ["files", "files that change", "a view"])
def test_quantiles_are_read_in_passes_over_files_that_stay(spark: Any, folder: Path, kind: str) -> None:
    """Rows that change within cells of the first pass leave no other trace; a view may read otherwise each time."""
    from confide.engine.spark.engine import SparkEngine  # noqa: PLC0415  needs Spark
    from confide.engine.spark.schema import SparkTable  # noqa: PLC0415
    from confide.query import bind  # noqa: PLC0415
    from tests.engine.worlds import CHARGE, SECRET  # noqa: PLC0415

    def write(shift: int) -> None:
        pq.write_table(pa.table({"x": [142 * place + shift for place in range(100)] * 5}), folder / "t.parquet")

    write(5)
    spark.read.parquet(str(folder / "t.parquet")).createOrReplaceTempView("seen")
    place = SparkTable("seen", files=False) if kind == "a view" else SparkTable(str(folder / "t.parquet"), files=True)
    tables = {"t": {"columns": {"x": {"range": [0, 20_000]}}}}
    policy = Policy.parse({"budget": {"epsilon": 1}, "unit": "row", "tables": tables})
    engine = SparkEngine(policy, {"t": place}, spark)
    read, statements = engine._columns, []

    def watched(statement: str) -> Any:
        found = read(statement)
        statements.append(statement)
        if kind == "files that change":
            write(6)
        return found

    engine._columns = watched  # type: ignore[method-assign]
    try:
        summary = bind("SELECT MEDIAN(x) AS m FROM t", policy, engine).summary
        windows = {0: [lambda count: (count // 2 - 20, count // 2 + 20)]}
        if kind == "files that change":
            with pytest.raises(EngineError):
                engine.evaluate(summary, CHARGE, SECRET, None, windows)
            return
        ((values, counts),) = engine.evaluate(summary, CHARGE, SECRET, None, windows).tallies[0]
        assert len(statements) == (1 if kind == "a view" else 2)
        assert int(counts.sum()) == 500
        assert {142 * middle + 5 for middle in (48, 49, 50, 51)} <= set(values.tolist())
    finally:
        engine.close()
        spark.catalog.dropTempView("seen")


def test_joins_and_graphs_read_as_on_duckdb(spark: Any, tmp_path: Path) -> None:
    """Numbers of rows are given in an order there, and parts that are named are computed more than once."""
    from confide.engine.duckdb.engine import DuckDBEngine  # noqa: PLC0415
    from confide.engine.read.join_facts import SharesInquiry  # noqa: PLC0415
    from confide.query.conjunction import bind_conjunction  # noqa: PLC0415
    from tests.engine.spark_tables import create_engine  # noqa: PLC0415  needs Spark
    from tests.engine.worlds import CHARGE  # noqa: PLC0415
    from tests.release.test_joins import KEY, key_data  # noqa: PLC0415

    policy = Policy.parse(KEY)
    data = {label: frame.to_arrow() for label, frame in key_data(30, 1).items()}
    engines = DuckDBEngine(policy, data), create_engine(spark, tmp_path, policy, data, settings=INTERPRETED)
    for sql in (
        "SELECT SUM(x) AS n FROM o JOIN l ON o.oid = l.oid",
        "SELECT COUNT(*) AS n FROM o AS one JOIN o AS two ON one.item = two.item",
    ):
        found = []
        for engine in engines:
            (shares,) = engine.inquire(SharesInquiry(bind_conjunction(sql, policy, engine), 0), CHARGE)
            alone = shares.entities is None
            sizes = None if alone else sorted(Counter(shares.entities[:, 0].tolist()).values())
            found.append((alone, sizes, sorted(zip(shares.weights.tolist(), shares.counts.tolist(), strict=True))))
        assert found[0] == found[1]
    for engine in engines:
        engine.close()


def _run(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("home", ["", "/nowhere"], ids=["no home", "a wrong home"])
def test_no_java_is_said(folder: Path, home: str) -> None:
    policy = {"budget": {"epsilon": 1}, "unit": "row", "tables": TABLES, "source": "local[1]"}
    code = (
        "import os, confide\n"
        "os.environ.pop('SPARK_REMOTE', None)\n"
        f"os.environ |= {{'JAVA_HOME': {home!r}, 'PATH': os.environ['PATH'] if {home!r} else '/nowhere'}}\n"
        f"try: confide.open({policy!r}, ledger={str(folder / 'l')!r}, create=True)\n"
        "except confide.errors.SourceError as error: print(error)\n"
    )
    assert "needs a Java runtime" in _run(code)


def test_java_is_found_where_its_home_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match="does not start"):
        _started(Unstartable(), "local[1]")


@pytest.mark.skipif(not has_java(), reason=MISSING)
def test_a_master_that_does_not_answer_is_said_at_once() -> None:
    for address in ("127.0.0.1:1", "127.0.0.1:1,[::1]:1", "nowhere.invalid:7077", "127.0.0.1"):
        with pytest.raises(SourceError, match="no master of Spark answers at spark://"):
            _started(Unstartable(), f"spark://{address}")


class Unstartable:
    """Takes all settings, and then does not start."""

    def __getattr__(self, name: str) -> "Unstartable":
        return self

    def __call__(self, *arguments: str) -> "Unstartable":
        if not arguments:
            raise RuntimeError
        return self


@pytest.mark.audit
def test_a_spark_that_is_killed_gives_one_error_and_the_charge_stays(folder: Path) -> None:
    """Java dies while a question runs, and is dead when the next one comes."""
    if not has_java():
        pytest.skip(MISSING)
    policy = {"budget": {"epsilon": 9}, "unit": "row", "tables": {"person": TABLES["person"]}}
    policy["source"] = {"person": f"spark:{folder}/person.parquet"}
    code = (
        "import os, signal, threading, time, confide\n"
        f"people = confide.open({policy!r}, ledger={str(folder / 'l')!r}, create=True)\n"
        "from pyspark import SparkContext\n"
        "java = int(SparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid())\n"
        "people.sql('SELECT COUNT(*) AS n FROM person', epsilon=1)\n"
        "engine = people._holdings.engine\n"
        "slow = engine._fetch\n"
        "def fetch(statement):\n"
        "    threading.Timer(0.02, lambda: os.kill(java, signal.SIGKILL)).start()\n"
        "    return slow(statement)\n"
        "engine._fetch = fetch\n"
        "begun = time.monotonic()\n"
        "for epsilon in (2, 3):\n"
        "    try: people.sql('SELECT SUM(age) AS s FROM person', epsilon=epsilon)\n"
        "    except confide.errors.EngineError as error: print('ended', 'charge' in str(error), error.__context__)\n"
        "    except confide.errors.SourceError as error: print('refused', 'nothing was charged' in str(error))\n"
        "    engine._fetch = slow\n"
        "print(people.budget.spent, time.monotonic() - begun < 60)\n"
        "people.close()\n"
    )
    lines = _run(code).splitlines()
    assert lines == ["ended True None", "refused True", "3.0 True"]


@pytest.mark.audit
def test_a_spark_that_was_stopped_is_started_again(folder: Path) -> None:
    """A cluster that drops us stops Spark in Java, and Python does not see it."""
    if not has_java():
        pytest.skip(MISSING)
    policy = {"budget": {"epsilon": 9_000}, "unit": "row", "tables": {"person": TABLES["person"]}, "version": "1"}
    policy["source"] = {"person": f"spark:{folder}/person.parquet"}
    code = (
        "import confide\n"
        "for last in (False, True):\n"
        f"    with confide.open({policy!r}, ledger={str(folder / 'l')!r}, create=True) as people:\n"
        "        if not last:\n"
        "            people._holdings.engine._session.spark.sparkContext._jsc.sc().stop()\n"
        "        try: print(people.sql('SELECT COUNT(*) AS n FROM person', epsilon=3000).to_dicts()[0]['n'])\n"
        "        except confide.errors.SourceError as error: print('refused', error.__context__)\n"
        "        print(people.budget.spent)\n"
    )
    assert _run(code).splitlines() == ["refused None", "0.0", "3000", "3000.0"]

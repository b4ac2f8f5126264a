"""Standard error is the analyst's: whatever fails, no library writes to it. The descriptor itself is captured."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.servers import PostgresServer

POLICY = """
    import os, signal, sys, time
    import confide
    from confide.errors import ConfideError, LedgerError
    from confide.ledger import PostgresLedger, SqliteLedger

    def rules(**more):
        return {"budget": {"epsilon": 1000}, "unit": "row",
                "tables": {"t": {"columns": {"x": {"range": [0, 9]}, "g": {"values": ["a", "b"]}}}}, **more}

    def refused(call):
        try:
            call()
        except ConfideError:
            return
        raise AssertionError("it was answered")

    SQL = "SELECT g, COUNT(*) AS n, SUM(x) AS s, MEDIAN(x) AS m FROM t GROUP BY g"
"""
FILES = """
    import pandas as pd
    frame = pd.DataFrame({"x": [1, 2] * 50, "g": ["a", "b"] * 50})
    path = sys.argv[1] + "/t.parquet"
    frame.to_parquet(path)
    session = confide.open(rules(source={"t": path}), ledger=sys.argv[1] + "/ledger", create=True)
    session.sql(SQL, epsilon=1)
    engine = session._holdings.engine
    engine.ready = lambda: None
    open(path, "wb").write(b"PAR1 this is no file any more PAR1")  # fails in the middle of the reading
    refused(lambda: session.sql(SQL, epsilon=2))
    os.unlink(sys.argv[1] + "/ledger")
    refused(lambda: session.sql(SQL, epsilon=3))
    refused(lambda: confide.open(rules(source={"t": path}), ledger=sys.argv[1] + "/ledger"))
"""
POSTGRES = """
    session = confide.open(rules(source=sys.argv[2]), ledger=sys.argv[3], create=True)
    session.sql(SQL, epsilon=1)
    import psycopg
    other = psycopg.connect(sys.argv[2], autocommit=True)

    def end(name):
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                      " AND application_name = %s AND pid <> pg_backend_pid()", (name,))
        time.sleep(0.2)

    # The ledger's connection ends just before the commit: the driver warns of what it could not end.
    ledger = session._holdings.ledger
    def cut(connection, position):
        connection.execute("INSERT INTO entry VALUES (?, ?, ?)", (position.sequence + 1, b"x", b"y"))
        end("confide ledger")
        return None, position
    refused(lambda: ledger._transactions.write(cut))
    # The connection of the data ends in the middle of a stream.
    engine = session._holdings.engine
    try:
        with engine._transaction():
            rows = engine._batches('SELECT x AS x FROM main."t" AS s')
            next(rows)
            end("confide")
            del rows
            engine._ask("SELECT 1")
    except psycopg.Error:
        pass
    session.sql(SQL, epsilon=2)
    abandoned = confide.open(rules(source=sys.argv[2]), ledger=sys.argv[3])
    abandoned.sql(SQL, epsilon=3)
"""
SPARK = """
    from pyspark import SparkContext
    session = confide.open(rules(source={"t": "spark:" + sys.argv[2]}), ledger=sys.argv[1] + "/ledger", create=True)
    session.sql(SQL, epsilon=1)
    child = os.fork()
    if child == 0:
        spent = session.budget.spent
        refused(lambda: session.sql(SQL, epsilon=2))
        refused(lambda: confide.open(rules(source={"t": "spark:" + sys.argv[2]}), ledger=sys.argv[1] + "/ledger"))
        assert session.budget.spent == spent
        sys.exit(0)
    session.sql(SQL, epsilon=3)
    assert os.waitpid(child, 0)[1] == 0
    session.sql(SQL, epsilon=4)
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    time.sleep(1)
    spent = session.budget.spent
    began = time.monotonic()
    refused(lambda: session.sql(SQL, epsilon=5))
    assert time.monotonic() - began < 25
    assert session.budget.spent == spent
"""


def said(script: str, *arguments: str) -> tuple[int, str]:
    """The exit code and everything that was written to standard error, by whatever library."""
    whole = textwrap.dedent(POLICY) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", whole, *arguments], stderr=subprocess.PIPE, text=True, timeout=300, check=False
    )
    return done.returncode, done.stderr


def test_files_that_break(tmp_path: Path) -> None:
    assert said(FILES, str(tmp_path)) == (0, "")


def test_connections_that_break(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> None:
    make = "CREATE TABLE t AS SELECT g % 9 AS x, 'a'::text AS g FROM generate_series(1, 200000) AS g"
    postgres_server.run(make, postgres_database)
    source = postgres_server.url(postgres_database)
    ledger = postgres_server.url(postgres_database, schema="people", anchor=str(tmp_path / "anchor"))
    assert said(POSTGRES, str(tmp_path), source, ledger) == (0, "")


@pytest.mark.audit
def test_spark_that_is_killed_and_forked(tmp_path: Path) -> None:
    """A child of a fork is refused, before the charge, and the parent goes on; so is everybody once Java is dead."""
    pytest.importorskip("pyspark")
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"x": [1, 2] * 50, "g": ["a", "b"] * 50}).to_parquet(tmp_path / "t.parquet")
    assert said(SPARK, str(tmp_path), str(tmp_path / "t.parquet")) == (0, "")

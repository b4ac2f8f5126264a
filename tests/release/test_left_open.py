"""Sessions that nobody closes give back what they held: descriptors, threads, connections of a server."""

import gc
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import confide
from confide.errors import LedgerError
from tests.servers import PostgresServer

TABLES = {"t": {"columns": {"x": {"range": [0, 9]}}}}
SQL = "SELECT COUNT(*) AS n FROM t"


def rules(**more: Any) -> dict[str, Any]:
    return {"budget": {"epsilon": 10**6}, "unit": "row", "tables": TABLES, **more}


def held() -> tuple[int, int]:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def ask(number: int, **opened: Any) -> None:
    confide.open(create=True, **opened).sql(SQL, epsilon=f"1.{number:04d}")


TIMES = [10, pytest.param(200, marks=pytest.mark.audit)]


@pytest.mark.parametrize("times", TIMES)
def test_frames_and_a_ledger_in_a_file(times: int, tmp_path: Path) -> None:
    data = {"t": pd.DataFrame({"x": [1, 2, 3]})}
    ask(0, policy=rules(), data=data, ledger=tmp_path / "ledger")
    before = held()
    for number in range(1, times):
        ask(number, policy=rules(), data=data, ledger=tmp_path / "ledger")
    assert held() == pytest.approx(before, abs=4)


@pytest.mark.parametrize("times", TIMES)
def test_data_and_ledger_on_postgres(
    times: int, postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    postgres_server.run("CREATE TABLE t AS SELECT 1 AS x", postgres_database)
    source = postgres_server.url(postgres_database)
    ledger = postgres_server.url(postgres_database, schema="people", anchor=str(tmp_path / "anchor"))
    ask(0, policy=rules(source=source), ledger=ledger)
    before = held()
    for number in range(1, times):
        ask(number, policy=rules(source=source), ledger=ledger)
    assert held() == pytest.approx(before, abs=4)
    connected = f"SELECT COUNT(*) FROM pg_stat_activity WHERE datname = '{postgres_database}'"
    until = time.monotonic() + 10
    while (left := postgres_server.run(connected)[0][0]) > 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert left <= 2


class Busy:
    """A connection that another thread is in the middle of."""

    def __init__(self, connection: Any, times: int) -> None:
        self.connection, self.times = connection, times

    def close(self) -> None:
        if self.times:
            self.times -= 1
            raise duckdb.Error("connection is busy with another call; it refuses instead of waiting")
        self.connection.close()


def test_closing_waits_for_those_who_are_just_asking(tmp_path: Path) -> None:
    session = confide.open(rules(), {"t": pd.DataFrame({"x": [1]})}, tmp_path / "ledger", create=True)
    database: Any = session._holdings.engine._database  # type: ignore[attr-defined]
    busy = Busy(database._connection, 3)
    database._connection = busy
    session.close()
    assert busy.times == 0
    with pytest.raises(duckdb.Error, match="closed"):
        busy.connection.execute("SELECT 1")
    with pytest.raises(LedgerError, match="was closed"):
        session.sql(SQL, epsilon=1)


def test_a_ledger_is_closed_whatever_becomes_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = confide.open(rules(), {"t": pd.DataFrame({"x": [1]})}, tmp_path / "ledger", create=True)

    def fail() -> None:
        raise OSError("no")

    monkeypatch.setattr(session._holdings.engine, "close", fail)
    with pytest.raises(OSError, match="no"):
        session.close()
    with pytest.raises(LedgerError, match="was closed"):
        session.sql(SQL, epsilon=1)

"""Sessions that nobody closes give back what they held: descriptors, threads, connections of a server."""

import gc
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import confide
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

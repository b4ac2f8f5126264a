"""A session that was opened before a fork: parent and children ask at once, and everybody gets their own answers.

A connection that two processes share gives one the other's rows: a SUM where a COUNT was asked for, with the noise of a
COUNT. The magnitudes here tell the two apart.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide
from confide.engine.postgres.engine import PostgresEngine
from confide.errors import LedgerError, ParameterError, SourceError
from confide.ledger import MemoryLedger
from confide.privacy.budget import Budget
from confide.release.session import Session
from tests.servers import PostgresServer

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")

ROWS = 2_000
COUNT, SUM = "SELECT COUNT(*) AS n FROM t", "SELECT SUM(x) AS n FROM t"
TRUTH = {COUNT: ROWS, SUM: 1_000 * ROWS}
PATIENCE = 60
TABLES = {"t": {"columns": {"k": {"type": "id"}, "x": {"range": [0, 1000]}}}}


def rules(**more: Any) -> dict[str, Any]:
    return {"budget": {"epsilon": 10**6}, "unit": "row", "tables": TABLES, **more}


def frame() -> pd.DataFrame:
    return pd.DataFrame({"k": range(ROWS), "x": [1_000] * ROWS})


@pytest.fixture(params=["frame", "csv", "parquet", "postgres"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    kind, ledger = request.param, tmp_path / "ledger"
    if kind == "frame":
        opened = confide.open(rules(), data={"t": frame()}, ledger=ledger, create=True)
    elif kind == "csv":
        frame().to_csv(tmp_path / "t.csv", index=False)
        opened = confide.open(rules(source={"t": str(tmp_path / "t.csv")}), ledger=ledger, create=True)
    elif kind == "parquet":
        frame().to_parquet(tmp_path / "t.parquet")
        opened = confide.open(rules(source={"t": str(tmp_path / "t.parquet")}), ledger=ledger, create=True)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        database = request.getfixturevalue("postgres_database")
        make = f"CREATE TABLE t AS SELECT g AS k, 1000 AS x FROM generate_series(1, {ROWS}) AS g"
        server.run(make, database)
        opened = confide.open(rules(source=server.url(database)), ledger=ledger, create=True)
    with opened:
        yield opened


def ask(session: Session, sql: str, number: int) -> float:
    """A question that was not asked before."""
    return float(session.sql(sql, epsilon=f"50.{number:06d}").to_dicts()[0]["n"])


def ask_often(session: Session, sql: str, first: int, times: int = 8) -> None:
    for number in range(first, first + times):
        found = ask(session, sql, number)
        assert abs(found - TRUTH[sql]) < TRUTH[sql] / 10, f"{sql} gave {found}"


def forked(work: Callable[[], None]) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            signal.alarm(PATIENCE)  # what hangs is a failure, not a test that never ends
            work()
            code = 0
        except BaseException as error:
            sys.stderr.write(f"in the child: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
        finally:
            os._exit(code)
    return process


def code_of(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_parent_and_children_each_get_their_own_answers(session: Session) -> None:
    ask(session, COUNT, 0)
    children = [
        forked(lambda sql=sql, first=first: ask_often(session, sql, first))  # type: ignore[misc]
        for sql, first in ((COUNT, 100), (SUM, 200), (COUNT, 300))
    ]
    ask_often(session, SUM, 400)
    assert [code_of(child) for child in children] == [0, 0, 0]
    ask_often(session, COUNT, 500, 2)
    charged = [e.body["purpose"] for e in session._holdings.ledger.entries() if e.kind == "charge"]
    assert len(charged) == 1 + 4 * 8 + 2


def test_a_fork_while_another_thread_asks(session: Session) -> None:
    """Locks that the other thread holds are not held in the child, and its statement goes on in the parent."""
    over = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        number = 1_000
        try:
            while not over.is_set():
                ask_often(session, SUM, number, 1)
                number += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    children = []
    for number in range(4):
        time.sleep(0.03)
        children.append(forked(lambda first=5_000 + 10 * number: ask_often(session, COUNT, first, 2)))  # type: ignore[misc]
    codes = [code_of(child) for child in children]
    over.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not errors, errors
    assert codes == [0] * 4


_SHARED: list[Session] = []


def _pooled(given: tuple[str, int]) -> float:
    return ask(_SHARED[0], *given)


def test_a_pool_of_forked_workers(session: Session) -> None:
    _SHARED[:] = [session]
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            given = [((COUNT, SUM)[number % 2], 2_000 + number) for number in range(10)]
            found = pool.map_async(_pooled, given, chunksize=1).get(PATIENCE)
    finally:
        _SHARED.clear()
    for (sql, _), value in zip(given, found, strict=True):
        assert abs(value - TRUTH[sql]) < TRUTH[sql] / 10


def test_many_threads_of_one_session(session: Session) -> None:
    errors: list[BaseException] = []

    def work(sql: str, first: int) -> None:
        try:
            ask_often(session, sql, first, 5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=((COUNT, SUM)[n % 2], 10_000 + 100 * n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not errors, errors


@pytest.mark.parametrize("session", ["csv"], indirect=True)
def test_a_child_never_reads_other_data_than_its_parent(session: Session, tmp_path: Path) -> None:
    """It reads the file again; one that has changed is refused before anything is charged."""
    ask(session, COUNT, 0)
    frame().head(10).to_csv(tmp_path / "t.csv", index=False)

    def work() -> None:
        spent = session.budget.spent
        with pytest.raises(SourceError, match="have changed since"):
            ask(session, COUNT, 1)
        assert session.budget.spent == spent

    assert code_of(forked(work)) == 0
    ask_often(session, COUNT, 2, 1)


def test_a_child_never_reads_a_frame_that_was_changed(tmp_path: Path) -> None:
    """Its columns may share memory with arrays of the program; the parent knows how many rows each unit had in them."""
    unit = np.arange(ROWS)
    tables = {"t": {**TABLES["t"], "at_most": {"rows": 1}}}
    policy = rules(unit="t.k", version="1", tables=tables)
    with confide.open(
        policy, {"t": {"k": unit, "x": np.full(ROWS, 1000)}}, tmp_path / "ledger", create=True
    ) as session:
        ask_often(session, SUM, 0, 1)
        assert code_of(forked(lambda: ask_often(session, SUM, 1, 1))) == 0
        unit[:] = 7

        def work() -> None:
            with pytest.raises(SourceError, match="have changed since"):
                ask(session, SUM, 2)

        assert code_of(forked(work)) == 0
        ask_often(session, SUM, 3, 1)


@pytest.mark.parametrize("session", ["postgres"], indirect=True)
def test_a_question_to_a_server_that_is_gone_is_not_charged(
    session: Session, postgres_server: PostgresServer, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the charge on there is one outcome, so what can be known before is."""
    ask(session, COUNT, 0)
    spent = session.budget.spent
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{postgres_database}'"
    postgres_server.run(ended)
    ask_often(session, COUNT, 1, 1)  # a connection that was lost while it was idle is made anew
    postgres_server.run(ended)

    def refused(engine: object) -> None:
        raise psycopg.OperationalError("connection failed: Connection refused")

    whole = PostgresEngine._connect
    monkeypatch.setattr(PostgresEngine, "_connect", refused)
    with pytest.raises(SourceError, match="cannot be reached"):
        ask(session, COUNT, 2)
    monkeypatch.setattr(PostgresEngine, "_connect", whole)
    ask_often(session, COUNT, 3, 1)
    assert session.budget.spent == pytest.approx(spent + 100.000004)


def test_a_ledger_in_memory_is_not_doubled_by_a_fork() -> None:
    ledger = MemoryLedger(Budget.of(1))

    def work() -> None:
        with pytest.raises(LedgerError, match="forked"):
            ledger.spent()

    assert code_of(forked(work)) == 0


def test_a_synthesis_is_refused_where_its_library_would_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of jax are not in the child."""
    monkeypatch.setitem(sys.modules, "jax", sys.modules.get("jax") or ModuleType("jax"))
    sys.modules["jax"].__spec__ = sys.modules["jax"].__spec__ or ModuleSpec("jax", None)
    table = {"columns": {"g": {"values": ["a", "b"]}}}
    policy = {"budget": {"epsilon": 10}, "unit": "row", "tables": {"t": table}}
    data = {"t": pd.DataFrame({"g": ["a", "b"] * 50})}
    with confide.open(policy, data=data, ledger=tmp_path / "ledger", create=True) as session:

        def work() -> None:
            with pytest.raises(ParameterError, match="forked from one that had loaded jax"):
                session.synthesize(confide.marginals(k=1), epsilon=1, method="rap")
            assert session.budget.spent == 0

        assert code_of(forked(work)) == 0


ENDS = """
    import os, sys
    import pandas as pd
    import confide

    policy = {"budget": {"epsilon": 1000}, "unit": "row", "tables": {"t": {"columns": {"x": {"range": [0, 9]}}}}}
    session = confide.open(policy, data={"t": pd.DataFrame({"x": [1] * 100})}, ledger=sys.argv[1], create=True)
    child = os.fork()
    if child == 0:
        session.sql("SELECT COUNT(*) AS n FROM t", epsilon=2)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    session.sql("SELECT COUNT(*) AS n FROM t", epsilon=3)
"""


def test_a_child_that_ends_as_an_interpreter_does_says_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(ENDS), str(tmp_path / "ledger")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

"""Ctrl-C and time limits: a long statement ends at once, and the engine answers the next question."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from confide.engine.duckdb.running import run, run_apart
from confide.engine.result import TimeLimitError
from confide.host.workers import Worker

SLOW = "SELECT COUNT(*) FROM range(200000) a(i) JOIN range(200000) b(j) ON (a.i * b.j) % 7 = 3"


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def test_rows_come_back(connection: duckdb.DuckDBPyConnection) -> None:
    assert run(connection, "SELECT 1, 'a'") == [(1, "a")]
    assert run_apart(connection, "SELECT 2") == [(2,)]


def test_errors_come_back(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error):
        run(connection, "SELECT * FROM nothing")
    assert run(connection, "SELECT 1") == [(1,)]


def test_a_limit_ends_a_statement(connection: duckdb.DuckDBPyConnection) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeLimitError):
        run_apart(connection, SLOW, 0.2)
    assert time.monotonic() - begun < 10
    assert run_apart(connection, "SELECT 1", 10) == [(1,)]


def test_a_limit_of_nothing_ends_every_statement(connection: duckdb.DuckDBPyConnection) -> None:
    for _ in range(20):
        with pytest.raises(TimeLimitError):
            run_apart(connection, SLOW, 0.0)
    assert run_apart(connection, "SELECT 1") == [(1,)]


def test_no_thread_is_left_behind(connection: duckdb.DuckDBPyConnection) -> None:
    before = threading.active_count()
    for _ in range(5):
        run_apart(connection, "SELECT 1")
        with pytest.raises(TimeLimitError):
            run_apart(connection, SLOW, 0.01)
    assert threading.active_count() == before


SCRIPT = """
import sys, threading, time
import pyarrow as pa
from confide.engine.duckdb.engine import DuckDBEngine
from confide.policy import load
from confide.query import bind
from tests.engine.worlds import CHARGE, SECRET

tables = {
    "p": {"columns": {"k": {"type": "id"}}},
    "v": {"references": {"k": "p.k"}, "at_most": {"rows": 5, "groups": 5}, "columns": {"x": {"range": [0, 10**6]}}},
}
policy = load({"confide": 1, "budget": {"epsilon": 1}, "unit": "p.k", "tables": tables})
count = 30_000
engine = DuckDBEngine(policy, {"p": pa.table({"k": [1]}), "v": pa.table({"k": [1] * count, "x": list(range(count))})})
slow = "SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.k = b.k JOIN v AS c ON a.k = c.k WHERE a.x + b.x * c.x > 7"
summary = bind(slow, policy, engine).summary
quick = bind("SELECT COUNT(*) AS n FROM v", policy, engine).summary
engine.evaluate(quick, CHARGE, SECRET)
print("ready", flush=True)
try:
    engine.evaluate(summary, CHARGE, SECRET)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(int(engine.evaluate(quick, CHARGE, SECRET).cells[0][0]), flush=True)
engine.close()
"""


def test_ctrl_c_ends_a_question_and_the_engine_lives_on() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    took = time.monotonic() - begun
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("5\n", "", 0)
    # Around a tenth of a second where the machine is not busy with other things.
    assert took < 15


def test_no_progress_bar_is_written_between_the_lines_of_an_answer() -> None:
    """The database turns its own on where it takes a process for a notebook."""
    script = (
        "from confide.engine.duckdb.engine import DuckDBEngine; from confide.policy import Policy\n"
        "rules = {'budget': {'epsilon': 1}, 'unit': 'row', 'tables': {'t': {'columns': {'x': {'range': [0, 9]}}}}}\n"
        "engine = DuckDBEngine(Policy.parse(rules), {'t': {'x': [1]}})\n"
        "print(engine._database.opened().execute(\"SELECT current_setting('enable_progress_bar')\").fetchone()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_work_that_could_not_begin_is_not_waited_for(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(worker: Worker, work: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "do", full)
        with pytest.raises(MemoryError):
            run_apart(connection, "SELECT 1")
    assert run_apart(connection, "SELECT 1") == [(1,)]

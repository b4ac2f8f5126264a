"""Tables of nobody in one database: each opening finds its own, whatever else happens in the process."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from confide.engine.duckdb.public_tables import PublicTables, Share, _commons, open_shared
from confide.engine.duckdb.source import prepare
from confide.errors import EngineError, SourceError
from confide.policy import Policy
from confide.query import bind
from confide.query.tree import Summary
from tests.conformance.test_engine import FORBIDDEN

POLICY = Policy.parse(
    {"budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": {"x": {"range": [0, 10**6]}}}}}
)


class _NoCatalog:
    def columns(self, table: str) -> dict[str, Any]:
        raise KeyError(table)

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        raise KeyError(table)

    def distinct(self, table: str, columns: tuple[str, ...], most: int) -> None:
        raise KeyError(table)


SUMMARY: Summary = bind("SELECT SUM(x) AS s, COUNT(x) AS n FROM t", POLICY, _NoCatalog()).summary


def opened(*values: object) -> PublicTables:
    return PublicTables(POLICY, POLICY.tables, {"t": pa.table({"x": list(values)})})


def total(tables: PublicTables) -> int:
    return int(tables.evaluate(SUMMARY).cells[0][0])


def catalogues() -> set[str]:
    found = _commons.opened().cursor().execute("SELECT database_name FROM duckdb_databases()").fetchall()
    return {str(name) for (name,) in found if str(name).startswith("share_")}


def test_openings_find_their_own_tables() -> None:
    one, two = opened(1), opened(2, 3)
    assert (total(one), total(two)) == (1, 5)
    one.close()
    three = opened(7)
    assert (total(two), total(three)) == (5, 7)
    with pytest.raises(EngineError):
        total(one)
    two.close()
    three.close()
    three.close()


def test_a_closed_share_is_nowhere_to_be_found() -> None:
    """Not by those either who got hold of it before it was closed: its name is not used again."""
    share, _ = open_shared(POLICY.tables, prepare(POLICY, POLICY.tables, {"t": pa.table({"x": [1]})}))
    early = share.cursor()
    share.close()
    later = opened(5)
    for ask in (share.cursor, lambda: early.execute("SELECT x FROM main.t")):
        with pytest.raises(duckdb.Error, match=r"exist|No catalog"):
            ask()
    early.close()
    later.close()


def test_what_a_statement_has_begun_to_read_it_reads_to_its_end() -> None:
    data = {"t": pa.table({"x": list(range(10_000))})}
    share, _ = open_shared(POLICY.tables, prepare(POLICY, POLICY.tables, data))
    cursor = share.cursor()
    cursor.execute("SELECT x FROM main.t")
    first = cursor.fetchmany(10)
    share.close()
    assert len(first) + len(cursor.fetchall()) == 10_000
    cursor.close()


def test_nothing_is_left_of_what_nobody_holds_or_could_not_be_opened() -> None:
    before = catalogues()
    tables = opened(1)
    assert len(catalogues() - before) == 1
    gone = weakref.ref(tables)
    del tables
    gc.collect()
    assert gone() is None
    for kind in ([[1]], [{"a": 1}]):
        with pytest.raises(SourceError, match="is stored as"):
            opened(*kind)
    gc.collect()
    assert catalogues() <= before


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_it_is_locked(statement: str) -> None:
    share = Share()
    cursor = share.cursor()
    with pytest.raises(duckdb.Error):
        cursor.execute(statement).fetchall()
    cursor.close()
    share.close()


def test_nan_is_no_number() -> None:
    tables = opened(float("nan"), 3.0, None)
    assert [int(cell[0]) for cell in tables.evaluate(SUMMARY).cells] == [3, 1]
    tables.close()


def test_threads_open_read_and_close_at_once() -> None:
    shared, errors = opened(10**6), []

    def work(number: int) -> None:
        try:
            for turn in range(15):
                own = opened(number, turn)
                assert total(own) == number + turn
                assert total(shared) == 10**6
                own.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    shared.close()


def test_a_child_has_a_database_of_its_own() -> None:
    """Of the parent's tables too, made anew from the same frames; and the parent keeps its own."""
    tables = opened(4)
    of_the_parent = catalogues()
    assert of_the_parent

    def work() -> None:
        assert not catalogues()
        assert total(tables) == 4
        assert not catalogues() & of_the_parent
        other = opened(9)
        assert total(other) == 9
        other.close()
        tables.close()

    children = [forked(work) for _ in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert total(tables) == 4
    tables.close()


def test_a_process_ends_without_a_word() -> None:
    script = (
        "import os; from tests.engine.duckdb.test_shared_tables import opened, total\n"
        "tables = opened(4); print(total(tables), flush=True)\n"
        "if os.fork() == 0: print(total(tables), flush=True)\n"
        "else: os.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("4\n4\n", "")


def forked(work: Callable[[], None]) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            signal.alarm(60)  # what hangs is a failure, not a test that never ends
            work()
            code = 0
        except BaseException as error:
            sys.stderr.write(f"in the child: {type(error).__name__}: {error}\n")
        finally:
            os._exit(code)
    return process

"""Running a statement so that Ctrl-C and a time limit end it at once."""

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

import duckdb

from confide.engine.duckdb.workers import dismissed, hired
from confide.engine.result import BATCH, Columns, Rows, TimeLimitError
from confide.host.fork import leave_open

Result = TypeVar("Result")

_PATIENCE = 0.05


class DuckDBConnection(Protocol):
    """What cursors come from; statements that run at the same time have one each."""

    def cursor(self) -> duckdb.DuckDBPyConnection: ...

    def close(self) -> None: ...


def run(connection: duckdb.DuckDBPyConnection, statement: str, limit_seconds: float | None = None) -> Rows:
    """The rows of one statement."""
    return _run(connection, lambda: connection.execute(statement).fetchall(), limit_seconds)


def run_columns(connection: DuckDBConnection, statement: str, limit_seconds: float | None = None) -> Columns:
    """The columns of one statement as arrays, on a cursor of its own: for results too long for rows of Python."""
    cursor = connection.cursor()
    try:
        columns: dict[str, Any] = _run(cursor, lambda: dict(cursor.execute(statement).fetchnumpy()), limit_seconds)
        return columns
    finally:
        cursor.close()


def _run(connection: duckdb.DuckDBPyConnection, fetch: Callable[[], Result], limit_seconds: float | None) -> Result:
    """What a statement fetches.

    The statement runs in a thread, because the database answers to Ctrl-C only between its tasks, which may last for
    minutes; the caller's thread waits, and what interrupts it interrupts the statement.
    """
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            results.append(fetch())
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
        finally:
            done.set()

    context = copy_context()  # in a release no warning is shown, here neither
    worker = hired()
    begun = finished = False
    try:
        worker.do(lambda: context.run(work))
        begun = True
        finished = done.wait(limit_seconds)
    finally:
        if begun:
            if not finished:
                _stop(connection, done)
            dismissed(worker)
        else:
            worker.end()  # what never began never ends
    if not finished:
        raise TimeLimitError
    if errors:
        raise errors[0]
    return results[0]


def run_apart(connection: DuckDBConnection, statement: str, limit_seconds: float | None = None) -> Rows:
    """The same on a cursor of its own, so that threads do not share results."""
    cursor = connection.cursor()
    try:
        return run(cursor, statement, limit_seconds)
    finally:
        cursor.close()


def run_batches(connection: DuckDBConnection, statement: str, limit_seconds: float | None = None) -> Iterator[Rows]:
    """The rows of one statement on a cursor of its own, `BATCH` at a time."""
    cursor = connection.cursor()
    try:
        _run(cursor, lambda: cursor.execute(statement), limit_seconds)
        while rows := _run(cursor, lambda: cursor.fetchmany(BATCH), limit_seconds):
            yield rows
    finally:
        cursor.close()


def _stop(connection: duckdb.DuckDBPyConnection, done: threading.Event) -> None:
    """Interrupt until it has stopped: an interrupt that comes before the statement has begun is forgotten."""
    while not done.is_set():
        try:
            connection.interrupt()
            done.wait(_PATIENCE)
        except KeyboardInterrupt:  # a second one, from a hurried hand: it is stopping already
            continue


def leave_to_parent(connection: DuckDBConnection) -> None:
    """In the child of a fork: the database is the parent's, and closing it would wait for threads that are not."""
    leave_open(connection)
    atexit.register(_end_quietly)


def _end_quietly() -> None:
    """A child that ends as an interpreter does would have the library list, on standard error, what was left open."""
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 2)
    os.close(nowhere)

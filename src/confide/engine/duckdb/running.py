"""Running a statement so that Ctrl-C and a time limit end it at once."""

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import duckdb

from confide.engine.result import BATCH, Columns, Rows, TimeLimitError
from confide.host.apart import TooLong, apart
from confide.host.fork import leave_open

Result = TypeVar("Result")


class DuckDBConnection(Protocol):
    """What cursors come from; statements that run at the same time have one each."""

    def cursor(self) -> duckdb.DuckDBPyConnection: ...

    def close(self) -> None: ...


def run(connection: duckdb.DuckDBPyConnection, statement: str, limit_seconds: float | None = None) -> Rows:
    """The rows of one statement."""
    return _run(connection, lambda: connection.execute(statement).fetchall(), limit_seconds)


def run_apart(connection: DuckDBConnection, statement: str, limit_seconds: float | None = None) -> Rows:
    """The rows of one statement on a cursor of its own, so that threads do not share results."""
    cursor = connection.cursor()
    try:
        return _run(cursor, lambda: cursor.execute(statement).fetchall(), limit_seconds)
    finally:
        cursor.close()


def run_columns(connection: DuckDBConnection, statement: str, limit_seconds: float | None = None) -> Columns:
    """The columns of one statement as arrays, on a cursor of its own: for results too long for rows of Python."""
    cursor = connection.cursor()
    try:
        columns: dict[str, Any] = _run(cursor, lambda: dict(cursor.execute(statement).fetchnumpy()), limit_seconds)
        return columns
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


def _run(connection: duckdb.DuckDBPyConnection, fetch: Callable[[], Result], limit_seconds: float | None) -> Result:
    """What a statement fetches.

    The database answers to Ctrl-C only between its tasks, which may last for minutes. It is interrupted until it has
    stopped: an interrupt that comes before a statement has begun is forgotten.
    """
    try:
        return apart(fetch, connection.interrupt, limit_seconds)
    except TooLong:
        raise TimeLimitError from None


def leave_to_parent(connection: DuckDBConnection) -> None:
    """In the child of a fork: the database is the parent's, and closing it would wait for threads that are not here."""
    leave_open(connection)
    atexit.register(_end_quietly)


def _end_quietly() -> None:
    """A child that ends as an interpreter does would have the library list, on standard error, what was left open."""
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 2)
    os.close(nowhere)

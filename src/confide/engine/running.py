"""Running a statement so that Ctrl-C and a time limit end it at once."""

import threading
from typing import Any

import duckdb

Rows = list[tuple[Any, ...]]

_PATIENCE = 0.05


class TimeLimitError(Exception):
    """The statement took longer than it may."""


def run(connection: duckdb.DuckDBPyConnection, statement: str, limit_seconds: float | None = None) -> Rows:
    """The rows of one statement.

    The statement runs in a thread, because the database answers to Ctrl-C only between its tasks, which may last for
    minutes; the caller's thread waits, and what interrupts it interrupts the statement.
    """
    rows: list[Rows] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            rows.append(connection.execute(statement).fetchall())
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=work, name="confide-statement", daemon=True)
    finished = False
    try:
        worker.start()
        finished = done.wait(limit_seconds)
    finally:
        if not finished:
            _stop(connection, worker, done)
    if not finished:
        raise TimeLimitError
    worker.join()
    if errors:
        raise errors[0]
    return rows[0]


def run_apart(connection: duckdb.DuckDBPyConnection, statement: str, limit_seconds: float | None = None) -> Rows:
    """The same on a cursor of its own, so that threads do not share results."""
    cursor = connection.cursor()
    try:
        return run(cursor, statement, limit_seconds)
    finally:
        cursor.close()


def _stop(connection: duckdb.DuckDBPyConnection, worker: threading.Thread, done: threading.Event) -> None:
    """Interrupt until it has stopped: an interrupt that comes before the statement has begun is forgotten."""
    while worker.is_alive():
        try:
            connection.interrupt()
            done.wait(_PATIENCE)
            worker.join(_PATIENCE)
        except KeyboardInterrupt:  # a second one, from a hurried hand: it is stopping already
            continue

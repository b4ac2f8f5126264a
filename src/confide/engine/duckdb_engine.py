"""DuckDB, embedded: CSV, Parquet and DuckDB files and in-memory frames behind one locked connection."""

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from confide.engine.loading import Loader, public_columns
from confide.engine.row_sql import Storages
from confide.engine.running import Columns, Rows, run_apart, run_batches, run_columns
from confide.engine.source import Attached, File, Source, Stamp, prepare, stamp, version_of
from confide.engine.sql_engine import SqlEngine
from confide.errors import SourceError
from confide.host.fork import abandon_in_children, leave_open
from confide.policy import Column, Policy

_LIMIT_SECONDS = 3600.0
_PATIENCE = 5.0


class DuckDBEngine(SqlEngine):
    """One policy's tables in one in-memory database. Private rows stay in it.

    The database has threads, which a fork does not copy. So the child of a fork never touches it, and makes its own
    from the same sources when it first needs one.
    """

    def __init__(
        self,
        policy: Policy,
        data: Mapping[str, Any] | None = None,
        limit_seconds: float = _LIMIT_SECONDS,
        threads: int | None = None,
        lines: bool = False,
    ) -> None:
        super().__init__()
        self._policy = policy
        self._limit = limit_seconds
        self._threads = threads
        self._lines = lines
        self._lock = threading.Lock()
        self._closed = False
        self._sources = prepare(policy, data)
        self._stamps = self._all_stamps()
        self._version = version_of(policy, self._stamps)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._connection, self._storages = self._load()
        abandon_in_children(self)

    def _load(self) -> tuple[duckdb.DuckDBPyConnection, Storages]:
        connection = duckdb.connect(":memory:")
        loader = Loader(connection, self._policy, self._threads, self._lines)
        try:
            loader.load(self._sources)
        except BaseException:
            connection.close()
            raise
        return connection, loader.storages

    @property
    def version(self) -> str:
        """Names the state the data had when they were opened."""
        return self._version

    def ready(self) -> None:
        self._database()
        super().ready()

    def close(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)

    def abandon(self) -> None:
        """In the child of a fork: the database is the parent's, and closing it would wait for threads that are not."""
        self._lock = threading.Lock()
        connection, self._connection = self._connection, None
        if connection is not None:
            leave_open(connection)
            atexit.register(_end_quietly)

    def _database(self) -> duckdb.DuckDBPyConnection:
        """The database of this process."""
        connection = self._connection
        if connection is not None:
            return connection
        with self._lock:
            if self._closed:
                raise SourceError("the data are closed")
            if self._connection is None:
                connection, _ = self._load()
                # Frames by what they hold too, whatever the policy calls it: a frame may share the memory of another,
                # and what was learnt of the one, such as how many rows a unit has, is believed of the other.
                if self._all_stamps() != self._stamps:
                    connection.close()
                    raise SourceError(
                        "the data have changed since the process that forked opened them: open them again"
                    )
                self._connection = connection
            return self._connection

    def _rows(self, statement: str) -> Rows:
        return run_apart(self._database(), statement, self._limit)

    def _columns(self, statement: str) -> Columns:
        return run_columns(self._database(), statement, self._limit)

    def _batches(self, statement: str) -> Iterator[Rows]:
        return run_batches(self._database(), statement, self._limit)

    def _unchanged(self) -> bool:
        """Of the files that are read anew for every question; text files and frames were copied."""
        return all(stamp(source) == self._stamps[label] for label, source in self._sources.items() if _is_live(source))

    def _all_stamps(self) -> dict[str, Stamp]:
        return {label: stamp(source) for label, source in self._sources.items()}

    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        return public_columns(self._policy, self._storages, table)


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    """Close it between two calls of others, who each need it for a moment only: the library refuses to wait for them.

    Their statements run on cursors of their own, and end as they would have; the next ones find nothing open.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return connection.close()
        except duckdb.Error:
            if time.monotonic() >= deadline:
                return None  # whoever uses it last closes it
        time.sleep(0.0005)


def _is_live(source: Source) -> bool:
    return isinstance(source, Attached) or (isinstance(source, File) and source.kind == "parquet")


def _end_quietly() -> None:
    """A child that ends as an interpreter does would have the library list, on standard error, what was left open."""
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 2)
    os.close(nowhere)

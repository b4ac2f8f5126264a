"""DuckDB, embedded: CSV, Parquet and DuckDB files and frames in one in-memory database, locked once they are loaded."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import duckdb

from confide.engine.duckdb.loader import Loader
from confide.engine.duckdb.running import DuckDBConnection, leave_to_parent, run_apart, run_batches, run_columns
from confide.engine.duckdb.source import Attached, File, Source, Stamp, prepare, stamp, version_of
from confide.engine.result import Columns, Rows
from confide.engine.sql_engine import SqlEngine
from confide.engine.storage import Storages
from confide.errors import SourceError
from confide.host.fork import abandon_in_children, whole_beginning
from confide.policy import Column, Policy, Table

LIMIT_SECONDS = 3600.0
_PATIENCE = 5.0


Opening = Callable[[Mapping[str, Table], Mapping[str, Source]], tuple[DuckDBConnection, Storages]]
"""From tables and their sources, where they are, and how each column is stored."""


def open_alone(
    tables: Mapping[str, Table], sources: Mapping[str, Source], threads: int | None = None, lines: bool = False
) -> tuple[duckdb.DuckDBPyConnection, Storages]:
    """Tables in a new database, where nothing else is."""
    with whole_beginning():
        connection = duckdb.connect(":memory:")
    loader = Loader(connection, tables, threads, lines)
    try:
        loader.load(sources)
    except BaseException:
        connection.close()
        raise
    return connection, loader.storages


class Database:
    """Tables and where each of them comes from. What may be read of them, and by whom, is for whoever holds it to say.

    The database has threads, which a fork does not copy. So the child of a fork never touches it, and makes its own
    from the same sources when it first needs one.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        sources: Mapping[str, Source],
        opening: Opening,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        self._tables = tables
        self._sources = sources
        self._opening = opening
        self._limit = limit_seconds
        self._lock = threading.Lock()
        self._closed = False
        self.stamps = self._all_stamps()
        """What each source was known by when it was opened."""
        self._connection: DuckDBConnection | None = None
        self._connection, self.storages = opening(tables, sources)
        abandon_in_children(self)

    def close(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)

    def abandon(self) -> None:
        self._lock = threading.Lock()
        connection, self._connection = self._connection, None
        if connection is not None:
            leave_to_parent(connection)

    def opened(self) -> DuckDBConnection:
        """The database of this process."""
        connection = self._connection
        if connection is not None:
            return connection
        with self._lock:
            if self._closed:
                raise SourceError("the data are closed")
            if self._connection is None:
                connection, _ = self._opening(self._tables, self._sources)
                # Frames by what they hold too, whatever the policy calls it: a frame may share the memory of another,
                # and what was learnt of the one, such as how many rows a unit has, is believed of the other.
                if self._all_stamps() != self.stamps:
                    connection.close()
                    raise SourceError(
                        "the data have changed since the process that forked opened them: open them again"
                    )
                self._connection = connection
            return self._connection

    def rows(self, statement: str) -> Rows:
        return run_apart(self.opened(), statement, self._limit)

    def columns(self, statement: str) -> Columns:
        return run_columns(self.opened(), statement, self._limit)

    def batches(self, statement: str) -> Iterator[Rows]:
        return run_batches(self.opened(), statement, self._limit)

    def unchanged(self) -> bool:
        """Whether the files that each question reads anew are as they were. Text files and frames were copied."""
        return all(stamp(source) == self.stamps[label] for label, source in self._sources.items() if _is_live(source))

    def _all_stamps(self) -> dict[str, Stamp]:
        return {label: stamp(source) for label, source in self._sources.items()}


def _close(connection: DuckDBConnection) -> None:
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


class DuckDBEngine(SqlEngine):
    """One policy's tables in one in-memory database. Private rows stay in it."""

    def __init__(
        self,
        policy: Policy,
        data: Mapping[str, Any] | None = None,
        limit_seconds: float = LIMIT_SECONDS,
        threads: int | None = None,
        lines: bool = False,
    ) -> None:
        super().__init__()
        self._policy = policy
        sources = prepare(policy, policy.tables, data)
        opening = partial(open_alone, threads=threads, lines=lines)
        self._database = Database(policy.tables, sources, opening, limit_seconds)
        self._storages = self._database.storages
        self.version = version_of(self._database.stamps, policy.version)
        """Names the state the data had when they were opened."""

    def ready(self) -> None:
        self._database.opened()
        super().ready()

    def close(self) -> None:
        self._database.close()

    def _rows(self, statement: str) -> Rows:
        return self._database.rows(statement)

    def _columns(self, statement: str) -> Columns:
        return self._database.columns(statement)

    def _batches(self, statement: str) -> Iterator[Rows]:
        return self._database.batches(statement)

    def _unchanged(self) -> bool:
        return self._database.unchanged()

    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        declared = self._policy.tables[table].columns
        return {column: declared.get(column) for owner, column in self._storages if owner == table}

"""One database of this process for tables that belong to nobody: to open another takes longer than to read a frame.

Each opening has a catalogue of its own in it, whose name is not used again. Statements name no catalogue, so they reach
the tables of their own opening and no others; private rows are never in here.
"""

import threading
from collections.abc import Mapping
from itertools import count

import duckdb

from confide.engine.duckdb.loader import ISNAN, Loader, lock, settle
from confide.engine.duckdb.running import leave_to_parent
from confide.engine.duckdb.source import Source
from confide.engine.storage import Storages
from confide.host.fork import abandon_in_children, close_with
from confide.policy import Table


def open_shared(tables: Mapping[str, Table], sources: Mapping[str, Source]) -> tuple["Share", Storages]:
    """Tables of frames, copied into a share of the database."""
    share = Share()
    loader = Loader(share.cursor(), tables)
    try:
        loader.read(sources)
    except BaseException:
        share.close()
        raise
    finally:
        loader.connection.close()
    return share, loader.storages


class Share:
    """A catalogue of its own. It goes with whoever holds it."""

    def __init__(self) -> None:
        self._name = f"share_{next(_numbers)}"
        self._database = _commons.opened()
        cursor = self._database.cursor()
        cursor.execute(f"ATTACH ':memory:' AS {self._name}")
        self._closing = close_with(self, _detach, cursor, self._name)
        cursor.execute(f"CREATE MACRO {self._name}.{ISNAN}")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection that finds the tables of this share, and nothing once it is closed."""
        cursor = self._database.cursor()
        try:
            cursor.execute(f"USE {self._name}")
        except BaseException:
            cursor.close()
            raise
        return cursor

    def close(self) -> None:
        """What statements have begun to read, they read to its end."""
        self._closing()


def _detach(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    try:
        cursor.execute(f"DETACH {name}")
    finally:
        cursor.close()


class _Commons:
    """The database, opened when it is first needed; a child of a fork has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        abandon_in_children(self)

    def opened(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._connection is None:
                connection = duckdb.connect(":memory:")
                try:
                    settle(connection)
                    lock(connection)
                except BaseException:
                    connection.close()
                    raise
                close_with(self, connection.close)  # at the end of the process that opened it
                self._connection = connection
            return self._connection

    def abandon(self) -> None:
        self._lock = threading.Lock()
        connection, self._connection = self._connection, None
        if connection is not None:
            leave_to_parent(connection)


_commons = _Commons()
_numbers = count(1)

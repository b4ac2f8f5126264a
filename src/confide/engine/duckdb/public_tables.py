"""Tables that belong to nobody: anybody may read them, without a charge and without a secret.

Frames go into one database of this process, because to open another takes longer than to read a frame. Each opening has
a catalogue of its own in it, whose name is not used again. Statements name no catalogue, so they reach the tables of
their own opening and no others; private rows are never in there.
"""

import threading
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, Final, final

import duckdb

from confide.engine.duckdb.engine import Database, open_alone
from confide.engine.duckdb.loader import ISNAN, Loader, lock, settle
from confide.engine.duckdb.running import leave_to_parent
from confide.engine.duckdb.source import Frame, Source, prepare, version_of
from confide.engine.protocol import Exact
from confide.engine.read.summary_reader import Evaluation
from confide.engine.result import unless_failed
from confide.engine.sql.statement import SummaryWriter
from confide.engine.storage import Storages
from confide.host.fork import abandon_in_children, close_with, whole_beginning
from confide.policy import Policy, Table
from confide.query.tree import Summary

_NO_SECRET: Final = b""
"""A secret keys the order in which a unit's rows are taken, and these rows are nobody's."""

_numbers = count(1)


@final
class PublicTables:
    """Tables that are read as a policy describes them, and that hold nothing of the policy's own private data.

    It is no engine, and no engine is one: an `Engine` reads private rows, against a charge of the ledger.
    """

    def __init__(
        self,
        policy: Policy,
        tables: Mapping[str, Table],
        frames: Mapping[str, Any],
        unread: Collection[str] = (),
    ) -> None:
        """`tables` are in `frames`, or where the policy says; those that are `unread` belong to the version alone."""
        beyond = sorted(name for name in tables.keys() - frames.keys() if not policy.tables[name].public)
        if beyond:
            raise ValueError(
                f"{', '.join(beyond)}: what a policy says of a private table is where the private rows are"
            )
        read = {name: table for name, table in tables.items() if name not in unread}
        sources = prepare(policy, tables, frames)
        framed = all(isinstance(sources[name], Frame) for name in read)
        self._database = Database(read, sources, open_shared if framed else open_alone)
        self.version = version_of(self._database.stamps)
        """Names what the tables hold."""
        self.columns = {
            name: frozenset(column for owner, column in self._database.storages if owner == name) for name in read
        }
        """The columns of each table that is read, by name."""

    def evaluate(self, summary: Summary) -> Exact:
        """Exact integers of a summary without a bound; raises nothing but EngineError once rows are read."""
        if summary.bound is not None:
            raise ValueError("rows that belong to nobody are not bounded")
        database = self._database
        writer = SummaryWriter(summary, database.storages, _NO_SECRET)
        evaluation = Evaluation(summary, writer, False, database.rows, database.columns, database.batches)
        return unless_failed(lambda: evaluation.exact(None, {}), database.unchanged)

    def close(self) -> None:
        self._database.close()


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
        """Drop the share. Statements that have begun to read it go on to their end."""
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
                with whole_beginning():
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

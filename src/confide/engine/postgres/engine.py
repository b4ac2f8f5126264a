"""PostgreSQL: every question in one read-only transaction, so that all its parts see one state of the data."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
import psycopg
import psycopg.conninfo
from psycopg import sql
from psycopg.adapt import Loader

from confide.engine.postgres.schema import Described, PostgresRelation, describe, relation
from confide.engine.read.public_facts import most_rows
from confide.engine.result import BATCH, Columns, Rows
from confide.engine.sql.translation import Translator
from confide.engine.sql_engine import SqlEngine
from confide.errors import SourceError
from confide.host.address import HOW_TO_QUOTE, Address, read_address
from confide.host.fork import abandon_in_children, close_with, leave_open, sever
from confide.host.refusals import SILENT, refusal
from confide.host.watchdog import Watchdog, within
from confide.policy import Column, Policy
from confide.privacy.identity import plain_name
from confide.query.tree import Field, Scan, Summary
from confide.query.tree import Relation as QueryRelation

_LIMIT_SECONDS = 3600.0
CONNECT_SECONDS = 10.0  # to find the server, whatever number of addresses it has, and for its first word
_GRACE_SECONDS = 5.0  # more than the server was given for a statement, until the connection is cut
_SETTINGS = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "client_encoding": "UTF8",
    "row_security": "on",
    "transform_null_equals": "off",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "quote_all_identifiers": "off",  # else types are written in another way than when the tables were opened
    "lc_messages": "C",
    "idle_in_transaction_session_timeout": "600000",
    "tcp_user_timeout": "60000",
}
_OPTIONAL = ("lc_messages",)  # only a superuser may set it, and only logs depend on it
_WORK_MEMORY = "256MB"
_BEGIN = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_OWN_FUNCTIONS = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"
"""Functions and operators of others are not looked at: one whose arguments fit better would be taken from any schema
of the search path, wherever that stands on it."""

# The driver's own warnings would go to standard error, which is the analyst's.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_EXAMPLE = "postgresql://user@host:5432/database?schema=..."
_NO_ADDRESS = f"the source is not an address of PostgreSQL; write {_EXAMPLE}"

Result = TypeVar("Result")


class _Numeric(Loader):
    """Sums come as NUMERIC, and all of them are whole; only what public tables hold may be fractions."""

    def load(self, data: Any) -> int | Decimal:
        written = bytes(data)
        return int(written) if written.lstrip(b"-").isdigit() else Decimal(written.decode())


class PostgresEngine(SqlEngine):
    """One policy's tables in a PostgreSQL database. Nothing is written there, not even a temporary table."""

    def __init__(self, policy: Policy, limit_seconds: float = _LIMIT_SECONDS) -> None:
        super().__init__()
        if not isinstance(policy.source, str):
            raise SourceError("the policy names no PostgreSQL source")
        self._policy = policy
        self._limit = limit_seconds
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._watchdog: Watchdog | None = None
        self._closing: finalize[..., Any] | None = None
        self._closed = False
        address = source_address(policy.source)
        self._parameters = address.parameters
        self._schemas = None if address.schema is None else [address.schema]
        abandon_in_children(self)
        try:
            relations = self._open()
        except BaseException:
            self.close()
            raise
        self._translate = Translator("postgres", {label: found.query for label, found in relations.items()})
        self._storages = {
            (label, column): storage for label, found in relations.items() for column, storage in found.storages.items()
        }

    def _open(self) -> dict[str, PostgresRelation]:
        tables = self._policy.tables
        refused = ""
        try:
            with self._transaction():
                self._require_unicode()
                self._described = {label: self._describe(label) for label in tables}
                place = self._connected().info
                where = [place.host, str(place.port), place.dbname]
        except (psycopg.Error, TimeoutError) as error:
            refused = complaint(error)
        else:
            found = (part for label, found in sorted(self._described.items()) for part in (label, found.place))
            stated = self._policy.version
            self._version = plain_name("found", *where, *found) if stated is None else plain_name("stated", stated)
            return {label: relation(found, tables[label]) for label, found in self._described.items()}
        # Outside of the handler, so that the driver's words, which hold the address, do not travel along.
        raise SourceError(refused)

    @property
    def version(self) -> str:
        """The policy's word for the state of the data, else which database and tables they are."""
        return self._version

    @property
    def remarks(self) -> tuple[str, ...]:
        writable = [label for label, described in self._described.items() if described.writable]
        views = [label for label, described in self._described.items() if described.kind in ("view", "foreign table")]
        found = ["this user can only read them"]
        if writable:
            found = [f"this user could change {', '.join(writable)}; reading needs no more than GRANT SELECT"]
        if views:
            found.append(f"{', '.join(views)}: what a view or a foreign table calls is not seen, and must be trusted")
        return tuple(found)

    def close(self) -> None:
        self._closed = True
        self._disconnect()

    def abandon(self) -> None:
        """In the child of a fork: the connection is the parent's; one of its own is made when it is needed."""
        self._lock = threading.RLock()
        connection, watchdog = self._connection, self._watchdog
        self._connection = self._watchdog = self._closing = None
        if connection is not None and watchdog is not None and not connection.closed:
            leave_open(connection)
            sever(connection.fileno())
            sever(watchdog.descriptor)

    def _disconnect(self) -> None:
        closing = self._closing
        self._connection = self._watchdog = self._closing = None
        if closing is not None:
            closing()

    def ready(self) -> None:
        """A server that is gone, or says nothing, is charged for nothing; a connection that died is made anew."""
        refused = ""
        try:
            with self._transaction():
                return
        except (psycopg.Error, TimeoutError) as error:
            refused = complaint(error)
        raise SourceError(f"{refused}. Nothing was charged")

    # --- statements ---------------------------------------------------------------------------------------------------

    def _reading(self, read: Callable[[], Result]) -> Result:
        def in_one_state() -> Result:
            with self._transaction():
                self._check_columns()
                found = read()
                self._check_public_rows()
                return found

        return super()._reading(in_one_state)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One state of the data. A connection that was lost is made anew once, before anything is read."""
        with self._lock:
            connection = self._begun(time.monotonic() + CONNECT_SECONDS)
            try:
                yield
                if connection is not self._connection:
                    raise psycopg.OperationalError("the connection was lost, or belongs to another process")
            finally:
                if connection is self._connection:
                    if connection.closed or connection.broken:
                        self._disconnect()
                    else:
                        with self._watched(time.monotonic() + CONNECT_SECONDS):
                            connection.execute("ROLLBACK")

    def _begun(self, deadline: float) -> psycopg.Connection[Any]:
        """A connection in a transaction, by the deadline."""
        known = self._connection is not None
        connection = self._connected(deadline)
        try:
            with self._watched(deadline):
                connection.execute(_BEGIN)
        except psycopg.OperationalError:
            self._disconnect()
            if not known or time.monotonic() >= deadline:
                raise
            connection = self._connected(deadline)
            with self._watched(deadline):
                connection.execute(_BEGIN)
        return connection

    def _watched(self, deadline: float | None = None) -> AbstractContextManager[None]:
        """Inside, the connection is cut at a moment of the monotonic clock, if its server has not answered."""
        assert self._watchdog is not None
        return self._watchdog.until(deadline or time.monotonic() + self._limit + _GRACE_SECONDS)

    def _connected(self, deadline: float | None = None) -> psycopg.Connection[Any]:
        if self._closed:
            raise SourceError("the data are closed")
        if self._connection is None or self._connection.closed:
            self._disconnect()
            left = CONNECT_SECONDS if deadline is None else deadline - time.monotonic()
            # In all: the driver counts for each address of a name anew, and looks a name up without end.
            connection = within(left, self._connect, psycopg.Connection.close)
            watchdog = Watchdog(connection.fileno())
            self._connection, self._watchdog = connection, watchdog
            self._closing = close_with(self, _close_both, watchdog, connection)
            with self._watched(time.monotonic() + CONNECT_SECONDS):
                self._set_up(connection)
        return self._connection

    def _connect(self) -> psycopg.Connection[Any]:
        settings = {"connect_timeout": str(round(CONNECT_SECONDS)), "application_name": "confide"}
        return psycopg.connect(autocommit=True, **{**self._parameters, **settings})  # type: ignore[arg-type]

    def _set_up(self, connection: psycopg.Connection[Any]) -> None:
        limits = {"statement_timeout": f"{max(1, round(1000 * self._limit))}", "work_mem": _WORK_MEMORY}
        for setting, value in (_SETTINGS | limits).items():
            try:
                connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", (setting, value))
            except psycopg.Error:
                if setting not in _OPTIONAL:
                    raise
        if self._schemas is None:  # where its tables are looked for, once and for all
            self._schemas = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchall()[0][0]
        connection.execute(_OWN_FUNCTIONS)
        connection.adapters.register_loader("numeric", _Numeric)

    def _ask(self, statement: str, parameters: tuple[Any, ...] = ()) -> Rows:
        connection = self._connected()
        with self._watched():
            return list(connection.execute(sql.SQL(statement), parameters or None).fetchall())

    def _rows(self, statement: str) -> Rows:
        translated = self._translate(statement)
        with self._lock:
            if self._connected().info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                with self._transaction():  # a public fact, asked for outside of a question
                    return self._ask(translated)
            return self._ask(translated)

    def _columns(self, statement: str) -> Columns:
        parts = list(self._column_batches(statement))
        return {label: _joined([part[label] for part in parts]) for label in parts[0]}

    def _column_batches(self, statement: str) -> Iterator[Columns]:
        translated = self._translate(statement)
        labels: list[str] = []
        with self._lock, self._connected().cursor() as cursor:
            for rows in self._streamed(cursor, translated):
                labels = labels or [column.name for column in cursor.description or ()]
                yield {label: _array([row[place] for row in rows]) for place, label in enumerate(labels)}
            if not labels:  # no rows do not say what their columns are called
                cursor.execute(sql.SQL(f"SELECT * FROM ({translated}) AS nothing LIMIT 0"))
                yield {column.name: _array([]) for column in cursor.description or ()}

    def _batches(self, statement: str) -> Iterator[Rows]:
        with self._lock, self._connected().cursor() as cursor:
            yield from self._streamed(cursor, self._translate(statement))

    def _streamed(self, cursor: psycopg.Cursor[Any], translated: str) -> Iterator[Rows]:
        """`BATCH` rows at a time: the driver holds no more of them either."""
        # One by one with an older libpq: slower, and no larger.
        size = BATCH if psycopg.capabilities.has_stream_chunked() else 1
        rows = cursor.stream(sql.SQL(translated), size=size)
        try:
            while batch := self._next(rows):
                yield batch
        finally:
            rows.close()  # type: ignore[attr-defined]  # what was not read is cancelled

    def _next(self, rows: Iterator[Any]) -> Rows:
        with self._watched():
            return list(islice(rows, BATCH))

    def _unchanged(self) -> bool:
        return True  # a transaction sees one state, and what was checked of it was checked in it

    # --- what the data may have become since they were opened ---------------------------------------------------------

    def _require_unicode(self) -> None:
        """In other encodings a text may hold what has no letter, and every statement that meets it would fail."""
        encoding = self._ask("SHOW server_encoding")[0][0]
        if encoding != "UTF8":
            raise SourceError(f"the database is encoded in {encoding}; Confide reads databases in UTF8")

    def _describe(self, label: str) -> Described:
        assert self._schemas is not None
        return describe(self._ask, self._policy.tables[label], self._schemas)

    def _check_columns(self) -> None:
        """A column that was dropped, or has another type now, or may repeat its values now, ends the question."""
        for label, before in self._described.items():
            now = self._describe(label)
            named = self._policy.tables[label].columns
            other = any(now.columns.get(column) != before.columns.get(column) for column in named)
            if now.place != before.place or other or not before.unique <= now.unique:
                raise SourceError(f"{label} has changed since it was opened")

    def _check_public_rows(self) -> None:
        """How often keys of public tables repeat went into sensitivities: it must not have grown."""
        for (table, columns), before in list(self._multiplicities.items()):
            if most_rows(self._rows, self._storages, table, columns) > before:
                raise SourceError(f"{table} has changed since it was opened")

    def _bounded_anyway(self, summary: Summary) -> bool:
        """Only what a constraint of the database promises: rows may come between two questions."""
        return summary.bound is None or self._most_rows(summary.relation, summary.bound.unit, 1) <= 1

    def _most_rows(self, relation: QueryRelation, unit: Field, enough: int) -> int:
        known = isinstance(relation, Scan) and relation.source == unit.source
        if known and isinstance(relation, Scan) and unit.name in self._described[relation.table].unique:
            return 1
        return enough + 1

    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        declared = self._policy.tables[table].columns
        return {column: declared.get(column) for owner, column in self._storages if owner == table}


def source_address(source: str) -> Address:
    """The address in a policy. Without a schema, its tables are those that the server finds by their names."""
    address = read_address(source, psycopg)
    if address is None:
        raise SourceError(f"{_NO_ADDRESS}, {HOW_TO_QUOTE}")
    if not address.database:
        raise SourceError(f"the source {address.shown} names no database; write {_EXAMPLE}")
    if address.schema == "":
        raise SourceError(f"the source {address.shown} names an empty schema; write {_EXAMPLE}, or leave it out")
    if address.anchor is not None:
        raise SourceError(f"the source {address.shown} names an anchor, which only a ledger has; leave it out")
    return address


def _array(values: list[Any]) -> Any:
    """As DuckDB gives columns: masked where they are NULL."""
    mask = [value is None for value in values]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values if value is not None):
        filled = [0 if value is None else value for value in values]
        wide = any(not -(2**63) <= value < 2**63 for value in filled)
        return np.ma.masked_array(np.array(filled, dtype=object if wide else np.int64), mask)
    return np.ma.masked_array(np.array(values, dtype=object), mask)


def _joined(parts: list[Any]) -> Any:
    data, masks = [np.ma.getdata(part) for part in parts], [np.ma.getmaskarray(part) for part in parts]
    return np.ma.masked_array(np.concatenate(data), np.concatenate(masks))


def _close_both(watchdog: Watchdog, connection: psycopg.Connection[Any]) -> None:
    watchdog.close()
    connection.close()


def complaint(error: Exception) -> str:
    """Why a database cannot be used, without its own words: they may hold the address with its password."""
    if not isinstance(error, psycopg.Error):
        return f"the PostgreSQL server {SILENT.words}"
    match error:
        case psycopg.errors.InvalidPassword() | psycopg.errors.InvalidAuthorizationSpecification():
            return "the PostgreSQL server refused the user or the password"
        case psycopg.errors.InvalidCatalogName():
            return "the PostgreSQL server has no such database"
        case psycopg.errors.InsufficientPrivilege():
            return "the PostgreSQL server does not let this user read what is needed"
        case psycopg.errors.QueryCanceled():
            return "the PostgreSQL server did not say in time what its tables are; ask again later"
        case psycopg.errors.LockNotAvailable() | psycopg.errors.DeadlockDetected():
            return "the tables on the PostgreSQL server are locked by another program; ask again later"
    if error.sqlstate is not None and not error.sqlstate.startswith(("08", "57P")):
        return f"the PostgreSQL server fails (SQLSTATE {error.sqlstate})"
    text = str(error)
    if isinstance(error, psycopg.ProgrammingError) or re.search(r"invalid (\w+ )*(option|value|port|integer)", text):
        return _NO_ADDRESS
    return f"the PostgreSQL server {refusal(text).words}"

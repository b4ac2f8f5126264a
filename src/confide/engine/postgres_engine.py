"""PostgreSQL: every question in one read-only transaction, so that all its parts see one state of the data."""

import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import psycopg
from psycopg import sql
from psycopg.adapt import Loader

from confide.engine.postgres_schema import Described, Relation, describe, relation
from confide.engine.running import BATCH, Columns, Rows
from confide.engine.sql_engine import SqlEngine
from confide.engine.translation import Translator
from confide.errors import SourceError
from confide.policy import Column, Policy
from confide.privacy.charge import Charge
from confide.privacy.naming import plain_name
from confide.query.tree import Field, Scan, Summary
from confide.query.tree import Relation as QueryRelation

_LIMIT_SECONDS = 3600.0
_CONNECT_SECONDS = 10
_SETTINGS = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_messages": "C",
    "idle_in_transaction_session_timeout": "600000",
    "tcp_user_timeout": "60000",
}
_OPTIONAL = ("lc_messages",)  # only a superuser may set it, and only logs depend on it
_WORK_MEMORY = "256MB"

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
        self._closed = False
        self._address, self._schema = _address(policy.source)
        try:
            relations = self._open()
        except BaseException:
            self.close()
            raise
        self._translate = Translator("postgres", {label: found.query for label, found in relations.items()})
        self._storages = {
            (label, column): storage for label, found in relations.items() for column, storage in found.storages.items()
        }

    def _open(self) -> dict[str, Relation]:
        tables = self._policy.tables
        try:
            with self._transaction():
                self._described = {label: self._describe(label) for label in tables}
                place = self._connected().info
                where = [place.host, str(place.port), place.dbname]
        except psycopg.Error as error:
            complaint = _complaint(error)
        else:
            found = (part for label, found in sorted(self._described.items()) for part in (label, found.place))
            stated = self._policy.version
            self._version = plain_name("found", *where, *found) if stated is None else plain_name("stated", stated)
            return {label: relation(found, tables[label]) for label, found in self._described.items()}
        # Outside of the handler, so that the driver's words, which hold the address, do not travel along.
        raise SourceError(complaint)

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

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def ready(self) -> None:
        """A connection that died while it was idle is made anew, or nothing is charged."""
        if not self._lock.acquire(blocking=False):
            return  # in use, and so there
        complaint = ""
        try:
            if self._connection is not None and not self._connection.closed and _has_ended(self._connection):
                self._disconnect()
            self._connected()
        except psycopg.Error as error:
            complaint = _complaint(error)
        finally:
            self._lock.release()
        if complaint:
            raise SourceError(f"{complaint}. Nothing was charged")

    # --- statements ---------------------------------------------------------------------------------------------------

    def _against(self, charge: Charge, read: Callable[[], Result]) -> Result:
        def in_one_state() -> Result:
            with self._transaction():
                self._check_columns()
                found = read()
                self._check_public_rows()
                return found

        return super()._against(charge, in_one_state)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One state of the data. A connection that was lost is made anew once, before anything is read."""
        with self._lock:
            connection = self._connected()
            try:
                connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            except psycopg.OperationalError:
                self._disconnect()
                connection = self._connected()
                connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield
            finally:
                if connection.closed or connection.broken:
                    self._disconnect()
                else:
                    connection.execute("ROLLBACK")

    def _connected(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise SourceError("the data are closed")
        if self._connection is None or self._connection.closed:
            settings = {"connect_timeout": _CONNECT_SECONDS, "application_name": "confide"}
            connection = psycopg.connect(self._address, autocommit=True, **settings)  # type: ignore[arg-type]
            limits = {"statement_timeout": f"{max(1, round(1000 * self._limit))}", "work_mem": _WORK_MEMORY}
            for setting, value in (_SETTINGS | limits).items():
                try:
                    connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
                except psycopg.Error:
                    if setting not in _OPTIONAL:
                        raise
            connection.adapters.register_loader("numeric", _Numeric)
            self._connection = connection
        return self._connection

    def _ask(self, statement: str, parameters: tuple[Any, ...] = ()) -> Rows:
        return list(self._connected().execute(sql.SQL(statement), parameters or None).fetchall())

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
            for rows in _streamed(cursor, translated):
                labels = labels or [column.name for column in cursor.description or ()]
                yield {label: _array([row[place] for row in rows]) for place, label in enumerate(labels)}
            if not labels:  # no rows do not say what their columns are called
                cursor.execute(sql.SQL(f"SELECT * FROM ({translated}) AS nothing LIMIT 0"))
                yield {column.name: _array([]) for column in cursor.description or ()}

    def _batches(self, statement: str) -> Iterator[Rows]:
        with self._lock, self._connected().cursor() as cursor:
            yield from _streamed(cursor, self._translate(statement))

    def _unchanged(self) -> bool:
        return True  # a transaction sees one state, and what was checked of it was checked in it

    # --- what the data may have become since they were opened ---------------------------------------------------------

    def _describe(self, label: str) -> Described:
        return describe(self._ask, self._policy.tables[label], self._schema)

    def _check_columns(self) -> None:
        """A column that was dropped, or has another type now, ends the question."""
        for label, before in self._described.items():
            now = self._describe(label)
            named = self._policy.tables[label].columns
            if now.place != before.place or any(now.columns.get(c) != before.columns.get(c) for c in named):
                raise SourceError(f"{label} has changed since it was opened")

    def _check_public_rows(self) -> None:
        """How often keys of public tables repeat went into sensitivities: it must not have grown."""
        for (table, columns), before in list(self._multiplicities.items()):
            del self._multiplicities[table, columns]
            if self._most(table, columns) > before:
                raise SourceError(f"{table} has changed since it was opened")
            self._multiplicities[table, columns] = before

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


def _has_ended(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server said something while nothing was asked: that it goes, or an end without a word."""
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)
    return bool(look.poll(0))


def _address(source: str) -> tuple[str, str | None]:
    """The address for the driver, and the schema if it names one (?schema=...)."""
    head, _, query = source.partition("?")
    parts = [part for part in query.split("&") if part]
    schema = next((part.split("=", 1)[1] for part in parts if part.startswith("schema=")), None)
    rest = "&".join(part for part in parts if not part.startswith("schema="))
    return head + (f"?{rest}" if rest else ""), schema


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


def _streamed(cursor: psycopg.Cursor[Any], translated: str) -> Iterator[Rows]:
    """`BATCH` rows at a time: the driver holds no more of them either."""
    # One by one with an older libpq: slower, and no larger.
    size = BATCH if psycopg.capabilities.has_stream_chunked() else 1
    rows = cursor.stream(sql.SQL(translated), size=size)
    try:
        while batch := list(islice(rows, BATCH)):
            yield batch
    finally:
        rows.close()  # type: ignore[attr-defined]  # what was not read is cancelled


def _complaint(error: psycopg.Error) -> str:
    """Why a database cannot be opened, without its own words: they may hold the address with its password."""
    match error:
        case psycopg.errors.InvalidPassword() | psycopg.errors.InvalidAuthorizationSpecification():
            return "the PostgreSQL server refused the user or the password"
        case psycopg.errors.InvalidCatalogName():
            return "the PostgreSQL server has no such database"
        case psycopg.errors.InsufficientPrivilege():
            return "the PostgreSQL server does not let this user read what is needed"
    text = str(error).lower()
    if error.sqlstate is None and (isinstance(error, psycopg.ProgrammingError) or "invalid" in text):
        return "the source is not an address of PostgreSQL; write postgresql://user@host:5432/database?schema=..."
    for sign, words in (
        ("password authentication failed", "the PostgreSQL server refused the user or the password"),
        ("no password supplied", "the PostgreSQL server wants a password; put it in PGPASSWORD or ~/.pgpass"),
        ("does not exist", "the PostgreSQL server has no such database or user"),
        ("permission denied", "the PostgreSQL server does not let this user connect"),
    ):
        if sign in text:
            return words
    return "the PostgreSQL server cannot be reached; check host, port and that it runs"

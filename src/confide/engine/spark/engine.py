"""Spark: a cluster, or this machine, reads the rows; what comes here are summaries.

A table is a temporary view of a session of our own, over Parquet files or a table of the catalogue. Its files are
listed anew by every question that reads it, once, so that all parts of a question see the same files.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.engine.protocol import Exact, Inquiry, Keep, Statements, Windows
from confide.engine.read.multipass import passes
from confide.engine.read.public_facts import most_rows
from confide.engine.result import Columns, Rows
from confide.engine.spark.parts import Files, Part, TooManyKindsError
from confide.engine.spark.schema import SparkTable, relation
from confide.engine.spark.spark_session import NoExecutorsError, OwnSession, new_tag
from confide.engine.spark.types import type_name
from confide.engine.sql.syntax import name
from confide.engine.sql.translation import Translator
from confide.engine.sql_engine import SqlEngine
from confide.engine.storage import Storage
from confide.errors import SourceError
from confide.host.fork import abandon_in_children, leave_open
from confide.policy import Column, Policy
from confide.privacy.charge import Charge
from confide.privacy.identity import plain_name
from confide.query.tree import Field, Summary
from confide.query.tree import Relation as QueryRelation

_LIMIT_SECONDS = 3600.0
_BATCH = 1 << 16
_TRIES = 3
_WRONG_FILES: Final = {
    "PATH_NOT_FOUND": "is not there, as Spark sees it; write a full path, or one that starts beside the policy",
    "UNABLE_TO_INFER_SCHEMA": "holds no Parquet files",
}

Result = TypeVar("Result")


class SparkEngine(SqlEngine):
    """One policy's tables on Spark, each at its place. Nothing is written there."""

    _reads_once = True

    def __init__(
        self, policy: Policy, places: Mapping[str, SparkTable], spark: Any, limit_seconds: float = _LIMIT_SECONDS
    ) -> None:
        super().__init__()
        self._policy = policy
        self._places = places
        self._files = {
            label: Files(place.where, None if policy.tables[label].public else policy.tables[label].columns)
            for label, place in places.items()
            if place.files
        }
        self._lock = threading.RLock()
        self._closed = False
        self._listed: set[str] | None = None
        self._stamps: dict[str, list[Any]] | None = None
        self._session = _opened(spark, limit_seconds)
        abandon_in_children(self)
        try:
            self._parts = {label: self._find(label) for label in policy.tables}
            self._relations = {label: relation(table, self._parts[label]) for label, table in policy.tables.items()}
        except BaseException:
            self.close()
            raise
        self._storages: dict[tuple[str, str], Storage] = {}
        self._use_relations()
        found = (part for label, place in sorted(places.items()) for part in (label, place.where))
        stated = policy.version
        self._version = plain_name("found", *found) if stated is None else plain_name("stated", stated)

    @property
    def version(self) -> str:
        """The policy's word for the state of the data, else where they are."""
        return self._version

    @property
    def remarks(self) -> tuple[str, ...]:
        found = ", ".join(f"{label} ({len(parts[0][1])} columns)" for label, parts in self._parts.items())
        return (
            f"Spark {self._session.spark.version} reads {found}",
            "Confide only reads; Spark does not tell what this user could write, so give it no more rights than that",
        )

    def ready(self) -> None:
        """Spark in this process may have been stopped, and a server may be gone."""
        self._session.require_process()
        if self._closed or self._session.gone():
            raise SourceError(
                "Spark has stopped, or cannot be reached any more; nothing was charged. Open the data again"
            )

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._session.close()

    def abandon(self) -> None:
        """In the child of a fork: nobody here holds the lock, and the session is the parent's."""
        self._lock = threading.RLock()
        leave_open(self._session)

    # --- tables -------------------------------------------------------------------------------------------------------

    def _find(self, label: str) -> list[tuple[str, Mapping[str, str]]]:
        """Make views of a table as it is now, one for each way in which its files store it; the types of each."""
        place, spark = self._places[label], self._session.spark
        table = list(self._policy.tables).index(label)

        def find() -> list[tuple[str, Mapping[str, str]]]:
            if place.files:
                parts = self._files[label].read(spark)
            else:
                frame = spark.table(place.where)
                parts = [Part(frame, {field.name: type_name(field) for field in frame.schema.fields})]
            views = [f"confide_{table}" + (f"_{number}" if number else "") for number in range(len(parts))]
            for view, part in zip(views, parts, strict=True):
                part.frame.createOrReplaceTempView(view)
            return [(view, part.types) for view, part in zip(views, parts, strict=True)]

        try:
            return self._session.run(find)
        except TooManyKindsError as error:
            what = str(error)
        except Exception as error:  # Spark's own words are pages, and may hold credentials of a store
            what = _wrong(error, place)
        raise SourceError(f"{label}: {place.where} {what}")

    def _use_relations(self) -> None:
        self._translate = Translator("spark", {label: found.query for label, found in self._relations.items()})
        for label, found in self._relations.items():
            self._storages.update({(label, column): storage for column, storage in found.storages.items()})

    def _reading(self, read: Callable[[], Result]) -> Result:
        def on_one_listing() -> Result:
            with self._lock:
                for _ in range(_TRIES):
                    self._listed = set()
                    try:
                        found = read()
                        self._check_public_rows(self._listed)
                        return found
                    except _StoredOtherwiseError:
                        continue
                    finally:
                        self._listed = None
            raise SourceError("the data changed while they were read")

        return super()._reading(on_one_listing)

    def inquire(self, inquiry: Inquiry[Result], charge: Charge) -> Result:
        """What an inquiry finds. It reads rows several times, so files that change meanwhile end it."""

        return super().inquire(_Steady(self, inquiry), charge)

    @property
    def steady(self) -> bool:
        """Files are steady, or end the question; of a table of a catalogue nothing tells."""
        return all(place.files for place in self._places.values())

    def _exact(self, summary: Summary, secret: bytes, keep: Keep | None, windows: Windows) -> Exact:
        """In passes only over files, which are steady or end the question; else every tally is one reading."""
        several = {place: own for place, own in windows.items() if len(passes(summary.tallies[place], 1)) > 1}
        if not several or not self.steady:
            return super()._exact(summary, secret, keep, {})
        return self.read_steadily(lambda: super(SparkEngine, self)._exact(summary, secret, keep, several))

    def read_steadily(self, read: Callable[[], Result]) -> Result:
        """What is found by several readings that must see the same files."""
        stamps: dict[str, list[Any]] = {}
        self._stamps = stamps
        try:
            found = read()
            if any(self._stamp(label) != before for label, before in stamps.items()):
                raise SourceError("the data changed while they were read")
            return found
        finally:
            self._stamps = None

    def _stamp(self, label: str) -> list[Any]:
        """Which files a table is, how long they are, and when they were written."""
        place, spark = self._places[label], self._session.spark
        where = place.where if place.files else spark.table(self._parts[label][0][0]).inputFiles()
        if not where:
            raise SourceError(
                f"{label} is not stored in files, so nothing tells whether two readings see the same rows"
            )
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(where)
        listed = self._session.run(lambda: files.select("path", "length", "modificationTime").toArrow())
        return sorted(listed.to_pylist(), key=lambda file: str(file["path"]))

    def _list_files(self, statement: str) -> None:
        """List the files of what a statement reads, if its question has not; public facts are of the first listing.

        A column that was dropped, or has a type now that does not fit, ends the question; so does any other type in a
        public table. A private table may have come to store what it means otherwise. Then the question begins again:
        nothing was read for it yet, since its first statement names all of its tables.
        """
        otherwise = False
        for label in self._policy.tables:
            if self._listed is None or label in self._listed or f"main.{name(label)} " not in statement:
                continue
            otherwise |= self._list_table(label)
            self._listed.add(label)
            if self._stamps is not None:
                self._stamps[label] = self._stamp(label)
        if otherwise:
            raise _StoredOtherwiseError

    def _list_table(self, label: str) -> bool:
        """List the files of a table; whether its columns are stored otherwise now, so that statements differ."""
        table, before, now = self._policy.tables[label], self._parts[label], self._find(label)
        declared = [
            [(view, [types.get(column) for column in table.columns]) for view, types in own] for own in (before, now)
        ]
        if declared[0] == declared[1]:
            return False
        if table.public:
            raise SourceError(f"{label} has changed since it was opened")
        found, known = relation(table, now), self._relations[label]
        self._parts[label], self._relations[label] = now, found
        self._use_relations()
        return found.storages != known.storages

    def _check_public_rows(self, tables: set[str]) -> None:
        """How often keys of public tables repeat went into sensitivities: it must not have grown."""
        for (table, columns), before in list(self._multiplicities.items()):
            if table in tables and most_rows(self._rows, self._storages, table, columns) > before:
                raise SourceError(f"{table} has changed since it was opened")

    # --- statements ---------------------------------------------------------------------------------------------------

    def _rows(self, statement: str) -> Rows:
        columns = [_values(column) for column in self._fetch(statement).columns]
        return list(zip(*columns, strict=True))

    def _columns(self, statement: str) -> Columns:
        found = self._fetch(statement)
        return {label: _array(column) for label, column in zip(found.column_names, found.columns, strict=True)}

    def _batches(self, statement: str) -> Iterator[Rows]:
        """One partition of the result at a time is here."""
        tag = new_tag()
        with self._lock:
            rows = self._session.run(lambda: iter(self._frame(statement).toLocalIterator()), tag)
            while batch := self._session.run(lambda: list(islice(rows, _BATCH)), tag):
                yield [tuple(map(_plain, row)) for row in batch]

    def _fetch(self, statement: str) -> pa.Table:
        with self._lock:
            return self._session.run(lambda: self._frame(statement).toArrow())

    def _frame(self, statement: str) -> Any:
        if self._closed:
            raise SourceError("the data are closed")
        self._list_files(statement)
        return self._session.spark.sql(self._translate(statement))

    def _unchanged(self) -> bool:
        return True  # the files of a question were listed once; one that is gone since has failed it

    def _bounded_anyway(self, summary: Summary) -> bool:
        """Nothing promises that a key is unique, and rows may come between two questions."""
        return summary.bound is None

    def _most_rows(self, relation: QueryRelation, unit: Field, enough: int) -> int:
        return enough + 1

    def _public_descriptions(self, table: str) -> Mapping[str, Column | None]:
        declared = self._policy.tables[table].columns
        return {column: declared.get(column) for owner, column in self._storages if owner == table}


class _StoredOtherwiseError(Exception):
    """Statements must be written anew, since columns are stored otherwise than when they were."""


class _Steady(Generic[Result]):
    """An inquiry whose readings must all see the same files."""

    def __init__(self, engine: SparkEngine, inquiry: Inquiry[Result]) -> None:
        self._engine = engine
        self._inquiry = inquiry

    def read(self, statements: Statements) -> Result:
        return self._engine.read_steadily(lambda: self._inquiry.read(statements))


def _opened(spark: Any, limit_seconds: float) -> OwnSession:
    try:
        return OwnSession(spark, limit_seconds)
    except SourceError:
        raise
    except Exception:  # pages of Java
        complaint = "Spark gives no session; it may have been stopped"
    raise SourceError(complaint)


def _wrong(error: Exception, place: SparkTable) -> str:
    """What is wrong with a table, by the kind of an error alone."""
    if isinstance(error, NoExecutorsError):
        return "cannot be read: Spark has no executors; check that it has workers, and that they have free cores"
    condition = str(error.getCondition()) if hasattr(error, "getCondition") else ""
    if not place.files:
        return "is no table of Spark's catalogue; files are named for each table: {TABLE: spark:PATH}"
    return _WRONG_FILES.get(condition, "cannot be read as Parquet files; check them, and that Spark may read them")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Sums come as decimals without a fraction, and are whole numbers here."""
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        return [_plain(value) for value in column.to_pylist()]
    return list(column.to_pylist())


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value


def _array(column: pa.ChunkedArray) -> Any:
    """As DuckDB gives columns: masked where they are NULL."""
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_decimal(whole.type) and whole.type.scale == 0:
        with suppress(pa.ArrowInvalid):  # beyond 64 bits
            whole = whole.cast(pa.int64())
    mask = pc.is_null(whole).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(whole.type):
        return np.ma.masked_array(pc.fill_null(whole, 0).to_numpy(zero_copy_only=False), mask)
    return np.ma.masked_array(np.array([_plain(value) for value in whole.to_pylist()], dtype=object), mask)

"""DuckDB, embedded: CSV, Parquet and DuckDB files and in-memory frames behind one locked, read-only connection."""

import threading
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod
from typing import Any

import duckdb
import numpy as np

from confide.engine.protocol import Exact, KeyValue
from confide.engine.schema import check_column
from confide.engine.source import Attached, File, Frame, Source, prepare
from confide.engine.sql import Kind, Writer
from confide.errors import EngineError, SourceError
from confide.policy import Category, Column, Date, Number, Policy, Table, Text
from confide.privacy.charge import Charge
from confide.query.grouping import key_size
from confide.query.tree import BinnedKey, DeclaredKey, Key, Summary

_MOST_PUBLIC_VALUES = 10_000
_LIMIT_SECONDS = 3600.0


class DuckDBEngine:
    """One policy's tables in one in-memory database. Private rows stay in it."""

    def __init__(
        self, policy: Policy, data: Mapping[str, Any] | None = None, limit_seconds: float = _LIMIT_SECONDS
    ) -> None:
        self._policy = policy
        self._limit = limit_seconds
        sources, self.version = prepare(policy, data)
        self._connection = duckdb.connect(":memory:")
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._public: dict[str, Mapping[str, Column]] = {}
        self._multiplicities: dict[tuple[str, tuple[str, ...]], int] = {}
        try:
            self._load(sources)
        except BaseException:
            self._connection.close()
            raise

    # --- opening ---------------------------------------------------------------------------------------------------------

    def _load(self, sources: Mapping[str, Source]) -> None:
        paths = sorted({path for source in sources.values() if isinstance(source, File) for path in source.paths})
        self._run("SET python_enable_replacements = false")
        self._run("SET autoinstall_known_extensions = false")
        self._run("SET autoload_known_extensions = false")
        self._run("SET temp_directory = ''")  # nothing private is ever spilled to a disk
        self._run(f"SET allowed_paths = [{', '.join(_text(path) for path in paths)}]")
        for attached in sorted({source.path for source in sources.values() if isinstance(source, Attached)}):
            self._try(
                f"ATTACH {_text(attached)} AS source (READ_ONLY)", f"{attached} is not a DuckDB file that can be read"
            )
        for name, table in self._policy.tables.items():
            self._table(table, sources[name])
        self._run("SET enable_external_access = false")
        self._run("SET lock_configuration = true")

    def _table(self, table: Table, source: Source) -> None:
        """A view (or, from CSV, a typed table) of the columns that the policy names."""
        match source:
            case Frame(frame, _):
                name = f"frame_{table.name}"
                try:
                    self._connection.register(name, frame)
                except (duckdb.Error, TypeError, ValueError):
                    message = f"the data for {table.name} is not a frame that can be read; give Arrow, pandas or polars"
                    raise SourceError(message) from None
                origin = _name(name)
            case File(kind="parquet", paths=paths):
                origin = f"read_parquet([{', '.join(_text(path) for path in paths)}])"
            case File(kind="csv", paths=paths):
                origin = f"read_csv([{', '.join(_text(path) for path in paths)}], all_varchar = true, header = true)"
            case Attached():
                origin = f"source.{_name(table.name)}"
        where = source.label
        stored = {row[0]: str(row[1]) for row in self._try(f"DESCRIBE SELECT * FROM {origin}", source.unreadable)}
        declared = dict(table.columns)
        if table.public:
            declared = {column: declared.get(column) or Text(column) for column in (*stored, *declared)}
        columns = []
        for column, policy in declared.items():
            if column not in stored:
                found = next((name for name in stored if name.lower() == column.lower()), None)
                hint = f"; it has {found}" if found else f"; it has {', '.join(sorted(stored)[:20])}"
                raise SourceError(f"{where} has no column {column}, which the policy names for {table.name}{hint}")
            text_file = isinstance(source, File) and source.kind == "csv"
            guessed = table.public and column not in table.columns
            expression, kind = check_column(policy, stored[column], f"{where}, column {column}", text_file, guessed)
            columns.append(f"{expression} AS {_name(column)}")
            self._kinds[table.name, column] = kind
        # Text is parsed once, and a frame is copied, so that what is asked later does not change under us.
        stays = isinstance(source, Attached) or (isinstance(source, File) and source.kind == "parquet")
        make = "VIEW" if stays else "TABLE"
        self._try(f"CREATE {make} {_name(table.name)} AS SELECT {', '.join(columns)} FROM {origin}", source.unreadable)
        if isinstance(source, Frame):
            self._connection.unregister(f"frame_{table.name}")

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        result: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        return result

    def _try(self, statement: str, complaint: str) -> list[tuple[Any, ...]]:
        """While opening: the database's own words may hold values of the data, so ours stand in for them."""
        try:
            return self._run(statement)
        except duckdb.Error:
            raise SourceError(complaint) from None

    # --- private reads ---------------------------------------------------------------------------------------------------

    def evaluate(self, summary: Summary, charge: Charge, secret: bytes) -> Exact:
        if not isinstance(charge, Charge):
            raise TypeError("private rows are read against a charge of the ledger")
        statement = Writer(self._kinds, secret).summary(summary).sql(dialect="duckdb")
        rows = self._read(statement)
        return _arrange(rows, summary)

    def _read(self, statement: str) -> list[tuple[Any, ...]]:
        """One statement on a cursor of its own, so that threads do not share results, within the time limit."""
        cursor = self._connection.cursor()
        timer = threading.Timer(self._limit, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            rows: list[tuple[Any, ...]] = cursor.execute(statement).fetchall()
            return rows
        except (duckdb.Error, MemoryError, RuntimeError, OverflowError, ValueError):
            raise EngineError from None
        finally:
            timer.cancel()
            cursor.close()

    # --- public facts ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> Mapping[str, Column]:
        policy = self._policy.tables[table]
        if not policy.public:
            return policy.columns
        if table not in self._public:
            names = [column for owner, column in self._kinds if owner == table]
            self._public[table] = {name: policy.columns.get(name) or self._infer(table, name) for name in names}
        return self._public[table]

    def _infer(self, table: str, name: str) -> Column:
        """What a column of a public table holds, read from it."""
        assert self._policy.tables[table].public
        column, kind = _name(name), self._kinds[table, name]
        least, most, distinct = self._run(
            f"SELECT MIN({column}), MAX({column}), COUNT(DISTINCT {column}) FROM {_name(table)}"
        )[0]
        if kind in ("text", "boolean", "integer") and 0 < distinct <= _MOST_PUBLIC_VALUES:
            found = self._run(f"SELECT DISTINCT {column} FROM {_name(table)} WHERE {column} IS NOT NULL ORDER BY 1")
            return Category(name, tuple(row[0] for row in found))
        if kind == "date" and least < most:
            return Date(name, least, most)
        if kind in ("integer", "wide integer", "float", "decimal") and distinct > 1:
            low, high = Fraction(least), Fraction(most)
            grain = Fraction(1)
            while kind in ("float", "decimal") and (high - low) / grain < 10**6:
                grain /= 10
            return Number(name, floor(low / grain) * grain, ceil(high / grain) * grain, grain)
        return Text(name)

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        assert self._policy.tables[table].public
        key = (table, columns)
        if key not in self._multiplicities:
            names = ", ".join(_name(column) for column in columns)
            counts = f"SELECT COUNT(*) AS n FROM {_name(table)} GROUP BY {names}"
            self._multiplicities[key] = int(self._run(f"SELECT COALESCE(MAX(n), 0) FROM ({counts})")[0][0])
        return self._multiplicities[key]

    def close(self) -> None:
        self._connection.close()


# --- arranging -------------------------------------------------------------------------------------------------------------


def _arrange(rows: list[tuple[Any, ...]], summary: Summary) -> Exact:
    """Rows of a result into arrays: every declared group in order, or the groups that exist."""
    width = len(summary.keys)
    places = [_places(key) for key in summary.keys]
    if summary.open_keys:
        keys = tuple(
            tuple(value if place is None else place[value] for value, place in zip(row[:width], places, strict=True))
            for row in rows
        )
        # An order that does not depend on how the database found them.
        order = sorted(range(len(rows)), key=lambda i: tuple((value is None, str(value)) for value in keys[i]))
        cells = tuple(_integers([rows[i][width + c] or 0 for i in order]) for c in range(len(summary.cells)))
        return Exact(cells, tuple(keys[i] for i in order))
    sizes = [size or 0 for size in map(key_size, summary.keys)]
    values: list[list[int]] = [[0] * prod(sizes) for _ in summary.cells]
    for row in rows:
        group = 0
        for value, place, size in zip(row[:width], places, sizes, strict=True):
            assert place is not None
            group = group * size + place[value]
        for c, column in enumerate(values):
            column[group] = row[width + c] or 0
    return Exact(tuple(_integers(column) for column in values), None)


def _places(key: Key) -> Mapping[KeyValue, int] | None:
    match key:
        case DeclaredKey(values=values):
            return {value: place for place, value in enumerate(values)}
        case BinnedKey(count=count):
            return {place: place for place in range(count)}
    return None


def _integers(values: list[int]) -> Any:
    if all(-(2**62) < value < 2**62 for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([int(value) for value in values], dtype=np.object_)


def group_keys(keys: tuple[Key, ...]) -> list[tuple[int, ...]]:
    """The places of all declared groups, in the order of `Exact`."""
    return list(product(*(range(key_size(key) or 0) for key in keys)))


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

"""Opening sources in one in-memory database: a view or a table for each, then everything is locked."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, assert_never

import duckdb

from confide.engine.duckdb.running import run
from confide.engine.duckdb.source import Attached, File, Frame, Source
from confide.engine.duckdb.text_file import Header, quotes_are_closed, read_header
from confide.engine.result import Rows
from confide.engine.sql.schema import Stored, read_alike, read_column, read_public_column
from confide.engine.sql.syntax import among, name, select, text
from confide.engine.storage import Storage, storage_of
from confide.errors import SourceError
from confide.policy import Table

ISNAN: Final = "main.isnan(x) AS NOT (ISFINITE(x) OR ISINF(x))"
"""Statistics of Parquet files leave NaN out, and from them the optimiser concludes that there is none: whether a row
is a number would depend on others. It concludes nothing about these two."""
_BEFORE = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_progress_bar = false",  # it would be written between the lines of an answer
    "SET temp_directory = ''",  # nothing private is ever spilled to a disk
    "SET GLOBAL TimeZone = 'UTC'",  # the day of a moment must not depend on where the machine stands
    "SET max_expression_depth = 10000",  # what was checked from the text must not fail after the charge
    f"CREATE MACRO {ISNAN}",
)
_WITHOUT = (
    "common_subplan",  # merges parts of a plan that look alike and are not, and then answers wrongly without an error
    "type_pushdown",  # lets the reader of text files cast, strictly, where TRY_CAST is written
)
"""Optimisers that change what a statement means."""
_AFTER = ("SET enable_external_access = false", "SET lock_configuration = true")


def settle(connection: duckdb.DuckDBPyConnection, paths: Collection[str] = (), threads: int | None = None) -> None:
    """Set a new database up, which may read these files."""
    allowed = f"SET allowed_paths = [{', '.join(map(text, sorted(set(paths))))}]"
    for statement in (*_BEFORE, *(() if threads is None else (f"SET threads = {int(threads)}",)), allowed):
        run(connection, statement)
    known = run(connection, f"SELECT name FROM duckdb_optimizers() WHERE {among('name', _WITHOUT)}")
    run(connection, f"SET disabled_optimizers = {text(','.join(str(row[0]) for row in known))}")


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """From now on it reaches nothing that it has not, and stays as it is set up."""
    for statement in _AFTER:
        run(connection, statement)


@dataclass(slots=True)
class Loader:
    """Loads tables; `storages` then says how each column is stored.

    `lines` lets errors tell the line of a text file: that is for its custodian alone, since a row decides it.
    """

    connection: duckdb.DuckDBPyConnection
    tables: Mapping[str, Table]
    threads: int | None = None
    lines: bool = False
    storages: dict[tuple[str, str], Storage] = field(default_factory=dict)

    def load(self, sources: Mapping[str, Source]) -> None:
        """All there is to do with a new database."""
        used = [sources[label] for label in self.tables]
        files = [path for own in used if isinstance(own, File) for path in own.paths]
        settle(self.connection, [*files, *map(_pattern, files)], self.threads)
        databases = sorted({source.path for source in used if isinstance(source, Attached)})
        aliases = {path: f"source_{place}" for place, path in enumerate(databases)}
        for path, alias in aliases.items():
            complaint = (
                f"{path} is not a DuckDB file that can be read; it may be damaged, or open for writing elsewhere"
            )
            self._try(f"ATTACH {text(path)} AS {alias} (READ_ONLY)", complaint)
        self.read(sources, aliases)
        lock(self.connection)

    def read(self, sources: Mapping[str, Source], aliases: Mapping[str, str] = MappingProxyType({})) -> None:
        """The tables alone; `aliases` are the names of database files that are attached."""
        for label, table in self.tables.items():
            self._table(table, sources[label], aliases)

    def _table(self, table: Table, source: Source, aliases: Mapping[str, str]) -> None:
        match source:
            case Frame(frame, _):
                self._frame(table, source, frame)
            case File(kind="text", paths=(path,)):
                self._text_file(table, source, path)
            case File():
                origins = self._origins(table, source)
                for origin in origins:
                    self._check_values(table, source, origin)
                self._stored(table, source, origins, "VIEW")
            case Attached(path=path):
                origin = f"{aliases[path]}.main.{name(table.name)}"
                kind = "VIEW" if self._stays(aliases[path], table) else "TABLE"
                self._stored(table, source, [self._uncollated(source, origin)], kind)
            case _:
                assert_never(source)

    def _frame(self, table: Table, source: Frame, frame: object) -> None:
        alias = f"frame {table.name}"
        failed = False
        try:
            self.connection.register(alias, frame)
        except Exception:  # its message may hold values
            failed = True
        if failed:
            raise SourceError(source.unreadable)
        # Copied, so that what is asked later does not change under us.
        self._stored(table, source, [name(alias)], "TABLE")
        self.connection.unregister(alias)

    def _stored(self, table: Table, source: Source, origins: Sequence[str], kind: str) -> None:
        """A view, or a copy, of the columns that the policy names."""
        parts = [self._read(table, source, origin) for origin in origins]
        shared = {label: read_alike(column, [part[label] for part in parts]) for label, column in table.columns.items()}
        columns = [part | {label: own[place] for label, own in shared.items()} for place, part in enumerate(parts)]
        self._create(table, source, list(zip(origins, columns, strict=True)), kind)

    def _read(self, table: Table, source: Source, origin: str) -> dict[str, Stored]:
        found = self._schema(source, origin)
        columns = {
            label: read_column(column, found[_spelled(label, found, source, table)], f"{source.label}, column {label}")
            for label, column in table.columns.items()
        }
        if table.public:
            columns |= {label: read_public_column(label, found[label]) for label in found if label not in columns}
        return columns

    def _text_file(self, table: Table, source: File, path: str) -> None:
        header = read_header(path, source.label, frozenset(table.columns))
        for label in table.columns:
            _spelled(label, dict.fromkeys(header.names, ""), source, table)
        failed: SourceError | None = None
        try:
            return self._text_table(table, source, header, path)
        except SourceError as error:
            failed = error
        # Threads that begin in the middle guess whether they stand inside of quotes, and a long text deceives them.
        if not quotes_are_closed(path, header.delimiter):
            raise failed
        return self._text_table(table, source, header, path, parallel=False)

    def _text_table(self, table: Table, source: File, header: Header, path: str, parallel: bool = True) -> None:
        fields = ", ".join(f"{text(label)}: 'VARCHAR'" for label in header.names)
        origin = (
            f"read_csv([{text(_pattern(path))}], auto_detect = false, hive_partitioning = false, header = true, "
            f"delim = {text(header.delimiter)}, quote = '\"', escape = '\"', "
            f"parallel = {'true' if parallel else 'false'}, columns = {{{fields}}})"
        )
        columns = {label: read_column(column, "VARCHAR", source.label) for label, column in table.columns.items()}
        if table.public:
            # What is public may be looked at: whole columns of numbers or dates are read as such.
            rest = [label for label in header.names if label not in columns]
            columns |= {label: self._guessed(source, origin, label) for label in rest}
        self._create(table, source, [(origin, columns)], "TABLE")

    def _guessed(self, source: File, origin: str, label: str) -> Stored:
        raw = name(label)
        # A number that is not written as the database writes it (007) is a code, and stays a text.
        tests = [
            f"CAST(TRY_CAST({raw} AS BIGINT) AS VARCHAR) = {raw}",
            f"TRY_CAST({raw} AS DOUBLE) IS NOT NULL AND NOT REGEXP_MATCHES({raw}, '^[+-]?0[0-9]')",
            f"TRY_CAST({raw} AS DATE) IS NOT NULL",
        ]
        counts = ", ".join(f"COUNT(*) FILTER ({test})" for test in tests)
        known, *fits = self._try(f"SELECT COUNT({raw}), {counts} FROM {origin}", source.unreadable)[0]
        kinds = (("BIGINT", Storage("integer")), ("DOUBLE", Storage("float")), ("DATE", Storage("date")))
        for (kind, storage), fit in zip(kinds, fits, strict=True):
            if known and fit == known:
                return Stored(f"TRY_CAST({raw} AS {kind})", storage)
        return Stored(raw, Storage("text"))

    def _create(
        self, table: Table, source: Source, parts: Sequence[tuple[str, Mapping[str, Stored]]], kind: str
    ) -> None:
        for label, column in parts[0][1].items():
            self.storages[table.name, label] = column.storage
        selects = [
            select([(name(label), own.sql) for label, own in columns.items()], origin) for origin, columns in parts
        ]
        self._try(f"CREATE {kind} {name(table.name)} AS {' UNION ALL '.join(selects)}", source.unreadable)

    def _schema(self, source: Source, origin: str) -> dict[str, str]:
        return {str(row[0]): str(row[1]) for row in self._try(f"DESCRIBE SELECT * FROM {origin}", source.unreadable)}

    def _stays(self, database: str, table: Table) -> bool:
        """Whether a table of a DuckDB file reads alike twice. A view need not, nor a generated column, which may call
        random(): they are read once, when they are opened.
        """
        place = f"database_name = {text(database)} AND schema_name = 'main'"
        named = f"LOWER(table_name) = LOWER({text(table.name)})"
        found = run(self.connection, f"SELECT sql FROM duckdb_tables() WHERE {place} AND {named}")
        return bool(found) and "GENERATED ALWAYS AS" not in str(found[0][0])

    def _uncollated(self, source: Source, origin: str) -> str:
        """A table whose texts are compared as bytes. Under a collation of the table's own, texts that differ are equal:
        a group would be shown as one of its rows happens to spell it, and joins would find what is not counted.
        """
        texts = [label for label, stored in self._schema(source, origin).items() if storage_of(stored).kind == "text"]
        if not texts:
            return origin
        plain = ", ".join(f'{name(label)} COLLATE "binary" AS {name(label)}' for label in texts)
        return f"(SELECT * REPLACE ({plain}) FROM {origin}) AS uncollated"

    def _check_values(self, table: Table, source: File, origin: str) -> None:
        """Read every text and moment once: a text that is not UTF-8, or a moment that microseconds do not hold, would
        fail the questions that meet it, after their charge.
        """
        read = [
            f"HASH({name(label)}) = 0"
            for label, stored in self._schema(source, origin).items()
            if storage_of(stored).kind in ("text", "timestamp", "time") and (table.public or label in table.columns)
        ]
        if read:
            complaint = f"{source.label} holds text that is not UTF-8 or a moment or time that is none, or is damaged"
            self._try(f"SELECT COUNT(*) FROM {origin} WHERE {' OR '.join(read)}", complaint)

    def _origins(self, table: Table, source: File) -> list[str]:
        """The files of a source, those together that store the policy's columns alike.

        One missing value may have made floats of the whole numbers of one part. A public table is one of a kind, or
        refused: of columns that nobody declared its types say what they are.
        """
        schemas = {path: self._schema(source, _parquet([path])) for path in source.paths}
        alike: dict[tuple[str, ...], list[str]] = {}
        for path, schema in schemas.items():
            kinds = tuple(schema[_spelled(label, schema, source, table)] for label in table.columns)
            alike.setdefault(kinds, []).append(path)
        if table.public and len(alike) > 1:
            part = list(alike.values())[1][0].rpartition("/")[2]
            raise SourceError(
                f"{source.label}: the part {part} stores a column unlike the first; write all parts alike"
            )
        return [_parquet(paths) for paths in alike.values()]

    def _try(self, statement: str, complaint: str) -> Rows:
        """While opening: the database's own words may hold values of the data, so ours stand in for them."""
        line = ""
        try:
            return run(self.connection, statement)
        except (duckdb.Error, MemoryError, RuntimeError, ValueError) as error:
            place = re.search(r"CSV Error on Line: (\d+)", str(error)) if self.lines else None
            line = f" (line {place[1]})" if place else ""
        raise SourceError(complaint + line)


def _parquet(paths: Sequence[str]) -> str:
    """Files as a table of what they hold: a folder that is called like a column (`age=5`) says nothing of them."""
    return f"read_parquet([{', '.join(text(_pattern(path)) for path in paths)}], hive_partitioning = false)"


def _pattern(path: str) -> str:
    """A path that means this file alone, though the database takes it for a pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def _spelled(label: str, found: Mapping[str, str], source: Source, table: Table) -> str:
    """The column as the source spells it: it must be there, letter for letter."""
    if label in found:
        return label
    other = next((own for own in found if own.casefold() == label.casefold()), None)
    hint = f"it has {other}" if other is not None else f"it has {', '.join(sorted(found)[:20]) or 'none'}"
    raise SourceError(f"{source.label} has no column {label}, which the policy names for {table.name}; {hint}")

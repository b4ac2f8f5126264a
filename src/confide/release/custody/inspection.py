"""What is told of a data source for free: the names and types of its columns, and whether a policy fits them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.engine.duckdb.csv_header import read_header
from confide.engine.duckdb.stored_tables import stored_tables
from confide.errors import SourceError
from confide.policy import Policy
from confide.policy.file_kind import endings, kind_of
from confide.release.custody.sources import open_engine

UNKNOWN = ""
"""The type of a column that only a name is known of."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One table as it is stored: its name and, in order, the names and types of its columns."""

    name: str
    columns: tuple[tuple[str, str], ...]


def stored_table(path: Path, table: str | None = None) -> StoredTable:
    """The schema of a CSV, Parquet or DuckDB file. Of a CSV file only the header is read, and types stay unknown."""
    if not path.exists():
        raise SourceError(f"{path} does not exist")
    if path.is_dir():
        raise SourceError(f"{path} is a folder; give one data file")
    kind = kind_of(path)
    if kind is None:
        raise SourceError(f"{path.name} is not of a known kind; a policy is drafted from {endings()}")
    try:
        if kind == "duckdb":
            return _chosen(path, stored_tables(path), table)
        columns = _parquet(path) if kind == "parquet" else tuple((column, UNKNOWN) for column in _header(path))
    except OSError as error:
        raise SourceError(f"{path.name} cannot be read: {error.strerror or 'it is damaged'}") from None
    if not columns:
        raise SourceError(f"{path.name} has no columns")
    return StoredTable(table or _table_name(path), columns)


def check_source(policy: Policy) -> tuple[str, ...]:
    """Open the data of a policy and compare its schema with it; `SourceError` says what does not fit, and where.

    Returned is what is worth a second look, such as rights to change the data.
    """
    engine = open_engine(policy, None, lines=True)
    try:
        return engine.remarks
    finally:
        engine.close()


def _chosen(path: Path, tables: dict[str, tuple[tuple[str, str], ...]], table: str | None) -> StoredTable:
    names = ", ".join(tables)
    if not tables:
        raise SourceError(f"{path.name} has no tables")
    if table is None and len(tables) > 1:
        raise SourceError(f"{path.name} has several tables, {names}: name one (--table)")
    name = table if table is not None else next(iter(tables))
    if name not in tables:
        raise SourceError(f"{path.name} has no table {name}; it has {names}")
    return StoredTable(name, tables[name])


def _parquet(path: Path) -> tuple[tuple[str, str], ...]:
    import pyarrow as pa  # noqa: PLC0415  heavy, and only Parquet needs it
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        schema: Any = pq.read_schema(path)
    except pa.ArrowException:
        raise SourceError(f"{path.name} is not a whole Parquet file; it may be truncated") from None
    return tuple((field.name, str(field.type)) for field in schema)


def _header(path: Path) -> tuple[str, ...]:
    """The names in the first line, as the engine reads them; a column without a name cannot be asked about."""
    names = tuple(name for name in read_header(str(path), path.name, frozenset()).names if name.strip())
    if not all(name.isprintable() and "\ufffd" not in name for name in names):
        raise SourceError(f"the first line of {path.name} does not hold names of columns; is it a CSV file in UTF-8?")
    return names


def _table_name(path: Path) -> str:
    """A name that SQL takes as it is."""
    stem = path.name.split(".", maxsplit=1)[0]
    name = re.sub(r"\W+", "_", stem).strip("_").lower() or "data"
    return name if not name[0].isdigit() else f"table_{name}"

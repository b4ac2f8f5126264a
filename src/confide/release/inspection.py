"""What is told of a data source for free: the names and types of its columns, and whether a policy fits them."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.engine.stored_tables import stored_tables
from confide.errors import SourceError
from confide.policy import Policy
from confide.release.opening import _engine as open_engine

UNKNOWN = ""
"""The type of a column that only a name is known of."""

_TEXT = (".csv", ".tsv", ".csv.gz", ".csv.zst")
_PARQUET = (".parquet", ".pq")
_DATABASE = (".duckdb", ".ddb", ".db")
_LONGEST_HEADER = 2**20
_DELIMITERS = ",;\t|"


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
    name = path.name.lower()
    try:
        if name.endswith(_DATABASE):
            return _chosen(path, stored_tables(path), table)
        if name.endswith(_PARQUET):
            columns = _parquet(path)
        elif name.endswith(_TEXT):
            columns = tuple((column, UNKNOWN) for column in _header(path))
        else:
            known = ", ".join((*_TEXT, *_PARQUET, *_DATABASE))
            raise SourceError(f"{path.name} is not of a known kind; a policy is drafted from {known}")
    except OSError as error:
        raise SourceError(f"{path.name} cannot be read: {error.strerror or 'it is damaged'}") from None
    if not columns:
        raise SourceError(f"{path.name} has no columns")
    return StoredTable(table or _table_name(path), columns)


def check_source(policy: Policy) -> None:
    """Open the data of a policy and compare its schema with it; `SourceError` says what does not fit."""
    open_engine(policy, None).close()


def _chosen(path: Path, tables: dict[str, tuple[tuple[str, str], ...]], table: str | None) -> StoredTable:
    names = ", ".join(tables)
    if not tables:
        raise SourceError(f"{path.name} has no tables")
    if table is None and len(tables) > 1:
        raise SourceError(f"{path.name} has several tables; choose one of {names}")
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
    text = _first_line(path)
    if not text.strip():
        raise SourceError(f"{path.name} is empty; its first line must hold the names of the columns")
    delimiter = max(_DELIMITERS, key=lambda mark: _fields(text, mark))
    names = tuple(name.strip() for name in next(csv.reader(io.StringIO(text), delimiter=delimiter)))
    if not all(names) or len(set(names)) < len(names):
        raise SourceError(f"the first line of {path.name} must hold a different name for every column")
    return names


def _first_line(path: Path) -> str:
    """The header; a quoted name may hold line breaks."""
    import pyarrow as pa  # noqa: PLC0415  it reads what is compressed too

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            start = stream.read(_LONGEST_HEADER).decode("utf-8-sig", errors="surrogateescape")
    except pa.ArrowException:
        raise SourceError(f"{path.name} cannot be read as CSV") from None
    line, quoted = [], False
    for character in start:
        quoted ^= character == '"'
        if character in "\r\n" and not quoted:
            break
        line.append(character)
    else:
        if len(start) >= _LONGEST_HEADER // 4 and "\n" not in start:
            raise SourceError(f"{path.name} has no line of column names at its start; is it a CSV file?")
    text = "".join(line)
    if any("\ud800" <= character <= "\udfff" or character == "\0" for character in text):
        raise SourceError(f"the first line of {path.name} is not UTF-8 text; is it a CSV file?")
    return text


def _fields(text: str, delimiter: str) -> int:
    return len(next(csv.reader(io.StringIO(text), delimiter=delimiter)))


def _table_name(path: Path) -> str:
    """A name that SQL takes as it is."""
    stem = path.name.split(".", maxsplit=1)[0]
    name = re.sub(r"\W+", "_", stem).strip("_").lower() or "data"
    return name if not name[0].isdigit() else f"table_{name}"

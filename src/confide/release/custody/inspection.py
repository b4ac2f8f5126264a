"""What is told of a data source for free: the names and types of its columns, and whether a policy fits them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.engine.duckdb.stored_tables import stored_tables
from confide.engine.duckdb.text_file import read_header
from confide.errors import SourceError
from confide.host.address import is_postgres, is_settings
from confide.policy import Policy
from confide.policy.draft import StoredTable
from confide.policy.file_kind import endings, kind_of
from confide.release.custody.sources import open_engine, require_driver
from confide.release.custody.spark_place import catalogue_of, is_spark, spark_path

UNKNOWN = ""
"""The type of a column that only a name is known of."""


@dataclass(frozen=True, slots=True)
class StoredSource:
    """Tables as they are stored; `whole` is the one source that holds all of them, if there is one."""

    tables: tuple[StoredTable, ...]
    whole: str | None = field(default=None, repr=False)  # may hold a password


def stored_source(places: Sequence[str], table: str | None = None) -> StoredSource:
    """The tables of files, of folders of files, of a DuckDB file, of a PostgreSQL schema, or of Spark.

    `table` is the one to take of several, or what to call the only one.
    """
    on_servers = [place for place in places if is_postgres(place) or is_spark(place)]
    if on_servers and len(places) > 1 and any(spark_path(place) is None for place in places):
        raise SourceError("a server holds all tables of a policy: give its address alone, or files alone")
    if len(on_servers) == 1 and spark_path(places[0]) is None:
        return _server(places[0], table)
    found = [own for place in places for own in _stored(place, table if len(places) == 1 else None)]
    if table is not None and len(places) > 1:
        found = [own for own in found if own.name == table]
        if not found:
            raise SourceError(
                f"none of these files is called {table}; --table names one table, or renames the only one"
            )
    twice = [name for name, number in Counter(own.name.casefold() for own in found).items() if number > 1]
    if twice:
        same = " and ".join(str(own.place) for own in found if own.name.casefold() == twice[0])
        raise SourceError(f"{same} would both be the table {twice[0]}; rename one of the files")
    databases = {own.place for own in found if kind_of(own.place or "") == "duckdb"}
    whole = next(iter(databases)) if len(databases) == 1 and all(own.place in databases for own in found) else None
    return StoredSource(tuple(found), whole)


def stored_table(path: Path, table: str | None = None) -> StoredTable:
    """The schema of a CSV or Parquet file, or of one table of a DuckDB file."""
    tables = _file(path, table)
    if len(tables) > 1:
        names = ", ".join(own.name for own in tables)
        raise SourceError(f"{path.name} has several tables, {names}: name one (--table)")
    return tables[0]


def _stored(place: str, table: str | None) -> tuple[StoredTable, ...]:
    path = spark_path(place)
    if path is not None:
        require_driver("pyspark", "Spark", "spark")
        from confide.engine.spark.catalogue import spark_files  # noqa: PLC0415  a driver that few need

        full = str(Path(path).resolve()) if Path(path).exists() else path
        return (StoredTable(table or _table_name(Path(path)), spark_files(None, full), f"spark:{full}"),)
    if is_settings(place):
        raise SourceError("a PostgreSQL server is given by its address: postgresql://user@host/database?schema=NAME")
    if "://" in place:
        raise SourceError(f"{place.partition('://')[0]}:// is not known; give files, postgresql://... or spark")
    path_here = Path(place)
    return _folder(path_here, table) if path_here.is_dir() else _file(path_here, table)


def _folder(path: Path, table: str | None) -> tuple[StoredTable, ...]:
    """Every data file of a folder is a table, whatever else is there; files called part-... are those of one table."""
    files = sorted(file for file in path.iterdir() if file.is_file() and kind_of(file) is not None)
    if not files:
        raise SourceError(f"the folder {path} holds no data files; a policy is drafted from {endings()}")
    if len(files) > 1 and all(_is_part(file) for file in files) and len({_parquet(file) for file in files}) == 1:
        return (StoredTable(table or _table_name(path), _parquet(files[0]), str(path)),)
    found = tuple(own for file in files for own in _file(file, None))
    chosen = tuple(own for own in found if table is None or own.name == table)
    if not chosen:
        names = ", ".join(own.name for own in found)
        raise SourceError(f"the folder {path} has no table {table}; it has {names}")
    return chosen


def _is_part(path: Path) -> bool:
    return path.name.startswith("part-") and kind_of(path) == "parquet"


def _file(path: Path, table: str | None) -> tuple[StoredTable, ...]:
    """Of a CSV file only the header is read, and types stay unknown."""
    if not path.exists():
        raise SourceError(f"{path} does not exist; check the path")
    kind = kind_of(path)
    if kind is None:
        known = "; if it is a policy, run: confide check" if path.suffix in (".yaml", ".yml") else ""
        raise SourceError(f"{path.name} is not of a known kind; a policy is drafted from {endings()}{known}")
    try:
        if kind == "duckdb":
            return _chosen(path.name, stored_tables(path), table, str(path))
        columns = _parquet(path) if kind == "parquet" else tuple((column, UNKNOWN) for column in _header(path))
    except OSError as error:
        raise SourceError(f"{path.name} cannot be read: {error.strerror or 'it is damaged'}") from None
    if not columns:
        raise SourceError(f"{path.name} has no columns")
    return (StoredTable(table or _table_name(path), columns, str(path)),)


def _server(place: str, table: str | None) -> StoredSource:
    if is_postgres(place):
        require_driver("psycopg", "PostgreSQL", "postgres")
        from confide.engine.postgres.catalogue import postgres_tables  # noqa: PLC0415  a driver that few need

        return StoredSource(_chosen("the schema on the server", postgres_tables(place), table, None), place)
    require_driver("pyspark", "Spark", "spark")
    from confide.engine.spark.catalogue import spark_tables  # noqa: PLC0415  a driver that few need

    master, schema = catalogue_of(place)
    return StoredSource(_chosen("Spark's catalogue", spark_tables(master, schema), table, None), place)


def check_source(policy: Policy) -> tuple[str, ...]:
    """Open the data of a policy and compare its schema with it; `SourceError` says what does not fit, and where.

    Returned is what is worth a second look, such as rights to change the data.
    """
    engine = open_engine(policy, None, lines=True)
    try:
        return engine.remarks
    finally:
        engine.close()


def _chosen(
    label: str, tables: dict[str, tuple[tuple[str, str], ...]], table: str | None, place: str | None
) -> tuple[StoredTable, ...]:
    names = ", ".join(tables)
    if not tables:
        raise SourceError(f"{label} has no tables")
    if table is not None and table not in tables:
        raise SourceError(f"{label} has no table {table}; it has {names}")
    return tuple(
        StoredTable(name, columns, place) for name, columns in tables.items() if table is None or name == table
    )


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

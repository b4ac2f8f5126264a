"""The tables of Spark as a policy sees them: where each is, and its columns in the types that statements expect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confide.engine.spark.types import plain, stored_type
from confide.engine.sql.schema import Stored, read_alike, read_column, read_public_column
from confide.engine.sql.syntax import name
from confide.engine.sql.translation import Translator
from confide.engine.storage import Storage
from confide.errors import SourceError
from confide.policy import Table


@dataclass(frozen=True, slots=True)
class SparkTable:
    """Where a table is: Parquet files, or a name in the catalogue."""

    where: str
    files: bool


@dataclass(frozen=True, slots=True)
class SparkRelation:
    """What stands for a table in a statement, and how its columns are then stored."""

    query: str
    storages: Mapping[str, Storage]


def relation(table: Table, parts: Sequence[tuple[str, Mapping[str, str]]]) -> SparkRelation:
    """The columns that the policy names, each in the type that statements expect of it; of a public table all.

    Each part is a view and the types of its columns. What a value means is settled part by part, before they are one.
    """
    read = [_read(table, types) for _, types in parts]
    storages = [{label: column.storage for label, (_, column) in own.items()} for own in read]
    if table.public and any(own != storages[0] for own in storages):
        raise SourceError(f"{table.name}: parts store a column unlike the first; write all parts alike")
    shared = {label: read_alike(column, [own[label][1] for own in read]) for label, column in table.columns.items()}
    queries = []
    for place, ((view, _), own) in enumerate(zip(parts, read, strict=True)):
        stored = {label: shared[label][place] if label in shared else column for label, (_, column) in own.items()}
        base = f"SELECT {', '.join(given for given, _ in own.values()) or '1 AS one'} FROM {view}"
        shown = ", ".join(f"{column.sql} AS {name(label)}" for label, column in stored.items()) or "1 AS one"
        queries.append(Translator("spark", {"base": base})(f"SELECT {shown} FROM main.base AS base"))
        storages[place] = {label: column.storage for label, column in stored.items()}
    return SparkRelation(" UNION ALL ".join(queries), storages[0])


def _read(table: Table, types: Mapping[str, str]) -> dict[str, tuple[str, Stored]]:
    """Each column as it is given by a view, in Spark's words, and how it is then read."""
    read: dict[str, tuple[str, Stored]] = {}
    for label in [*table.columns, *(label for label in types if table.public and label not in table.columns)]:
        if label not in types:
            other = next((own for own in types if own.casefold() == label.casefold()), None)
            hint = f"it has {other or ', '.join(sorted(types)[:20]) or 'none'}"
            raise SourceError(f"{table.name} has no column {label}, which the policy names; {hint}")
        column, kind = table.columns.get(label), stored_type(types[label])
        where = f"{table.name}, column {label}"
        if column is not None:
            read_column(column, kind.words, where)  # is such a type accepted?
        words, sql = plain(column, quoted(label), kind)
        stored = read_column(column, words, where) if column is not None else read_public_column(label, words)
        read[label] = f"{sql} AS {quoted(label)}", stored
    return read


def quoted(label: str) -> str:
    return "`" + label.replace("`", "``") + "`"

"""The tables of Spark as a policy sees them: where each is, and its columns in the types that statements expect."""

from collections.abc import Mapping
from dataclasses import dataclass

from confide.engine.schema import Stored, read_column, read_public_column
from confide.engine.spark_types import plain, stored_type
from confide.engine.storage import Storage
from confide.engine.syntax import name
from confide.engine.translation import Translator
from confide.errors import SourceError
from confide.policy import Table


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is: Parquet files, or a name in the catalogue."""

    where: str
    files: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """What stands for a table in a statement, and how its columns are then stored."""

    query: str
    storages: Mapping[str, Storage]


def relation(table: Table, types: Mapping[str, str], view: str) -> Relation:
    """The columns that the policy names, each in the type that statements expect of it; of a public table all."""
    stored: dict[str, Stored] = {}
    given: list[str] = []
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
        given.append(f"{sql} AS {quoted(label)}")
        stored[label] = read_column(column, words, where) if column is not None else read_public_column(label, words)
    base = f"SELECT {', '.join(given) or '1 AS one'} FROM {view}"
    shown = ", ".join(f"{column.sql} AS {name(label)}" for label, column in stored.items()) or "1 AS one"
    query = Translator("spark", {"base": base})(f"SELECT {shown} FROM main.base AS base")
    return Relation(query, {label: column.storage for label, column in stored.items()})


def quoted(label: str) -> str:
    return "`" + label.replace("`", "``") + "`"

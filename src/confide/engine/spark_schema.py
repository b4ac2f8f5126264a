"""The tables of Spark as a policy sees them: where each is, and its columns in the types that statements expect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from confide.engine.schema import Stored, read_column, read_public_column
from confide.engine.storage import Storage
from confide.engine.syntax import name
from confide.engine.translation import Translator
from confide.errors import SourceError
from confide.policy import Table

_PLAIN: Final = {
    "tinyint": ("BIGINT", "BIGINT"), "smallint": ("BIGINT", "BIGINT"), "int": ("BIGINT", "BIGINT"),
    "bigint": ("BIGINT", ""), "float": ("DOUBLE", "DOUBLE"), "double": ("DOUBLE", ""), "boolean": ("BOOLEAN", ""),
    "date": ("DATE", ""), "timestamp": ("DATE", "DATE"), "timestamp_ntz": ("DATE", "DATE"), "void": ("NULL", ""),
    "string": ("VARCHAR", ""),
}  # fmt: skip
"""For each type the name that DuckDB has for it, and what it is cast to, if it is."""
_TEXTS: Final = ("string", "varchar(", "char(")


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
    plain = []
    for label in [*table.columns, *(label for label in types if table.public and label not in table.columns)]:
        if label not in types:
            other = next((own for own in types if own.casefold() == label.casefold()), None)
            hint = f"it has {other or ', '.join(sorted(types)[:20]) or 'none'}"
            raise SourceError(f"{table.name} has no column {label}, which the policy names; {hint}")
        kind, sql = _plain(quoted(label), types[label])
        plain.append(f"{sql} AS {quoted(label)}")
        column = table.columns.get(label)
        where = f"{table.name}, column {label}"
        stored[label] = read_column(column, kind, where) if column is not None else read_public_column(label, kind)
    base = f"SELECT {', '.join(plain) or '1 AS one'} FROM {view}"
    shown = ", ".join(f"{column.sql} AS {name(label)}" for label, column in stored.items()) or "1 AS one"
    query = Translator("spark", {"base": base})(f"SELECT {shown} FROM main.base AS base")
    return Relation(query, {label: column.storage for label, column in stored.items()})


def quoted(label: str) -> str:
    return "`" + label.replace("`", "``") + "`"


def _plain(column: str, stored: str) -> tuple[str, str]:
    """The type in DuckDB's words, and the column cast to what carries it exactly."""
    if stored in _PLAIN:
        kind, target = _PLAIN[stored]
        return kind, f"CAST({column} AS {target})" if target else column
    if stored.startswith("decimal("):
        return stored.upper(), column
    if stored.startswith(_TEXTS):
        return "VARCHAR", f"COLLATE(CAST({column} AS STRING), 'UTF8_BINARY')"
    if stored == "binary":
        return "BLOB", f"HEX({column})"
    return stored.upper(), f"CAST({column} AS STRING)"

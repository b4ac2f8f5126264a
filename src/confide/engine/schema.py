"""How columns are stored, and whether that fits what the policy says of them. Schemas only, never values."""

import re

from confide.engine.sql import Kind
from confide.errors import SourceError
from confide.policy import Category, Column, Date, Identifier, Number, Text, Unbounded

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_OTHERS: dict[str, Kind] = {
    "FLOAT": "float", "DOUBLE": "float", "VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "date",
}  # fmt: skip


def kind_of(stored: str) -> Kind:
    """The kind of a DuckDB type name."""
    name = re.sub(r"\(.*", "", stored.upper()).strip()
    if name in _INTEGERS:
        return "integer"
    if name in _WIDE:
        return "wide integer"
    if name.startswith("TIMESTAMP"):
        return "timestamp"
    if name == "ENUM":
        return "text"
    return "decimal" if name in ("DECIMAL", "NUMERIC") else _OTHERS.get(name, "other")


def check_column(column: Column, stored: str, where: str, text_file: bool, guessed: bool) -> tuple[str, Kind]:
    """The SQL that reads a column as its policy needs it, and the kind it has then.

    `text_file`: everything is stored as text, and what does not read as the declared type is NULL. `guessed`: the column of a
    public table that the policy does not describe.
    """
    name = '"' + column.name.replace('"', '""') + '"'
    kind = kind_of(stored)
    if text_file:
        return _from_text(column, name)
    if guessed:
        return (name, kind) if kind not in ("other", "timestamp") else (f"CAST({name} AS VARCHAR)", "text")
    match column:
        case Number() | Unbounded() if kind in ("integer", "wide integer", "float", "decimal"):
            return name, kind
        case Date() if kind in ("date", "timestamp"):
            return name, kind
        case Category() if column.kind is str and kind == "text":
            return (name if stored.upper() == "VARCHAR" else f"CAST({name} AS VARCHAR)"), "text"
        case Category() if column.kind is int and kind in ("integer", "wide integer"):
            return name, kind
        case Category() if column.kind is bool and kind == "boolean":
            return name, kind
        case Text() if kind == "text":
            return (name if stored.upper() == "VARCHAR" else f"CAST({name} AS VARCHAR)"), "text"
        case Text():
            return f"CAST({name} AS VARCHAR)", "text"
        case Identifier():
            return name, kind
    raise SourceError(f"{where} is stored as {stored}, but the policy makes it {_words(column)}; change one of them")


def _from_text(column: Column, name: str) -> tuple[str, Kind]:
    match column:
        case Number(low=low, high=high) if column.integer:
            # Whole numbers as they are; what is written otherwise (1e3, inf) goes through a double into the range.
            double = f"TRY_CAST({name} AS DOUBLE)"
            inside = f"CASE WHEN isnan({double}) THEN NULL ELSE least(greatest({double}, {int(low)}), {int(high)}) END"
            return f"COALESCE(TRY_CAST({name} AS BIGINT), TRY_CAST({inside} AS BIGINT))", "integer"
        case Number() | Unbounded():
            return f"TRY_CAST({name} AS DOUBLE)", "float"
        case Date():
            return f"TRY_CAST({name} AS DATE)", "date"
        case Category() if column.kind is int:
            return f"TRY_CAST({name} AS BIGINT)", "integer"
        case Category() if column.kind is bool:
            return f"TRY_CAST({name} AS BOOLEAN)", "boolean"
    return name, "text"


def _words(column: Column) -> str:
    match column:
        case Number() | Unbounded():
            return "a number (it has a range)"
        case Date():
            return "a date (its range is of dates)"
        case Category():
            words = {str: "texts", int: "whole numbers", bool: "true/false"}
            return f"a category of {words[column.kind]}"
    return "text"

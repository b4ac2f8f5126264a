"""Whether the way a column is stored fits what the policy says of it, and how it is then read. Never values."""

from dataclasses import dataclass

from confide.engine.storage import Storage, storage_of
from confide.engine.syntax import name
from confide.errors import SourceError
from confide.policy import Category, Column, Date, Identifier, Number, Text, Unbounded

_LARGEST_EXACT = 2**53
_HUGE = 2**126


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of a source: its SQL in a view of the source, and how it is stored there."""

    sql: str
    storage: Storage


def read_column(column: Column, stored: str, where: str) -> Stored:
    """How a stored column is read, or why it cannot be what the policy says."""
    raw, storage = name(column.name), storage_of(stored)
    if storage.kind == "nothing":
        return _empty(column)
    match column, storage.kind:
        case (Number() | Unbounded(), "integer" | "float" | "decimal"):
            return Stored(raw, storage)
        case (Number() | Unbounded(), "wide integer"):
            return _wide(raw, stored)
        case (Date(), "date" | "timestamp"):
            return Stored(raw, storage)
        case (Category(), "text") if column.kind is str:
            return _text(raw, storage)
        case (Category(), "integer") if column.kind is int:
            return Stored(raw, storage)
        case (Category(), "wide integer") if column.kind is int:
            return _wide(raw, stored)
        case (Category(), "float") if column.kind is int:
            # What pandas makes of whole numbers with gaps: 1.0, 2.0, NaN.
            whole = f"{raw} = FLOOR({raw}) AND ABS({raw}) < {_LARGEST_EXACT}"
            return Stored(f"CASE WHEN {whole} THEN TRY_CAST({raw} AS BIGINT) END", Storage("integer"))
        case (Category(), "boolean") if column.kind is bool:
            return Stored(raw, storage)
        case (Text(), _):
            return _text(raw, storage)
        case (Identifier(), _):
            return _identifier(raw, stored, storage)
    raise SourceError(
        f"{where} is stored as {stored[:60]}, but the policy makes it {words(column)}; change one of them"
    )


def read_public_column(label: str, stored: str) -> Stored:
    """A column of a public table that the policy does not describe."""
    raw, storage = name(label), storage_of(stored)
    if storage.kind in ("integer", "float", "decimal", "boolean", "date"):
        return Stored(raw, storage)
    return _wide(raw, stored) if storage.kind == "wide integer" else _text(raw, storage)


def read_text_column(column: Column) -> Stored:
    """A column of a text file: what does not read as the declared type is NULL."""
    raw = name(column.name)
    match column:
        case Number() if column.grain == 1:
            # Whole numbers as they are; what is written otherwise (1e3, 2.5) through a double, rounded once.
            near = f"TRY_CAST({raw} AS DOUBLE)"
            ends = f"LEAST(GREATEST({near}, {int(column.low)}), {int(column.high)})"
            kept = f"CASE WHEN NOT ISNAN({near}) THEN {ends} END"
            digits = f"CASE WHEN REGEXP_FULL_MATCH({raw}, '\\s*[+-]?[0-9]+\\s*') THEN TRY_CAST({raw} AS BIGINT) END"
            return Stored(f"COALESCE({digits}, TRY_CAST(FLOOR({kept} + 0.5::DOUBLE) AS BIGINT))", Storage("integer"))
        case Number() | Unbounded():
            return Stored(f"TRY_CAST({raw} AS DOUBLE)", Storage("float"))
        case Date():
            return Stored(f"TRY_CAST({raw} AS DATE)", Storage("date"))
        case Category() if column.kind is int:
            return Stored(f"TRY_CAST({raw} AS BIGINT)", Storage("integer"))
        case Category() if column.kind is bool:
            return Stored(f"TRY_CAST({raw} AS BOOLEAN)", Storage("boolean"))
    return Stored(raw, Storage("text"))


def words(column: Column) -> str:
    match column:
        case Number() | Unbounded():
            return "a number (it has a range)"
        case Date():
            return "a date (its range is of dates)"
        case Category():
            kinds = {str: "texts", int: "whole numbers", bool: "true/false"}
            return f"a category of {kinds[column.kind]}"
        case Identifier():
            return "an id"
    return "text"


def _empty(column: Column) -> Stored:
    """A column without a type holds no value."""
    match column:
        case Number() | Unbounded():
            kind, storage = "BIGINT", Storage("integer")
        case Date():
            kind, storage = "DATE", Storage("date")
        case Category() if column.kind is not str:
            kind, storage = ("BIGINT", Storage("integer")) if column.kind is int else ("BOOLEAN", Storage("boolean"))
        case _:
            kind, storage = "VARCHAR", Storage("text")
    return Stored(f"NULL::{kind}", storage)


def _text(raw: str, storage: Storage) -> Stored:
    plain = storage == Storage("text")
    return Stored(raw if plain else f"CAST({raw} AS VARCHAR)", Storage("text"))


def _wide(raw: str, stored: str) -> Stored:
    """128-bit integers; the unsigned ones among them are cut where no range reaches, since a cast would raise."""
    if "UHUGEINT" in stored.upper():
        raw = f"CASE WHEN {raw} > {_HUGE}::UHUGEINT THEN {_HUGE}::UHUGEINT ELSE {raw} END"
    return Stored(f"CAST({raw} AS HUGEINT)", Storage("wide integer"))


def _identifier(raw: str, stored: str, storage: Storage) -> Stored:
    """Ids are whole numbers or texts; other types become texts, one for each value."""
    match storage.kind:
        case "integer":
            return Stored(raw, storage)
        case "wide integer" if "UHUGEINT" not in stored.upper():
            return _wide(raw, stored)
        case "decimal" if storage.scale == 0:
            return Stored(f"CAST({raw} AS HUGEINT)", Storage("wide integer"))
        case "float":
            whole = f"{raw} = FLOOR({raw}) AND ABS({raw}) < {_LARGEST_EXACT}"
            digits = f"CAST(TRY_CAST({raw} AS BIGINT) AS VARCHAR)"
            return Stored(f"CASE WHEN {whole} THEN {digits} ELSE CAST({raw} AS VARCHAR) END", Storage("text"))
    return _text(raw, storage)

"""How a stored column is read as what the policy says it is, or why it cannot be. From types alone, never values.

What a value means is fixed by the policy's kind of column, whatever it is stored as (`docs/values.md`). After it is
read, a column has one of few storages: a number is an integer, a decimal, a float or an `index`; a date is a date or a
timestamp; a category is of 64-bit integers, of booleans or of texts; a text is a text; an id is an integer or a
text, and as a text it is canonical.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from confide.engine.sql.canonical_text import (
    LARGEST_EXACT,
    any_number,
    day,
    long_number,
    short_number,
    text_of,
    truth,
    whole_number,
)
from confide.engine.sql.index_sql import number_index
from confide.engine.sql.syntax import case, cast, name
from confide.engine.storage import Kind, Storage, storage_of
from confide.errors import SourceError
from confide.policy import Category, Column, Date, Identifier, Number, Text, Unbounded
from confide.policy.column import INDEX_LIMIT

_HUGE = 2**126
_NUMERIC: tuple[Kind, ...] = ("integer", "wide integer", "decimal", "float", "boolean")
_ACCEPTED: dict[str, tuple[Kind, ...]] = {
    "number": (*_NUMERIC, "text"),
    # A column that holds nothing may be stored as numbers, which are no days.
    "date": ("date", "timestamp", "text", "float", "integer"),
    "text": (*_NUMERIC, "text", "date", "timestamp", "time", "uuid"),
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of a source: its SQL in a view of the source, and how it is stored there."""

    sql: str
    storage: Storage


def is_textual(column: Column) -> bool:
    """Whether the values of a column are canonical texts, so that a source may hand them over as such."""
    return isinstance(column, Identifier | Text) or (isinstance(column, Category) and column.kind is str)


def read_column(column: Column, stored: str, where: str) -> Stored:
    """How a stored column is read, or why it cannot be what the policy says."""
    raw, storage = name(column.name), storage_of(stored)
    if storage.kind == "nothing":
        return _empty(column)
    accepted = "text" if is_textual(column) else "date" if isinstance(column, Date) else "number"
    if storage.kind not in _ACCEPTED[accepted]:
        raise SourceError(
            f"{where} is stored as {stored[:60]}, but the policy makes it {words(column)}; change one of them"
        )
    if storage.kind == "time":
        return _clock(raw, stored)
    match column:
        case Number() | Unbounded():
            return _number(column, raw, stored, storage)
        case Date():
            return _date(raw, storage)
        case Category() if column.kind is int:
            return _listed_number(raw, stored, storage)
        case Category() if column.kind is bool:
            return _listed_truth(raw, storage)
        case Identifier():
            return _identifier(raw, stored, storage)
        case Category() | Text():
            return Stored(text_of(raw, storage), Storage("text"))
        case _:
            assert_never(column)


def read_alike(column: Column, parts: Sequence[Stored]) -> tuple[Stored, ...]:
    """One column that parts of a table store in different ways, in one storage."""
    kinds = {part.storage.kind for part in parts}
    if len({part.storage for part in parts}) == 1:
        return tuple(parts)
    match column:
        case Number() | Unbounded():
            ranged = column if isinstance(column, Number) else _widest(column)
            return tuple(Stored(number_index(ranged, part.sql, part.storage), _index(ranged)) for part in parts)
        case Date():
            return tuple(Stored(f"TRY_CAST({part.sql} AS DATE)", Storage("date")) for part in parts)
        case Category() if column.kind is int:
            return tuple(Stored(f"TRY_CAST({part.sql} AS BIGINT)", Storage("integer")) for part in parts)
        case Identifier() if kinds == {"integer"}:
            return tuple(Stored(f"CAST({part.sql} AS BIGINT)", Storage("integer")) for part in parts)
        case Category() | Identifier() | Text():
            return tuple(Stored(text_of(part.sql, part.storage), Storage("text")) for part in parts)
        case _:
            assert_never(column)


def read_public_column(label: str, stored: str) -> Stored:
    """A column of a public table that the policy does not describe."""
    raw, storage = name(label), storage_of(stored)
    if storage.kind in ("integer", "float", "decimal", "boolean", "date"):
        return Stored(raw, storage)
    return _wide(raw, stored) if storage.kind == "wide integer" else Stored(text_of(raw, storage), Storage("text"))


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
        case Text():
            return "text"
        case _:
            assert_never(column)


def _empty(column: Column) -> Stored:
    """A column without a type holds no value."""
    match column:
        case Number() | Unbounded():
            kind, storage = "BIGINT", Storage("integer")
        case Date():
            kind, storage = "DATE", Storage("date")
        case Category() if column.kind is not str:
            kind, storage = ("BIGINT", Storage("integer")) if column.kind is int else ("BOOLEAN", Storage("boolean"))
        case Category() | Identifier() | Text():
            kind, storage = "VARCHAR", Storage("text")
        case _:
            assert_never(column)
    return Stored(f"NULL::{kind}", storage)


def _number(column: Number | Unbounded, raw: str, stored: str, storage: Storage) -> Stored:
    match storage.kind:
        case "wide integer":
            return _wide(raw, stored)
        case "boolean":
            return _bit(raw)
        case "text":
            raw = text_of(raw, storage)
            ranged = column if isinstance(column, Number) else _widest(column)
            branches = [
                (condition, number_index(ranged, value, kind))
                for (condition, value), kind in (
                    (short_number(raw), Storage("integer")),
                    (long_number(raw), Storage("wide integer")),
                    (any_number(raw), Storage("float")),
                )
            ]
            return Stored(case(branches), _index(ranged))
    return Stored(raw, storage)


def _index(column: Number) -> Storage:
    return Storage("index", low=column.low_index, high=column.high_index)


def _widest(column: Unbounded) -> Number:
    most = (INDEX_LIMIT - 1) * column.grain
    return Number(column.name, -most, most, column.grain)


def _date(raw: str, storage: Storage) -> Stored:
    match storage.kind:
        case "float" | "integer":
            return Stored("NULL::DATE", Storage("date"))
        case "text":
            return Stored(day(text_of(raw, storage)), Storage("date"))
        case "timestamp" if not storage.exact:
            # Some kinds of moments reach beyond the days that there are.
            return Stored(f"TRY_CAST({raw} AS DATE)", Storage("date"))
    return Stored(raw, storage)


def _listed_number(raw: str, stored: str, storage: Storage) -> Stored:
    match storage.kind:
        case "wide integer":
            return _wide(raw, stored)
        case "boolean":
            return _bit(raw)
        case "float":
            # What pandas makes of whole numbers with gaps: 1.0, 2.0, NaN.
            whole = f"{raw} = FLOOR({raw}) AND ABS({raw}) < {LARGEST_EXACT}"
            return Stored(case([(whole, f"TRY_CAST({raw} AS BIGINT)")]), Storage("integer"))
        case "decimal" | "text":
            return Stored(whole_number(text_of(raw, storage)), Storage("integer"))
    return Stored(raw, storage)


def _listed_truth(raw: str, storage: Storage) -> Stored:
    if storage.kind == "boolean":
        return Stored(raw, storage)
    if storage.kind in ("text", "decimal"):
        return Stored(truth(text_of(raw, storage)), Storage("boolean"))
    return Stored(case([(f"{raw} = 1", "TRUE"), (f"{raw} = 0", "FALSE")]), Storage("boolean"))


def _identifier(raw: str, stored: str, storage: Storage) -> Stored:
    """Ids are texts; whole numbers stay what they are, since they agree exactly if their digits do."""
    if storage.kind == "integer":
        return Stored(raw, storage)
    if storage.kind == "wide integer" and "UHUGEINT" not in stored.upper():
        return _wide(raw, stored)
    if storage.kind == "decimal" and storage.scale == 0:
        return Stored(f"CAST({raw} AS HUGEINT)", Storage("wide integer"))
    return Stored(text_of(raw, storage), Storage("text"))


def _clock(raw: str, stored: str) -> Stored:
    """Times of day as texts. Writing one that no clock shows would end the database; it is cut off before the cast,
    since a cast of repeated values is done for all of them, whatever CASE it stands in.
    """
    first, last = (cast(f"TIME '{end}'", stored) for end in ("00:00:00", "24:00:00"))
    told = text_of(f"LEAST(GREATEST({raw}, {first}), {last})", Storage("time"))
    return Stored(case([(f"{raw} BETWEEN {first} AND {last}", told)]), Storage("text"))


def _bit(raw: str) -> Stored:
    return Stored(case([(raw, "1::BIGINT"), (f"NOT {raw}", "0::BIGINT")]), Storage("integer"))


def _wide(raw: str, stored: str) -> Stored:
    """128-bit integers; the unsigned ones among them are cut where no range reaches, since a cast would raise."""
    if "UHUGEINT" in stored.upper():
        raw = f"CASE WHEN {raw} > {_HUGE}::UHUGEINT THEN {_HUGE}::UHUGEINT ELSE {raw} END"
    return Stored(f"CAST({raw} AS HUGEINT)", Storage("wide integer"))

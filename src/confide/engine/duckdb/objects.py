"""Columns of objects, value by value: what each says as a text, whatever the others are.

A column of a frame is one of objects because one of its values is odd, or because it is a list. So a value must mean
what it would mean in a column of its own type (`docs/values.md`), none may raise, and what is no scalar is NULL.
"""

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, assert_never
from uuid import UUID

import numpy as np

from confide.engine.sql.canonical_text import LARGEST_EXACT, LEAST_POSITIONAL, MOST_POSITIONAL, SIGNIFICANT
from confide.policy import Category, Column, Date, Identifier, Number, Text, Unbounded

_MOST_DIGITS: Final = 100
_LARGEST: Final = 1e300
_SMALLEST: Final = 1e-290
_MIDNIGHT: Final = " 00:00:00"

Wanted = Literal["text", "number", "whole", "truth", "date"]


def texts_of(values: Iterable[Any], column: Column | None) -> Any:
    """The values as an Arrow array of texts that read as what they are for a column of the policy."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and only frames need it

    listed = list(values)
    if set(map(type, listed)) <= {str, type(None)}:
        try:
            return pa.array(listed, pa.large_string())
        except (ValueError, pa.ArrowException):  # a text that is no Unicode
            pass
    wanted = _wanted(column)
    return pa.array([_told(value, wanted, column) for value in listed], pa.large_string())


def _wanted(column: Column | None) -> Wanted:
    match column:
        case Number() | Unbounded():
            return "number"
        case Date():
            return "date"
        case Category() if column.kind is not str:
            return "whole" if column.kind is int else "truth"
        case Category() | Identifier() | Text() | None:
            return "text"
        case _:
            assert_never(column)


def _told(value: Any, wanted: Wanted, column: Column | None) -> str | None:
    try:
        text = _text(value, wanted, column)
        return None if text is None or not _is_unicode(text) else text
    except Exception:  # a value's own code may raise anything
        return None


def _text(value: Any, wanted: Wanted, column: Column | None) -> str | None:
    if isinstance(value, np.generic) and not isinstance(value, str):
        value = _plain(value)
    if isinstance(value, complex):  # what numpy makes of all numbers of a column in which one is
        value = value.real if value.imag == 0 else None
    match value:
        case str():
            return str.__str__(value)
        case datetime():  # before dates, which it is one of
            return _moment(value) if wanted in ("text", "date") else None
        case date():
            return value.isoformat() if wanted in ("text", "date") else None
        case _ if wanted == "date":
            return None
        case bool():
            if wanted in ("number", "whole"):
                return "1" if value else "0"
            return "true" if value else "false"
        case int():
            return _integer(int(value), wanted)
        case float():
            return _number(float(value)) if wanted == "number" else _float(float(value))
        case Decimal():
            return _rounded(value, column) if wanted == "number" else _decimal(value)
        case time() if wanted == "text" and value.tzinfo is None:
            return _without_zeros(value.isoformat())
        case UUID() if wanted == "text":
            return str(value)
    return None


def _plain(value: np.generic) -> Any:
    if isinstance(value, np.datetime64):
        nanoseconds = int(value.astype("datetime64[ns]").astype(np.int64)) % 1000
        moment = value.astype("datetime64[us]").item()
        if not isinstance(moment, datetime) or nanoseconds == 0:
            return moment if isinstance(moment, datetime) else None
        return f"{moment.isoformat(sep=' ', timespec='microseconds')}{nanoseconds:03d}".rstrip("0")
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.timedelta64):  # before integers, which it is one of
        return None
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.complexfloating):
        return complex(value)
    return float(value) if isinstance(value, np.floating) else None


def _integer(value: int, wanted: Wanted) -> str | None:
    if abs(value) < 10**_MOST_DIGITS:
        return str(value)
    return ("inf" if value > 0 else "-inf") if wanted == "number" else None


def _float(value: float) -> str | None:
    """The canonical text of a double."""
    if not math.isfinite(value):
        return None
    if value == math.floor(value) and abs(value) < LARGEST_EXACT:
        return str(int(value))
    written = repr(value)
    digits = written.replace("-", "").replace(".", "").lstrip("0")
    positional = LEAST_POSITIONAL <= abs(value) < MOST_POSITIONAL
    return written if positional and len(digits) <= SIGNIFICANT else None


def _number(value: float) -> str | None:
    """A text that reads as the same double, as far as any range reaches."""
    if math.isnan(value):
        return None
    if abs(value) >= _LARGEST:
        return "inf" if value > 0 else "-inf"
    return "0" if abs(value) < _SMALLEST else repr(value)


def _decimal(value: Decimal) -> str | None:
    if not value.is_finite() or not -_MOST_DIGITS < value.adjusted() < _MOST_DIGITS:
        return "0" if value.is_zero() else None
    written = f"{value:f}"
    written = written.rstrip("0").rstrip(".") if "." in written else written
    return "0" if written in ("-0", "") else written


def _rounded(value: Decimal, column: Column | None) -> str | None:
    """Exactly rounded to the grain, half up, as a column of decimals is: what is left to read is on the grid."""
    assert isinstance(column, Number | Unbounded)
    if value.is_nan():
        return None
    if not value.is_finite() or value.adjusted() >= _MOST_DIGITS:
        return "inf" if value > 0 else "-inf"
    if value.adjusted() < -_MOST_DIGITS:
        return "0"
    index = math.floor(Fraction(value) / column.grain + Fraction(1, 2))
    exact = index * column.grain
    return _integer(int(exact), "number") if exact.denominator == 1 else _number(float(exact))


def _moment(value: datetime) -> str | None:
    if value != value:  # noqa: PLR0124  what pandas has for a moment that is missing
        return None
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return _without_zeros(value.isoformat(sep=" ")).removesuffix(_MIDNIGHT)


def _without_zeros(written: str) -> str:
    return written.rstrip("0").rstrip(".") if "." in written else written


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="ignore").decode() == text

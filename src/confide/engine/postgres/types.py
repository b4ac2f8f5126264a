"""The types of PostgreSQL that a policy's columns may have, and the SQL that reads them: the rules of docs/values.md.

A type is known by its number in the catalogue, never by its name: anybody may name a domain `timestamp_text`. Every
expression is total, in PostgreSQL 12 and newer, and depends on no setting of a session. What could raise stands behind
a condition of a CASE, which the database evaluates in order, and never behind an AND.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Final, Literal, assert_never

from confide.engine.sql.syntax import case, cast, text
from confide.policy import Column, Date, Number, Unbounded
from confide.policy.column import INDEX_LIMIT

Family = Literal[
    "integer", "decimal", "float", "boolean", "text", "uuid", "date", "timestamp", "moment", "time", "other"
]

_FAMILIES: Final[Mapping[int, Family]] = {
    16: "boolean", 20: "integer", 21: "integer", 23: "integer", 26: "integer", 700: "float", 701: "float",
    1700: "decimal", 19: "text", 25: "text", 1042: "text", 1043: "text", 2950: "uuid", 1082: "date",
    1114: "timestamp", 1184: "moment", 1083: "time",
}  # fmt: skip
"""By the number that a type of the system has in every database: bool, int8, int2, int4, oid, float4, float8, numeric,
name, text, bpchar, varchar, uuid, date, timestamp, timestamptz, time."""
_WORDS: Final[Mapping[Family, str]] = {
    "integer": "BIGINT", "decimal": "DECIMAL(38,10)", "float": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR",
    "uuid": "UUID", "date": "DATE", "timestamp": "TIMESTAMP", "moment": "TIMESTAMP", "time": "TIME",
}  # fmt: skip
_MOST_DIGITS: Final = 38
_HEADER, _SCALE_BITS = 4, 11
_EXACT: Final = (1 << 53) - 1
_FIRST_DAY, _LAST_DAY = "CAST('0001-01-01' AS DATE)", "CAST('9999-12-31' AS DATE)"
_MOMENT: Final = "'YYYY-MM-DD HH24:MI:SS.US'"
_SMALLEST: Final = 300
_LARGEST: Final = "1e308"
_NOT_A_NUMBER: Final = "CAST('NaN' AS NUMERIC)"


@dataclass(frozen=True, slots=True)
class PostgresType:
    """The type of a column, of a domain the one below it: its name, its family, and the digits of a decimal."""

    name: str
    family: Family
    digits: tuple[int, int] | None = None
    """In all, and after the point; None if a decimal may have any."""

    @property
    def words(self) -> str:
        """The type as DuckDB would name it, or the name that it has here."""
        if self.digits is not None:
            return f"DECIMAL({self.digits[0]},{self.digits[1]})"
        return _WORDS.get(self.family, f"the type {self.name}")


def stored_type(name: str, number: int, modifier: int, labels: bool) -> PostgresType:
    """A type from its row in the catalogue; `modifier` holds digits, `labels` are of an enumeration or of citext."""
    if labels:
        return PostgresType(name, "text")
    family = _FAMILIES.get(number, "other")
    return PostgresType(name, family, _digits(modifier) if family == "decimal" else None)


def _digits(modifier: int) -> tuple[int, int] | None:
    if modifier < _HEADER:
        return None
    width, low = (modifier - _HEADER) >> 16 & 0xFFFF, (modifier - _HEADER) & ((1 << _SCALE_BITS) - 1)
    scale = (low ^ 1 << _SCALE_BITS - 1) - (1 << _SCALE_BITS - 1)  # negative ones are written in two's complement
    return (width, scale) if width <= _MOST_DIGITS and 0 <= scale <= width else None


# --- reading ----------------------------------------------------------------------------------------------------------


def plain(column: Column | None, raw: str, stored: PostgresType) -> tuple[str, str]:
    """A type in DuckDB's words that a column can be given in, and the SQL that gives it so; None: nobody describes it.

    Numbers and days are given as such. For everything else, what is no text, whole number or boolean is given as its
    canonical text.
    """
    if stored.family == "moment":
        raw, stored = f"({raw} AT TIME ZONE 'UTC')", PostgresType(stored.name, "timestamp")
    match column, stored.family:
        case _, "integer":
            return "BIGINT", cast(raw, "BIGINT")
        case _, "boolean":
            return "BOOLEAN", raw
        case _, "text":
            return "VARCHAR", _as_bytes(cast(raw, "TEXT"))
        case Number() | Unbounded() | None, "decimal":
            return _decimal(column, raw, stored)
        case Number() | Unbounded() | Date() | None, "float":
            return "DOUBLE", cast(raw, "DOUBLE PRECISION")
        case Date(), "date" | "timestamp":
            return "DATE", cast(raw, "DATE")
        case None, "date":
            return "DATE", case([(_in_calendar(raw), raw)])  # the driver knows no others, and public days are told
    return "VARCHAR", _as_bytes(canonical_text(raw, stored.family))


def canonical_text(raw: str, family: Family) -> str:
    """The one text that stands for a value."""
    match family:
        case "float":
            value = cast(raw, "DOUBLE PRECISION")
            decimal = cast(value, "NUMERIC")  # 15 significant digits, whatever extra_float_digits says
            told = case([(f"{cast(decimal, 'DOUBLE PRECISION')} = {value}", cast(decimal, "TEXT"))])
            whole = (f"{value} = FLOOR({value})", cast(cast(value, "BIGINT"), "TEXT"))
            short = f"ABS({value}) >= {_double('0.0001')} AND ABS({value}) < {_double('1e15')}"
            # NaN is above every number.
            return case([(f"ABS({value}) <= {_double(str(_EXACT))}", case([whole, (short, told)]))])
        case "decimal":
            written = cast(raw, "TEXT")
            known = f"{written} NOT IN ('NaN', 'Infinity', '-Infinity')"
            whole = (f"{raw} = TRUNC({raw})", cast(f"TRUNC({raw})", "TEXT"))
            return case([(known, case([whole], f"RTRIM({written}, '0')"))])
        case "date":
            return case([(_in_calendar(raw), f"TO_CHAR({cast(raw, 'TIMESTAMP')}, 'YYYY-MM-DD')")])
        case "timestamp":
            day = cast(raw, "DATE")
            midnight = (f"{cast(day, 'TIMESTAMP')} = {raw}", f"TO_CHAR({raw}, 'YYYY-MM-DD')")
            moment = f"RTRIM(RTRIM(TO_CHAR({raw}, {_MOMENT}), '0'), '.')"
            return case([(_in_calendar(day), case([midnight], moment))])
        case "integer" | "boolean" | "text" | "uuid" | "moment" | "time" | "other":
            return cast(raw, "TEXT")
        case _:
            assert_never(family)


def _decimal(column: Number | Unbounded | None, raw: str, stored: PostgresType) -> tuple[str, str]:
    """A decimal of so many digits as it is; one of any number of digits cut to those that its grid can tell apart."""
    if stored.digits is not None:
        return stored.words, f"NULLIF({raw}, {_NOT_A_NUMBER})"
    cut = None if column is None else _cut(column, raw)
    if cut is None:
        # Beyond doubles, and too near 0 for them, a cast would raise.
        within = f"ROUND(LEAST(GREATEST({raw}, -{_LARGEST}), {_LARGEST}), {_SMALLEST})"
        cut = "DOUBLE", cast(within, "DOUBLE PRECISION")
    return cut[0], case([(f"{raw} <> {_NOT_A_NUMBER}", cut[1])])


def _cut(column: Number | Unbounded, raw: str) -> tuple[str, str] | None:
    """Halfway between two points of the grid is a number of few digits: those behind them decide no rounding."""
    ends = INDEX_LIMIT * column.grain
    low, high = (column.low, column.high) if isinstance(column, Number) else (-ends, ends)
    scales = (_scale(value) for value in (column.grain / 2, low, high))
    lowest = floor(low) - 1
    known = [scale for scale in scales if scale is not None]
    scale = max(known)
    width = len(str(max(abs(lowest), floor(abs(high)) + 1))) + scale
    if len(known) < 3 or width + scale + 1 > _MOST_DIGITS:
        return None
    inside = f"LEAST(GREATEST({raw}, {_written(low, scale)}), {_written(high, scale)})"
    return f"DECIMAL({width},{scale})", f"(TRUNC({inside} - ({lowest}), {scale}) + ({lowest}))"


def _scale(value: Fraction) -> int | None:
    """How many digits after the point a number has; None if they do not end."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _written(value: Fraction, scale: int) -> str:
    """A number of so many digits after the point, as one of the database's decimals."""
    return f"CAST({text(f'{value.numerator * 10**scale // value.denominator}e-{scale}')} AS NUMERIC)"


def _in_calendar(day: str) -> str:
    return f"{day} BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"


def _as_bytes(value: str) -> str:
    """Compared and ordered as bytes, whatever the database's collation is."""
    return f'({value}) COLLATE "C"'


def _double(written: str) -> str:
    return f"CAST({text(written)} AS DOUBLE PRECISION)"

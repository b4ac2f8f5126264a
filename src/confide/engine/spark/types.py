"""The types of Spark that a policy's columns may have, and the SQL that reads them: the rules of docs/values.md.

Every part of an expression is total by itself, in ANSI mode and without it: where a part stands more than once, Spark
may evaluate it before the condition that it stands behind. So none can raise, on whatever a row holds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

from confide.engine.sql.syntax import case, cast
from confide.policy import Category, Column, Date, Number, Unbounded

Family = Literal["integer", "decimal", "float", "boolean", "text", "date", "timestamp", "time", "nothing", "other"]

_FAMILIES: Final[Mapping[str, Family]] = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "integer", "float": "float",
    "double": "float", "boolean": "boolean", "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp",
    "void": "nothing", "string": "text",
}  # fmt: skip
_WORDS: Final[Mapping[Family, str]] = {
    "integer": "BIGINT", "float": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP",
    "time": "TIME", "nothing": "NULL", "text": "VARCHAR",
}  # fmt: skip
_PATTERNS: Final[Mapping[Family, str]] = {
    "decimal": r"decimal\((\d+),(\d+)\)",
    "text": r"string collate \w+|varchar\(\d+\)|char\(\d+\)",
    "time": r"time\(\d+\)",
}
_EXACT: Final = (1 << 53) - 1
_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_SIGNIFICANT: Final = 15
_LENGTHS: Final = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True, slots=True)
class SparkType:
    """The type of a column: its name, its family, and how many digits after the point a decimal has."""

    name: str
    family: Family
    scale: int = 0

    @property
    def words(self) -> str:
        """The type as DuckDB would name it, or the name that it has here."""
        return self.name.upper() if self.family == "decimal" else _WORDS.get(self.family, f"the type {self.name}")


def type_name(field: Any) -> str:
    """The type of a column of a frame; CHAR and VARCHAR are told beside it."""
    return str((field.metadata or {}).get(_LENGTHS) or field.dataType.simpleString())


def stored_type(name: str) -> SparkType:
    """A type by its whole name."""
    if name in _FAMILIES:
        return SparkType(name, _FAMILIES[name])
    for family, pattern in _PATTERNS.items():
        found = re.fullmatch(pattern, name)
        if found:
            return SparkType(name, family, int(found[2]) if family == "decimal" else 0)
    return SparkType(name, "other")


def plain(column: Column | None, raw: str, stored: SparkType) -> tuple[str, str]:
    """A type in DuckDB's words that a column can be given in, and the SQL that gives it so; None: nobody describes it.

    Numbers and days are given as such. For everything else, what is no text, whole number or boolean is given as its
    canonical text.
    """
    number = isinstance(column, Number | Unbounded) or column is None
    match stored.family:
        case "integer":
            return "BIGINT", raw if stored.name == "bigint" else cast(raw, "BIGINT")
        case "boolean" | "nothing":
            return stored.words, raw
        case "decimal" if number or stored.scale == 0:
            return stored.words, raw
        case "float" if number or isinstance(column, Date):
            return "DOUBLE", raw if stored.name == "double" else cast(raw, "DOUBLE")
        case "date" | "timestamp" if isinstance(column, Date):
            return "DATE", cast(raw, "DATE")
        case "date" if column is None:
            return "DATE", case([(_in_calendar(raw), raw)])  # Python knows no others, and public days are told
        case "text" if isinstance(column, Category):
            return "VARCHAR", _as_bytes(raw, stored)  # only what is listed is told
        case "other" if stored.name == "binary":
            return "VARCHAR", f"HEX({raw})"
    return "VARCHAR", canonical_text(raw, stored)


def canonical_text(raw: str, stored: SparkType) -> str:
    """The one text that stands for a value; bytes that are no text are NULL, since nobody could be told of them."""
    match stored.family:
        case "float":
            value = cast(raw, "DOUBLE")
            # Rounded to 15 significant digits: that is the value itself, or it has more of them.
            rounded = f"FORMAT_STRING('%.{_SIGNIFICANT - 1}e', {value})"
            decimal = _positional(f"TRY_CAST({rounded} AS DECIMAL(38, 20))", 20)
            told = case([(f"TRY_CAST({rounded} AS DOUBLE) = {value}", decimal)])
            whole = (f"{value} = RINT({value})", cast(f"TRY_CAST({value} AS BIGINT)", "STRING"))
            short = f"ABS({value}) >= {_double('0.0001')} AND ABS({value}) < {_double('1e15')}"
            # NaN is above every number.
            return case([(f"ABS({value}) <= {_double(str(_EXACT))}", case([whole, (short, told)]))])
        case "decimal":
            return _positional(raw, stored.scale)
        case "date":
            return case([(_in_calendar(raw), cast(raw, "STRING"))])
        case "timestamp":
            written = cast(raw, "STRING")
            midnight = (f"ENDSWITH({written}, ' 00:00:00')", f"SUBSTR({written}, 1, 10)")
            return case([(_in_calendar(cast(raw, "DATE")), case([midnight], written))])
        case "text":
            return f"TRY_VALIDATE_UTF8({_as_bytes(raw, stored)})"
        case "integer" | "boolean" | "time" | "nothing" | "other":
            return cast(raw, "STRING")
        case _:
            assert_never(stored.family)


def _as_bytes(raw: str, stored: SparkType) -> str:
    """A text that is compared as bytes; one of CHAR without the blanks that fill it up, as in other databases."""
    if stored.name == "string":
        return raw
    text = f"COLLATE({cast(raw, 'STRING')}, 'UTF8_BINARY')"
    return f"RTRIM({text})" if stored.name.startswith("char(") else text


def _positional(decimal: str, scale: int) -> str:
    """A decimal with as many digits after the point as it needs: a cast may write small ones with an exponent."""
    return f"FORMAT_NUMBER({decimal}, '0{'.' if scale else ''}{'#' * scale}')"


def _in_calendar(day: str) -> str:
    return f"{day} BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"


def _double(written: str) -> str:
    return f"CAST('{written}' AS DOUBLE)"

"""The canonical text of a stored value, and what a text says where the policy wants something else.

All of it is total, and the same on every engine (see `docs/values.md`). A text is cast only inside of a CASE whose
pattern admits nothing that the cast could refuse, and always as TRY_CAST of a TRIM: an engine without TRY_CAST may
cast it plainly. Patterns are of ASCII, without backslashes, and match the whole of a text.
"""

from typing import Final, assert_never

from confide.engine.sql.syntax import among, case, cast, double, text
from confide.engine.storage import Storage

LARGEST_EXACT: Final = 2**53
"""Whole doubles below this are the integers that they stand for."""
LEAST_POSITIONAL: Final = 1e-4
MOST_POSITIONAL: Final = 1e15
SIGNIFICANT: Final = 15
"""A decimal of so many digits is told apart from every other by its double."""
_NANOSECONDS: Final = 9
_FEW_DIGITS: Final = 18
"""Whole numbers of so many digits are short: 64 bits hold them."""

_SHORT: Final = f"[ ]*[+-]?[0-9]{{1,{_FEW_DIGITS}}}[ ]*"
_LONG: Final = "[ ]*[+-]?[0-9]{1,38}[ ]*"
_WHOLE: Final = "[ ]*[+-]?[0-9]{1,38}([.]0{0,100})?[ ]*"
_PLAIN: Final = "([0-9]{1,100}([.][0-9]{0,100})?|[.][0-9]{1,100})([eE][+-]?[0-9]{1,2})?"
_LARGE: Final = "([0-9]{1,8}([.][0-9]{0,17})?|[.][0-9]{1,17})[eE][+-]?([12][0-9]{2}|300)"
_ENDLESS: Final = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_NUMBER: Final = f"[ ]*[+-]?({_PLAIN}|{_LARGE}|{_ENDLESS})[ ]*"
_YEAR: Final = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP: Final = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAY: Final = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP}-02-29)"
)
_DATED: Final = f"[ ]*{_DAY}([ T].*)?"
_MOMENT: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9:.]*)?"
_FIRST: Final = "TIMESTAMP '0001-01-01 00:00:00'"
_LAST: Final = "TIMESTAMP '9999-12-31 23:59:59.999999'"
_WORD: Final = "[ ]*[a-zA-Z01.]{1,5}[ ]*"
_TRUE: Final = ("true", "t", "yes", "y", "1", "1.0")
_FALSE: Final = ("false", "f", "no", "n", "0", "0.0")


def matches(value: str, pattern: str) -> str:
    return f"REGEXP_FULL_MATCH({value}, {text(pattern)})"


# --- texts ------------------------------------------------------------------------------------------------------------


def text_of(value: str, storage: Storage) -> str:
    """The canonical text of a value: one for each, however it is stored."""
    written = cast(value, "VARCHAR")
    match storage.kind:
        case "text":
            return value if storage.exact else written
        case "float":
            return _float_text(value if storage.exact else cast(value, "DOUBLE"))
        case "decimal" if storage.scale > 0:
            return f"RTRIM(RTRIM({written}, '0'), '.')"
        case "date":
            return case([(matches(written, _MOMENT), written)])
        case "timestamp":
            fine = storage.scale == _NANOSECONDS
            moment = value if storage.exact else f"TRY_CAST({value} AS {'TIMESTAMP_NS' if fine else 'TIMESTAMP'})"
            if fine:
                return _moment_text(cast(moment, "VARCHAR"))
            # The first of all moments has no text, and DuckDB would end with it. It is cut off before the cast, since a
            # cast of repeated values is done for all of them, whatever CASE it stands in.
            told = _moment_text(cast(f"LEAST(GREATEST({moment}, {_FIRST}), {_LAST})", "VARCHAR"))
            return case([(f"{moment} BETWEEN {_FIRST} AND {_LAST}", told)])
        case "integer" | "wide integer" | "decimal" | "index" | "boolean" | "time" | "uuid" | "nothing" | "other":
            return written
        case _:
            assert_never(storage.kind)


def _float_text(value: str) -> str:
    """Whole numbers as digits; else a decimal of few digits, which every engine writes alike; else nothing.

    A NaN is none, also where an optimiser believes that all values are of few digits and that none is whole.
    """
    size, written = f"ABS({value})", cast(value, "VARCHAR")
    digits = f"LTRIM(REPLACE(REPLACE({written}, '-', ''), '.', ''), '0')"
    few = f"{size} >= {double(LEAST_POSITIONAL)} AND {size} < {double(MOST_POSITIONAL)}"
    return case(
        [
            (f"{value} = FLOOR({value}) AND {size} < {LARGEST_EXACT}", cast(f"TRY_CAST({value} AS BIGINT)", "VARCHAR")),
            (f"{few} AND LENGTH({digits}) <= {SIGNIFICANT} AND NOT ISNAN({value})", written),
        ]
    )


def _moment_text(written: str) -> str:
    """At midnight the day alone, since frames make moments of days."""
    known = matches(written, _MOMENT)
    return case([(f"{known} AND {written} LIKE '% 00:00:00'", f"SUBSTRING({written}, 1, 10)"), (known, written)])


# --- what a text says -------------------------------------------------------------------------------------------------


def short_number(value: str) -> tuple[str, str]:
    """Whether a text is a whole number of at most 18 digits, and that number."""
    return matches(value, _SHORT), f"TRY_CAST(TRIM({value}) AS BIGINT)"


def long_number(value: str) -> tuple[str, str]:
    """Whether a text is a whole number of at most 38 digits that is not short, and that number."""
    # The length first: most texts that are no short numbers are short fractions.
    return f"LENGTH({value}) > {_FEW_DIGITS} AND {matches(value, _LONG)}", f"TRY_CAST(TRIM({value}) AS HUGEINT)"


def any_number(value: str) -> tuple[str, str]:
    """Whether a text is a number, and the double nearest to it; no text that matches over- or underflows a double."""
    return matches(value, _NUMBER), f"TRY_CAST(TRIM({value}) AS DOUBLE)"


def whole_number(value: str) -> str:
    """The whole number that a text is, if 64 bits hold it."""
    return case([(matches(value, _WHOLE), f"TRY_CAST(TRY_CAST(TRIM({value}) AS HUGEINT) AS BIGINT)")])


def day(value: str) -> str:
    """The day that a text begins with; what is no day of the calendar matches no pattern."""
    return case([(matches(value, _DATED), f"TRY_CAST(TRIM(SUBSTRING(TRIM({value}), 1, 10)) AS DATE)")])


def truth(value: str) -> str:
    """What a word says."""
    word = f"LOWER(TRIM({value}))"
    # Which blanks TRIM takes away differs between engines.
    said = case([(among(word, _TRUE), "TRUE"), (among(word, _FALSE), "FALSE")])
    return case([(matches(value, _WORD), said)])

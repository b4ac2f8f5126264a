"""When values of two columns agree, and in which order nodes come: the same relations however columns are stored.

Every value has a class: a whole number below 2¹²⁶, an id or a text has its canonical text, which for a whole number is
its digits; a date its day; any other number its exact value. Values agree if their classes are the same, so
agreeing is transitive over columns of all kinds and grains, and chains of equal columns may be followed. What is
written here are ways to decide it in the fewest steps; each decides this relation.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Final, Literal

from confide.engine.sql.canonical_text import matches, text_of
from confide.engine.sql.syntax import case, cast, integer
from confide.engine.storage import Storage
from confide.policy import Date

LARGEST_TEXT: Final = 1 << 126
"""Whole numbers below this have a text."""
_WIDE: Final = 1 << 126
_INTEGER: Final = "0|-?[1-9][0-9]{0,37}"


@dataclass(frozen=True, slots=True)
class Joined:
    """What a join compares of a column. A number is an index of at most `reach` in magnitude, times `grain`."""

    sql: str
    kind: Literal["number", "day", "flag", "text"]
    grain: Fraction = Fraction(1)
    reach: int = 0


def on_one_grid(left: Joined, right: Joined) -> tuple[str, str]:
    """Two numbers as integers that are equal where the numbers are."""
    scale = lcm(left.grain.denominator, right.grain.denominator)
    factors = int(left.grain * scale), int(right.grain * scale)
    shared = gcd(*factors)
    first, second = factors[0] // shared, factors[1] // shared
    if left.reach * first < _WIDE and right.reach * second < _WIDE:
        return _times(left.sql, first), _times(right.sql, second)
    # Products would overflow. With no factor in common, left × first = right × second where both are multiples.
    return _share(left, second), _share(right, first)


def _times(value: str, factor: int) -> str:
    return value if factor == 1 else f"{cast(value, 'HUGEINT')} * {integer(factor)}"


def _share(joined: Joined, divisor: int) -> str:
    if divisor == 1:
        return joined.sql
    if divisor > joined.reach:
        return case([(f"{joined.sql} = 0", integer(0))])
    wide = cast(joined.sql, "HUGEINT")
    return case([(f"{wide} % {integer(divisor)} = 0", f"{wide} // {integer(divisor)}")])


def number_text(joined: Joined) -> str:
    """The digits of a number that is whole; NULL for one that no text agrees with."""
    whole, times = joined.grain.denominator, joined.grain.numerator
    if whole > joined.reach or times >= LARGEST_TEXT:
        return case([(f"{joined.sql} = 0", "'0'")])
    conditions = [] if whole == 1 else [f"{cast(joined.sql, 'HUGEINT')} % {integer(whole)} = 0"]
    value = joined.sql if whole == 1 else f"{cast(joined.sql, 'HUGEINT')} // {integer(whole)}"
    most = (LARGEST_TEXT - 1) // times
    if times > 1 and joined.reach // whole > most:
        conditions.append(f"{value} BETWEEN {integer(-most)} AND {integer(most)}")
    written = cast(value if times == 1 else f"({cast(value, 'HUGEINT')}) * {integer(times)}", "VARCHAR")
    return case([(" AND ".join(conditions), written)]) if conditions else written


def day_text(column: Date, value: str, storage: Storage) -> str:
    """The day, within the range of its column."""
    day = value if storage.kind == "date" else cast(value, "DATE")
    first, last = (f"DATE '{end.isoformat()}'" for end in (column.low, column.high))
    within = case([(f"{day} < {first}", first), (f"{day} > {last}", last)], day)
    return text_of(within, Storage("date"))


def text_order(value: str) -> tuple[str, ...]:
    """The order of canonical texts: whole numbers first, as numbers, then the others, shorter ones first, by bytes.

    So integers are in their own order, and a column of them need not be written out to be put in order.
    """
    number = case([(matches(value, _INTEGER), f"TRY_CAST(TRIM({value}) AS HUGEINT)")])
    return f"{number} NULLS LAST", f"LENGTH({value})", value

"""Parts of days: YEAR, QUARTER, MONTH, DAY and DATE_TRUNC of a date column.

A column's range is public, so a part is a list of stretches of days with a value each, and a row falls into one of them
by comparing. No engine's calendar is asked: all give the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.tree import Constant, Number, Span

_EPOCH: Final = date(1970, 1, 1)
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_VALUES: Final[dict[str, Callable[[date], int]]] = {
    "YEAR": lambda day: day.year,
    "QUARTER": lambda day: (day.month + 2) // 3,
    "MONTH": lambda day: day.month,
}
_NAMED: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.Day: "DAY",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartAsked:
    """A part of a day, `begins` if its first day is asked for, and of which day."""

    unit: str
    begins: bool
    day: exp.Expr


def part_asked_for(node: exp.Expr) -> PartAsked | None:
    """What a function asks of a day; None if it asks nothing of one."""
    match node:
        case exp.Year() | exp.Quarter() | exp.Month() | exp.Day():
            asked = PartAsked(_NAMED[type(node)], False, node.this)
        case exp.Extract():
            asked = PartAsked(node.this.name.upper(), False, node.expression)
        case exp.TimestampTrunc() | exp.DateTrunc():
            asked = PartAsked(node.args["unit"].name.upper(), True, node.this)
        case exp.Anonymous() if node.name.upper() in ("DATE_PART", "DATEPART") and len(node.expressions) == 2:
            asked = PartAsked(node.expressions[0].name.upper(), False, node.expressions[1])
        case _:
            return None
    if isinstance(asked.day, exp.TsOrDsToDate):
        asked = PartAsked(asked.unit, asked.begins, asked.day.this)
    known = ("YEAR", "QUARTER", "MONTH", "DAY") if not asked.begins else ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")
    if asked.unit not in known:
        raise QueryError(f"{shown(node)}: of a date there are {', '.join(known)}")
    return asked


def part_of(asked: PartAsked, day: Number, scope: Scope) -> Number:
    """A part of a date as a number, or as the date of its first day."""
    days = {"YEAR": 365, "QUARTER": 90, "MONTH": 28, "WEEK": 7}.get(asked.unit, 28)
    if 2 * (day.span.high - day.span.low) // days > scope.room.left:
        scope.room.take(scope.room.left + 1)  # before they are listed: a calendar has many weeks
    if not day.span.date:
        raise QueryError(f"{shown(asked.day)} is no date; {asked.unit} is of a date column")
    if asked.unit == "DAY":
        return day if asked.begins else _day_of_month(day, scope)
    if asked.begins:
        return _stretched(
            day, [(first, last, _date_constant(first)) for first, last in _stretches(asked.unit, day)], scope
        )
    value = _VALUES[asked.unit]
    found: list[tuple[date, date, Constant]] = []
    for first, last in _stretches(asked.unit, day):
        found.append((first, last, arithmetic.constant(Fraction(value(first)))))
    return _stretched(day, found, scope)


def _day_of_month(day: Number, scope: Scope) -> Number:
    first = part_of(PartAsked("MONTH", True, exp.Null()), day, scope)
    scope.room.repeat(day, 1)
    nth = arithmetic.add(arithmetic.subtract(day, first), arithmetic.constant(Fraction(1)))
    return arithmetic.narrowed(nth, Fraction(1), Fraction(31))


def _stretches(unit: str, day: Number) -> Iterator[tuple[date, date]]:
    """First and last days of every year, quarter, month or week (from Monday) that the range of a date touches."""
    low, high = (_EPOCH + timedelta(days=index) for index in (day.span.low, day.span.high))
    first: date | None = _beginning(unit, low)
    while first is not None and first <= high:
        after = _next(unit, first)
        yield first, date.max if after is None else after - timedelta(days=1)
        first = after


def _beginning(unit: str, day: date) -> date:
    if unit == "WEEK":
        return day - timedelta(days=min(day.weekday(), (day - date.min).days))
    months = _MONTHS[unit]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def _next(unit: str, first: date) -> date | None:
    """When the next one begins; None after the last that a calendar has."""
    try:
        if unit == "WEEK":
            return first + timedelta(days=7 - first.weekday())
        year, month = divmod(first.year * 12 + first.month - 1 + _MONTHS[unit], 12)
        return date(year, month + 1, 1)
    except (OverflowError, ValueError):
        return None


def _stretched(day: Number, stretches: list[tuple[date, date, Constant]], scope: Scope) -> Number:
    """The value of the stretch that a day falls into; they cover its whole range, in order."""
    scope.room.repeat(day, len(stretches) - 1)
    scope.room.take(2 * len(stretches))
    if len(stretches) == 1 and not day.span.nullable:
        return stretches[0][2]
    branches = tuple((arithmetic.compare("<=", day, _date_constant(last)), value) for _, last, value in stretches)
    if day.span.nullable:
        return arithmetic.choice(branches, None)
    return arithmetic.choice(branches[:-1], stretches[-1][2])


def _date_constant(day: date) -> Constant:
    index = (day - _EPOCH).days
    return Constant(index, Span(index, index, Fraction(1), nullable=False, date=True))

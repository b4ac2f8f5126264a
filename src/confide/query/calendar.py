"""Parts of days: YEAR, QUARTER, MONTH, WEEK, DAY, days of the week and of the year, and DATE_TRUNC of a date column.

A column's range is public, so a part is a list of stretches of days with a value each, and a row falls into one of them
by comparing; or it is a floor of the number of the day. No engine's calendar is asked: all give the same. Weeks are
those of ISO 8601: they begin on Monday, and the first of a year has its first Thursday.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.month import has_many_months, last_of_month, month_part
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.tree import Constant, Number, Span

_EPOCH: Final = date(1970, 1, 1)
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_VALUES: Final[dict[str, Callable[[date], int]]] = {
    "YEAR": lambda day: day.year,
    "QUARTER": lambda day: (day.month + 2) // 3,
    "MONTH": lambda day: day.month,
    "ISOYEAR": lambda day: day.year,
}
_NAMED: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.Day: "DAY", exp.DayOfMonth: "DAY",
    exp.Week: "WEEK", exp.WeekOfYear: "WEEK", exp.DayOfWeek: "DOW", exp.DayOfWeekIso: "ISODOW", exp.DayOfYear: "DOY",
}  # fmt: skip
_ALIASES: Final = {
    "DAYOFWEEK": "DOW", "WEEKDAY": "DOW", "DAYOFWEEKISO": "ISODOW", "DAYOFYEAR": "DOY", "WEEKOFYEAR": "WEEK",
    "WEEKISO": "WEEK", "ISOWEEK": "WEEK", "DAYOFMONTH": "DAY", "YEARS": "YEAR", "MONTHS": "MONTH", "DAYS": "DAY",
    "WEEKS": "WEEK", "QUARTERS": "QUARTER",
}  # fmt: skip
_PARTS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "ISODOW", "DOY", "ISOYEAR")
_STRETCHES: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")
_CLOCK: Final = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "EPOCH", "TIMEZONE")
_DAYS: Final = {"YEAR": 365, "ISOYEAR": 364, "DOY": 365, "QUARTER": 90, "MONTH": 28, "WEEK": 7}
_ANONYMOUS: Final = {"ISOYEAR": "ISOYEAR", "WEEKDAY": "DOW", "ISODOW": "ISODOW"}


@dataclass(frozen=True, slots=True)
class PartAsked:
    """A part of a day, `begins` if its first day is asked for, and of which day."""

    unit: str
    begins: bool
    day: exp.Expr


def part_asked_for(node: exp.Expr) -> PartAsked | None:
    """What a function asks of a day; None if it asks nothing of one."""
    match node:
        case exp.Hour() | exp.Minute() | exp.Second():
            asked = PartAsked(type(node).__name__.upper(), False, node.this)
        case exp.Extract():
            asked = PartAsked(node.this.name.upper(), False, node.expression)
        case exp.TimestampTrunc() | exp.DateTrunc():
            asked = PartAsked(node.args["unit"].name.upper(), True, node.this)
        case exp.Anonymous() if node.name.upper() in ("DATE_PART", "DATEPART") and len(node.expressions) == 2:
            asked = PartAsked(node.expressions[0].name.upper(), False, node.expressions[1])
        case exp.Anonymous() if node.name.upper() in _ANONYMOUS and len(node.expressions) == 1:
            asked = PartAsked(_ANONYMOUS[node.name.upper()], False, node.expressions[0])
        case _ if type(node) in _NAMED:
            asked = PartAsked(_NAMED[type(node)], False, node.this)
        case _:
            return None
    day = asked.day.this if isinstance(asked.day, exp.TsOrDsToDate) else asked.day
    asked = PartAsked(_ALIASES.get(asked.unit, asked.unit), asked.begins, day)
    known = _STRETCHES if asked.begins else _PARTS
    if asked.unit in _CLOCK:
        raise QueryError(
            f"{shown(node)}: a column of dates holds days, in UTC, and no hours; of a date there are {', '.join(known)}"
        )
    if asked.unit not in known:
        raise QueryError(f"{shown(node)}: of a date there are {', '.join(known)}")
    return asked


def part_of(asked: PartAsked, day: Number, scope: Scope) -> Number:
    """A part of a date as a number, or as the date of its first day."""
    require_date(asked.day, day, asked.unit)
    if asked.begins and asked.unit == "DAY":
        return day
    if asked.begins:
        _check_room(asked.unit, day, scope)
        return stretched(
            day, [(first, last, date_constant(first)) for first, last in stretches(asked.unit, day)], scope
        )
    match asked.unit:
        case "MONTH" | "QUARTER" | "DAY" if has_many_months(day):
            return month_part(asked.unit, day, scope)
        case "DAY":
            return _nth_day("MONTH", day, 31, scope)
        case "DOY":
            return _nth_day("YEAR", day, 366, scope)
        case "DOW" | "ISODOW":
            return _day_of_week(day, asked.unit == "ISODOW", scope)
        case "WEEK":
            nth = arithmetic.floored(_since("ISOYEAR", day, scope), Fraction(7))
            return arithmetic.narrowed(_plus(nth, 1), Fraction(1), Fraction(53))
    value = _VALUES[asked.unit]
    _check_room(asked.unit, day, scope)
    found: list[tuple[date, date, Constant]] = []
    for first, last in stretches(asked.unit, day):
        # A year of weeks may begin in the year before; three days later it has begun.
        inside = first + timedelta(days=3) if asked.unit == "ISOYEAR" else first
        found.append((first, last, arithmetic.constant(Fraction(value(inside)))))
    return stretched(day, found, scope)


def last_day_of(unit: str, day: Number, scope: Scope) -> Number:
    """The last day of the month, quarter or year that a date is in."""
    if unit == "MONTH" and has_many_months(day):
        return last_of_month(day, scope)
    _check_room(unit, day, scope)
    return stretched(day, [(first, last, date_constant(last)) for first, last in stretches(unit, day)], scope)


def require_date(node: exp.Expr, day: Number, what: str) -> None:
    if not day.span.date:
        raise QueryError(f"{shown(node)} is no date; {what} is of a date column")


def _check_room(unit: str, day: Number, scope: Scope) -> None:
    if 2 * (day.span.high - day.span.low) // _DAYS.get(unit, 28) > scope.room.left:
        scope.room.take(scope.room.left + 1)  # before they are listed: a calendar has many weeks


def _since(unit: str, day: Number, scope: Scope) -> Number:
    """How many days ago the month or year of a date began."""
    _check_room(unit, day, scope)
    first = stretched(day, [(own, last, date_constant(own)) for own, last in stretches(unit, day)], scope)
    scope.room.repeat(day, 1)
    past = arithmetic.subtract(day, first)
    return arithmetic.narrowed(past, Fraction(0), Fraction(370)) if unit == "ISOYEAR" else past


def _nth_day(unit: str, day: Number, most: int, scope: Scope) -> Number:
    return arithmetic.narrowed(_plus(_since(unit, day, scope), 1), Fraction(1), Fraction(most))


def _plus(inner: Number, amount: int) -> Number:
    return arithmetic.add(inner, arithmetic.constant(Fraction(amount)))


def _day_of_week(day: Number, iso: bool, scope: Scope) -> Number:
    """From Sunday, 0, to Saturday; or from Monday, 1, to Sunday. 1970-01-01 was a Thursday."""
    scope.room.repeat(day, 1)
    shifted = _plus(arithmetic.as_days(day), 3 if iso else 4)
    weeks = arithmetic.times(arithmetic.floored(shifted, Fraction(7)), Fraction(7))
    nth = arithmetic.narrowed(arithmetic.subtract(shifted, weeks), Fraction(0), Fraction(6))
    return _plus(nth, 1) if iso else nth


def stretches(unit: str, day: Number) -> Iterator[tuple[date, date]]:
    """First and last days of every year, quarter, month or week (from Monday) that the range of a date touches."""
    low, high = (_EPOCH + timedelta(days=index) for index in (day.span.low, day.span.high))
    first: date | None = _beginning(unit, low)
    while first is not None and first <= high:
        after = _next(unit, first)
        yield first, date.max if after is None else after - timedelta(days=1)
        first = after


def _beginning(unit: str, day: date) -> date:
    if unit == "ISOYEAR":
        return date.min if day.isocalendar().year < 1 else date.fromisocalendar(day.isocalendar().year, 1, 1)
    if unit == "WEEK":
        return day - timedelta(days=min(day.weekday(), (day - date.min).days))
    if unit == "DAY":
        return day
    months = _MONTHS[unit]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def _next(unit: str, first: date) -> date | None:
    """When the next one begins; None after the last that a calendar has."""
    try:
        if unit == "ISOYEAR":
            return date.fromisocalendar((first + timedelta(days=3)).isocalendar().year + 1, 1, 1)
        if unit in ("WEEK", "DAY"):
            return first + timedelta(days=1 if unit == "DAY" else 7 - first.weekday())
        year, month = divmod(first.year * 12 + first.month - 1 + _MONTHS[unit], 12)
        return date(year, month + 1, 1)
    except (OverflowError, ValueError):
        return None


def stretched(day: Number, stretches: list[tuple[date, date, Constant]], scope: Scope) -> Number:
    """The value of the stretch that a day falls into; they cover its whole range, in order."""
    scope.room.repeat(day, len(stretches) - 1)
    scope.room.take(2 * len(stretches))
    if len(stretches) == 1 and not day.span.nullable:
        return stretches[0][2]
    branches = tuple((arithmetic.compare("<=", day, date_constant(last)), value) for _, last, value in stretches)
    if day.span.nullable:
        return arithmetic.choice(branches, None)
    return arithmetic.choice(branches[:-1], stretches[-1][2])


def date_constant(day: date) -> Constant:
    index = (day - _EPOCH).days
    return Constant(index, Span(index, index, Fraction(1), nullable=False, date=True))

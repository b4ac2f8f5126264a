"""Days that are moved by an interval, and what lies between two of them.

Days and weeks are added as numbers. Months move a day to the same day of another month, or to its last: each month of
a short public range has its own shift, and of a long one the new day is computed by floors. DATE_DIFF counts how often
a month, quarter or year begins between two days: each is the difference of two numbers that are floors of the number of
a day. Weeks between two days are whole weeks.
"""

from calendar import monthrange
from datetime import date
from fractions import Fraction
from typing import Final, Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.calendar import date_constant, require_date, stretches
from confide.query.literal import bare
from confide.query.month import month_number, months_after
from confide.query.parse import shown
from confide.query.rewrite.constants import interval_of, months_later
from confide.query.scope import Scope
from confide.query.tree import Number
from confide.query.whole_numbers import truncated

_MOST_MONTHS: Final = 400
_PER_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200}


def moved(node: exp.Expr, day: Number, interval: exp.Expr, sign: Literal[1, -1], scope: Scope) -> Number:
    """A date plus or minus INTERVAL 3 DAY, WEEK, MONTH, QUARTER or YEAR."""
    require_date(node, day, "INTERVAL")
    found = interval_of(interval)
    if found is None:
        raise QueryError(
            f"{shown(node)}: a date is moved by whole days, weeks, months, quarters or years; "
            "write d + INTERVAL 3 MONTH"
        )
    days, months = found[0] * sign, found[1] * sign
    if months == 0:
        return arithmetic.shifted_days(day, days)
    try:
        if (day.span.high - day.span.low) // 30 > _MOST_MONTHS:
            return months_after(day, months, scope)
        shifts = [(last, _shifted(day, first, months, scope)) for first, last in stretches("MONTH", day)]
    except (OverflowError, ValueError):
        raise QueryError(f"{shown(node)} may be no day between the years 1 and 9999; move it by less") from None
    if len(shifts) == 1:
        return shifts[0][1]
    branches = tuple((arithmetic.compare("<=", day, date_constant(last)), value) for last, value in shifts)
    if day.span.nullable:
        return arithmetic.choice(branches, None)
    return arithmetic.choice(branches[:-1], shifts[-1][1])


def _shifted(day: Number, first: date, months: int, scope: Scope) -> Number:
    """A day of the month that begins at `first`, so many months later; not past the end of that month."""
    scope.room.repeat(day, 2)
    scope.room.take(4)
    there = months_later(first, months)
    own, other = (monthrange(begins.year, begins.month)[1] for begins in (first, there))
    later = arithmetic.shifted_days(day, (there - first).days)
    if own <= other:
        return arithmetic.narrowed(later, *(Fraction(date_constant(d).index) for d in (there, there.replace(day=own))))
    end = there.replace(day=other)
    past = arithmetic.compare(">", day, date_constant(first.replace(day=other)))
    late = arithmetic.choice(((past, date_constant(end)),), later)
    return arithmetic.narrowed(late, *(Fraction(date_constant(d).index) for d in (there, end)))


def between(node: exp.DateDiff, first: Number, last: Number, scope: Scope) -> Number:
    """DATE_DIFF(unit, first, last): how often a day, month, quarter or year begins after the first, up to the last."""
    for day, side in ((first, node.expression), (last, node.this)):
        require_date(side, day, "DATE_DIFF")
    unit = node.args.get("unit")
    name = "DAY" if unit is None else bare(unit).name.upper().removesuffix("S")
    if name == "DAY":
        return arithmetic.subtract(last, first)
    if not node.args.get("date_part_boundary"):
        raise QueryError(
            f"{shown(node)}: dialects differ in what {name.lower()}s between two days are; write the difference in "
            "days, `a - b`, or ask in DuckDB's dialect, where it is how often one begins"
        )
    if name == "WEEK":
        days = arithmetic.subtract(last, first)
        return truncated(arithmetic.times(days, Fraction(1, 7)), scope)
    if name not in _PER_MONTHS:
        raise QueryError(f"{shown(node)}: days, weeks, months, quarters and years between two dates are answered")
    numbers = [month_number(day, scope) for day in (last, first)]
    per = Fraction(_PER_MONTHS[name])
    return arithmetic.subtract(*(arithmetic.floored(own, per) if per > 1 else own for own in numbers))

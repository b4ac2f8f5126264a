"""Dates that are computed of constants: DATE '1998-12-01' - INTERVAL 90 DAY is a day, and written as one."""

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query.parse import shown

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,8}")
_DAYS: Final = {"DAY": 1, "WEEK": 7}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200}


def computed_days(select: exp.Select) -> exp.Select:
    """The query with every constant day plus or minus an interval as the day that it is."""
    if select.find(exp.Interval, exp.DateAdd, exp.DateSub) is None:
        return select
    result = select.copy()
    # From the inside out, so that DATE '2024-01-31' + INTERVAL 1 MONTH - INTERVAL 1 DAY is one day too.
    for node in reversed(list(result.walk())):
        if isinstance(node, exp.Add | exp.Sub | exp.DateAdd | exp.DateSub):
            day = _computed(node)
            if day is not None:
                node.replace(exp.Cast(this=exp.Literal.string(day.isoformat()), to=exp.DataType.build("date")))
    return result


def _computed(node: exp.Expr) -> date | None:
    day, moved = _day(node.this), node.expression
    if day is None and isinstance(node, exp.Add):
        day, moved = _day(node.expression), node.this
    if isinstance(node, exp.DateAdd | exp.DateSub) and not isinstance(moved, exp.Interval):
        moved = exp.Interval(this=moved, unit=node.args.get("unit"))
    if day is None or not isinstance(moved, exp.Interval):
        return None
    sign = -1 if isinstance(node, exp.Sub | exp.DateSub) else 1
    found = interval_of(moved)
    if found is None:
        return None
    try:
        days, months = found
        return months_later(day, sign * months) + timedelta(days=sign * days)
    except (OverflowError, ValueError):
        raise QueryError(f"{shown(node)} is no day between the years 1 and 9999") from None


def _day(node: exp.Expr) -> date | None:
    """The day that a constant says; None if it says none."""
    inner = node.unnest()
    cast = isinstance(inner, exp.Cast) and inner.to.is_type("date")
    if not cast and not (isinstance(inner, exp.Date) and not inner.expressions):
        return None
    inner = inner.this
    if not isinstance(inner, exp.Literal) or not inner.is_string:
        return None
    try:
        return date.fromisoformat(inner.name)
    except ValueError:
        return None


def interval_of(interval: exp.Expr) -> tuple[int, int] | None:
    """The days and the months of an interval of whole days, weeks, months, quarters or years; None of any other."""
    if not isinstance(interval, exp.Interval) or interval.this is None:
        return None
    unit, count = interval.args.get("unit"), interval.this.unnest()
    sign = -1 if isinstance(count, exp.Neg) else 1
    literal = count.this.unnest() if isinstance(count, exp.Neg) else count
    if unit is None or not isinstance(literal, exp.Literal) or _WHOLE.fullmatch(literal.name) is None:
        return None
    name, many = unit.name.upper().removesuffix("S"), sign * int(literal.name)
    if name in _DAYS:
        return many * _DAYS[name], 0
    return (0, many * _MONTHS[name]) if name in _MONTHS else None


def months_later(day: date, months: int) -> date:
    """The same day of another month, or its last day if it has no such day, as databases count."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))

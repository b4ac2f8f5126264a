"""Months that are computed are those of the calendar, also where a century has no leap day."""

from datetime import date, timedelta
from fractions import Fraction

import pytest

from confide.policy import Date
from confide.query.month import (
    MANY_MONTHS,
    has_many_months,
    last_of_month,
    month_key,
    month_number,
    month_part,
    months_after,
)
from confide.query.rewrite.constants import months_later
from confide.query.room import Room
from confide.query.tree import Field, Number, Reading, Span
from tests.engine.reference import Reference

EPOCH = date(1970, 1, 1)
YEARS = (1, 2, 3, 4, 5, 1599, 1600, 1601, 1699, 1700, 1899, 1900, 1901, 1999, 2000, 2001, 2004, 2099, 2100, 9999)


class Scoped:
    """All that a month asks of a scope."""

    def __init__(self) -> None:
        self.room = Room()


def dates(low: date, high: date) -> Reading:
    first, last = ((day - EPOCH).days for day in (low, high))
    return Reading(Field("s", Date("d", low, high)), Span(first, last, Fraction(1), date=True))


ALL = dates(date.min, date.max)


def value(node: Number, day: date) -> int | None:
    return Reference({}).number(node, {"s": {"d": day}})


@pytest.mark.parametrize("year", YEARS)
def test_every_day_of_a_year_has_its_month(year: int) -> None:
    scope = Scoped()
    number = month_number(ALL, scope)  # type: ignore[arg-type]
    parts = {unit: month_part(unit, ALL, scope) for unit in ("MONTH", "QUARTER", "DAY")}  # type: ignore[arg-type]
    day, steps = date(year, 1, 1), 0
    while day.year == year and steps < 366:
        near = day.day < 3 or day.day > 26 or steps % 7 == 0
        if near:
            assert value(number, day) == 12 * day.year + day.month - 1
            assert [value(parts[unit], day) for unit in parts] == [day.month, (day.month + 2) // 3, day.day]
        if day == date.max:
            break
        day, steps = day + timedelta(days=1), steps + 1


@pytest.mark.parametrize("unit", ["MONTH", "QUARTER"])
def test_groups_are_called_by_their_first_days(unit: str) -> None:
    low, high = date(1890, 5, 17), date(2105, 8, 2)
    key = month_key(unit, dates(low, high), Scoped())  # type: ignore[arg-type]
    months = 3 if unit == "QUARTER" else 1
    for year in (1890, 1899, 1900, 2000, 2100, 2105):
        for month in range(1, 13):
            day = date(year, month, 1 + month)
            if low <= day <= high:
                place = value(key.number, day)
                assert place is not None
                assert key.labels[place] == date(year, (month - 1) // months * months + 1, 1)
    assert key.labels[0] == date(1890, 5 if months == 1 else 4, 1)
    assert key.labels[-1] == date(2105, 8 if months == 1 else 7, 1)
    assert key.count == len(key.labels)


def test_few_months_are_listed() -> None:
    assert not has_many_months(dates(date(2000, 1, 1), date(2019, 12, 31)))
    assert has_many_months(dates(date(2000, 1, 1), date(2020, 1, 1)))
    assert MANY_MONTHS == 20 * 12


@pytest.mark.parametrize("months", [1, -1, 3, 11, 12, -25, 1200, -4799])
def test_months_are_added_as_databases_count(months: int) -> None:
    """Also from the last days of a month into a shorter one, and over centuries without a leap day."""
    low, high = (date(1700, 1, 1), date(2404, 12, 31)) if months > -4000 else (date(450, 1, 1), date(2404, 12, 31))
    node = months_after(dates(low, high), months, Scoped())  # type: ignore[arg-type]
    month_end = last_of_month(dates(low, high), Scoped())  # type: ignore[arg-type]
    assert node.span.date
    ends = [(months_later(day, months) - EPOCH).days for day in (low, high)]
    assert [node.span.low, node.span.high] == ends
    for year in (1700, 1703, 1704, 1899, 1900, 1903, 1999, 2000, 2003, 2004, 2099, 2100, 2404):
        for month in range(1, 13):
            for nth in (1, 15, 27, 28, 29, 30, 31):
                try:
                    day = date(year, month, nth)
                except ValueError:
                    continue
                assert value(node, day) == (months_later(day, months) - EPOCH).days, day
                last = months_later(day.replace(day=1), 1) - timedelta(days=1)
                assert value(month_end, day) == (last - EPOCH).days, day


def test_a_date_is_not_moved_out_of_the_calendar() -> None:
    for months in (12, 12 * 9_999):
        with pytest.raises((OverflowError, ValueError)):
            months_after(ALL, months, Scoped())  # type: ignore[arg-type]

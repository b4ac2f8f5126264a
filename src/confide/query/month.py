"""Months of days by floors of their numbers: for ranges of dates with too many months to list."""

from calendar import monthrange
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

from confide.query import number as arithmetic
from confide.query.rewrite.constants import months_later
from confide.query.scope import Scope
from confide.query.tree import BinnedKey, Number

MANY_MONTHS: Final = 240
"""From so many on months are computed; fewer are listed."""

_EPOCH: Final = date(1970, 1, 1)
_MARCH_OF_YEAR_0: Final = 719_468
"""Days from 0000-03-01 to 1970-01-01: a year that begins in March has its leap day at its end."""
_DAYS_OF_400_YEARS: Final = 146_097
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3}


def has_many_months(day: Number) -> bool:
    low, high = _ends(day)
    return high - low >= MANY_MONTHS


def month_number(day: Number, scope: Scope) -> Number:
    """12 × year + month - 1."""
    year, nth = _from_march(day, scope)
    number = _plus(arithmetic.add(_times(year, 12), _month_from_march(nth)), 2)
    return _within(number, *_ends(day))


def month_part(unit: str, day: Number, scope: Scope) -> Number:
    """The MONTH, the QUARTER, or the DAY of the month."""
    if unit == "DAY":
        _, nth = _from_march(day, scope)
        begun = _floor(_plus(_times(_month_from_march(nth), 153), 2), 5)
        return _within(_plus(arithmetic.subtract(nth, begun), 1), 1, 31)
    number = month_number(day, scope)
    scope.room.repeat(number, 1)
    month = _within(arithmetic.subtract(number, _times(_floor(number, 12), 12)), 0, 11)
    return _plus(_floor(month, _MONTHS[unit]), 1)


def months_after(day: Number, months: int, scope: Scope) -> Number:
    """The same day so many months later, or the last of that month if it has no such day.

    A month begins so many days after the first of March of year 0; the next one begins the day after its last.
    """
    first, last = (_moved(index, months) for index in (day.span.low, day.span.high))
    year, nth = _from_march(day, scope)
    scope.room.repeat(nth, 2)
    month = _month_from_march(nth)
    past = _within(arithmetic.subtract(nth, _floor(_plus(_times(month, 153), 2), 5)), 0, 30)
    number = _plus(arithmetic.add(_times(year, 12), month), months)
    scope.room.repeat(number, 14)
    same = arithmetic.add(_first_of_month(number), past)
    later = arithmetic.extreme("least", same, _plus(_first_of_month(_plus(number, 1)), -1))
    return arithmetic.as_date(later, first, last)


def last_of_month(day: Number, scope: Scope) -> Number:
    """The last day of the month that a date is in."""
    year, nth = _from_march(day, scope)
    number = _plus(arithmetic.add(_times(year, 12), _month_from_march(nth)), 1)
    scope.room.repeat(number, 6)
    high = _EPOCH + timedelta(days=day.span.high)
    last = high.replace(day=monthrange(high.year, high.month)[1])
    return arithmetic.as_date(_plus(_first_of_month(number), -1), day.span.low, (last - _EPOCH).days)


def month_key(unit: str, day: Number, scope: Scope) -> BinnedKey:
    """A group for every month or quarter, called by its first day."""
    length = _MONTHS[unit]
    low, high = (end // length for end in _ends(day))
    begins = (divmod(place * length, 12) for place in range(low, high + 1))
    labels = tuple(date(year, month + 1, 1) for year, month in begins)
    place = _within(_plus(_floor(month_number(day, scope), length), -low), 0, high - low)
    return BinnedKey("", place, 0, 1, len(labels), "number", labels=labels)


def _from_march(day: Number, scope: Scope) -> tuple[Number, Number]:
    """The year that began in March, and how many of its days are over.

    `z` counts days from 0000-03-01 on, when a leap day is the last of its year. With the days put back that three of
    four centuries lack, four years have 1461 days.
    """
    scope.room.repeat(day, 11)
    scope.room.take(60)
    z = _plus(arithmetic.as_days(day), _MARCH_OF_YEAR_0)
    century = _floor(_plus(_times(z, 4), 3), _DAYS_OF_400_YEARS)
    julian = arithmetic.subtract(arithmetic.add(z, century), _floor(century, 4))
    quarters = _plus(_times(julian, 4), 3)
    year = _floor(quarters, 1461)
    return year, _within(_floor(_within(arithmetic.subtract(quarters, _times(year, 1461)), 0, 1460), 4), 0, 365)


def _month_from_march(nth: Number) -> Number:
    """Five months of a year that begins in March have 153 days."""
    return _within(_floor(_plus(_times(nth, 5), 2), 153), 0, 11)


def _first_of_month(number: Number) -> Number:
    """The day on which a month begins, from its number since March of year 0."""
    year = _floor(number, 12)
    month = _within(arithmetic.subtract(number, _times(year, 12)), 0, 11)
    leap = arithmetic.add(arithmetic.subtract(_floor(year, 4), _floor(year, 100)), _floor(year, 400))
    before = arithmetic.add(arithmetic.add(_times(year, 365), leap), _floor(_plus(_times(month, 153), 2), 5))
    return _plus(before, -_MARCH_OF_YEAR_0)


def _moved(index: int, months: int) -> int:
    """The number of a day that is so many months later; raises where there is none."""
    return (months_later(_EPOCH + timedelta(days=index), months) - _EPOCH).days


def _ends(day: Number) -> tuple[int, int]:
    """The numbers of the first and of the last month."""
    low, high = (_EPOCH + timedelta(days=index) for index in (day.span.low, day.span.high))
    return 12 * low.year + low.month - 1, 12 * high.year + high.month - 1


def _plus(inner: Number, amount: int) -> Number:
    return arithmetic.add(inner, arithmetic.constant(Fraction(amount)))


def _times(inner: Number, factor: int) -> Number:
    return arithmetic.times(inner, Fraction(factor))


def _floor(inner: Number, divisor: int) -> Number:
    return arithmetic.floored(inner, Fraction(divisor)) if divisor > 1 else inner


def _within(inner: Number, low: int, high: int) -> Number:
    return arithmetic.narrowed(inner, Fraction(low), Fraction(high))

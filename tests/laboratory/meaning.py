"""What a value means, after docs/values.md alone: in plain Python, without a database, to compare databases with."""

import re
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from math import floor, isfinite, isnan
from typing import Any, Final
from uuid import UUID

_SHORT: Final = r"([0-9]{1,100}(\.[0-9]{0,100})?|\.[0-9]{1,100})([eE][+-]?[0-9]{1,2})?"
_LARGE: Final = r"([0-9]{1,8}(\.[0-9]{0,17})?|\.[0-9]{1,17})[eE][+-]?([12][0-9]{2}|300)"
NUMBER: Final = rf" *[+-]?({_SHORT}|{_LARGE}|[iI][nN][fF]([iI][nN][iI][tT][yY])?) *"
WHOLE: Final = r" *([+-]?[0-9]{1,38})(\.0{0,100})? *"
DAY: Final = r" *([0-9]{4}-[0-9]{2}-[0-9]{2})([ T][^\n]*)?"
YES: Final = ("true", "t", "yes", "y", "1", "1.0")
NO: Final = ("false", "f", "no", "n", "0", "0.0")


class Beyond:
    """A day or a moment that no calendar of Python holds: before all others, or after them."""

    def __init__(self, sign: int) -> None:
        self.sign = sign


def canonical(value: Any) -> str | None:
    match value:
        case None | Beyond():
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value)
        case Decimal():
            return _decimal_text(value) if value.is_finite() else None
        case datetime():
            if value.time() == time():
                return value.date().isoformat()
            fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
            return f"{value.date().isoformat()} {value:%H:%M:%S}{fraction}"
        case date():
            return value.isoformat()
        case time():
            return value.isoformat().rstrip("0") if value.microsecond else value.isoformat()
        case int() | str() | UUID():
            return str(value)
    raise AssertionError(value)


def _float_text(value: float) -> str | None:
    if not isfinite(value):
        return None
    if value == floor(value):
        return str(int(value)) if abs(value) < 2**53 else None
    short = f"{value:.15g}"
    return _decimal_text(Decimal(short)) if 1e-4 <= abs(value) < 1e15 and float(short) == value else None


def _decimal_text(value: Decimal) -> str:
    written = format(value, "f")
    written = written.rstrip("0").rstrip(".") if "." in written else written
    return "0" if written in ("-0", "") else written


def index(value: Any, low: Fraction, high: Fraction, grain: Fraction) -> int | None:
    """A number on its grid."""
    if isinstance(value, str):
        if re.fullmatch(r" *[+-]?[0-9]{1,38} *", value):
            value = int(value)
        elif re.fullmatch(NUMBER, value):
            value = float(value)
        else:
            return None
    if value is None or isnan(value):
        return None
    if isinstance(value, float):
        if value <= low or value >= high:
            return int((low if value <= low else high) / grain)
        if value == floor(value) and abs(value) < 2**53:
            return floor(Fraction(value) / grain + Fraction(1, 2))
        return floor(value * grain.denominator / grain.numerator + 0.5)
    if isinstance(value, Decimal) and value.is_infinite():
        return int((low if value < 0 else high) / grain)
    return floor(min(max(Fraction(value), low), high) / grain + Fraction(1, 2))


def whole(value: Any) -> int | None:
    match value:
        case None:
            return None
        case str():
            found = re.fullmatch(WHOLE, value)
            number = int(found[1]) if found else None
        case float():
            number = int(value) if isfinite(value) and value == floor(value) and abs(value) < 2**53 else None
        case Decimal():
            number = int(value) if value.is_finite() and value == value.to_integral_value() else None
        case _:
            number = int(value)
    return number if number is not None and -(2**63) <= number < 2**63 else None


def flag(value: Any) -> bool | None:
    if isinstance(value, str):
        word = value.strip(" ").lower()
        return True if word in YES else False if word in NO else None
    return None if value is None else True if value == 1 else False if value == 0 else None


def day(value: Any, low: date, high: date) -> date | None:
    match value:
        case Beyond():
            return low if value.sign < 0 else high
        case datetime():
            value = value.date()
        case str():
            found = re.fullmatch(DAY, value)
            try:
                value = date.fromisoformat(found[1]) if found else None
            except ValueError:
                return None
    return min(max(value, low), high) if isinstance(value, date) else None

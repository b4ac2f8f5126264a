"""How many digits of a number are worth showing: as many as its interval tells apart.

The half-width of an interval is shown to two digits, and what it belongs to as far. The ends are rounded outwards, so
that an interval that is shown holds whatever the exact one holds. Numbers that are taken elsewhere are not rounded.
"""

from collections.abc import Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from math import floor, isfinite, isinf, log10
from typing import Final

NO_INFORMATION: Final = "no information"
"""What is said in place of a number whose interval is the whole range: any number there would be made up."""

_KEPT: Final = 2
_EXACT: Final = Context(prec=10_000)
_LONGEST: Final = 15
_LISTED: Final = 6


def number(value: float | str | date | None) -> str:
    """Enough digits to be exact for integers, and six significant ones otherwise; truths and texts in words."""
    if value is None:
        return "NULL"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool | str):
        return value if isinstance(value, str) else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e15:
        return f"{value:.6g}"
    if abs(value) >= 1000:
        return f"{value:,.1f}"
    return f"{value:.6g}"


Shown = int | float | str | date | None


def with_interval(value: Shown, low: Shown, high: Shown) -> tuple[str, str]:
    """An estimate and its interval, as they are shown."""
    if any(part is None or isinstance(part, bool | str | date) for part in (value, low, high)):
        return number(value), f"{number(low)} … {number(high)}"
    assert not isinstance(value, str | date | None)
    assert not isinstance(low, str | date | None)
    assert not isinstance(high, str | date | None)
    place = _place(low, high, all(isinstance(part, int) for part in (value, low, high)))
    if place is None:
        return number(value), f"{number(low)} … {number(high)}"
    ends = _cut(low, place, ROUND_FLOOR), _cut(high, place, ROUND_CEILING)
    return _cut(value, place, ROUND_HALF_EVEN), " … ".join(ends)


def possible_values(values: Sequence[Shown]) -> str:
    """Which values are possible, in words; of many the first and the last."""
    if len(values) <= _LISTED:
        return ", ".join(map(_named, values))
    return f"{_named(values[0])} … {_named(values[-1])} ({len(values):,} values)"


def _named(value: Shown) -> str:
    """As the key of a group: a year has no comma."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else number(value)


def half_width(half: float) -> str:
    """The half-width of an interval, rounded up to two digits."""
    if not isfinite(half) or half <= 0:
        return number(half)
    return _cut(half, floor(log10(half)) - _KEPT + 1, ROUND_CEILING)


def _place(low: float, high: float, whole: bool) -> int | None:
    """The power of ten of the last digit that is shown; None where an interval says nothing of digits."""
    if not (_finite(low) and _finite(high)) or high <= low:
        return None
    # Not the difference of the doubles: whole numbers may be longer than those.
    width = _EXACT.divide(_EXACT.subtract(_decimal(high), _decimal(low)), Decimal(2))
    place = width.adjusted() - _KEPT + 1
    return max(place, 0) if whole else place


def _cut(value: float, place: int, rounding: str) -> str:
    exact = _decimal(value).quantize(Decimal(1).scaleb(place), rounding, _EXACT)
    if exact.is_zero():
        exact = abs(exact)  # no minus zero
    if exact.adjusted() >= _LONGEST or place < -_LONGEST:
        digits = max(exact.adjusted() - place, 0)
        return f"{exact:.{digits}e}"
    return f"{exact:,.{max(-place, 0)}f}"


def _decimal(value: float) -> Decimal:
    """As it is written: the double nearest to 8.511 is no reason to show 8.510."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))


def _finite(value: float) -> bool:
    return isinstance(value, int) or isfinite(value)

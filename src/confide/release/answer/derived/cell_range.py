"""What is known of one cell: its estimate, and between which ends the exact answer lies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isnan
from typing import Any, Final

from confide.mechanism import Assumes
from confide.mechanism.interval.interval import nearest_double

EXACT: Final = 2.0**53


@dataclass(frozen=True, slots=True)
class CellRange:
    """`value`, or None where the estimate is NULL. `low` and `high` are None where the exact answer can only be NULL;
    `missing` says that it may be. Of truths False comes before True. `options` are the texts that there may be, in the
    order in which CASE names them; `low` and `high` are the first and the last of them.
    """

    value: Any
    low: Any
    high: Any
    missing: bool = False
    whole: bool = False
    assumes: Assumes = "always"
    options: tuple[str, ...] = ()


NULL: Final = CellRange(None, None, None, missing=True)


def point(value: Any) -> CellRange:
    """What is known exactly."""
    if value is None:
        return NULL
    if isinstance(value, str):
        return CellRange(value, value, value, options=(value,))
    if isinstance(value, Fraction):
        whole = value.denominator == 1
        number = int(value) if whole else nearest_double(value)
        return CellRange(number, number, number, whole=whole)
    return CellRange(value, value, value)


def assumed(parts: Sequence[CellRange]) -> Assumes:
    return "density" if any(part.assumes == "density" for part in parts) else "always"


def double(value: Any) -> float:
    return value if isinstance(value, float) else nearest_double(Fraction(value))


def number(value: float | None, low: float, high: float, parts: Sequence[CellRange], whole: bool = False) -> CellRange:
    """A number inside its interval: an end that is not defined is infinite, an estimate that is not is NULL."""
    low, high = (-inf if isnan(low) else low), (inf if isnan(high) else high)
    low, high = min(low, high), max(low, high)
    if value is None or isnan(value):
        shown: float | None = None
    else:
        shown = min(max(value, low), high)
        if shown in (inf, -inf):
            shown = None
    missing = any(part.missing for part in parts)
    if whole:
        return CellRange(_whole(shown), _whole(low), _whole(high), missing, True, assumed(parts))
    return CellRange(shown, low, high, missing, False, assumed(parts))


def _whole(value: float | None) -> Any:
    return int(value) if value is not None and abs(value) < EXACT else value


def strict(function: Callable[[Sequence[CellRange]], CellRange]) -> Callable[[Sequence[CellRange]], CellRange]:
    """NULL where any argument can only be NULL."""

    def called(parts: Sequence[CellRange]) -> CellRange:
        return NULL if any(part.low is None for part in parts) else function(parts)

    return called


def hull(parts: Sequence[CellRange], value: Any, missing: bool) -> CellRange:
    """What holds whichever of the parts it is; `missing` if it may be NULL beside that."""
    known = [part for part in parts if part.low is not None]
    missing = missing or any(part.missing for part in parts)
    if not known:
        return NULL
    options = tuple(dict.fromkeys(option for part in known for option in part.options))
    if options:
        return CellRange(value, options[0], options[-1], missing, options=options, assumes=assumed(known))
    low, high = min(part.low for part in known), max(part.high for part in known)
    whole = all(part.whole for part in known)
    return replace(CellRange(value, low, high, missing, whole, assumed(known)))

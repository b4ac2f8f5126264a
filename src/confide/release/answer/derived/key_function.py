"""Functions of keys: what they make of public values is public."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from confide.query.comparison import matches
from confide.release.answer.derived.cell_range import CellRange, point, strict

Ranges = Sequence[CellRange]
OfKeys = Callable[[Ranges], CellRange]


def of_key(function: Callable[..., Any]) -> OfKeys:
    """A function of public values."""

    def ranged(parts: Ranges) -> CellRange:
        return point(function(*(part.value for part in parts)))

    return strict(ranged)


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def like(ignore_case: bool) -> OfKeys:
    return of_key(lambda value, pattern: matches(pattern, value, ignore_case))


def part_between(value: str, start: int, length: int | None = None) -> str:
    begin = int(start) - 1
    end = len(value) if length is None else begin + int(length)
    return value[max(begin, 0) : max(end, 0)]


def part_of(value: str, size: int, left: bool) -> str:
    own = int(size)
    if left:
        return value[:own]
    return value[-own:] if own > 0 else value[-own:] if own < 0 else ""

"""Aggregates over released rows of which some may not be there: a row counts surely, perhaps, or not.

Every bound here holds for whatever numbers lie in the intervals and whichever of the uncertain rows are there.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import inf
from typing import Final

from confide.release.answer.derived.cell_range import NULL, CellRange, double, number

Rows = Sequence[tuple[CellRange, CellRange]]
"""Whether each row is there, and its number."""


def _total(numbers: Iterable[float]) -> float:
    """Without an error where a sum passes the doubles: it is infinite then, or not a number."""
    listed = list(numbers)
    try:
        return math.fsum(listed)
    except (OverflowError, ValueError):
        return sum(listed)


def _present(rows: Rows) -> list[float]:
    """The numbers that are estimated to be there."""
    return [double(own.value) for there, own in rows if there.value is True and own.value is not None]


def _sure(there: CellRange, own: CellRange) -> bool:
    return there.low is True and not there.missing and own.low is not None and not own.missing


def _possible(there: CellRange, own: CellRange) -> bool:
    return there.high is True and own.low is not None


def _parts(rows: Rows) -> list[CellRange]:
    return [part for row in rows for part in row if not part.missing or part.low is not None]


def _found(value: float | None, low: float, high: float, rows: Rows, whole: bool = False) -> CellRange:
    """A number that is NULL if no row is there."""
    result = number(value, low, high, _parts(rows), whole)
    missing = not any(_sure(*row) for row in rows)
    return CellRange(result.value, result.low, result.high, missing, whole, result.assumes)


def _sum(rows: Rows) -> CellRange:
    low = high = 0.0
    for there, own in rows:
        if not _possible(there, own):
            continue
        least, most = double(own.low), double(own.high)
        sure = _sure(there, own)
        low, high = low + (least if sure else min(least, 0.0)), high + (most if sure else max(most, 0.0))
    if not any(_possible(*row) for row in rows):
        return NULL
    present = _present(rows)
    whole = all(own.whole for _, own in rows if own.low is not None)
    return _found(_total(present) if present else None, low, high, rows, whole)


def _count(rows: Rows) -> CellRange:
    sure, possible = (sum(test(*row) for row in rows) for test in (_sure, _possible))
    estimate = sum(there.value is True and own.value is not None for there, own in rows)
    found = number(float(estimate), float(sure), float(possible), _parts(rows), whole=True)
    return CellRange(found.value, found.low, found.high, False, True, found.assumes)


def _average(rows: Rows) -> CellRange:
    kept = [(there, own) for there, own in rows if _possible(there, own)]
    if not kept:
        return NULL
    present = _present(rows)
    value = _total(present) / len(present) if present else None
    if all(_sure(*row) for row in kept):
        low, high = (sum(double(getattr(own, end)) for _, own in kept) / len(kept) for end in ("low", "high"))
    else:
        low, high = min(double(own.low) for _, own in kept), max(double(own.high) for _, own in kept)
    return _found(value, low, high, rows)


def _extreme(largest: bool) -> Callable[[Rows], CellRange]:
    pick, other = (max, min) if largest else (min, max)
    far, near = ("high", "low") if largest else ("low", "high")

    def found(rows: Rows) -> CellRange:
        kept = [(there, own) for there, own in rows if _possible(there, own)]
        if not kept:
            return NULL
        present = _present(rows)
        outer = pick(double(getattr(own, far)) for _, own in kept)
        sure = [double(getattr(own, near)) for there, own in kept if _sure(there, own)]
        inner = pick(sure) if sure else other(double(getattr(own, near)) for _, own in kept)
        whole = all(own.whole for _, own in kept)
        ends = (inner, outer) if largest else (outer, inner)
        return _found(pick(present) if present else None, *ends, rows, whole)

    return found


def _quantile(share: Fraction, continuous: bool) -> Callable[[Rows], CellRange]:
    """It grows with every number, so that ends give ends; over uncertain rows it lies between the extremes."""

    def at(numbers: list[float]) -> float:
        ordered = sorted(numbers)
        if not continuous:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        if ordered[below] == ordered[above]:
            return ordered[below]
        return ordered[below] + float(place - below) * (ordered[above] - ordered[below])

    def found(rows: Rows) -> CellRange:
        kept = [(there, own) for there, own in rows if _possible(there, own)]
        if not kept:
            return NULL
        present = _present(rows)
        value = at(present) if present else None
        if all(_sure(*row) for row in kept):
            return _found(value, at([double(o.low) for _, o in kept]), at([double(o.high) for _, o in kept]), rows)
        return _found(value, min(double(o.low) for _, o in kept), max(double(o.high) for _, o in kept), rows)

    return found


def _spread(sample: bool, root: bool) -> Callable[[Rows], CellRange]:
    """A standard deviation is a seminorm: |sd(x + e) - sd(x)| <= sd(e) <= √(Σe² / (n - 1)), with n for a population."""

    def found(rows: Rows) -> CellRange:
        kept = [(there, own) for there, own in rows if _possible(there, own)]
        if len(kept) < 1 + sample:
            return NULL
        present = _present(rows)
        value = _deviation(present, sample)
        if not all(_sure(*row) for row in kept):
            # Of numbers between two ends the deviation is at most half their distance, a little more of a sample.
            width = max(double(own.high) for _, own in kept) - min(double(own.low) for _, own in kept)
            low, high = 0.0, width / 2 * (math.sqrt(2) if sample else 1.0)
        else:
            lows, highs = ([double(getattr(own, end)) for _, own in kept] for end in ("low", "high"))
            middle = _deviation([low / 2 + high / 2 for low, high in zip(lows, highs, strict=True)], sample)
            squares = _total((high / 2 - low / 2) * (high / 2 - low / 2) for low, high in zip(lows, highs, strict=True))
            around = math.sqrt(squares / (len(kept) - sample))
            low, high = (max(middle - around, 0.0), middle + around) if middle is not None else (0.0, inf)
        if root:
            return _found(value, low, high, rows)
        return _found(None if value is None else value * value, low * low, high * high, rows)

    return found


def _deviation(numbers: list[float], sample: bool) -> float | None:
    if len(numbers) < 1 + sample or not all(map(math.isfinite, numbers)):
        return None
    mean = _total(numbers) / len(numbers)
    squares = _total((own - mean) * (own - mean) for own in numbers) / (len(numbers) - sample)
    return math.sqrt(squares) if squares >= 0 else None


GATHERED: Final[dict[str, Callable[[Rows], CellRange]]] = {
    "sum": _sum,
    "count": _count,
    "avg": _average,
    "min": _extreme(largest=False),
    "max": _extreme(largest=True),
    "var": _spread(sample=True, root=False),
    "var_pop": _spread(sample=False, root=False),
    "sd": _spread(sample=True, root=True),
    "sd_pop": _spread(sample=False, root=True),
}


def gathered(function: str, rows: Rows) -> CellRange:
    """An aggregate by its name; a quantile has its share behind it, as in `quantile 1/2`."""
    word, _, share = function.partition(" ")
    if word in ("quantile", "discrete"):
        return _quantile(Fraction(share), word == "quantile")(rows)
    return GATHERED[word](rows)

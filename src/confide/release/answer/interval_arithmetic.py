"""Arithmetic on columns with intervals: bounds that hold for whatever numbers lie in them."""

from dataclasses import replace
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.release.answer.estimate import Estimate, doubles, inside

Array = NDArray[Any]
_DIGITS: Final = 2.0**53
Parts = tuple[Array, Array, Array]


def _add(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    return a[0] + b[0], (a[1] + b[1], a[2] + b[2])


def _subtract(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    return a[0] - b[0], (a[1] - b[2], a[2] - b[1])


def _multiply(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    corners = np.stack([_product(x, y) for x in a[1:] for y in b[1:]])
    return a[0] * b[0], (corners.min(axis=0), corners.max(axis=0))


def _divide(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    away = (b[1] > 0) | (b[2] < 0)
    inverse = (1 / b[0], np.where(away, 1 / b[2], -inf), np.where(away, 1 / b[1], inf))
    middle, (low, high) = _multiply(a, inverse)
    return middle, (np.where(away, low, -inf), np.where(away, high, inf))


def _product(x: Array, y: Array) -> Array:
    """0 × ∞ is 0 at the end of an interval: the exact zero is reached, the infinity is not."""
    result: Array = x * y
    return np.where(np.isnan(result), 0.0, result)


OPERATIONS = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide}


def floats(part: Estimate) -> Parts:
    return doubles(part.values), doubles(part.low), doubles(part.high)


def rounded_column(inner: Estimate, digits: int) -> Estimate:
    scale = 10.0**digits
    values, low, high = floats(inner)

    def cut(numbers: Array, rounded: Array) -> Array:
        # A double beyond so many digits has none to round.
        return np.where(np.abs(numbers) * scale < _DIGITS, rounded, numbers)

    middle = cut(values, np.round(values, digits))
    ends = cut(low, np.floor(low * scale) / scale), cut(high, np.ceil(high * scale) / scale)
    return replace(inside(middle, *ends), empty=inner.empty, assumes=inner.assumes)


def column_within(inner: Estimate, least: float, most: float) -> Estimate:
    """Where it can be; what may be anywhere is reported as everywhere.

    What lies beyond an end moves to it with its whole interval, of which what is possible is kept. That holds whatever
    cutting the interval would hold, and is not empty.
    """
    middle, low, high = (
        np.nan_to_num(part, nan=unknown)
        for part, unknown in zip(floats(inner), ((least + most) / 2, least, most), strict=True)
    )
    values = np.clip(middle, least, most)
    moved = np.where(np.isfinite(middle), values - middle, 0.0)
    low = np.clip(np.minimum(low, low + moved), least, most)
    high = np.clip(np.maximum(high, high + moved), least, most)
    whole = (low == least) & (high == most)
    empty = whole if inner.empty is None else whole | inner.empty
    return replace(inside(values, low, high), empty=empty, assumes=inner.assumes)


def magnitude_column(inner: Estimate) -> Estimate:
    values, low, high = floats(inner)
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    most = np.maximum(np.abs(low), np.abs(high))
    return replace(inside(np.abs(values), least, most), assumes=inner.assumes)

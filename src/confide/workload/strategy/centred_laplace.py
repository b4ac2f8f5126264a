"""What a column tells beside its total, for Laplace noise: whole numbers whose rows add up to zero, with few in L1.

How much a record moves Helmert rows in L1 grows with the number of cells, so other rows are looked at too: differences
of halves ([Xiao2011]), each level with a weight, and every cell less the mean. The least is taken.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.line import AskedLine, Floats, unit_error

MOST_CENTRED: Final = 256
"""Cells of a column: beyond, counting every table by itself is better by far."""
_BITS: Final = 10
_POWERS: Final = (0.0, 0.25, 0.5, 0.75)
"""Of the length of a stretch, by which its difference counts."""


def centred_laplace(asked: AskedLine) -> DenseLine:
    """The best of a few, by what their own whole numbers say."""
    made = [DenseLine("residual", matrix, centred=True) for matrix in _candidates(asked.size)]
    return min(made, key=lambda own: unit_error(own, asked, "laplace"))


def _candidates(size: int) -> Iterator[np.typing.NDArray[np.int32]]:
    if size <= 1:
        yield np.zeros((0, size), dtype=np.int32)
        return
    yield (size * np.eye(size) - 1).astype(np.int32)
    for power in _POWERS:
        yield _weighted(list(_halves(0, size, size)), power)
        steps = [_split(place, 1, 0, size) for place in range(1, size)]  # Helmert rows
        yield _weighted(steps, power)


def _halves(low: int, high: int, size: int) -> Iterator[tuple[Floats, int]]:
    """A stretch's left half against its right one, and so on in each of them."""
    if high - low > 1:
        middle = (low + high) // 2
        yield _split(middle - low, high - middle, low, size)
        yield from _halves(low, middle, size)
        yield from _halves(middle, high, size)


def _split(left: int, right: int, low: int, size: int) -> tuple[Floats, int]:
    """So many cells against so many: a row that adds up to zero, of whole numbers without a common divisor."""
    ratio = Fraction(left, right)
    row = np.zeros(size)
    row[low : low + left] = ratio.denominator
    row[low + left : low + left + right] = -ratio.numerator
    return row, left + right


def _weighted(rows: list[tuple[Floats, int]], power: float) -> np.typing.NDArray[np.int32]:
    """Each row times a whole number: its largest entry is then about the power of how many cells it spans."""
    scales = [length**power / float(np.abs(row).max()) for row, length in rows]
    if power == 0 and len({int(np.abs(row).max()) for row, _ in rows}) == 1:
        return np.array([row for row, _ in rows], dtype=np.int32)
    whole = [max(1, round(scale / min(scales) * 2**_BITS / max(1.0, max(scales) / min(scales)))) for scale in scales]
    return np.array([row * own for (row, _), own in zip(rows, whole, strict=True)], dtype=np.int64).astype(np.int32)

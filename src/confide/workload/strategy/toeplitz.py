"""The square root of prefix sums: a lower triangular matrix whose diagonals are C(2k, k)/4^k, rounded to integers.

Prefixes of a column of any length up to a million, near the least error there is ([Fichtenberger2023],
[Henzinger2023]).
Everything is a convolution. The exact ones are done in parts so small that doubles hold them exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from confide.workload.strategy.line import Floats, Integers, Norms

Number = TypeVar("Number", np.int64, np.float64)

BITS: Final = 18
"""Of the largest entry: with counts below 2⁴⁴ in all, sums stay below 2⁶²."""
_PART: Final = 11
"""Bits of a part of the numbers that are convolved. The error of a transform of length N in doubles is below
2⁻⁵³ · 8·log₂N · ‖a‖·‖b‖ ([Higham2002], 24.1); parts of 11 bits of up to 2²⁰ numbers keep it below 2⁻⁵³⁺⁸⁺⁴²⁻¹ < ⅛."""


@dataclass(frozen=True)
class ToeplitzLine:
    """K with K[i, j] = round(2^bits · C(2k, k)/4^k) for k = i − j ≥ 0."""

    size: int
    bits: int = BITS
    name: str = "prefix"

    @property
    def rows(self) -> int:
        return self.size

    @property
    def factors(self) -> Integers | None:
        return None

    @cached_property
    def diagonals(self) -> Integers:
        """The whole numbers of K's diagonals, from the main one down."""
        steps = np.arange(1, self.size, dtype=np.float64)
        series = np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])
        return np.rint(series * 2.0**self.bits).astype(np.int64)

    @cached_property
    def norms(self) -> Norms:
        """The first column is the longest, and holds every other: sums of whole numbers below 2⁶²."""
        own = self.diagonals
        return Norms(int(own.sum()), Fraction(int((own * own).sum())), Fraction(0), int(own[0]))

    @cached_property
    def _inverse(self) -> Floats:
        """The diagonals of K⁻¹, by Newton's iteration on power series."""
        own = self.diagonals.astype(np.float64)
        found = np.array([1 / own[0]])
        while len(found) < self.size:
            length = min(2 * len(found), self.size)
            product = _convolved(own[:length], found, length)
            product = -product
            product[0] += 2
            found = _convolved(product, found, length)
        return found

    @cached_property
    def _answers(self) -> Floats:
        """The diagonals of W·K⁻¹, W the prefix sums."""
        found: Floats = np.cumsum(self._inverse)
        return found

    def measure(self, counts: Integers) -> Integers:
        return _along(counts, lambda own: exact_convolution(self.diagonals, own))

    def estimate(self, measured: Floats) -> Floats:
        return _along(measured, lambda own: _convolved(self._inverse, own, self.size))

    def coefficients(self, query: Floats) -> Floats:
        return _along(query, lambda own: _convolved(self._inverse, own[::-1], self.size)[::-1])

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        own = self._answers
        sums = [np.concatenate([[0.0], np.cumsum(own**power)]) for power in (2, 4)]
        second, quads = sums[0][stops - starts], sums[1][stops - starts]
        lengths = stops - starts
        later = np.flatnonzero(starts)
        order = later[np.argsort(lengths[later], kind="stable")]
        # A stretch of d cells that begins later has Σ (l[k + d] − l[k])² besides, up to where it begins.
        cut = np.flatnonzero(np.diff(lengths[order])) + 1
        for group in np.split(order, cut) if len(order) else ():
            length = int(lengths[group[0]])
            apart = own[length:] - own[: self.size - length]
            apart = apart[: int(starts[group].max())]
            second[group] += np.cumsum(apart**2)[starts[group] - 1]
            if fourth:
                quads[group] += np.cumsum(apart**4)[starts[group] - 1]
        return second, quads if fourth else second


def exact_convolution(kernel: Integers, values: Integers) -> Integers:
    """The first numbers of the convolution of whole numbers, exactly; that of absolute values must stay below 2⁶².

    The kernel is not negative; values are where another column's strategy takes differences of cells.
    """
    if int(values.min(initial=0)) < 0:
        return exact_convolution(kernel, np.maximum(values, 0)) - exact_convolution(kernel, np.maximum(-values, 0))
    size = len(values)
    total = np.zeros(size, dtype=np.int64)
    length = 1 << (2 * size - 1).bit_length()
    parts = [np.fft.rfft(part.astype(np.float64), length) for part in _parts(kernel)]
    for place, part in enumerate(_parts(values)):
        if not part.any():
            continue
        seen = np.fft.rfft(part.astype(np.float64), length)
        for shift, own in enumerate(parts):
            found = np.rint(np.fft.irfft(seen * own, length)[:size]).astype(np.int64)
            total += found << (_PART * (place + shift))
    return total


def _parts(values: Integers) -> list[Integers]:
    """Parts of 11 bits, the lowest first."""
    most = max(1, int(values.max(initial=0)).bit_length())
    return [(values >> shift) & ((1 << _PART) - 1) for shift in range(0, most, _PART)]


def _convolved(one: Floats, other: Floats, length: int) -> Floats:
    size = 1 << (len(one) + len(other) - 1).bit_length()
    found: Floats = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size), size)[:length]
    return found


def _along(values: NDArray[Number], apply: Callable[[NDArray[Number]], NDArray[Number]]) -> NDArray[Number]:
    """Along the first axis."""
    if values.ndim == 1:
        return apply(values)
    flat = values.reshape(values.shape[0], -1)
    columns = [apply(flat[:, column]) for column in range(flat.shape[1])]
    return np.stack(columns, axis=1).reshape(values.shape)

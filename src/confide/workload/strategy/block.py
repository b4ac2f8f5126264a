"""What is measured of some columns together: a product of strategies, one for each column ([McKenna2018]).

K = K₁ ⊗ K₂ ⊗ …, so norms multiply, and so do the coefficients of an answer that is a product of stretches.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from confide.workload.strategy.line import AnyIntegers, Floats, Integers, LineStrategy, Norms

MOST_ROWS_BITS: Final = 44
"""No table has 2⁴⁴ rows or more; `mechanism.noise.law` holds the same bound, and a test that they agree."""
FINE_BITS: Final = 16
"""What is measured is made so fine that its largest entry has so many bits: noise in whole numbers is then smooth."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductBlock:
    """Columns, by their places in a domain, with the strategy of each. Without columns it is the total."""

    columns: tuple[int, ...]
    lines: tuple[LineStrategy, ...]

    @property
    def rows(self) -> int:
        """How many whole numbers are measured."""
        return math.prod(line.rows for line in self.lines)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(line.rows for line in self.lines)

    @property
    def norms(self) -> Norms:
        return _norms_of(self.lines)

    @property
    def fineness(self) -> int:
        """By what everything is multiplied before noise is added."""
        return 1 << max(0, FINE_BITS - self.norms.largest.bit_length() + 1)

    @property
    def factors(self) -> Integers | None:
        """By what the variance of each number is multiplied; None if by 1."""
        if all(line.factors is None for line in self.lines):
            return None
        found = np.ones(1, dtype=np.int64)
        for line in self.lines:
            own = np.ones(line.rows, dtype=np.int64) if line.factors is None else line.factors
            found = (found[:, None] * own).reshape(-1)
        return found

    @property
    def _part_bits(self) -> int:
        """Of counts, such that 64 bits hold sums of all cells, each of so many bits and times the largest entry."""
        cells = math.prod(line.size for line in self.lines)
        return 62 - self.norms.largest.bit_length() - cells.bit_length()

    @property
    def fits(self) -> bool:
        """Whether whole numbers of 64 bits are enough to measure it exactly."""
        return self._part_bits >= 1

    def measure(self, counts: Integers) -> AnyIntegers:
        """`fineness` × K·x for the counts of the columns' cells, flat and exact: in 64 bits where that holds it."""
        largest = self.norms.largest.bit_length()
        if largest + self.fineness.bit_length() + MOST_ROWS_BITS <= 62:
            return self._applied(counts).reshape(-1) * self.fineness
        # Counts in parts, each so small that 64 bits hold what becomes of it, however many cells there are.
        bits = self._part_bits
        wide = np.zeros(self.rows, dtype=object)
        for shift in range(0, MOST_ROWS_BITS, bits):
            part = self._applied((counts >> shift) & ((1 << bits) - 1))
            wide += part.reshape(-1).astype(object) * (self.fineness << shift)
        return wide

    def _applied(self, counts: Integers) -> Integers:
        found = counts
        for axis, line in enumerate(self.lines):
            found = np.moveaxis(line.measure(np.ascontiguousarray(np.moveaxis(found, axis, 0))), 0, axis)
        return found

    def estimate(self, measured: Floats) -> Floats:
        """The cells of the columns from what was measured, in the unit of counts."""
        found = measured.reshape(self.shape) / self.fineness
        for axis, line in enumerate(self.lines):
            found = np.moveaxis(line.estimate(np.moveaxis(found, axis, 0)), 0, axis)
        return found

    def coefficients(self, query: Floats) -> Floats:
        """By what each measured number enters the estimate of a query of the cells, flat."""
        found = query
        for axis, line in enumerate(self.lines):
            found = np.moveaxis(line.coefficients(np.moveaxis(found, axis, 0)), 0, axis)
        return found.reshape(-1) / self.fineness


@lru_cache(maxsize=1024)
def _norms_of(lines: tuple[LineStrategy, ...]) -> Norms:
    """Very many blocks of a workload have the same strategies, and few of a session are large."""
    return product_norms([line.norms for line in lines])


def product_norms(norms: list[Norms]) -> Norms:
    """Of a product: norms multiply. An inner product is one of inner products, each between its least and its largest.

    With a negative factor the least is reached where one factor is its least and the others are their largest.
    """
    squares = math.prod((own.l2_squared for own in norms), start=Fraction(1))
    ratios = [own.least_inner / own.l2_squared for own in norms if own.l2_squared]
    if any(ratio < 0 for ratio in ratios):
        least = squares * min(ratios)
    else:
        least = math.prod((own.least_inner for own in norms), start=Fraction(1))
    return Norms(math.prod(own.l1 for own in norms), squares, least, math.prod(max(1, own.largest) for own in norms))


@dataclass(frozen=True, slots=True)
class UnitChange:
    """How much one unit can change: up to `rows` rows come or go, or become other rows where `replaced`."""

    rows: int
    replaced: bool

    def l1(self, norms: Norms) -> int:
        """A row that comes or goes moves K·x by a column of K, one that is replaced by a difference of two."""
        return self.rows * norms.l1 * (2 if self.replaced else 1)

    def l2_squared(self, norms: Norms) -> Fraction:
        """‖a − b‖² = ‖a‖² + ‖b‖² − 2a·b for a row that is replaced; never less than for one that comes or goes."""
        one = norms.l2_squared
        if self.replaced:
            one = max(one, 2 * (one - norms.least_inner))
        return self.rows**2 * one

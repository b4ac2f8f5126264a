"""A strategy given by its integers, for columns of at most some thousand cells."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.workload.strategy.line import Floats, Integers, Norms

MOST_DENSE: Final = 4_096
"""Cells of a column whose strategy is a full matrix."""
ENTRY_BITS: Final = 20
"""Of an entry of K: then 64 bits hold norms of 2²² rows. Searches make entries of far fewer."""
MOST_ROWS: Final = 2**22
_EXACT: Final = 2**53
_BLOCK: Final = 256


@dataclass(frozen=True, eq=False)
class DenseLine:
    """K as an array of whole numbers, of full column rank; if `centred`, of full rank beside the total."""

    name: str
    matrix: NDArray[np.int32]
    centred: bool = False
    _norms: list[Norms] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.matrix.dtype != np.int32 or self.matrix.ndim != 2:
            raise ValueError("a strategy is a matrix of 32-bit whole numbers")
        if self.rows > MOST_ROWS or int(np.abs(self.matrix.astype(np.int64)).max(initial=0)) >= 1 << ENTRY_BITS:
            raise ValueError(f"a strategy has at most {MOST_ROWS:,} rows, of entries of at most {ENTRY_BITS} bits")
        if self.centred and self.matrix.astype(np.int64).sum(axis=1).any():
            raise ValueError("the rows of a centred strategy add up to zero")

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def rows(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def factors(self) -> Integers | None:
        return None

    @property
    def norms(self) -> Norms:
        """From the integers, in 64 bits: a Gram matrix in doubles is exact below 2⁵³, which its diagonal shows."""
        if not self._norms:
            wide = self.matrix.astype(np.int64)
            squares = int((wide * wide).sum(axis=0).max())
            inner = self.gram
            least = Fraction(-squares) if squares >= _EXACT // 2 else Fraction(int(inner.min()))
            largest = int(np.abs(wide).max())
            self._norms.append(Norms(int(np.abs(wide).sum(axis=0).max()), Fraction(squares), least, largest))
        return self._norms[0]

    @cached_property
    def gram(self) -> Floats:
        """KᵀK; every entry is below the largest of the diagonal, so exact if that is below 2⁵³."""
        own = self.matrix.astype(np.float64)
        result: Floats = own.T @ own
        return result

    @cached_property
    def inverse(self) -> Floats:
        """(KᵀK)⁺, the covariance of the cells at unit noise."""
        from scipy.linalg import cho_factor, cho_solve  # noqa: PLC0415  heavy, and loaded when used

        gram = self.gram
        # The total is all that a centred strategy does not see: given some precision, it is taken out again.
        seen = float(gram.diagonal().mean()) if self.centred else 0.0
        factor = cho_factor(gram + seen, lower=True)
        found = cho_solve(factor, np.eye(self.size))
        if self.centred:
            found -= 1 / (seen * self.size**2)
        result: Floats = (found + found.T) / 2
        return result

    @cached_property
    def _sums(self) -> Floats:
        """Sums of the covariance over rectangles that begin at the first cell."""
        found = np.zeros((self.size + 1, self.size + 1))
        np.cumsum(np.cumsum(self.inverse, axis=0), axis=1, out=found[1:, 1:])
        return found

    @cached_property
    def _prefixes(self) -> Floats:
        """Coefficients of every prefix, one column for each, from none to all cells."""
        found = np.zeros((self.rows, self.size + 1))
        np.cumsum(self.matrix.astype(np.float64) @ self.inverse, axis=1, out=found[:, 1:])
        return found

    @cached_property
    def _fourths(self) -> tuple[Floats, Floats]:
        """Σa³b and Σa²b² of any two prefixes; where they are the same, Σa⁴."""
        own = self._prefixes
        squares = own * own
        return (squares * own).T @ own, squares.T @ squares

    def measure(self, counts: Integers) -> Integers:
        flat = counts.reshape(self.size, -1)
        parts = [self.matrix[start : start + _BLOCK].astype(np.int64) @ flat for start in range(0, self.rows, _BLOCK)]
        return np.concatenate(parts).reshape(self.rows, *counts.shape[1:])

    def estimate(self, measured: Floats) -> Floats:
        # Flat: a product of arrays of three axes would be taken along the second.
        found: Floats = self.inverse @ (self.matrix.T.astype(np.float64) @ measured.reshape(self.rows, -1))
        return found.reshape(self.size, *measured.shape[1:])

    def coefficients(self, query: Floats) -> Floats:
        found: Floats = self.matrix.astype(np.float64) @ (self.inverse @ query.reshape(self.size, -1))
        return found.reshape(self.rows, *query.shape[1:])

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        sums = self._sums
        ends = sums.diagonal()
        second = np.maximum(ends[starts] + ends[stops] - 2 * sums[starts, stops], 0.0)
        if not fourth:
            return second, second
        cubes, squares = self._fourths
        same = squares.diagonal()
        mixed = 4 * (cubes[starts, stops] + cubes[stops, starts])
        quads = same[starts] + same[stops] + 6 * squares[starts, stops] - mixed
        # Rounding of sums that cancel, made up for: Σc⁴ is only used from above.
        return second, np.maximum(quads, 0.0) + 1e-12 * (same[starts] + same[stops])


def integers_of(matrix: Floats, bits: int) -> NDArray[np.int32]:
    """A real strategy as whole numbers of about so many bits."""
    largest = float(np.abs(matrix).max())
    scale = 2.0 ** (bits - math.frexp(largest)[1])
    return np.rint(matrix * scale).astype(np.int32)

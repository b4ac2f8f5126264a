"""Helmert rows: whole numbers for what a column tells beside its total, orthogonal to each other ([Xiao2023]).

Row k is (1, …, 1, −k, 0, …) with k ones and ‖h‖² = k(k + 1); its noise has k(k + 1) times the variance. So one row of
data costs Σ h[x]²/k(k+1) = (n − 1)/n whatever its cell x is, and all cells are estimated alike.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from confide.workload.strategy.line import Floats, Integers, Norms


@dataclass(frozen=True)
class HelmertLine:
    """The n − 1 Helmert rows of n cells."""

    size: int
    name: str = "helmert"

    @property
    def rows(self) -> int:
        return self.size - 1

    @cached_property
    def norms(self) -> Norms:
        """Σ over k of h[x]h[z]/k(k+1) is the entry of I − 11ᵀ/n: (n − 1)/n, or −1/n for two cells."""
        # Σ|h[x]|: x for its own row, if there is one, and 1 for each later row.
        own = max((place or 0) + self.size - 1 - place for place in range(self.size))
        return Norms(own, Fraction(self.size - 1, self.size), Fraction(-1, self.size), max(1, self.size - 1))

    @cached_property
    def factors(self) -> Integers:
        steps = np.arange(1, self.size, dtype=np.int64)
        return steps * (steps + 1)

    def measure(self, counts: Integers) -> Integers:
        steps = np.arange(1, self.size, dtype=np.int64).reshape(-1, *([1] * (counts.ndim - 1)))
        found: Integers = np.cumsum(counts, axis=0)[:-1] - steps * counts[1:]
        return found

    def estimate(self, measured: Floats) -> Floats:
        """The cells without their mean: hᵀ·y/‖h‖²."""
        scaled = measured / _tall(self.factors.astype(np.float64), measured)
        steps = np.arange(1, self.size, dtype=np.float64)
        found = np.zeros((self.size, *measured.shape[1:]))
        found[:-1] = np.cumsum(scaled[::-1], axis=0)[::-1]
        found[1:] -= _tall(steps, measured) * scaled
        return found

    def coefficients(self, query: Floats) -> Floats:
        steps = np.arange(1, self.size, dtype=np.float64)
        rows = np.cumsum(query, axis=0)[:-1] - _tall(steps, query) * query[1:]
        return rows / _tall(self.factors.astype(np.float64), query)

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        """Σ f·c² is what is left of a stretch without its mean: d − d²/n. Fourth powers are not needed: no Laplace."""
        lengths = (stops - starts).astype(np.float64)
        second: Floats = lengths * (self.size - lengths) / self.size
        return second, second


def _tall(values: Floats, like: Floats) -> Floats:
    return values.reshape(-1, *([1] * (like.ndim - 1)))

"""Every cell by itself: the strategy of histograms, and of columns without an order."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from confide.workload.strategy.line import Floats, Integers, Norms


@dataclass(frozen=True, slots=True)
class IdentityLine:
    """K = I."""

    size: int
    name: str = "identity"

    @property
    def rows(self) -> int:
        return self.size

    @property
    def norms(self) -> Norms:
        return Norms(1, Fraction(1), Fraction(0), 1)

    @property
    def factors(self) -> Integers | None:
        return None

    def measure(self, counts: Integers) -> Integers:
        return counts

    def estimate(self, measured: Floats) -> Floats:
        return measured

    def coefficients(self, query: Floats) -> Floats:
        return query

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        lengths: Floats = (stops - starts).astype(np.float64)
        return lengths, lengths

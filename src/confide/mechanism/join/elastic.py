"""Elastic sensitivity (FLEX): a bound on how much one row can change a join, from frequencies of single columns.

The most frequent value of each joined column says how many partners a row can find; a bound for a join follows from
those of its sides. It is coarser than residual sensitivity, and needs one small GROUP BY per column.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.smooth.smooth import log_largest

Floats = NDArray[np.float64]
Ends = tuple[tuple[int, str], tuple[int, str]]
ENLARGED = 1e-10


@dataclass(frozen=True, slots=True)
class Elastic:
    """`tables`: of every occurrence its private table, None if it is public. `joins`: in order, the occurrence that is
    added, and the pairs of (occurrence, column) it is joined on, those of earlier occurrences first. `frequencies`: how
    often the most frequent value of a column occurs.

    After k changes a column of a private table may have k more of a value ([Johnson2018], Figure 1):
    for r joined with s on a = b, S = max(mf(a, r) S(s), mf(b, s) S(r)), or, where r and s have a private table in
    common, their sum plus S(r) S(s); mf(x, r join s) = mf(x, r) mf(b, s). Several pairs: the least frequent counts.
    """

    tables: tuple[str | None, ...]
    first: int
    joins: tuple[tuple[int, tuple[Ends, ...]], ...]
    frequencies: Mapping[tuple[int, str], int]

    def local(self, steps: Floats) -> Floats:
        """The bound after so many changes, for each entry of `steps`."""
        inside = [self.first]
        sensitivity = self._own(self.first, steps)
        # What a value of a column of an occurrence is repeated by, through the joins so far.
        repeated = {self.first: np.ones(len(steps))}
        for place, pairs in self.joins:
            before = [repeated[one] * self._frequency((one, column), steps) for (one, column), _ in pairs]
            fresh = [self._frequency(end, steps) for _, end in pairs]
            left, right = np.minimum.reduce(before), np.minimum.reduce(fresh)
            own = self._own(place, steps)
            shared = self.tables[place] is not None and self.tables[place] in {self.tables[other] for other in inside}
            both = left * own + right * sensitivity + sensitivity * own
            sensitivity = both if shared else np.maximum(left * own, right * sensitivity)
            repeated = {other: times * right for other, times in repeated.items()}
            repeated[place] = left
            inside.append(place)
        return sensitivity

    def smooth(self, alpha: float) -> float:
        """max over k of exp(-αk) times the bound, enlarged by 10^-10.

        The bound is made of polynomials of k with coefficients that are not negative, by sums, products, least and
        largest. Each join adds one to their degree at most: so from k to k + 1 the bound grows by a factor of at most
        (1 + 1/k)^joins, and the maximum lies before joins/α.
        """
        largest = log_largest(self.local, math.ceil(len(self.joins) / alpha) + 1, alpha)
        return math.exp(min(largest, 700.0)) * (1 + ENLARGED)

    def _own(self, place: int, steps: Floats) -> Floats:
        return np.full(len(steps), 0.0 if self.tables[place] is None else 1.0)

    def _frequency(self, end: tuple[int, str], steps: Floats) -> Floats:
        count = float(self.frequencies[end])
        return np.full(len(steps), count) if self.tables[end[0]] is None else count + steps

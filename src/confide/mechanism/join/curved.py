"""How much is left of rows that three or more entities share when none keeps more than τ: a concave program, certified.

Each set of entities keeps a share z, from 0 to 1, of what its rows count for, u (or of τ, if that is less); what it
keeps counts for u·g(z), with

    g(z) = (1 + B)z - Bz^(5/4),    g(0) = 0,    g(1) = 1,    z <= g(z) <= (1 + B)z,

and for every entity the sum of u·z over its sets is at most τ. Taking an entity away takes at most (1 + B)τ from the
largest total; where no entity has more than τ all z are 1, and the total is exact. With g(z) = z this would be the
linear program of [Dong2022], whose sensitivity is τ. The curve makes the dual smooth: its minimum over one
price for each entity is found by Newton's method, while solvers of linear programs take minutes for millions of sets.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from confide.mechanism.join.sharing import BEND

MOST_STEPS: Final = 400
DENSE: Final = 800  # so many entities with the most sets are solved for exactly, the others beside them by iteration
LONGEST: Final = 0.2  # a price moves by about this much in one step
SHORTER: Final = 0.4
SHORTEST: Final = 1e-12
ROUNDING: Final = 1e-12  # of sums of doubles

_B: Final = float(BEND)
_SLOPE: Final = 1 + _B
_CURVE: Final = _B * 5 / 4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class UncertifiedError(Exception):
    """The best value found could not be certified by its own dual."""


@dataclass(frozen=True, slots=True, eq=False)
class Curved:
    """`members`: of every set the places of its entities, falling; -1 where there is none. `weights`: u. `limits`: what
    each entity may keep; an entity that stands for several that are alike is named as often as sets have them.
    """

    members: Integers
    weights: Floats
    limits: Floats

    def optimum(self, gap: float, known: Floats) -> tuple[float, Floats]:
        """A total that can be reached and is within `gap` of the largest, and the prices that show it.

        `known`: prices to begin with, NaN for entities that have none.
        """
        work = _Work.of(self)
        prices = np.where(np.isnan(known[work.order]), work.guessed(), known[work.order])
        upper, roots, load = work.dual(prices)
        lower = 0.0
        for _ in range(MOST_STEPS):
            lower = max(lower, work.primal(roots, load))
            if upper - lower + ROUNDING * upper <= gap:
                found = np.empty(len(prices))
                found[work.order] = prices
                return lower, found
            step, slack = work.newton(prices, roots, load)
            length = 1.0
            while True:
                moved = np.clip(prices + length * step, 0.0, _SLOPE)
                following = work.dual(moved)
                if following[0] <= upper + 1e-4 * float(slack @ (moved - prices)) + ROUNDING * upper:
                    break
                length *= SHORTER
                if length < SHORTEST:
                    raise UncertifiedError
            prices, (upper, roots, load) = moved, following
        raise UncertifiedError


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """A program with entities in falling order of how many sets they are in, and one place more for none."""

    columns: tuple[Integers, ...]
    weights: Floats
    limits: Floats
    order: Integers
    pairs: tuple[Integers, ...]
    """Of every set and every two of its places the number of that pair of entities."""
    first: Integers
    second: Integers

    @classmethod
    def of(cls, program: Curved) -> "_Work":
        size = len(program.limits)
        counts = np.bincount(program.members[program.members >= 0], minlength=size)
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(size + 1, dtype=np.int64)
        rank[order], rank[size] = np.arange(size), size
        members = np.sort(rank[program.members], axis=1)  # -1 is the last place
        columns = tuple(np.ascontiguousarray(column) for column in members.T)
        codes = [one * (size + 1) + two for one, two in combinations(columns, 2)]
        known = np.unique(np.concatenate([np.unique(code) for code in codes]))
        pairs = tuple(np.searchsorted(known, code) for code in codes)
        first, second = known // (size + 1), known % (size + 1)
        return cls(columns, program.weights, program.limits[order], order, pairs, first, second)

    def guessed(self) -> Floats:
        """Prices that suit sets cut in proportion to how far their entities are above their limits."""
        share = np.minimum(1.0, self.limits / np.maximum(self._added(self.weights), 1e-300))
        return np.asarray((_SLOPE - _CURVE * share**0.25) / len(self.columns))

    def dual(self, prices: Floats) -> tuple[float, Floats, Floats]:
        """The dual's value, the fourth roots of the shares that are best at these prices, and the loads of these."""
        price = self._over(prices)
        roots = np.clip((_SLOPE - price) / _CURVE, 0.0, 1.0)
        kept = roots * roots
        kept *= kept
        kept *= self.weights
        value = float(self.limits @ prices) + float(kept @ (_SLOPE - price - _B * roots))
        return value, roots, self._added(kept)

    def primal(self, roots: Floats, load: Floats) -> float:
        """What is reached when sets of an entity above its limit are cut in proportion."""
        cut = np.append(np.maximum(load / self.limits, 1.0) ** -0.25, 1.0)
        least = cut[self.columns[0]]
        for column in self.columns[1:]:
            np.minimum(least, cut[column], out=least)
        least *= roots
        shares = least * least
        shares *= shares
        shares *= self.weights
        return _SLOPE * float(shares.sum()) - _B * float(shares @ least)

    def newton(self, prices: Floats, roots: Floats, load: Floats) -> tuple[Floats, Floats]:
        """The step, and the dual's gradient. Prices that are 0 and want to be less stay."""
        slack = self.limits - load
        curvature = roots * roots
        curvature *= roots
        curvature *= self.weights
        curvature *= (roots < 1) * (4 / _CURVE)
        free = np.append((prices > 0) | (slack < 0), False)
        numbers = len(self.first)
        products = np.zeros(numbers)
        for pair in self.pairs:
            products += np.bincount(pair, curvature, numbers)
        products *= free[self.first] & free[self.second]
        free = free[:-1]
        # What an entity is off by, over the longest step, keeps those from running away whose sets are all cut off.
        own = self._added(curvature) + np.abs(slack) / LONGEST + 1e-9 * self.limits
        step = self._solved(products, np.where(free, own, 1.0), np.where(free, -slack, 0.0))
        return step, slack

    def _solved(self, products: Floats, own: Floats, wanted: Floats) -> Floats:
        """(P + Pᵀ + own) step = wanted, P the products above the diagonal."""
        size, dense = len(own), min(len(own), DENSE)
        inside = (self.first < dense) & (self.second < dense)
        block = np.zeros((dense, dense))
        block[self.first[inside], self.second[inside]] = products[inside]
        block += block.T
        block[np.diag_indices(dense)] += own[:dense]
        factor = linalg.cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        if dense == size:
            return np.asarray(linalg.cho_solve(factor, wanted, check_finite=False))
        real = self.second < size
        upper: Any = sparse.csr_array((products[real], (self.first[real], self.second[real])), shape=(size, size))
        matrix: Any = (upper + upper.T + sparse.diags_array(own)).tocsr()
        rest = matrix.diagonal()[dense:]

        def nearly(right: Floats) -> Floats:
            head = linalg.cho_solve(factor, right[:dense], check_finite=False)
            return np.concatenate([head, right[dense:] / rest])

        nearby: Any = LinearOperator((size, size), matvec=nearly, dtype=np.float64)
        return np.asarray(cg(matrix, wanted, rtol=1e-3, maxiter=60, M=nearby)[0])

    def _over(self, values: Floats) -> Floats:
        """Of every set the sum over its entities."""
        padded = np.append(values, 0.0)
        total = padded[self.columns[0]]
        for column in self.columns[1:]:
            total += padded[column]
        return np.asarray(total)

    def _added(self, values: Floats) -> Floats:
        """Of every entity the sum over its sets."""
        size = len(self.limits) + 1
        total = np.zeros(size)
        for column in self.columns:
            total += np.bincount(column, values, size)
        return total[:-1]

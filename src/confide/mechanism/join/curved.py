"""How much is left of rows that three or more entities share when none keeps more than τ: a concave program, certified.

Each set of entities keeps a share z, from 0 to 1, of what its rows count for, u (or of τ, if that is less); what it
keeps counts for u·g(z), with

    g(z) = (1 + B)z - Bz^(5/4),    g(0) = 0,    g(1) = 1,    z <= g(z) <= (1 + B)z,

and for every entity the sum of u·z over its sets is at most τ. Taking an entity away takes at most (1 + B)τ from the
largest total; where no entity has more than τ all z are 1, and the total is exact. With g(z) = z this would be the
linear program of [Dong2022], whose sensitivity is τ. The curve makes the dual smooth: its minimum over one
price for each entity is found by Newton's method, while solvers of linear programs take minutes for millions of sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from confide.mechanism.join.sharing import BEND

MOST_STEPS: Final = 400
NEAR: Final = 100.0  # of the gap, which a step must promise at most for its primal to be looked at
# So many entities with the most sets are solved for exactly, the others beside them by iteration. Few: with more BLAS
# takes several threads, which wait for each other for longer than they work where processors are busy.
DENSE: Final = 96
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
    """Sets of entities and what they count for, u: a program for any limits on what each entity keeps.

    Entities are in falling order of how many sets they are in, and have one place more for none; sets are in order of
    their members, so that those that share the first two are runs, and what is added up over them needs no index.
    """

    columns: tuple[Integers, ...]
    """The third member of every set, and later ones."""
    weights: Floats
    order: Integers
    begins: Integers
    lengths: Integers
    """Of the runs."""
    heads: tuple[Integers, Integers]
    """The first two members of every run."""
    pairs: tuple[Integers, ...]
    """Numbers of pairs of entities: of every run that of its first two members, of every set those of all others."""
    first: Integers
    second: Integers

    @classmethod
    def of(cls, members: Integers, weights: Floats, size: int) -> "Curved":
        """`members`: of every set the places of its entities, three or more; -1 where there is none. An entity that
        stands for several that are alike is named as often as sets have them.
        """
        counts = np.bincount(members[members >= 0], minlength=size)
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(size + 1, dtype=np.int64)
        rank[order], rank[size] = np.arange(size), size
        members = np.sort(rank[members], axis=1)  # -1 is the last place
        members, weights = _sorted(members, weights, size)
        columns = tuple(np.ascontiguousarray(column) for column in members.T)
        heads = columns[0] * (size + 1) + columns[1]
        begins = np.flatnonzero(np.diff(heads, prepend=-1))
        codes = [heads[begins], *(one * (size + 1) + two for one, two in list(combinations(columns, 2))[1:])]
        known = np.unique(np.concatenate([np.unique(code) for code in codes]))
        pairs = tuple(np.searchsorted(known, code) for code in codes)
        return cls(
            columns[2:],
            weights,
            order,
            begins,
            np.diff(begins, append=len(weights)),
            (columns[0][begins], columns[1][begins]),
            pairs,
            known // (size + 1),
            known % (size + 1),
        )

    def optimum(self, limits: Floats, gap: float, known: Sequence[Floats] = ()) -> tuple[float, Floats]:
        """A total that can be reached and is within `gap` of the largest, and the prices that show it.

        `limits`: what each entity may keep. `known`: prices one of which may be near the best. Where none leads to a
        total that can be certified, the search begins anew with prices that are guessed.
        """
        ordered = limits[self.order]
        begun = [(self.dual(prices, ordered), prices) for prices in (one[self.order] for one in known)]
        if begun:
            found = self._search(*min(begun, key=lambda one: one[0][0]), ordered, gap)
            if found is not None:
                return found
        guessed = self.guessed(ordered)
        found = self._search(self.dual(guessed, ordered), guessed, ordered, gap)
        if found is None:
            raise UncertifiedError
        return found

    def _search(
        self, begun: tuple[float, Floats, Floats], prices: Floats, limits: Floats, gap: float
    ) -> tuple[float, Floats] | None:
        upper, roots, load = begun
        lower = 0.0
        near = True
        for _ in range(MOST_STEPS):
            if near:
                lower = max(lower, self.primal(roots, load, limits))
                if upper - lower + ROUNDING * upper <= gap:
                    found = np.empty(len(prices))
                    found[self.order] = prices
                    return lower, found
            step, slack = self.newton(prices, roots, load, limits)
            # What a step promises is about what the dual is off by: while that is far, no primal is worth its while.
            near = -float(slack @ step) <= NEAR * gap
            length = 1.0
            while True:
                moved = np.clip(prices + length * step, 0.0, _SLOPE)
                following = self.dual(moved, limits)
                if following[0] <= upper + 1e-4 * float(slack @ (moved - prices)) + ROUNDING * upper:
                    break
                length *= SHORTER
                if length < SHORTEST:
                    return None
            prices, (upper, roots, load) = moved, following
        return None

    def guessed(self, limits: Floats) -> Floats:
        """Prices that suit sets cut in proportion to how far their entities are above their limits."""
        share = np.minimum(1.0, limits / np.maximum(self._added(self.weights), 1e-300))
        return np.asarray((_SLOPE - _CURVE * share**0.25) / self.width)

    @property
    def width(self) -> int:
        return len(self.columns) + 2

    def dual(self, prices: Floats, limits: Floats) -> tuple[float, Floats, Floats]:
        """The dual's value, the fourth roots of the shares that are best at these prices, and the loads of these."""
        spare = _SLOPE - self._over(prices)
        roots = np.clip(spare / _CURVE, 0.0, 1.0)
        kept = roots * roots
        kept *= kept
        kept *= self.weights
        spare -= _B * roots
        value = float(limits @ prices) + float(kept @ spare)
        return value, roots, self._added(kept)

    def primal(self, roots: Floats, load: Floats, limits: Floats) -> float:
        """What is reached when sets of an entity above its limit are cut in proportion."""
        cut = np.append(np.maximum(load / limits, 1.0) ** -0.25, 1.0)
        one, two = self.heads
        least = np.repeat(np.minimum(cut[one], cut[two]), self.lengths)
        for column in self.columns:
            np.minimum(least, cut[column], out=least)
        least *= roots
        shares = least * least
        shares *= shares
        shares *= self.weights
        return _SLOPE * float(shares.sum()) - _B * float(shares @ least)

    def newton(self, prices: Floats, roots: Floats, load: Floats, limits: Floats) -> tuple[Floats, Floats]:
        """The step, and the dual's gradient. Prices that are 0 and want to be less stay."""
        slack = limits - load
        curvature = roots * roots
        curvature *= roots
        curvature *= self.weights
        curvature *= (roots < 1) * (4 / _CURVE)
        numbers, size = len(self.first), len(limits) + 1
        products: Any = np.bincount(self.pairs[0], np.add.reduceat(curvature, self.begins), numbers)
        for pair in self.pairs[1:]:
            products += np.bincount(pair, curvature, numbers)
        # Every member of a set is in one pair with each of the others.
        ends = np.bincount(self.first, products, size) + np.bincount(self.second, products, size)
        own = ends[:-1] / (self.width - 1)
        free = np.append((prices > 0) | (slack < 0), False)
        products *= free[self.first] & free[self.second]
        free = free[:-1]
        # What an entity is off by, over the longest step, keeps those from running away whose sets are all cut off.
        own += np.abs(slack) / LONGEST + 1e-9 * limits
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
        one, two = self.heads
        total = np.repeat(padded[one] + padded[two], self.lengths)
        for column in self.columns:
            total += padded[column]
        return total

    def _added(self, values: Floats) -> Floats:
        """Of every entity the sum over its sets."""
        runs, size = np.add.reduceat(values, self.begins), len(self.order) + 1
        total = np.bincount(self.heads[0], runs, size) + np.bincount(self.heads[1], runs, size)
        for column in self.columns:
            total += np.bincount(column, values, size)
        return np.asarray(total[:-1])


def _sorted(members: Integers, weights: Floats, size: int) -> tuple[Integers, Floats]:
    """Sets in the order of their members."""
    if (size + 1) ** members.shape[1] < 2**62:
        codes = np.zeros(len(members), dtype=np.int64)
        for column in members.T:
            codes = codes * (size + 1) + column
        order = np.argsort(codes, kind="stable")
    else:
        order = np.lexsort(members.T[::-1])
    return members[order], weights[order]


def raised(prices: Floats, times: float, width: int) -> Floats:
    """Prices that suit limits `times` as large: exactly so where all entities bind and no set is kept whole.

    There shares grow in proportion, and a share's fourth root is in proportion to what the prices of its set leave of
    the slope of the curve.
    """
    each = _SLOPE / width
    return np.asarray(np.maximum(0.0, each - (each - prices) * times**0.25))

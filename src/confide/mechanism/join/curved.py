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
from functools import partial
from typing import Any, Final

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from confide.host.side_by_side import side_by_side
from confide.mechanism.join.set_block import CURVE, SLOPE, Floats, Integers, SetBlock, in_blocks

MOST_STEPS: Final = 400
NEAR: Final = 100.0  # of the gap, which a step must promise at most for its primal to be looked at
# So many entities with the most sets are solved for exactly, the others beside them by iteration. Few: with more BLAS
# takes several threads, which wait for each other for longer than they work where processors are busy.
DENSE: Final = 96
LONGEST: Final = 0.2  # a price moves by about this much in one step
SHORTER: Final = 0.4
SHORTEST: Final = 1e-12
ROUNDING: Final = 1e-12  # of sums of doubles


class UncertifiedError(Exception):
    """The best value found could not be certified by its own dual."""


@dataclass(frozen=True, slots=True, eq=False)
class Curved:
    """Sets of entities and what they count for, u: a program for any limits on what each entity keeps.

    Entities are in falling order of how many sets they are in, and have one place more for none. Sums over all sets are
    sums over blocks, which are worked on at the same time; their products with BLAS would take threads of its own.
    """

    blocks: tuple[SetBlock, ...]
    order: Integers
    first: Integers
    second: Integers
    """Of all pairs of entities that are in a set together."""
    pattern: "_Symmetric"

    @classmethod
    def of(cls, members: Integers, weights: Floats, size: int) -> "Curved":
        """`members`: of every set the places of its entities, three or more; -1 where there is none. An entity that
        stands for several that are alike is named as often as sets have them.
        """
        counts = np.bincount(members[members >= 0], minlength=size)
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(size + 1, dtype=np.int64)
        rank[order], rank[size] = np.arange(size), size
        blocks, pairs = in_blocks(np.sort(rank[members], axis=1), weights, size)  # -1 is the last place
        first, second = pairs // (size + 1), pairs % (size + 1)
        return cls(blocks, order, first, second, _Symmetric.of(first, second, size))

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
        self, begun: tuple[float, list[Floats], Floats], prices: Floats, limits: Floats, gap: float
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
                moved = np.clip(prices + length * step, 0.0, SLOPE)
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
        loads = sum(block.added(block.weights, len(limits) + 1) for block in self.blocks)
        share = np.minimum(1.0, limits / np.maximum(loads, 1e-300))
        return np.asarray((SLOPE - CURVE * share**0.25) / self.width)

    @property
    def width(self) -> int:
        return len(self.blocks[0].columns) + 2

    def dual(self, prices: Floats, limits: Floats) -> tuple[float, list[Floats], Floats]:
        """The dual's value, the fourth roots of the shares that are best at these prices, and the loads of these."""
        found = side_by_side([partial(block.best, prices) for block in self.blocks])
        value = float(limits @ prices) + sum(gained for gained, _, _ in found)
        return value, [roots for _, roots, _ in found], np.asarray(sum(load for _, _, load in found))

    def primal(self, roots: Sequence[Floats], load: Floats, limits: Floats) -> float:
        """What is reached when sets of an entity above its limit are cut in proportion."""
        cut = np.append(np.maximum(load / limits, 1.0) ** -0.25, 1.0)
        return sum(side_by_side([partial(block.reached, own, cut) for block, own in self._with(roots)]))

    def _with(self, roots: Sequence[Floats]) -> list[tuple[SetBlock, Floats]]:
        return list(zip(self.blocks, roots, strict=True))

    def newton(self, prices: Floats, roots: Sequence[Floats], load: Floats, limits: Floats) -> tuple[Floats, Floats]:
        """The step, and the dual's gradient. Prices that are 0 and want to be less stay."""
        slack = limits - load
        numbers, size = len(self.first), len(limits) + 1
        parts = side_by_side([partial(block.curvature, own, numbers) for block, own in self._with(roots)])
        products: Any = sum(parts)
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
        matrix = self.pattern.filled(products, own)
        rest = matrix.diagonal()[dense:]

        def nearly(right: Floats) -> Floats:
            head = linalg.cho_solve(factor, right[:dense], check_finite=False)
            return np.concatenate([head, right[dense:] / rest])

        nearby: Any = LinearOperator((size, size), matvec=nearly, dtype=np.float64)
        return np.asarray(cg(matrix, wanted, rtol=1e-3, maxiter=60, M=nearby)[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Symmetric:
    """Where the numbers of pairs and of entities stand in a symmetric matrix, found once for all steps."""

    places: Integers
    columns: Integers
    starts: Integers

    @classmethod
    def of(cls, first: Integers, second: Integers, size: int) -> "_Symmetric":
        """Pairs with nobody are in no row; a pair of two that are alike is twice in its own."""
        own = np.arange(size)
        rows, columns = np.concatenate([first, second, own]), np.concatenate([second, first, own])
        real = np.flatnonzero((rows < size) & (columns < size))
        places = real[np.argsort(rows[real] * size + columns[real], kind="stable")]
        return cls(places, columns[places], np.searchsorted(rows[places], np.arange(size + 1)))

    def filled(self, products: Floats, own: Floats) -> Any:
        values = np.concatenate([products, products, own])[self.places]
        size = len(own)
        return sparse.csr_array((values, self.columns, self.starts), shape=(size, size))


def raised(prices: Floats, times: float, width: int) -> Floats:
    """Prices that suit limits `times` as large: exactly so where all entities bind and no set is kept whole.

    There shares grow in proportion, and a share's fourth root is in proportion to what the prices of its set leave of
    the slope of the curve.
    """
    each = SLOPE / width
    return np.asarray(np.maximum(0.0, each - (each - prices) * times**0.25))

"""Mutual information as a score: of whole numbers, by whole numbers, in nats.

n·I(X; Π) = Σ φ(count of both) − Σ φ(count of x) − Σ φ(count of π) + φ(n) with φ(c) = c ln c. One row more raises φ at c
by g(c) = (c + 1) ln (c + 1) − c ln c, about ln c + 1. Here φ(c) is the sum of the first c of ĝ(0), ĝ(1), …, where ĝ is
g in steps of 2⁻¹⁶ nats, rounded, and goes no higher than ĝ(M) for a public M. So a score is an exact integer made of
exact counts, and what one row does to it follows from facts of ĝ alone: ĝ(0) = 0, it never falls, and it ends at ĝ(M).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.curator import UnitReach

STEPS: Final = 2**16
"""To a nat."""
MOST_ROWS: Final = 2**22
"""M is at most so many: beyond, counts weigh as if they grew in proportion."""
ROUNDED: Final = 2
"""By so many steps a rounded ĝ may be off what g's own sums obey."""

Integers = NDArray[np.int64]


@lru_cache(maxsize=4)
def growth(most: int) -> Integers:
    """ĝ(0) to ĝ(most). Public: it does not depend on data."""
    rows = np.arange(most + 1, dtype=np.float64)
    exact = np.log1p(rows)
    exact[1:] += rows[1:] * np.log1p(1 / rows[1:])
    return np.maximum.accumulate(np.rint(exact * STEPS).astype(np.int64))


@lru_cache(maxsize=4)
def _summed(most: int) -> Integers:
    return np.concatenate([[0], np.cumsum(growth(most))])


def grown(counts: Integers, most: int) -> Integers:
    """φ of each count: as a sum of ĝ."""
    held = np.minimum(counts, most + 1)
    found: Integers = _summed(most)[held] + (counts - held) * growth(most)[-1]
    return found


@dataclass(frozen=True, slots=True)
class Family:
    """A column and its parents; as a set of columns, in order."""

    child: int
    parents: tuple[int, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(sorted((self.child, *self.parents)))


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """n·I(child; parents) in steps of a nat, of families; `rows` is M, `binary` says that every child has two places.

    Neighbours and theorem, with G = ĝ(M), for one row:
    it comes: the change is ĝ(c) − ĝ(a) − ĝ(b) + ĝ(n) for c ≤ a, b ≤ n, within [−G, G];
    it is replaced: what is left has the same n, and the change is a difference of two of ĝ(c) − ĝ(a) − ĝ(b), each
    within [−2G, 0]; where the child has two places at most G, and what rounding adds: where x and π both change,
    b − c ≤ a′ − c′, and ĝ(b) − ĝ(c) ≤ ĝ(b − c) + rounding ≤ ĝ(a′), as g bends downwards; else less.
    [Zhang2017], Lemma 4.1, has the same for replaced rows and a public n, uncut: there 2 g((n − 1)/2) and g(n − 1).
    A unit of r rows moves it r times as far.
    """

    families: Sequence[Family]
    rows: int
    binary: bool

    def sensitivity(self, reach: UnitReach) -> int:
        most = int(growth(self.rows)[-1])
        if not reach.replaced:
            return reach.rows * most
        return reach.rows * (most + ROUNDED if self.binary else 2 * most)

    def of(self, place: int, counts: Integers) -> int:
        family = self.families[place]
        axis = family.columns.index(family.child)
        joint = np.moveaxis(counts, axis, 0).reshape(counts.shape[axis], -1)
        both, own, given = (
            grown(cells.reshape(-1), self.rows).sum() for cells in (joint, joint.sum(axis=1), joint.sum(axis=0))
        )
        every = grown(np.array([joint.sum()]), self.rows)[0]
        return int(both - own - given + every)

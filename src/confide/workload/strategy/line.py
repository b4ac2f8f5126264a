"""A strategy for one column, and what is asked of a column: its cells, prefixes, stretches or total.

Every strategy has exact integers for rows, and says from these integers how much one row of data can change what is
measured. Nothing here draws noise or reads data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["each", "prefix", "range", "total"]
KINDS: Final[tuple[Kind, ...]] = ("each", "prefix", "range", "total")
"""What is counted of a column: every cell, every stretch from its lower end, every stretch, or all of it."""

NoiseKind = Literal["gaussian", "laplace"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AnyIntegers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Norms:
    """How much one row of data changes what a strategy measures: the largest norm over the columns of K.

    `l2_squared` counts each measured number in units of its noise's variance factor; `least_inner` is a lower bound of
    the inner product of two columns of K, in the same units, and tells how far a row that is replaced can move.
    """

    l1: int
    l2_squared: Fraction
    least_inner: Fraction
    largest: int
    """The largest entry of K in absolute value, so that |K·x| is at most this times the number of rows."""


class LineStrategy(Protocol):
    """What is measured of one column of `size` cells: `rows` whole numbers, K·x."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def norms(self) -> Norms: ...

    @property
    def factors(self) -> Integers | None:
        """By what each number's variance is multiplied, if not by 1. Only Gaussian noise has factors."""

    def measure(self, counts: Integers) -> Integers:
        """K·x along the first axis, exactly. The caller bounds `norms.largest` × Σx by 2⁶²."""

    def estimate(self, measured: Floats) -> Floats:
        """The least-squares cells K⁺·y along the first axis."""

    def coefficients(self, query: Floats) -> Floats:
        """K⁺ᵀ·q along the first axis: by what each measured number enters the estimate of q·x."""

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        """Σ f·c² and, if wanted, Σ c⁴ over the coefficients of each stretch of cells from start up to stop."""


@dataclass(frozen=True, slots=True)
class AskedLine:
    """What is asked of one column, with how often: the public facts that a strategy is chosen by."""

    size: int
    kinds: tuple[Kind, ...]

    @property
    def count(self) -> int:
        return sum(count_of(kind, self.size) for kind in self.kinds)

    def stretches(self) -> tuple[Integers, Integers]:
        """Every stretch that is asked for, as where it starts and where it stops."""
        pairs = [stretches(kind, self.size) for kind in self.kinds]
        return np.concatenate([start for start, _ in pairs]), np.concatenate([stop for _, stop in pairs])

    def apply_gram(self, vectors: Floats) -> Floats:
        """WᵀW·v along the last axis, without making the matrix."""
        total = np.zeros_like(vectors)
        size = self.size
        for kind in self.kinds:
            if kind == "each":
                total += vectors
            elif kind == "total":
                total += vectors.sum(axis=-1, keepdims=True)
            elif kind == "prefix":
                total += np.cumsum(np.cumsum(vectors, axis=-1)[..., ::-1], axis=-1)[..., ::-1]
            else:
                # A stretch holds cells j and k in (min + 1)(size − max) ways.
                ahead = np.arange(1, size + 1, dtype=np.float64)
                behind = ahead[::-1]
                low = np.cumsum(vectors * ahead, axis=-1)
                high = np.cumsum((vectors * behind)[..., ::-1], axis=-1)[..., ::-1] - vectors * behind
                total += low * behind + high * ahead
        return total

    def gram(self) -> Floats:
        """WᵀW."""
        return self.apply_gram(np.eye(self.size))

    def diagonal(self) -> Floats:
        """The diagonal of WᵀW: how many answers hold each cell."""
        ahead = np.arange(1, self.size + 1, dtype=np.float64)
        ways = {"each": np.ones(self.size), "prefix": ahead[::-1], "range": ahead * ahead[::-1]}
        ways["total"] = np.ones(self.size)
        found: Floats = np.sum([ways[kind] for kind in self.kinds], axis=0)
        return found


class AskedCells(Protocol):
    """A workload as a descent sees it: products with WᵀW, in doubles."""

    @property
    def size(self) -> int: ...

    def apply_gram(self, vectors: Floats) -> Floats:
        """WᵀW·v along the last axis."""

    def diagonal(self) -> Floats: ...


class AskedGram(AskedCells, Protocol):
    """The same, where WᵀW is looked at as a whole."""

    def gram(self) -> Floats: ...


def count_of(kind: Kind, size: int) -> int:
    """How many answers a kind stands for."""
    return {"each": size, "prefix": size, "range": size * (size + 1) // 2, "total": 1}[kind]


def stretches(kind: Kind, size: int) -> tuple[Integers, Integers]:
    """The stretches of a kind, in the order in which answers are shown."""
    if kind == "each":
        places = np.arange(size)
        return places, places + 1
    if kind == "prefix":
        return np.zeros(size, dtype=np.int64), np.arange(1, size + 1)
    if kind == "total":
        return np.zeros(1, dtype=np.int64), np.full(1, size)
    first, last = np.triu_indices(size)
    return first.astype(np.int64), last.astype(np.int64) + 1


def total_spread(strategy: LineStrategy, asked: AskedLine) -> float:
    """Σ over all answers of Σ f·c²: the total variance at unit noise."""
    second, _ = strategy.spread(*asked.stretches(), fourth=False)
    return float(second.sum())


def noise_norm(norms: Sequence[Norms], noise: NoiseKind) -> float:
    """The sensitivity of a product of strategies to one row, in L1 or squared L2, as a double: to compare by."""
    parts = [float(own.l1) ** 2 if noise == "laplace" else float(own.l2_squared) for own in norms]
    return float(np.prod(parts))


def unit_error(strategy: LineStrategy, asked: AskedLine, noise: NoiseKind) -> float:
    """The total variance where noise has unit variance for a sensitivity of 1: what strategies are compared by."""
    return total_spread(strategy, asked) * noise_norm([strategy.norms], noise)


def difference(one: Floats, other: Floats, power: int) -> Floats:
    """Σ (a − b)^power over the first axis."""
    result: Floats = ((one - other) ** power).sum(axis=0)
    return result

"""What a statistic is computed from: distinct values with their counts, or buckets with counts and sums. Never rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Domain = tuple[int, int]
Neighbours = Literal["add-remove", "replace-one"]
"""`add-remove`: rows come or go, and their number is private. `replace-one`: rows change their values, and their number
is public. A filter or a group makes the number of its rows private even where that of the table is public: a row that
is replaced may leave it. Such a relation is `add-remove` with twice the rows per unit.
"""

REACH: Final = 2**62 - 1
"""An unbounded domain ends here on both sides, so that it has fewer than 2^63 values."""


class Cells(Protocol):
    """Public intervals of values, each with a point in it."""

    def cover(self, low: int, high: int) -> Domain:
        """All values of the cells that an interval touches."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Distinct values in increasing order, each with the number of rows that have it.

    With `cells` a value is the point of a cell and stands for all values in it, of which `sums`, if they are there,
    are the exact sums. A sum is cut at the ends of cells only: see `covered`.
    """

    values: Integers
    counts: Integers
    sums: NDArray[Any] | None = None
    cells: Cells | None = None

    def __post_init__(self) -> None:
        if self.values.dtype != np.int64 or self.counts.dtype != np.int64:
            raise TypeError("a tally holds 64-bit integers")
        if self.values.ndim != 1 or self.values.shape != self.counts.shape:
            raise ValueError("a tally has one count for each value")
        if np.any(self.values[1:] <= self.values[:-1]) or np.any(self.counts < 1):
            raise ValueError("the values of a tally increase, and each occurs at least once")
        if self.sums is not None and self.sums.shape != self.values.shape:
            raise ValueError("a tally has one sum for each value, or none")

    @classmethod
    def of(cls, values: Iterable[int]) -> "Tally":
        """The tally of single values, in any order."""
        distinct, counts = np.unique(np.fromiter(values, dtype=np.int64), return_counts=True)
        return cls(distinct, counts.astype(np.int64))

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def clipped(self, low: int, high: int) -> "Tally":
        """With every value moved into [low, high]."""
        if not len(self.values) or (low <= self.values[0] and self.values[-1] <= high):
            return self
        values, places = np.unique(np.clip(self.values, low, high), return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, places, self.counts)
        if self.sums is None:
            return Tally(values, counts)
        sums = np.zeros(len(values), dtype=object)
        inside = (self.values >= low) & (self.values <= high)
        ends = np.clip(self.values, low, high).astype(object) * self.counts.astype(object)
        np.add.at(sums, places, np.where(inside, self.sums, ends))
        return Tally(values, counts, sums, self.cells)

    def covered(self, low: int, high: int) -> Domain:
        """Where sums may be cut: at [low, high], or, if there are cells, further out at the ends of cells."""
        return (low, high) if self.cells is None else self.cells.cover(low, high)

    def condensed(self, first: int, last: int) -> "Tally":
        """With all rows in one place that are up to rank `first`, and all in one that are from rank `last` on.

        They stay among values y with #{x<=y} <= first, or with #{x<y} >= last.
        """
        upto = np.cumsum(self.counts)
        begin = int(np.searchsorted(upto, first, side="right"))  # values before have #{x<=y} <= first
        end = max(int(np.searchsorted(upto - self.counts, last)), begin)  # from here on #{x<y} >= last
        if begin <= 1 and end >= len(self.values) - 1:
            return self
        parts = [(self.values[begin:end], self.counts[begin:end])]
        if begin:
            parts.insert(0, (self.values[:1], upto[begin - 1 : begin]))
        if end < len(self.values):
            parts.append((self.values[end : end + 1], upto[-1:] - (upto[end - 1] if end else 0)))
        values, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Tally(values, counts)

    def mirrored(self) -> "Tally":
        """With every value negated. A lower end of the mirrored data is an upper end of the data."""
        return Tally(-self.values[::-1], self.counts[::-1].copy())

    def cumulative(self) -> Integers:
        """0, then how many rows lie at or below each value."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.counts)])

    def order_statistics(self, places: Integers, low: int, high: int) -> Integers:
        """The place-th smallest values, counted from 1; `low` for places before the first, `high` beyond the last."""
        if not len(self.values):
            return np.where(places < 1, low, high).astype(np.int64)
        cumulative = np.cumsum(self.counts)
        indices = np.searchsorted(cumulative, places)
        inside = self.values[np.minimum(indices, len(self.values) - 1)]
        found: Integers = np.where(places < 1, low, np.where(places > cumulative[-1], high, inside)).astype(np.int64)
        return found

    def total(self) -> int:
        return weighted_total(self.values, self.counts) if self.sums is None else int(sum(self.sums))


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Counts and sums of magnitudes by bucket, one row for negative values and one for the others.

    Bucket j holds the magnitudes above edges[j-1] and up to edges[j]; the first begins at 0.
    """

    edges: tuple[int, ...]
    counts: NDArray[Any]  # shape (2, buckets), integers; row 0 for negative values
    sums: NDArray[Any]  # of magnitudes, so not negative

    def __post_init__(self) -> None:
        if list(self.edges) != sorted(set(self.edges)) or (self.edges and self.edges[0] < 1):
            raise ValueError("the edges of buckets are positive and increase")
        if self.counts.shape != (2, len(self.edges)) or self.sums.shape != self.counts.shape:
            raise ValueError("buckets have a count and a sum for each sign and edge")

    def sums_upto(self, sign: int) -> list[int]:
        """For each edge the sum of all magnitudes up to it, of one sign."""
        return [int(total) for total in np.cumsum(self.sums[sign].astype(object))]


def signs_between(low: int, high: int) -> tuple[int, ...]:
    """Which rows of `Buckets` values in [low, high] can be in; zeros alone are in the second."""
    return tuple(sign for sign, possible in enumerate((low < 0, high > 0)) if possible) or (1,)


def bucketed(tally: Tally, edges: tuple[int, ...]) -> Buckets:
    """The buckets of a tally; magnitudes beyond the last edge are cut down to it."""
    counts = np.zeros((2, len(edges)), dtype=object)
    sums = np.zeros((2, len(edges)), dtype=object)
    clipped = tally.clipped(-edges[-1], edges[-1])
    magnitudes = np.abs(clipped.values)
    places = np.searchsorted(np.array(edges), magnitudes)
    for sign, chosen in enumerate((clipped.values < 0, clipped.values >= 0)):
        for place in np.unique(places[chosen]):
            inside = chosen & (places == place)
            counts[sign, place] = int(clipped.counts[inside].sum())
            if clipped.sums is None:
                sums[sign, place] = weighted_total(magnitudes[inside], clipped.counts[inside])
            else:  # no cell lies in two buckets
                sums[sign, place] = abs(int(sum(clipped.sums[inside])))
    return Buckets(edges, counts, sums)


def geometric_edges(base: float, largest: int) -> tuple[int, ...]:
    """1, base, base², ... rounded to integers, up to `largest`, which is the last."""
    edges = {1, max(1, largest)}
    power = base
    while power < largest:
        edges.add(min(round(power), largest))
        power *= base
    return tuple(sorted(edges))


def weighted_total(values: Integers, weights: Integers) -> int:
    """Σ value × weight, exactly."""
    if not len(values):
        return 0
    largest = max(abs(int(values.min())), abs(int(values.max())))
    if largest * int(weights.sum()) < 2**62:
        return int(values @ weights)
    return int(values.astype(object) @ weights.astype(object))

"""Cells put together in parts: what is known of cells when only parts were measured. Public facts only.

Inside a part rows are taken to be spread evenly: that is an estimate. An interval takes nothing for granted: whatever
the cells of a part are, they are not negative and add up to it, so Σ q·x is between Σ min(q)·part and Σ max(q)·part.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from confide.workload.strategy.line import Floats, Integers


@dataclass(frozen=True)
class Partition:
    """Stretches of a line of `size` cells that follow each other, by their edges: 0, …, size."""

    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        own = np.array(self.edges)
        if len(own) < 2 or own[0] != 0 or (np.diff(own) <= 0).any():
            raise ValueError("the edges of a partition begin at 0 and grow")

    @property
    def size(self) -> int:
        return self.edges[-1]

    @property
    def parts(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def _edges(self) -> Integers:
        return np.array(self.edges, dtype=np.int64)

    def inner(self, starts: Integers, stops: Integers) -> tuple[Integers, Integers]:
        """The parts that lie wholly within stretches of cells, as stretches of parts; of none, an empty one."""
        first = np.searchsorted(self._edges, starts, side="left")
        last = np.searchsorted(self._edges, stops, side="right") - 1
        return first, np.maximum(first, last)

    def outer(self, starts: Integers, stops: Integers) -> tuple[Integers, Integers]:
        """The parts that stretches of cells touch."""
        first = np.searchsorted(self._edges, starts, side="right") - 1
        return first, np.searchsorted(self._edges, stops, side="left")

    def spread_evenly(self, sums: Floats, cuts: Integers) -> Floats:
        """How much lies before each cut, from sums of parts (0 first) with each part spread evenly."""
        return np.interp(cuts, self._edges, sums)

    def of_query(self, query: Floats) -> tuple[Floats, Floats, Floats]:
        """The least, the mean and the largest weight of a query within each part."""
        begins = self._edges[:-1]
        widths = np.diff(self._edges)
        least, most = np.minimum.reduceat(query, begins), np.maximum.reduceat(query, begins)
        return least, np.add.reduceat(query, begins) / widths, most


@dataclass(frozen=True)
class CellGrid:
    """The cells of one to three columns in an order in which every part that comes of halving is a stretch.

    A cell's code has the bits of its places, those of the widest half first: of columns of one size in turn. Cells are
    in the order of their codes; of one column that is its own order.
    """

    sizes: tuple[int, ...]

    @cached_property
    def _codes(self) -> Integers:
        places = np.indices(self.sizes).reshape(len(self.sizes), -1)
        left = [(size - 1).bit_length() for size in self.sizes]
        found = np.zeros(places.shape[1], dtype=np.int64)
        while any(left):
            column = left.index(max(left))
            left[column] -= 1
            found = found * 2 + (places[column] >> left[column] & 1)
        return found

    @cached_property
    def order(self) -> Integers:
        """The cells, as places in the flat table, in order."""
        return np.argsort(self._codes)

    @property
    def codes(self) -> Integers:
        """The codes of the cells in order: they grow."""
        return self._codes[self.order]

    def boxes(self, partition: Partition) -> tuple[Integers, Integers]:
        """Where each part begins and ends in every column: parts are boxes."""
        begins = np.array(partition.edges[:-1])
        places = np.stack(np.unravel_index(self.order, self.sizes))
        return np.minimum.reduceat(places, begins, axis=1), np.maximum.reduceat(places, begins, axis=1) + 1

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

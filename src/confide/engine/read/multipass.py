"""Distinct values with their counts where they matter, and coarse cells elsewhere: read in passes, each finer than the
one before.

A quantile by ranks depends on values only inside a window of ranks (`mechanism/quantile/rank.py`): the rows of a cell
that lies outside of it may be anywhere in the cell. So the first pass counts rows in few wide cells, and each further
one reads those cells anew that meet a window, in finer ones. Which cells those are never leaves the engine's side; what
comes out gives the same answers as one pass over all values would.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Counts, Window
from confide.engine.sql.stretches import Stretch
from confide.query.grid import EvenGrid
from confide.query.tree import Tallied

FEW: Final = 1_024
"""Up to so many cells a group are read in one pass."""
MOST: Final = 50_000
"""So many cells, over all groups, a pass should not exceed: a table of them stays near the processor."""
LEAST: Final = 16
PASSES: Final = 3

Read = Callable[[Tallied, Sequence[Stretch] | None], tuple[Counts, ...]]
"""One tally for each group; `stretches` are those values that are wanted, of which others may come along."""


class ChangedError(Exception):
    """Two passes did not find the same rows."""


def refined(
    read: Read, found: tuple[Counts, ...], coarse: Tallied, finer: Sequence[Tallied], windows: Sequence[Window]
) -> tuple[Counts, ...]:
    """One tally for each group, coarse outside of its windows: from what the first pass found, and finer ones."""
    for fine in finer:
        assert isinstance(coarse.grid, EvenGrid)
        parts = [_Cells.of(counts, coarse.grid, windows) for counts in found]
        stretches = [stretch for part in parts for stretch in part.stretches()]
        if stretches:
            found = tuple(part.replaced(own) for part, own in zip(parts, read(fine, stretches), strict=True))
        coarse = fine
    return found


def passes(tally: Tallied, groups: int) -> tuple[Tallied, ...]:
    """A tally on coarse grids, each nested in the one before, and last as it is."""
    if tally.sums or not isinstance(tally.grid, EvenGrid | None):
        return (tally,)
    span = tally.subject.span
    finest = tally.grid or EvenGrid(span.low, span.high, 1)
    if finest.cells <= FEW:
        return (tally,)
    most = max(LEAST, min(FEW, MOST // max(groups, 1)))
    count = next((number for number in range(2, PASSES) if most**number >= finest.cells), PASSES)
    base = next(base for base in range(2, finest.cells) if base**count >= finest.cells)
    coarse = (replace(finest, step=finest.step * base**power) for power in range(count - 1, 0, -1))
    return (*(replace(tally, grid=grid) for grid in coarse), tally)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells of one group, and which of them matter."""

    values: NDArray[Any]
    counts: NDArray[Any]
    near: NDArray[np.bool_]
    first: NDArray[Any]  # of each near cell
    last: NDArray[Any]

    @classmethod
    def of(cls, counts: Counts, grid: EvenGrid, windows: Sequence[Window]) -> "_Cells":
        values, numbers = counts
        upto = np.cumsum(numbers)
        rows = int(upto[-1]) if len(upto) else 0
        near = np.zeros(len(values), dtype=bool)
        for window in windows:
            first, last = window(rows)
            near |= (upto > first) & (upto - numbers < last)
        begin = grid.low + (values[near] - grid.low) // grid.step * grid.step
        return cls(values, numbers, near, begin, np.minimum(begin + (grid.step - 1), grid.high))

    def stretches(self) -> list[Stretch]:
        """The near cells as intervals; empty cells between two of them come along."""
        if not len(self.first):
            return []
        places = np.flatnonzero(self.near)
        cuts = np.flatnonzero(np.diff(places) > 1) + 1
        begins, ends = np.append(0, cuts), np.append(cuts, len(places)) - 1
        return [(int(self.first[a]), int(self.last[b])) for a, b in zip(begins, ends, strict=True)]

    def replaced(self, finer: Counts) -> Counts:
        """With the near cells as they were read again: the same rows in each, or something changed meanwhile."""
        values, counts = finer
        cell = np.searchsorted(self.first, values, side="right") - 1
        inside = cell >= 0
        inside[inside] = values[inside] <= self.last[cell[inside]]
        again = np.zeros(len(self.first), dtype=np.int64)
        np.add.at(again, cell[inside], counts[inside])
        if not np.array_equal(again, self.counts[self.near]):
            raise ChangedError
        merged = np.concatenate([self.values[~self.near], values[inside]])
        order = np.argsort(merged)
        return merged[order], np.concatenate([self.counts[~self.near], counts[inside]])[order]

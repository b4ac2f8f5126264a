"""Distinct values with their counts where they matter, and coarse cells elsewhere: read in passes, each finer than the
one before.

A quantile by ranks depends on values only inside a window of ranks (`mechanism/quantile/rank.py`): the rows of a cell
that lies outside of it may be anywhere in the cell. So the first pass counts rows in few wide cells, and each further
one reads those cells anew that meet a window, in finer ones. Which cells those are never leaves the engine's side; what
comes out gives the same answers as one pass over all values would.

However many values a column has, a pass has few numbers. A window is one run of cells; all but the two at its ends lie
inside of it, with no more rows than it has ranks; and those two are parted into as many cells as public facts say.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Counts, Window
from confide.engine.sql.stretches import ByGroup, Stretch, Wanted, united
from confide.query.grid import LARGEST_SUMMARY, EvenGrid, FloatingGrid
from confide.query.tree import Tallied

FEW: Final = 1_024
"""Up to so many cells a group are read in one pass."""
MOST: Final = 50_000
"""So many cells, over all groups, a pass should not exceed: a table of them stays near the processor."""
WIDEST: Final = 16_384
"""Into so many cells a pass parts a cell at most, unless that saves a fourth pass."""
LEAST: Final = 16
PASSES: Final = 3
"""More only where a pass would have more cells than ROOM."""
ROOM: Final = LARGEST_SUMMARY // 4

Read = Callable[[Tallied, Wanted | None], tuple[Counts, ...]]
"""One tally for each group, of those values that are wanted; others may come along."""


class ChangedError(Exception):
    """Two passes did not find the same rows."""


def refined(
    read: Read,
    found: tuple[Counts, ...],
    coarse: Tallied,
    finer: Sequence[Tallied],
    windows: Sequence[Window],
    numbered: bool = False,
) -> tuple[Counts, ...]:
    """One tally for each group, coarse outside of its windows: from what the first pass found, and finer ones.

    `numbered`: whether a statement can tell groups by their numbers.
    """
    for fine in finer:
        assert isinstance(coarse.grid, EvenGrid)
        parts = [_Cells.of(counts, coarse.grid, windows) for counts in found]
        own = [part.stretches() for part in parts]
        stretches = [stretch for part in own for stretch in part]
        if stretches:
            wanted: Wanted = stretches
            # A condition for each group costs more than rows that are not needed, unless these are very many.
            if numbered and len(parts) > 1 and _coming(parts, coarse.grid, united(stretches)) > ROOM:
                wanted = ByGroup(tuple((group, stretch) for group, part in enumerate(own) for stretch in part))
            found = tuple(part.replaced(own) for part, own in zip(parts, read(fine, wanted), strict=True))
        coarse = fine
    return found


def passes(tally: Tallied, groups: int) -> tuple[Tallied, ...]:
    """A tally on coarse grids, each nested in the one before, and last as it is."""
    if tally.sums or not isinstance(tally.grid, EvenGrid | None):
        return (tally,)
    finest = _finest(tally)
    if finest.cells <= FEW:
        return (tally,)
    count, base = _parting(finest.cells, groups)
    coarse = (replace(finest, step=finest.step * base**power) for power in range(count - 1, 0, -1))
    return (*(replace(tally, grid=grid) for grid in coarse), tally)


def most_numbers(tally: Tallied, groups: int, windows: Sequence[Window]) -> int:
    """So many numbers one pass has at most, whatever the data are: each window's ranks, and the cells at its ends."""
    cells = _finest(tally).cells
    if cells <= FEW:
        return groups * cells
    _, base = _parting(cells, groups)
    ranks: int = sum(_ranks(window) + 2 * base for window in windows)
    return groups * max(base, ranks)


def most_cells(tally: Tallied) -> int:
    """How many values, or points of cells, a tally can have in one group."""
    return tally.grid.cells if isinstance(tally.grid, FloatingGrid) else _finest(tally).cells


def _finest(tally: Tallied) -> EvenGrid:
    span = tally.subject.span
    assert isinstance(tally.grid, EvenGrid | None)
    return tally.grid or EvenGrid(span.low, span.high, 1)


def _parting(cells: int, groups: int) -> tuple[int, int]:
    """In how many passes, and into how many cells each of them parts a cell of the one before."""
    groups = max(groups, 1)
    most = max(LEAST, min(WIDEST, MOST // groups))
    for count in range(2, cells.bit_length() + 1):
        base = _root(cells, count)
        if base <= most or (count >= PASSES and 2 * base * groups <= ROOM):
            break
    return count, base


def _root(cells: int, count: int) -> int:
    """The least base whose power is at least so many cells."""
    base = max(2, round(math.exp(math.log(cells) / count)) - 2)
    while base**count < cells:
        base += 1
    return base


def _ranks(window: Window) -> int:
    """How many ranks a window has, for any number of rows: its ends move with them alike, but for rounding."""
    first, last = window(0)
    return last - first + 2


def _coming(parts: "Sequence[_Cells]", grid: EvenGrid, stretches: Sequence[Stretch]) -> int:
    """At most so many distinct values, over all groups, lie in the cells that some intervals meet."""
    return sum(
        int(np.minimum(part.counts, grid.step)[(part.begins <= high) & (part.begins + (grid.step - 1) >= low)].sum())
        for part in parts
        for low, high in stretches
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells of one group, and which of them matter."""

    values: NDArray[Any]
    counts: NDArray[Any]
    begins: NDArray[Any]
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
            least, most = window(rows)
            near |= (upto > least) & (upto - numbers < most)
        begins = grid.low + (values - grid.low) // grid.step * grid.step
        first = begins[near]
        return cls(values, numbers, begins, near, first, np.minimum(first + (grid.step - 1), grid.high))

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

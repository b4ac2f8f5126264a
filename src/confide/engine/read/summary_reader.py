"""A summary as statements, in the order in which one depends on another: keys that are kept, cells, tallies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from numpy.typing import NDArray

from confide.engine.protocol import Counts, Exact, Keep, Windows
from confide.engine.read.arrays import arrange, arrange_tally
from confide.engine.read.cells_from_tally import parted, teller, told
from confide.engine.read.key_filter import chosen, listed, merged
from confide.engine.read.multipass import most_cells, passes, refined
from confide.engine.result import Columns, Rows, ended
from confide.engine.sql.grid_tally import pointed, summed
from confide.engine.sql.statement import SummaryWriter
from confide.engine.sql.stretches import Wanted
from confide.query.grid import LARGEST_SUMMARY
from confide.query.grouping import key_size
from confide.query.tree import Summary, Tallied


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One summary, and how its statements are run. `bounding`: whether units have to be cut to their bound; `most`: how
    many rows a summary may have.
    """

    summary: Summary
    writer: SummaryWriter
    bounding: bool
    rows: Callable[[str], Rows]
    columns: Callable[[str], Columns]
    batches: Callable[[str], Iterator[Rows]]
    most: int = LARGEST_SUMMARY

    def exact(self, keep: Keep | None, windows: Windows) -> Exact:
        """One statement for cells, unless a tally tells them, and some for each tally."""
        summary, telling = self.summary, teller(self.summary)
        only: Mapping[int, Sequence[str]] | None = None
        if keep is not None and summary.open_keys:
            with ended(self.batches(self.writer.statement(self.bounding))) as batches:
                exact = merged([chosen(arrange(rows, summary), keep) for rows in batches], summary)
            only = listed(exact, summary)
        else:
            # Keys of undeclared domain always come with a cell that counts their units.
            read_cells = bool(summary.cells) and telling is None
            exact = arrange(self.rows(self.writer.statement(self.bounding)) if read_cells else [], summary)

        def read(tally: Tallied, wanted: Wanted | None) -> tuple[Counts, ...]:
            statement = self.writer.tally_statement(tally, self.bounding, only, wanted)
            return self._arranged(self.columns(statement), tally, exact)

        groups = prod(key_size(key) or 0 for key in summary.keys) if exact.keys is None else len(exact.keys)
        cells: tuple[NDArray[Any], ...] = exact.cells
        tallies = []
        for place, tally in enumerate(summary.tallies):
            # Where units are cut to their bound, that is most of the work: once is enough, if all values fit.
            whole = place not in windows or (self.bounding and groups * most_cells(tally) <= self.most)
            first, *finer = (tally,) if whole else passes(tally, groups)
            if place == telling:
                found, cells = self._telling(first, exact)
            else:
                found = read(first, None)
            tallies.append(refined(read, found, first, finer, windows.get(place, ()), exact.keys is None))
        return replace(exact, cells=cells, tallies=tuple(tallies))

    def _telling(self, tally: Tallied, exact: Exact) -> tuple[tuple[Counts, ...], tuple[NDArray[Any], ...]]:
        """A tally, and the cells that it tells."""
        cells = self.summary.cells
        sums = tally.grid is not None and any(cell.kind == "total" for cell in cells)
        summing = replace(tally, sums=tally.sums or sums)
        statement = self.writer.tally_statement(summing, self.bounding, unknown=True)
        known, unknown = (self._arranged(part, summing, exact) for part in parted(self.columns(statement)))
        own = known if tally.sums else tuple(counts[:2] for counts in known)
        return own, told(cells, known, unknown)

    def _arranged(self, columns: Columns, tally: Tallied, exact: Exact) -> tuple[Counts, ...]:
        placed = pointed(columns, tally.grid)
        sums = summed(placed, tally.grid) if tally.sums and tally.grid is not None else None
        return arrange_tally(placed, self.summary, exact.keys, sums)

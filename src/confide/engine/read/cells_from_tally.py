"""Cells that a tally tells: how many rows there are, how many have a known value, and what these sum up to.

Who asks for the median of a column by group asks for its count and mean as well, more often than not. All of that is in
the first reading of the tally, so the rows are not read once more for it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Counts
from confide.engine.read.arrays import integers
from confide.engine.result import Columns
from confide.query.tree import Always, Cell, Summary, Tallied

_NARROW = 2**62


def teller(summary: Summary) -> int | None:
    """The place of a tally that tells all cells, of a summary whose groups are known before it is read."""
    if not summary.cells or summary.open_keys:
        return None
    places = (place for place, tally in enumerate(summary.tallies) if all(_tells(tally, c) for c in summary.cells))
    return next(places, None)


def _tells(tally: Tallied, cell: Cell) -> bool:
    if cell.kind == "rows":
        return cell.where == Always(True)
    return cell.kind in ("known", "total") and (cell.subject, cell.where) == (tally.subject, tally.where)


def parted(columns: Columns) -> tuple[Columns, Columns]:
    """The rows of a tally whose value is known, and those where it is NULL."""
    unknown = np.ma.getmaskarray(columns["t"])
    if not unknown.any():
        return columns, {label: column[:0] for label, column in columns.items()}
    return (
        {label: column[~unknown] for label, column in columns.items()},
        {label: column[unknown] for label, column in columns.items()},
    )


def told(cells: Sequence[Cell], known: Sequence[Counts], unknown: Sequence[Counts]) -> tuple[NDArray[Any], ...]:
    """The cells of every group, from its tally and from how many rows have no value."""
    counts = [int(own[1].sum()) for own in known]
    found: dict[str, list[int]] = {"known": counts}
    found["rows"] = [own + int(missing[1].sum()) for own, missing in zip(counts, unknown, strict=True)]
    if any(cell.kind == "total" for cell in cells):
        found["total"] = [_total(own) for own in known]
    return tuple(integers(found[cell.kind]) for cell in cells)


def _total(counts: Counts) -> int:
    values, numbers, *sums = counts
    if sums:
        return int(sum(sums[0].tolist()))
    largest = int(np.abs(values).max(initial=0))
    if largest * int(numbers.sum()) < _NARROW:
        return int(values @ numbers)
    return int(values.astype(object) @ numbers.astype(object))

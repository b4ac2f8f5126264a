"""A summary as statements, in the order in which one depends on another: keys that are kept, cells, tallies.

Keys of undeclared domain, of which there may be any number, are read some at a time, and forgotten unless chosen.

A tally may tell cells: how many rows there are, how many have a known value, and what these sum up to. Who asks for the
median of a column by group asks for its count and mean as well, more often than not. All of that is in the first
reading of the tally, so the rows are not read once more for it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.engine.protocol import Counts, Exact, Keep, KeyValue, Windows
from confide.engine.read.multipass import most_cells, passes, refined
from confide.engine.result import Columns, Rows, ended
from confide.engine.sql.grid_tally import pointed, summed
from confide.engine.sql.group_codes import groups_of, places
from confide.engine.sql.statement import SummaryWriter
from confide.engine.sql.stretches import Wanted
from confide.query.grid import LARGEST_SUMMARY
from confide.query.grouping import key_size
from confide.query.tree import Always, Cell, Summary, Tallied, UnknownKey

MOST_LISTED: Final = 10_000
"""Up to so many chosen values of a key are named in the statements that follow."""

_NARROW = 2**62


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


def chosen(exact: Exact, keep: Keep) -> Exact:
    """The groups that are kept of some."""
    assert exact.keys is not None
    empty = np.empty(0, dtype=np.int64)
    places, noised = keep(exact.cells) if exact.keys else (empty, empty)
    return Exact(
        tuple(cell[places] for cell in exact.cells), tuple(exact.keys[place] for place in places), noised=noised
    )


def merged(parts: Sequence[Exact], summary: Summary) -> Exact:
    """All of them, in an order that depends on the keys alone: not on how many others were read between them."""
    keys = [key for part in parts for key in part.keys or ()]
    order = sorted(range(len(keys)), key=lambda place: in_order(keys[place]))
    empty = np.empty(0, dtype=np.int64)
    cells = tuple(
        np.concatenate([part.cells[cell] for part in parts])[order] if keys else empty
        for cell in range(len(summary.cells))
    )
    noised = np.concatenate([part.noised for part in parts if part.noised is not None])[order] if keys else empty
    return Exact(cells, tuple(keys[place] for place in order), noised=noised)


def listed(exact: Exact, summary: Summary) -> Mapping[int, Sequence[str]]:
    """What each key of undeclared domain may be from now on, where that is no long list."""
    found: dict[int, Sequence[str]] = {}
    for place, key in enumerate(summary.keys):
        if isinstance(key, UnknownKey):
            values = {own[place] for own in exact.keys or ()}
            texts = sorted(value for value in values if isinstance(value, str))
            if len(texts) == len(values) <= MOST_LISTED:
                found[place] = texts
    return found


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


def arrange(rows: Rows, summary: Summary) -> Exact:
    return _open(rows, summary) if summary.open_keys else _declared(rows, summary)


def _declared(rows: Rows, summary: Summary) -> Exact:
    width = len(summary.keys)
    known = [places(key) for key in summary.keys]
    sizes = [size or 0 for size in map(key_size, summary.keys)]
    values: list[list[int]] = [[0] * prod(sizes) for _ in summary.cells]
    for row in rows:
        group = 0
        for value, place, size in zip(row[:width], known, sizes, strict=True):
            assert place is not None
            group = group * size + place[value]
        for cell, column in enumerate(values):
            column[group] = row[width + cell] or 0
    return Exact(tuple(integers(column) for column in values), None)


def _open(rows: Rows, summary: Summary) -> Exact:
    width = len(summary.keys)
    known = [places(key) for key in summary.keys]
    keys = [
        tuple(value if place is None else place[value] for value, place in zip(row[:width], known, strict=True))
        for row in rows
    ]
    # An order that does not depend on how the database found them.
    order = sorted(range(len(rows)), key=lambda place: in_order(keys[place]))
    cells = tuple(integers([rows[place][width + cell] or 0 for place in order]) for cell in range(len(summary.cells)))
    return Exact(cells, tuple(keys[place] for place in order))


def in_order(key: tuple[KeyValue, ...]) -> tuple[tuple[bool, str], ...]:
    """What keys are sorted by: NULL last, and not beside a text that is spelled like it."""
    return tuple((value is None, str(value)) for value in key)


def arrange_tally(
    columns: Columns,
    summary: Summary,
    keys: tuple[tuple[KeyValue, ...], ...] | None,
    sums: NDArray[Any] | None = None,
) -> tuple[Counts, ...]:
    """One tally for every group of a result, in its order; groups without values have an empty one."""
    values, counts = (np.asarray(columns[name]).astype(np.int64, copy=False) for name in ("t", "n"))
    groups, number = groups_of(columns, summary.keys, keys)
    order = _order(groups, values)  # here, which is faster than there
    parts = [part[order] for part in ((values, counts) if sums is None else (values, counts, sums))]
    cuts = np.searchsorted(groups[order], np.arange(number + 1)).tolist()
    return tuple(tuple(part[start:end] for part in parts) for start, end in pairwise(cuts))


def _order(groups: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.intp]:
    """By group, and by value within one."""
    if not len(values):
        return np.empty(0, dtype=np.intp)
    least, most = int(values.min()), int(values.max())
    if (int(groups.max()) + 2) * (most - least + 1) < 2**63:
        return np.argsort(groups * (most - least + 1) + (values - least))
    return np.lexsort((values, groups))


def integers(values: list[int]) -> Any:
    """As an array: of Python's integers where 64 bits might not hold their sums."""
    if not values or (min(values) > -(2**62) and max(values) < 2**62):
        return np.array(values, dtype=np.int64)
    return np.array([int(value) for value in values], dtype=np.object_)

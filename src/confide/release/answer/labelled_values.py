"""Columns of released dates, and of the values that MODE found: numbers of days and places of values, spelled out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confide.mechanism import Assumes
from confide.query.question import Commonest, Dated
from confide.query.released_kind import Kind, label
from confide.release.answer.answer import ValueColumn
from confide.release.answer.estimate import Estimate


@dataclass(frozen=True, slots=True)
class LabelCell:
    """A number in one row, its ends, and, where more is known than those, which numbers it may be."""

    value: Dated | Commonest
    number: float
    low: float
    high: float
    places: tuple[int, ...] = ()

    def labels(self) -> tuple[Any, Any, Any]:
        """What it is shown as, from which value to which."""
        return label(self.value, self.number), label(self.value, self.low, "low"), label(self.value, self.high, "high")


def label_cells(value: Dated | Commonest, estimate: Estimate) -> list[LabelCell]:
    """The cells of a column."""
    found = zip(estimate.values, estimate.low, estimate.high, strict=True)
    return [LabelCell(value, *numbers, possible_places(estimate, row)) for row, numbers in enumerate(found)]


def possible_places(estimate: Estimate, row: int) -> tuple[int, ...]:
    return () if estimate.possible is None else estimate.possible[row]


def label_column(
    name: str,
    cells: Sequence[LabelCell | Any],
    kind: Kind,
    mechanism: str,
    assumes: Assumes,
    note: str,
    unknown: tuple[int, ...],
) -> ValueColumn:
    """A column of such cells; among them may be what is public, as it is."""
    parts = [cell.labels() if isinstance(cell, LabelCell) else (cell, cell, cell) for cell in cells]
    values, low, high = ([part[place] for part in parts] for place in range(3))
    sets = [_possible(cell) for cell in cells]
    among: tuple[Any, ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    if any(sets):
        among = tuple(_ordered(cells))
        order = {own: place for place, own in enumerate(among)}
        whole = frozenset(unknown)
        places = tuple(() if row in whole else tuple(order[own] for own in labels) for row, labels in enumerate(sets))
    return ValueColumn(
        name, kind, tuple(values), tuple(low), tuple(high), mechanism, assumes, note, unknown, among, places
    )


def _possible(cell: LabelCell | Any) -> tuple[Any, ...]:
    if not isinstance(cell, LabelCell):
        return () if cell is None else (cell,)
    return tuple(label(cell.value, place) for place in cell.places)


def _ordered(cells: Sequence[LabelCell | Any]) -> list[Any]:
    """All values that are possible somewhere, in the order of the key's domain."""
    found: dict[Any, None] = {}
    known: dict[int, set[int]] = {}
    values = {id(cell.value): cell.value for cell in cells if isinstance(cell, LabelCell)}
    for cell in cells:
        if isinstance(cell, LabelCell):
            known.setdefault(id(cell.value), set()).update(cell.places)
        elif cell is not None:
            found[cell] = None
    for own, places in known.items():
        found |= {label(values[own], place): None for place in sorted(places)}
    return list(found)

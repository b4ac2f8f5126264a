"""The columns of a derivation's answer: keys as they are, and released values with intervals for what is shown."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite
from typing import Any, Literal

from confide.mechanism import Assumes
from confide.mechanism.noise.law import Confidence
from confide.query.derivation.derivation import Derivation, DerivedColumn, DistinctRows
from confide.query.question import Commonest, Dated, measures_of, statistics_of
from confide.release.answer.answer import KeyColumn, ValueColumn
from confide.release.answer.chosen import level
from confide.release.answer.derived.answered_numbers import AnsweredNumbers
from confide.release.answer.derived.cell import DerivedCell, LeafCell, MadeCell, PublicCell, SumCell, together
from confide.release.answer.derived.cell_evaluation import CellEvaluation
from confide.release.answer.derived.cell_range import CellRange
from confide.release.answer.derived.derived_rows import DerivedRow, DerivedRows
from confide.release.answer.derived.ranking import RankCell, RunningCell
from confide.release.answer.labelled_values import LabelCell, label_column, possible_places

_LOOKED_AT = 3
"""Rows from which it is told what a column is made of: all rows are made alike."""


class DerivedAnswer:
    """One answer in the making. At most `most` rows are shown."""

    def __init__(
        self,
        derivation: Derivation,
        sources: Sequence[AnsweredNumbers],
        confidence: Confidence,
        most: int | None = None,
    ) -> None:
        self.derivation, self.sources, self.confidence = derivation, sources, confidence
        self.evaluation = CellEvaluation(sources, confidence)
        maker = DerivedRows(self.evaluation)
        self.all_rows = maker.rows(derivation.table)
        self.left_out, self.too_long = maker.left_out, maker.building.too_long
        self.present = [row for row in self.all_rows if row.present]
        self.rows = self.present[:most]

    @property
    def whole(self) -> bool:
        return len(self.rows) == len(self.present)

    @property
    def chosen(self) -> tuple[int, int] | None:
        """How many rows are shown, and of how many, where they are chosen by value."""
        by_value = self._by_distinct or any(row.there is not None for row in self.all_rows)
        return (len(self.rows), len(self.all_rows)) if by_value else None

    @cached_property
    def _by_distinct(self) -> bool:
        return any(isinstance(table, DistinctRows) for table in tables_of(self.derivation.table)) and any(
            not column.public for column in self.derivation.columns
        )

    @cached_property
    def jointly(self) -> bool:
        """Whether rows share noise, or are chosen by more than their own numbers: then intervals of all rows, shown or
        not, hold together, which they do however rows are chosen. Otherwise the false coverage rate is enough.
        """
        if self.chosen is None:
            return False
        if self._by_distinct:
            return True
        seen: set[tuple[int, int]] = set()
        for row in self.all_rows:
            own = together((row.chosen, *map(self.evaluation.touched, row.cells)))
            if not seen.isdisjoint(own):
                return True
            seen |= own
        return False

    @property
    def level(self) -> Confidence:
        """The confidence at which each interval is computed."""
        if self.chosen is None:
            return self.confidence
        shown, rows = self.chosen
        return level(self.confidence, 1 if self.jointly else shown, rows)

    def columns(self) -> tuple[KeyColumn | ValueColumn, ...]:
        return tuple(self._column(place, column) for place, column in enumerate(self.derivation.columns))

    def _column(self, place: int, column: DerivedColumn) -> KeyColumn | ValueColumn:
        cells = [row.cells[place] for row in self.rows]
        if column.label:
            return self._labelled(place, column, cells)
        if column.public and all(isinstance(cell, PublicCell) for cell in cells):
            return _key_column(column, [cell.value for cell in cells])  # type: ignore[attr-defined]
        ranges = [self.range(cell) for cell in cells]
        kind: Literal["text", "boolean", "integer", "number"] = "number"
        if column.kind in ("text", "boolean"):
            kind = "text" if column.kind == "text" else "boolean"
        elif any(own.whole for own in ranges) and all(own.whole or own.low is None for own in ranges):
            kind = "integer"
        ends = ("value", "low", "high")
        values, low, high = (tuple(_shown(getattr(own, end), kind) for own in ranges) for end in ends)
        names, conditions = self.made_of(place)
        assumes = "density" if any(own.assumes == "density" for own in ranges) else "always"
        note = "; ".join(f"the interval assumes {condition}" for condition in conditions)
        unknown = tuple(row for row, cell in enumerate(cells) if self._unknown(cell, ranges[row]))
        return ValueColumn(
            column.name, kind, values, low, high, " + ".join(names) or "constant", assumes, note, unknown
        )

    def _labelled(self, place: int, column: DerivedColumn, cells: Sequence[DerivedCell]) -> ValueColumn:
        """A column of dates, or of values that MODE found, as questions released them."""
        shown = [self._label(cell) if isinstance(cell, LeafCell) else cell.value for cell in cells]  # type: ignore[attr-defined]
        names, conditions = self.made_of(place)
        ranges = [self.range(cell) for cell in cells]
        assumes: Assumes = "density" if any(own.assumes == "density" for own in ranges) else "always"
        note = "; ".join(f"the interval assumes {condition}" for condition in conditions)
        unknown = tuple(row for row, cell in enumerate(cells) if self._unknown(cell, ranges[row]))
        return label_column(column.name, shown, column.kind, " + ".join(names) or "constant", assumes, note, unknown)

    def _label(self, cell: LeafCell) -> LabelCell:
        source, found = self.sources[cell.question], self.range(cell)
        value = source.values[cell.column]
        assert isinstance(value, Dated | Commonest)
        if isinstance(value, Commonest) and not isfinite(found.low):  # nothing is promised at this confidence
            places = source.question.statistics[value.statistic].places
            return LabelCell(value, found.value, places[0], places[-1], places)
        estimate = source.estimate(cell.column, self.confidence)
        return LabelCell(value, found.value, found.low, found.high, possible_places(estimate, cell.group))

    def _unknown(self, cell: DerivedCell, found: CellRange) -> bool:
        """Whether an interval is no more than what was known before."""
        if isinstance(cell, LeafCell):
            empty = self.sources[cell.question].estimate(cell.column, self.confidence).empty
            return (empty is not None and bool(empty[cell.group])) or found.low == -inf
        return found.value is not None and found.low == -inf and found.high == inf

    def range(self, cell: DerivedCell) -> CellRange:
        """The estimate that rows were chosen by, and ends for what is shown."""
        usual = self.evaluation.range(cell, self.confidence)
        if self.level == self.confidence:
            return usual
        wide = self.evaluation.range(cell, self.level)
        if usual.value is None or wide.low is None or isinstance(usual.value, str):
            return CellRange(usual.value, wide.low, wide.high, wide.missing, wide.whole, wide.assumes, wide.options)
        low, high = min(wide.low, usual.value), max(wide.high, usual.value)
        return CellRange(usual.value, low, high, wide.missing, wide.whole and usual.whole, wide.assumes)

    def made_of(self, place: int) -> tuple[list[str], list[str]]:
        """The mechanisms behind a column, and what its intervals assume."""
        names: dict[str, None] = {}
        conditions: dict[str, None] = {}
        for row in (self.rows or self.all_rows)[:_LOOKED_AT]:
            for question, measures, statistics in self._leaves(row.cells[place]):
                source = self.sources[question]
                count = len(source.question.measures)
                names |= dict.fromkeys(source.names[own] for own in sorted(measures))
                names |= dict.fromkeys(source.names[count + own] for own in sorted(statistics))
                conditions |= {source.conditions[own]: None for own in sorted(statistics) if source.conditions[own]}
        return list(names), list(conditions)

    def _leaves(self, root: DerivedCell) -> Iterator[tuple[int, frozenset[int], frozenset[int]]]:
        seen: set[int] = set()
        pending = [root]
        while pending:
            cell = pending.pop()
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            match cell:
                case LeafCell():
                    value = self.sources[cell.question].values[cell.column]
                    yield cell.question, measures_of(value), statistics_of(value)
                case SumCell():
                    for question, measure, _ in cell.terms:
                        yield question, frozenset((measure,)), frozenset()
                case MadeCell():
                    pending += cell.parts
                case RankCell() | RunningCell():
                    ranking = cell.ranking
                    pending += [own for own in (*ranking.cells, *ranking.there) if own is not None]
                    pending += cell.values if isinstance(cell, RunningCell) else ()


def tables_of(table: Any) -> Iterator[Any]:
    """A table and those that it is made of."""
    pending, seen = [table], set()
    while pending:
        own = pending.pop()
        if id(own) in seen:
            continue
        seen.add(id(own))
        yield own
        pending += [getattr(own, name) for name in ("source", "left", "right") if hasattr(own, name)]
        pending += getattr(own, "parts", ())


def _key_column(column: DerivedColumn, values: list[Any]) -> KeyColumn:
    whole = column.kind == "integer" and all(own is None or own.denominator == 1 for own in values)
    if column.kind in ("integer", "number"):
        plain = tuple(None if own is None else int(own) if whole else float(own) for own in values)
        return KeyColumn(column.name, "integer" if whole else "number", plain)
    return KeyColumn(column.name, column.kind, tuple(values))


def _shown(value: Any, kind: str) -> Any:
    if value is None or kind in ("text", "boolean"):
        return value
    if kind == "integer":
        return int(value) if abs(value) != float("inf") else value
    return float(Fraction(value)) if isinstance(value, int) else value


def shown_cells(row: DerivedRow) -> list[DerivedCell]:
    return [cell for cell in row.cells if not isinstance(cell, PublicCell)]

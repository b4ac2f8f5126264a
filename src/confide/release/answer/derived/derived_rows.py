"""A derivation, carried out: rows of cells, all that there may be, with whether each is there.

Rows that a condition on released numbers leaves out stay, marked: an aggregate over them has to know that they may be
there, and intervals of those that are shown how many there were to choose from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, assert_never

from confide.query.derivation.derivation import (
    Called,
    ComputedColumns,
    DerivedExpression,
    DerivedTable,
    DistinctRows,
    FirstRows,
    Fixed,
    Gathered,
    GroupedRowsOf,
    KeptRows,
    ListedRows,
    MatchedTables,
    OneNumber,
    OneRow,
    QuestionTable,
    StackedTables,
    Taken,
    Windowed,
)
from confide.release.answer.derived.building import Building
from confide.release.answer.derived.cell import (
    NOTHING,
    TRUE,
    DerivedCell,
    LeafCell,
    PublicCell,
    Touched,
    together,
)
from confide.release.answer.derived.cell_evaluation import CellEvaluation
from confide.release.answer.derived.ordering import ranking_of, sorted_rows
from confide.release.answer.derived.ranking import RankCell
from confide.release.answer.derived.windowing import windowed

_LAST: Final = 2**62
_NOWHERE: Touched = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class DerivedRow:
    """`there`: the condition under which the row is there, None for always; `present`: whether it is, by estimates;
    `chosen`: the noise that has a say in that.
    """

    cells: tuple[DerivedCell, ...]
    there: DerivedCell | None = None
    present: bool = True
    chosen: Touched = _NOWHERE


class DerivedRows:
    """Carries out the steps of a derivation; a table that is named twice is made once. Without `frames` those of
    windows are only counted.
    """

    def __init__(self, evaluation: CellEvaluation, frames: bool = True) -> None:
        self.evaluation, self.frames = evaluation, frames
        self.building = Building(evaluation)
        self._tables: dict[int, list[DerivedRow]] = {}
        self.summed = 0
        """Rows in all frames that were made."""
        self.left_out = False
        """Whether frames were not made because there are too many."""

    def rows(self, table: DerivedTable) -> list[DerivedRow]:
        if id(table) not in self._tables:
            self._tables[id(table)] = self._rows(table)
        return self._tables[id(table)]

    def _rows(self, table: DerivedTable) -> list[DerivedRow]:
        match table:
            case QuestionTable(question):
                return self._answered(question)
            case OneRow():
                return [DerivedRow(())]
            case ListedRows(listed):
                return [DerivedRow(tuple(map(PublicCell, own))) for own in listed]
            case KeptRows(source, condition):
                return self._kept(self.rows(source), condition)
            case GroupedRowsOf(source, keys, gathered):
                return self._grouped(self.rows(source), keys, gathered)
            case ComputedColumns(source, _, columns):
                rows = self.rows(source)
                cells = [self.column(own, rows) for own in columns]
                return [replace(row, cells=tuple(own[at] for own in cells)) for at, row in enumerate(rows)]
            case FirstRows():
                return self._first(table)
            case DistinctRows(source):
                return self._distinct(self.rows(source))
            case MatchedTables():
                return self._matched(table)
            case StackedTables(parts):
                return [row for part in parts for row in self.rows(part)]
        assert_never(table)

    def _answered(self, question: int) -> list[DerivedRow]:
        source = self.evaluation.sources[question]
        return [
            DerivedRow(
                (
                    *(PublicCell(value) for value in source.key_values(group)),
                    *(LeafCell(question, column, group) for column in range(len(source.values))),
                )
            )
            for group in range(len(source.places))
        ]

    # --- expressions --------------------------------------------------------------------------------------------------

    def column(self, expression: DerivedExpression, rows: Sequence[DerivedRow]) -> list[DerivedCell]:
        """An expression in all rows."""
        match expression:
            case Taken(place):
                return [row.cells[place] for row in rows]
            case Fixed(value):
                return [PublicCell(value)] * len(rows)
            case Called(function, parts):
                columns = [self.column(part, rows) for part in parts]
                joint = self.building.has_room(columns)
                return [self.building.called(function, cells, joint) for cells in zip(*columns, strict=True)]
            case OneNumber(table):
                return [self.rows(table)[0].cells[0]] * len(rows)
            case Windowed():
                return windowed(self, expression, rows)
        assert_never(expression)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _kept(self, rows: Sequence[DerivedRow], condition: DerivedExpression) -> list[DerivedRow]:
        found = []
        for row, cell in zip(rows, self.column(condition, rows), strict=True):
            if isinstance(cell, PublicCell):
                if cell.value is True:
                    found.append(row)
                continue
            found.append(self._under(row, cell, self.evaluation.value(cell) is True, self.evaluation.touched(cell)))
        return found

    def _under(self, row: DerivedRow, cell: DerivedCell, holds: bool, by: Touched) -> DerivedRow:
        """A row that is there only if a condition holds as well."""
        there = cell if row.there is None else self.building.called("and", (row.there, cell))
        return replace(row, there=there, present=row.present and holds, chosen=together((row.chosen, by)))

    def _grouped(
        self, rows: list[DerivedRow], keys: tuple[DerivedExpression, ...], wanted: tuple[Gathered, ...]
    ) -> list[DerivedRow]:
        columns = [self.column(key, rows) for key in keys]
        found = []
        for label, members in self._groups(rows, columns):
            cells: list[DerivedCell] = [PublicCell(value) for value in label]
            cells += [self._gathered(own, members) for own in wanted]
            there = None
            if keys and all(row.there is not None for row in members):
                there = self.building.called("or", [row.there for row in members if row.there is not None])
            chosen = frozenset().union(*(row.chosen for row in members)) if keys else _NOWHERE
            present = not keys or any(row.present for row in members)
            found.append(DerivedRow(tuple(cells), there, present, chosen))
        return found

    def _groups(
        self, rows: list[DerivedRow], columns: list[list[DerivedCell]]
    ) -> Iterator[tuple[tuple[Any, ...], list[DerivedRow]]]:
        """Rows by their keys. A key that is released is a label that was seen: a row has it surely, perhaps, or not."""
        if not columns:
            yield (), rows
            return
        values = [
            tuple(own[at].value if isinstance(own[at], PublicCell) else self._label(own[at]) for own in columns)  # type: ignore[attr-defined]
            for at in range(len(rows))
        ]
        seen: dict[tuple[Any, ...], list[int]] = {}
        for at, value in enumerate(values):
            seen.setdefault(tuple(map(_typed, value)), []).append(at)
        public = all(isinstance(cell, PublicCell) for own in columns for cell in own)
        for places in seen.values():
            label = values[places[0]]
            if public:
                yield label, [rows[at] for at in places]
                continue
            if not any(rows[at].present for at in places):
                continue
            yield (
                label,
                [own for at, row in enumerate(rows) if (own := self._labelled(row, label, columns, at)) is not None],
            )

    def _label(self, cell: DerivedCell) -> Any:
        value = self.evaluation.value(cell)
        return Fraction(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    def _labelled(
        self, row: DerivedRow, label: tuple[Any, ...], columns: list[list[DerivedCell]], at: int
    ) -> DerivedRow | None:
        for own, value in zip(columns, label, strict=True):
            cell = own[at]
            if isinstance(cell, PublicCell):
                if _typed(cell.value) != _typed(value):
                    return None
            else:
                test = ("is null", (cell,)) if value is None else ("=", (cell, PublicCell(value)))
                equal = self.building.called(*test)
                row = self._under(row, equal, self.evaluation.value(equal) is True, self.evaluation.touched(cell))
        return row

    def _gathered(self, wanted: Gathered, rows: Sequence[DerivedRow]) -> DerivedCell:
        subjects = [TRUE] * len(rows) if wanted.subject is None else self.column(wanted.subject, rows)
        wheres = [TRUE] * len(rows) if wanted.where is None else self.column(wanted.where, rows)
        parts = []
        for row, subject, where in zip(rows, subjects, wheres, strict=True):
            there = where if row.there is None else self.building.called("and", (row.there, where))
            if not (isinstance(there, PublicCell) and there.value is not True):
                parts.append((there, subject))
        function = wanted.function
        if function in ("any", "all"):
            return self._ever(function, parts)
        if function == "distinct":
            return self._distinct_keys(parts)
        if wanted.share is not None:
            function = f"{function} {wanted.share}"
        return self.building.gathered(function, parts)

    def _ever(self, function: str, parts: Sequence[tuple[DerivedCell, DerivedCell]]) -> DerivedCell:
        """Whether a condition holds for any row that is there, or for all of them."""
        called = self.building.called
        if function == "any":
            return called("or", [called("and", pair) for pair in parts]) if parts else NOTHING
        return (
            called("and", [called("or", (called("not", (there,)), own)) for there, own in parts]) if parts else NOTHING
        )

    def _distinct_keys(self, parts: Sequence[tuple[DerivedCell, DerivedCell]]) -> DerivedCell:
        by_key: dict[Any, list[DerivedCell]] = {}
        for there, subject in parts:
            if isinstance(subject, PublicCell) and subject.value is not None:
                by_key.setdefault(_typed(subject.value), []).append(there)
        return self.building.gathered("count", [(self.building.called("or", own), TRUE) for own in by_key.values()])

    def _distinct(self, rows: Sequence[DerivedRow]) -> list[DerivedRow]:
        """Of rows that look alike the first; where all is public, it is there if any of them is."""
        seen: dict[tuple[Any, ...], int] = {}
        found: list[DerivedRow] = []
        for row in rows:
            label = tuple(_typed(own.value if isinstance(own, PublicCell) else self._label(own)) for own in row.cells)
            first = seen.get(label)
            if first is None:
                seen[label] = len(found)
                found.append(row)
            elif all(isinstance(own, PublicCell) for own in row.cells):
                kept = found[first]
                there = (
                    None
                    if kept.there is None or row.there is None
                    else self.building.called("or", (kept.there, row.there))
                )
                found[first] = replace(
                    kept, there=there, present=kept.present or row.present, chosen=kept.chosen | row.chosen
                )
            elif not found[first].present and row.present:
                found.append(replace(found[first], present=False))
                found[first] = row
            else:
                found.append(replace(row, present=False))
        return found

    def _first(self, table: FirstRows) -> list[DerivedRow]:
        """In order, and cut."""
        rows = self.rows(table.source)
        columns = [self.column(order.by, rows) for order in table.order]
        order = sorted_rows(self.evaluation, columns, table.order, [row.present for row in rows])
        narrow = [replace(row, cells=row.cells[: table.width]) for row in rows]
        if table.limit is None and not table.offset:
            return [narrow[at] for at in order]
        last = _LAST if table.limit is None else table.offset + table.limit
        public = all(isinstance(cell, PublicCell) for own in columns for cell in own)
        if public and all(row.there is None for row in rows):
            return [narrow[at] for at in order[table.offset : last]]
        there = [row.there for row in rows]
        ranking = ranking_of(self.evaluation, columns, table.order, there, [row.present for row in rows])
        found = []
        for at in order:
            cell = RankCell(ranking, at, "first", (table.offset, last))
            holds = table.offset < ranking.numbered[at] <= last
            by = together(self.evaluation.touched(own[at]) for own in columns)
            found.append(self._under(narrow[at], cell, holds, by))
        return found

    def _matched(self, table: MatchedTables) -> list[DerivedRow]:
        left, right = self.rows(table.left), self.rows(table.right)
        partners: dict[tuple[Any, ...], list[int]] = {}
        for at, row in enumerate(right):
            key = _key(row, [second for _, second in table.pairs])
            if key is not None:
                partners.setdefault(key, []).append(at)
        found, met = [], set()
        for row in left:
            key = _key(row, [first for first, _ in table.pairs])
            places = [] if key is None else partners.get(key, [])
            met.update(places)
            found += [self._pair(row, right[at]) for at in places]
            if not places and table.kind != "inner":
                found.append(replace(row, cells=row.cells + (NOTHING,) * table.widths[1]))
        if table.kind == "full":
            missing = (NOTHING,) * table.widths[0]
            found += [replace(row, cells=missing + row.cells) for at, row in enumerate(right) if at not in met]
        return found

    def _pair(self, one: DerivedRow, two: DerivedRow) -> DerivedRow:
        there = one.there if two.there is None else two.there
        if one.there is not None and two.there is not None:
            there = self.building.called("and", (one.there, two.there))
        return DerivedRow(one.cells + two.cells, there, one.present and two.present, together((one.chosen, two.chosen)))


def _key(row: DerivedRow, places: Sequence[int]) -> tuple[Any, ...] | None:
    """Public values by which rows are matched; None if one is NULL, which equals nothing."""
    values = [row.cells[place].value for place in places]  # type: ignore[attr-defined]
    return None if any(value is None for value in values) else tuple(map(_typed, values))


def _typed(value: Any) -> tuple[str, Any]:
    """A truth is no number, whatever Python says."""
    return ("truth" if isinstance(value, bool) else "", value)

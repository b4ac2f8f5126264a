"""Rows in an order: by estimates, and how sure their places are."""

from collections.abc import Sequence
from datetime import date
from functools import cmp_to_key
from typing import Any

from confide.query.derivation.derivation import RowOrder
from confide.release.answer.derived.cell import DerivedCell, PublicCell
from confide.release.answer.derived.cell_evaluation import CellEvaluation
from confide.release.answer.derived.ranking import Ranking

Columns = Sequence[Sequence[DerivedCell]]


def sorted_rows(
    evaluation: CellEvaluation, columns: Columns, order: Sequence[RowOrder], present: Sequence[bool]
) -> list[int]:
    """Places of rows in an order by estimates; rows that are not there come last."""
    compared = _compared(evaluation, columns, order)
    rows = sorted(range(len(present)), key=cmp_to_key(compared)) if columns else list(range(len(present)))
    return [row for row in rows if present[row]] + [row for row in rows if not present[row]]


def _compared(evaluation: CellEvaluation, columns: Columns, order: Sequence[RowOrder]) -> Any:
    values = [[_value(evaluation, cell) for cell in column] for column in columns]

    def compare(one: int, two: int) -> int:
        for own, by in zip(values, order, strict=True):
            a, b = own[one], own[two]
            if a == b or (a is None and b is None):
                continue
            if a is None or b is None:
                return -1 if (a is None) == by.nulls_first else 1
            return (-1 if a < b else 1) * (-1 if by.descending else 1)
        return 0

    return compare


def _value(evaluation: CellEvaluation, cell: DerivedCell) -> Any:
    value = cell.value if isinstance(cell, PublicCell) else evaluation.value(cell)
    return value.toordinal() if isinstance(value, date) else value


def ranking_of(
    evaluation: CellEvaluation,
    columns: Columns,
    order: Sequence[RowOrder],
    there: Sequence[DerivedCell | None],
    present: Sequence[bool],
) -> Ranking:
    """The places of rows: public columns before the first released one tell them apart surely, then that one does as
    far as its intervals go. What comes after it, and what is like it, leaves the order open.
    """
    first = next(
        (at for at, own in enumerate(columns) if not all(isinstance(cell, PublicCell) for cell in own)), len(columns)
    )
    public = _compared(evaluation, columns[:first], order[:first])
    rows = list(range(len(present)))
    classes = _ranks(sorted(rows, key=cmp_to_key(public)), public)[2]
    cells: list[DerivedCell | None] = list(columns[first]) if first < len(columns) else [None] * len(rows)
    whole = sorted_rows(evaluation, columns, order, present)
    estimated = _ranks(whole, _compared(evaluation, columns, order))
    return Ranking(classes, cells, first < len(columns) and order[first].descending, there, estimated)


def _ranks(order: Sequence[int], compare: Any) -> tuple[list[int], list[int], list[int]]:
    """Of each row its number, its rank and its dense rank, from 1 on."""
    numbered, rank, dense = ([0] * len(order) for _ in range(3))
    for at, row in enumerate(order):
        same = at > 0 and compare(order[at - 1], row) == 0
        numbered[row] = at + 1
        rank[row] = rank[order[at - 1]] if same else at + 1
        dense[row] = dense[order[at - 1]] if same else (dense[order[at - 1]] if at else 0) + 1
    return numbered, rank, dense

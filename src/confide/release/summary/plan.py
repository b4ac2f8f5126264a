"""What a summary would show at an ε, before anything is spent: public facts only."""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Final

from confide.mechanism import Law
from confide.mechanism.interval.histogram import quantile_widths
from confide.privacy.budget import Budget
from confide.release.account import AUTO
from confide.release.answer.digits import number
from confide.release.arguments import exact_rows
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.holdings import Holdings
from confide.release.summary.counted_columns import SummaryColumn
from confide.release.summary.request import PricedSummary, summary_request

_READABLE: Final = Fraction(1, 2)
"""A count is readable if its interval is at most so wide beside it, to either side."""


@dataclass(frozen=True, slots=True)
class PlannedSummaryColumn:
    """A column: by what it is counted, how wide the interval of a count is, and what that leaves to read.

    `ranks`: of a ranged column, how many rows a median may be off at most beside the width of a cell.
    """

    name: str
    cells: str
    half_width: float
    ranks: float | None
    readable: bool
    said: str


@dataclass(frozen=True)
class SummaryPlan:
    """The forecast of a summary. Nothing was read and nothing was charged."""

    table: str
    columns: tuple[PlannedSummaryColumn, ...]
    cost: Cost
    confidence: float
    unit: str
    affordable: bool
    budget: BudgetState
    rows: int | None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "table": self.table,
            "cost": self.cost.to_dict(),
            "confidence": self.confidence,
            "unit": self.unit,
            "affordable": self.affordable,
            "rows": self.rows,
            "columns": [
                {
                    "name": own.name,
                    "cells": own.cells,
                    "half_width": own.half_width if isfinite(own.half_width) else None,
                    "ranks": own.ranks,
                    "readable": own.readable,
                    "said": own.said,
                }
                for own in self.columns
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from confide.release.summary.rendering import plan_text  # noqa: PLC0415  loaded when printed

        return plan_text(self)

    def _repr_html_(self) -> str:
        from confide.release.summary.rendering import plan_html  # noqa: PLC0415  loaded when printed

        return plan_html(self)


def plan_summary(
    holdings: Holdings, table: object, epsilon: object, confidence: float, rows: object, account: object = AUTO
) -> SummaryPlan:
    """Of each column what its counts will tell apart, at the size that the policy says or the caller."""
    known = exact_rows(rows)
    request = summary_request(holdings, table, epsilon)
    standing, design = holdings.standing(), request.design

    def price(budget: Budget) -> PricedSummary:
        return request.price(budget)

    accounts = holdings.accounts(account)
    chosen = accounts[0] if len(accounts) == 1 else holdings.preferred(standing, price, accounts)
    priced = price(standing.budget.under(chosen))
    size = known if known is not None else holdings.policy.tables[design.table].size
    notes = list(design.skipped)
    if size is None:
        notes.append("the policy does not say how many rows there are, so what is readable is not judged; give rows")
    return SummaryPlan(
        design.table,
        tuple(_planned(column, priced, confidence, size) for column in design.columns),
        Cost.of(request.epsilon, priced.loss),
        confidence,
        design.unit,
        standing.holds(priced.loss),
        budget_state(standing),
        size,
        tuple(notes),
    )


def _planned(column: SummaryColumn, priced: PricedSummary, confidence: float, size: int | None) -> PlannedSummaryColumn:
    if column.attribute is not None:
        law = priced.tables[column.name].law
        half = float(law.half_width(confidence))
        if column.kind == "range":
            return _ranged(column, law, half, confidence, size)
        cells = column.attribute.size
        seen = "" if size is None else f" of {number(size)}"
        said = f"values that at least {number(round(half / float(_READABLE)))} rows{seen} have"
        readable = size is None or half <= _READABLE * Fraction(size, max(cells, 1))
        return PlannedSummaryColumn(column.name, f"{cells:,} values", half, None, readable, said)
    if column.name in priced.keys:
        threshold = priced.keys[column.name]
        half = float(threshold.law.half_width(confidence))
        said = f"values that at least about {threshold.threshold:,} units hold"
        return PlannedSummaryColumn(column.name, "its texts", half, None, True, said)
    half = float(priced.known[0].law.half_width(confidence))
    said = "how many are missing; no δ, so no values" if column.kind == "text" else "how many are missing; no range"
    return PlannedSummaryColumn(column.name, "missing or not", half, None, False, said)


def _ranged(column: SummaryColumn, law: Law, half: float, confidence: float, size: int | None) -> PlannedSummaryColumn:
    assert column.attribute is not None
    cells = column.attribute.size
    ranks = 2 * max(quantile_widths(law, cells, Fraction(1, 2), confidence))
    percent = "" if size is None else f", ±{100 * ranks / 2 / size:.2g} % of the rows" if size else ""
    readable = size is None or ranks <= size / 4
    said = f"quantiles to a bin{percent}" if readable else "hardly any quantile: more ε, or fewer columns"
    return PlannedSummaryColumn(column.name, f"{cells:,} bins", half, ranks / 2, readable, said)

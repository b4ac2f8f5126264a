"""What an analyst holds of a summary: of every column what is missing, its shape or its commonest values.

Nothing here can read data or spend budget: all of it is arithmetic on noised counts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Law
from confide.mechanism.interval.histogram import quantile_cells
from confide.mechanism.interval.interval import bounded_ends
from confide.mechanism.interval.linear import combined_half_width
from confide.mechanism.noise.law import Confidence
from confide.mechanism.selection.threshold import shown_intervals
from confide.release.answer.chosen import level
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.summary.noised_counts import NoisedColumn, NoisedSummary
from confide.release.summary.request import summary_request

SHARES: Final = (Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(19, 20))
MOST_BARS: Final = 24
MOST_COMMON: Final = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, or a day, with the ends of its interval."""

    value: Any
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class SummaryBar:
    """A bar of a histogram: its first and last value, and how many rows lie between."""

    first: Any
    last: Any
    rows: Figure


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """A column: rows without a value, quantiles and a histogram, or the commonest values."""

    name: str
    kind: str
    missing: Figure
    quantiles: dict[str, Figure] = field(default_factory=dict)
    """By the share of rows below, as "50%"."""
    histogram: tuple[SummaryBar, ...] = ()
    commonest: tuple[tuple[Any, Figure], ...] = ()
    listed: int | None = None
    """How many values there are to be common: declared, or shown by a threshold."""
    note: str = ""


@dataclass(frozen=True)
class TableSummary:
    """The first look at a table, for one charge. Every number has an interval.

    `rows` and `columns` hold the numbers; printed, as a page (`to_html`) or as a picture (`plot`) it shows them.

    Intervals hold with the confidence one by one, whatever the data are; of commonest values, which are chosen by their
    counts, such a share of those that are shown holds on average.
    """

    measured: NoisedSummary
    confidence: float
    stored: bool = field(default=False, compare=False)

    @property
    def table(self) -> str:
        return self.measured.table

    @property
    def cost(self) -> Cost:
        return self.measured.cost

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of the whole, and of columns."""
        return (*self.measured.notes, *(f"{column.name}: {column.note}" for column in self.columns if column.note))

    @cached_property
    def rows(self) -> Figure:
        """How many rows there are, of those that count."""
        return _count(self.measured.rows.value, self.measured.rows.law, self.confidence)

    @cached_property
    def columns(self) -> tuple[ColumnSummary, ...]:
        return tuple(self._column(column) for column in self.measured.columns)

    def __getitem__(self, name: str) -> ColumnSummary:
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise KeyError(f"there is no column {name}; there are {', '.join(own.name for own in self.columns)}")
        return found

    def _column(self, column: NoisedColumn) -> ColumnSummary:
        missing = self._missing(column)
        common, values = _commonest(column, self.confidence)
        if column.bins is None:
            return ColumnSummary(
                column.name, column.kind, missing, commonest=common, listed=values, note=self._note(column, common)
            )
        return ColumnSummary(
            column.name,
            column.kind,
            missing,
            _quantiles(column, self.confidence),
            _histogram(column, self.confidence),
            note=column.note,
        )

    def _missing(self, column: NoisedColumn) -> Figure:
        if column.missing is not None:
            return _count(column.missing, column.law, self.confidence)
        assert column.known is not None
        rows = self.measured.rows
        half = int(combined_half_width([(1, rows.law), (1, column.known.law)], self.confidence))
        one = min(half, int(combined_half_width([(1, rows.law), (1, column.known.law)], _twice(self.confidence))))
        return _ends(rows.value - column.known.value, half, one)

    def _note(self, column: NoisedColumn, common: Sequence[Any]) -> str:
        if column.threshold is None:
            return column.note
        told = f"values that fewer than about {column.threshold:,} {_units(self.measured.unit)} hold are left out"
        return told if common else f"{told}: none was shown"

    # --- taking it elsewhere ------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All numbers and what they mean, as plain values."""
        return {
            "table": self.table,
            "rows": _facts(self.rows),
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "missing": _facts(column.missing),
                    "quantiles": {share: _facts(own) for share, own in column.quantiles.items()},
                    "histogram": [
                        {"first": _json(bar.first), "last": _json(bar.last), "rows": _facts(bar.rows)}
                        for bar in column.histogram
                    ],
                    "commonest": [{"value": value, "rows": _facts(own)} for value, own in column.commonest],
                    "listed": column.listed,
                    "note": column.note,
                }
                for column in self.columns
            ],
            "confidence": self.confidence,
            "cost": self.cost.to_dict(),
            "unit": self.measured.unit,
            "neighbours": self.measured.neighbours,
            "notes": list(self.measured.notes),
            **({"test_noise": True} if self.measured.test_noise else {}),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def plot(self) -> Any:
        """An Altair chart: a panel for each column that has a shape, bars with the ends of their intervals."""
        from confide.release.summary.chart import panels  # noqa: PLC0415  heavy, and loaded when used

        return panels(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that holds all it needs; written to a file, if one is named."""
        from confide.release.summary.rendering import summary_page  # noqa: PLC0415  loaded when printed

        page = summary_page(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        from confide.release.summary.rendering import summary_text  # noqa: PLC0415  loaded when printed

        return summary_text(self)

    def _repr_html_(self) -> str:
        from confide.release.summary.rendering import summary_html  # noqa: PLC0415  loaded when printed

        return summary_html(self)


def summarize(holdings: Holdings, table: object, epsilon: object, confidence: float, account: object) -> TableSummary:
    """Ask for a summary; what is kept of it is read at the confidence that is asked for."""
    asked = holdings.ask(summary_request(holdings, table, epsilon), account)
    return TableSummary(asked.result, confidence, asked.stored)


def _count(value: int, law: Law, confidence: Confidence) -> Figure:
    return _ends(value, law.half_width(confidence), law.upper(confidence))


def _ends(value: int, half: int, one_sided: int) -> Figure:
    moved, low, high = bounded_ends(np.array([value], dtype=object), half, one_sided, 0)
    return Figure(int(moved[0]), int(low[0]), int(high[0]))


def _twice(confidence: Confidence) -> Confidence:
    """The confidence whose half-width is exceeded on one side as rarely as the other's on both."""
    return max(2 * Fraction(confidence) - 1, Fraction(1, 1000))


def _quantiles(column: NoisedColumn, confidence: float) -> dict[str, Figure]:
    bins = column.bins
    assert bins is not None
    counts = np.array(column.counts, dtype=np.int64)
    found = {}
    for share in SHARES:
        place, first, last = quantile_cells(counts, column.law, share, confidence)
        low, high = bins.ends(first, last)
        index = min(max(bins.first + place * bins.width, low), high)
        value = bins.value(round(index))
        found[f"{float(100 * share):g}%"] = Figure(value, bins.value(low), bins.value(high))
    return found


def _histogram(column: NoisedColumn, confidence: float) -> tuple[SummaryBar, ...]:
    bins, cells = column.bins, len(column.counts)
    assert bins is not None
    together = -(-cells // MOST_BARS)
    bars = []
    for start in range(0, cells, together):
        stop = min(start + together, cells)
        terms = [(1, column.law)] * (stop - start)
        half, one = (int(combined_half_width(terms, own)) for own in (confidence, _twice(confidence)))
        first, last = bins.ends(start, stop - 1)
        rows = _ends(sum(column.counts[start:stop]), half, min(half, one))
        bars.append(SummaryBar(bins.value(first), bins.value(last), rows))
    return tuple(bars)


def _commonest(column: NoisedColumn, confidence: float) -> tuple[tuple[tuple[Any, Figure], ...], int | None]:
    if not column.labels and column.kind != "text":
        return (), None
    places = sorted(range(len(column.counts)), key=lambda place: -column.counts[place])[:MOST_COMMON]
    each = level(confidence, len(places), len(column.counts))
    if column.threshold is None:
        found = [(column.labels[place], _count(column.counts[place], column.law, each)) for place in places]
        return tuple(found), len(column.labels)
    assert isinstance(column.law, DiscreteLaplace | DiscreteGaussian)
    counts = np.array([column.counts[place] for place in places], dtype=np.int64)
    ends = shown_intervals(counts, column.law, column.threshold, each)
    figures = [
        Figure(int(own), int(low), int(high)) for own, low, high in zip(counts, ends.low, ends.high, strict=True)
    ]
    return tuple((column.labels[place], own) for place, own in zip(places, figures, strict=True)), len(column.labels)


def _units(unit: str) -> str:
    return "rows" if unit == "row" else "units"


def _facts(figure: Figure) -> dict[str, Any]:
    return {"value": _json(figure.value), "low": _json(figure.low), "high": _json(figure.high)}


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value

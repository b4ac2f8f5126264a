"""What is kept of a summary: noised counts of every column, their laws, and what the cells are."""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Final, Literal

from confide.mechanism import Law
from confide.policy.column import EPOCH
from confide.release.cost import Cost
from confide.release.law_facts import law_facts, law_of

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class NoisedNumber:
    """A count and the law of its noise."""

    value: int
    law: Law


@dataclass(frozen=True, slots=True)
class Bins:
    """The cells of a ranged column: `width` steps of the grain each, from index `first` on, cut at the range."""

    first: int
    width: int
    low: int
    high: int
    grain: Fraction
    days: bool

    def value(self, index: float) -> int | float | date:
        """An index as it is written in the data."""
        if self.days:
            return EPOCH + timedelta(days=int(index))
        exact = Fraction(index) * self.grain
        return int(exact) if exact.denominator == 1 else float(exact)

    def ends(self, first: int, last: int) -> tuple[int, int]:
        """The indices of the first and the last value in some cells."""
        return max(self.first + first * self.width, self.low), min(self.first + (last + 1) * self.width - 1, self.high)


@dataclass(frozen=True, slots=True)
class NoisedColumn:
    """A column: noised counts of its cells in order, and of what is missing.

    Of `values` the cells are listed in `labels`; of a `range` they are `bins`; of `text` they are the keys that were
    shown, with the threshold that they passed. Of `other` columns only what is missing is known.
    """

    name: str
    kind: Literal["values", "range", "text", "other"]
    counts: tuple[int, ...]
    law: Law
    labels: tuple[str | int | bool, ...] = ()
    bins: Bins | None = None
    threshold: int | None = None
    missing: int | None = None
    """The noised number of rows without a value, under the same law; None if it follows from `known`."""
    known: NoisedNumber | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoisedSummary:
    """The noised counts of a table."""

    table: str
    rows: NoisedNumber
    columns: tuple[NoisedColumn, ...]
    cost: Cost
    unit: str
    neighbours: str
    notes: tuple[str, ...]
    test_noise: bool

    def to_bytes(self) -> bytes:
        facts = {
            "format": _FORMAT,
            "table": self.table,
            "rows": _number_facts(self.rows),
            "columns": [_column_facts(column) for column in self.columns],
            "cost": self.cost.to_dict(),
            "unit": self.unit,
            "neighbours": self.neighbours,
            "notes": list(self.notes),
            "test_noise": self.test_noise,
        }
        return json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> "NoisedSummary":
        facts = json.loads(stored)
        return cls(
            facts["table"],
            _number_of(facts["rows"]),
            tuple(_column_of(column) for column in facts["columns"]),
            Cost.from_dict(facts["cost"]),
            facts["unit"],
            facts["neighbours"],
            tuple(facts["notes"]),
            facts["test_noise"],
        )


def _number_facts(number: NoisedNumber) -> dict[str, Any]:
    return {"value": number.value, "law": law_facts(number.law)}


def _number_of(facts: dict[str, Any]) -> NoisedNumber:
    return NoisedNumber(facts["value"], law_of(facts["law"]))


def _column_facts(column: NoisedColumn) -> dict[str, Any]:
    bins = column.bins
    return {
        "name": column.name,
        "kind": column.kind,
        "counts": list(column.counts),
        "law": law_facts(column.law),
        "labels": list(column.labels),
        "bins": None if bins is None else [bins.first, bins.width, bins.low, bins.high, str(bins.grain), bins.days],
        "threshold": column.threshold,
        "missing": column.missing,
        "known": None if column.known is None else _number_facts(column.known),
        "note": column.note,
    }


def _column_of(facts: dict[str, Any]) -> NoisedColumn:
    bins = facts["bins"]
    return NoisedColumn(
        facts["name"],
        facts["kind"],
        tuple(facts["counts"]),
        law_of(facts["law"]),
        tuple(facts["labels"]),
        None if bins is None else Bins(bins[0], bins[1], bins[2], bins[3], Fraction(bins[4]), bins[5]),
        facts["threshold"],
        facts["missing"],
        None if facts["known"] is None else _number_of(facts["known"]),
        facts["note"],
    )

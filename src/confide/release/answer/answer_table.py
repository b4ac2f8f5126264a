"""The table of an answer: keys spelled out, values estimated, then HAVING, ORDER BY and LIMIT on released numbers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Protocol, assert_never

import numpy as np

from confide.mechanism import Measurement
from confide.query.grouping import group_places
from confide.query.key_value import HOLDS, key_holds, key_kind, spelled
from confide.query.question import (
    AllOf,
    AnyOf,
    Commonest,
    Comparison,
    Condition,
    Dated,
    Shown,
    Value,
    measures_of,
    statistics_of,
)
from confide.query.question import ShownKey as KeyPlace
from confide.query.question import ShownValue as ValuePlace
from confide.query.released_kind import released_kind
from confide.release.answer.answer import KeyColumn, ValueColumn
from confide.release.answer.chosen import cut_by_value, level, passes_by_value
from confide.release.answer.estimate import Array, Estimate, doubles
from confide.release.answer.evaluation import NOT_TOLD, Evaluator, ToldMeasures
from confide.release.answer.labelled_values import label_cells, label_column


class Told(Protocol):
    """What is said of how a statistic was measured: by what, and what its interval assumes."""

    @property
    def name(self) -> str: ...
    @property
    def condition(self) -> str: ...


class AnswerTable:
    """One answer in the making. `keys` are places in domains, or values for keys of undeclared domain.

    At most `most` rows are shown; it may depend on the keys, and on no other released number.
    """

    def __init__(
        self,
        question: Shown,
        keys: Sequence[tuple[Any, ...]] | None,
        measurements: Sequence[Measurement],
        mechanisms: Sequence[str],
        confidence: float,
        statistics: Sequence[tuple[Told, Estimate]] = (),
        most: int | None = None,
        told: ToldMeasures = NOT_TOLD,
    ) -> None:
        self.question = question
        self.confidence = confidence
        self.most = most
        self.mechanisms = mechanisms
        self.plans = [plan for plan, _ in statistics]
        self.evaluator = Evaluator(question.measures, measurements, [estimate for _, estimate in statistics], told)
        places = keys if keys is not None else group_places(question)
        self.groups = len(places)
        self._places = places
        self.keys = [[spelled(key, place[i]) for place in places] for i, key in enumerate(question.keys)]
        self._estimates: dict[Value, Estimate] = {}

    def columns(self) -> tuple[KeyColumn | ValueColumn, ...]:
        """The columns asked for, with the rows that pass, in order."""
        return tuple(self._column(column) for column in self.question.columns)

    @cached_property
    def rows(self) -> list[int]:
        """The places of the groups that are shown, in order."""
        rows = self._passing
        last = None if self.question.limit is None else self.question.offset + self.question.limit
        return rows[self.question.offset : last][: self.most]

    @property
    def whole(self) -> bool:
        """Whether all rows are there that were asked for."""
        asked = len(self._passing) - self.question.offset
        return self.most is None or self.most >= min(
            asked, asked if self.question.limit is None else self.question.limit
        )

    @property
    def chosen(self) -> tuple[int, int] | None:
        """How many rows are shown, and of how many groups, where they are chosen by value (see `chosen`)."""
        cut = len(self.rows) < len(self._passing) and cut_by_value(self.question)
        return (len(self.rows), self.groups) if cut or passes_by_value(self.question) else None

    def estimate(self, value: Value) -> Estimate:
        """Of all groups: what HAVING and ORDER BY look at."""
        if value not in self._estimates:
            self._estimates[value] = self.evaluator.estimate(value, self.confidence)
        return self._estimates[value]

    def _shown(self, value: Value) -> Estimate:
        """Of the rows that are shown, with intervals that hold for rows that were so chosen."""
        every = self.estimate(value)
        needed = self.confidence if self.chosen is None else level(self.confidence, *self.chosen)
        if needed == self.confidence:
            return every if self.rows == list(range(self.groups)) else _of_rows(every, self.rows)
        values = every.values[self.rows]
        wide = self._chosen_evaluator.estimate(value, needed)
        # The estimate is the one that was chosen by.
        low, high = np.minimum(wide.low, values), np.maximum(wide.high, values)
        return replace(wide, values=values, low=low, high=high, whole=wide.whole and every.whole)

    @cached_property
    def _chosen_evaluator(self) -> Evaluator:
        measurements = [replace(part, values=part.values[self.rows]) for part in self.evaluator.measurements]
        statistics = [_of_rows(part, self.rows) for part in self.evaluator.statistics]
        return Evaluator(self.question.measures, measurements, statistics, self.evaluator.told)

    def _column(self, column: KeyPlace | ValuePlace) -> KeyColumn | ValueColumn:
        if isinstance(column, KeyPlace):
            spelled = self.keys[column.key]
            kind = key_kind(self.question.keys[column.key])
            return KeyColumn(column.name, kind, tuple(spelled[row] for row in self.rows))
        estimate = self._shown(column.value)
        if isinstance(column.value, Dated | Commonest):
            return self._labelled(column.name, column.value, estimate)
        values, low, high = (_numbers(part, estimate.whole) for part in (estimate.values, estimate.low, estimate.high))
        whole: Literal["integer", "number"] = "integer" if estimate.whole else "number"
        name, note = self._mechanism(column.value), self._said(column.value, estimate)
        return ValueColumn(column.name, whole, values, low, high, name, estimate.assumes, note, _unknown(estimate))

    def _labelled(self, name: str, value: Dated | Commonest, estimate: Estimate) -> ValueColumn:
        """A column of dates, or of the values that MODE found."""
        cells, said = label_cells(value, estimate), self._said(value, estimate)
        kind, mechanism = released_kind(value), self._mechanism(value)
        return label_column(name, cells, kind, mechanism, estimate.assumes, said, _unknown(estimate))

    def _said(self, value: Value, estimate: Estimate) -> str:
        conditions = [self.plans[place].condition for place in sorted(statistics_of(value))]
        assumed = [f"the interval assumes {condition}" for condition in dict.fromkeys(conditions) if condition]
        return "; ".join(part for part in (*assumed, _note(estimate)) if part)

    def _mechanism(self, value: Value) -> str:
        used = [self.mechanisms[place] for place in sorted(measures_of(value))]
        used += [self.plans[place].name for place in sorted(statistics_of(value))]
        names = list(dict.fromkeys(used))
        return " + ".join(names) if names else "constant"

    # --- on released numbers ------------------------------------------------------------------------------------------

    @cached_property
    def _passing(self) -> list[int]:
        """The places of the groups that pass, in order."""
        question = self.question
        rows = list(range(self.groups))
        if question.having is not None:
            passed = self._passed(question.having)
            rows = [row for row in rows if passed[row]]
        for order in reversed(question.order):
            if isinstance(order.by, KeyPlace):
                ranks = _ranks(self.keys[order.by.key])
                rows.sort(key=lambda row: ranks[row], reverse=order.descending)
                rows.sort(key=lambda row: ranks[row][0])  # NULL comes last in either direction
            else:
                values = self.estimate(order.by).values
                rows.sort(key=lambda row: values[row], reverse=order.descending)
        return rows

    def _passed(self, condition: Condition) -> Any:
        match condition:
            case AllOf(parts):
                return np.logical_and.reduce([self._passed(part) for part in parts])
            case AnyOf(parts):
                return np.logical_or.reduce([self._passed(part) for part in parts])
            case Comparison(operation, left, right):
                if isinstance(left, KeyPlace):
                    key = self.question.keys[left.key]
                    held = (key_holds(key, place[left.key], operation, right) for place in self._places)  # type: ignore[arg-type]
                    return np.fromiter(held, dtype=bool, count=self.groups)
                assert not isinstance(right, str | bool)
                first, second = (doubles(self.estimate(side).values) for side in (left, right))
                return np.broadcast_to(HOLDS[operation](first, second), (self.groups,))
        assert_never(condition)


def _of_rows(part: Estimate, rows: Sequence[int]) -> Estimate:
    """A column of estimates, in some rows."""
    empty = None if part.empty is None else part.empty[rows]
    possible = None if part.possible is None else part.possible[rows]
    return replace(
        part, values=part.values[rows], low=part.low[rows], high=part.high[rows], empty=empty, possible=possible
    )


def _unknown(estimate: Estimate) -> tuple[int, ...]:
    return () if estimate.empty is None else tuple(map(int, np.flatnonzero(estimate.empty)))


def _note(estimate: Estimate) -> str:
    """Says where an interval is no more than what was known before."""
    wide = 0 if estimate.empty is None else int(np.count_nonzero(estimate.empty))
    if not wide:
        return ""
    rows = len(estimate.values)
    if rows == 1:
        return "no information: the interval is the whole range, there may be too few rows, or none"
    return (
        f"no information in {wide} of {rows} rows: the interval is the whole range, there may be too few rows, or none"
    )


def _numbers(values: Array, whole: bool) -> tuple[float, ...]:
    """As Python's numbers."""
    if values.dtype.kind == ("i" if whole else "f"):
        return tuple(values.tolist())
    return tuple(map(int if whole else float, values))


def _ranks(values: list[Any]) -> list[tuple[bool, Any]]:
    return [(value is None, 0 if value is None else value) for value in values]

"""The table of an answer: keys spelled out, values estimated, then HAVING, ORDER BY and LIMIT on released numbers."""

from collections.abc import Sequence
from typing import Any, Protocol, assert_never

import numpy as np

from confide.mechanism import Measurement
from confide.query.grouping import group_places
from confide.query.key_value import HOLDS, key_holds, spelled, whole
from confide.query.question import AllOf, AnyOf, Comparison, Condition, Shown, Value, measures_of, statistics_of
from confide.query.question import ShownKey as KeyPlace
from confide.query.question import ShownValue as ValuePlace
from confide.query.tree import BinnedKey, DeclaredKey, Key, UnknownKey
from confide.release.answer.answer import KeyColumn, KeyType, ValueColumn
from confide.release.answer.evaluation import Estimate, Evaluator, doubles


class Told(Protocol):
    """What is said of how a statistic was measured: by what, and what its interval assumes."""

    @property
    def name(self) -> str: ...
    @property
    def condition(self) -> str: ...


class AnswerTable:
    """One answer in the making. `keys` are places in domains, or values for keys of undeclared domain."""

    def __init__(
        self,
        question: Shown,
        keys: Sequence[tuple[Any, ...]] | None,
        measurements: Sequence[Measurement],
        mechanisms: Sequence[str],
        confidence: float,
        statistics: Sequence[tuple[Told, Estimate]] = (),
    ) -> None:
        self.question = question
        self.confidence = confidence
        self.mechanisms = mechanisms
        self.plans = [plan for plan, _ in statistics]
        self.evaluator = Evaluator(question.measures, measurements, [estimate for _, estimate in statistics])
        places = keys if keys is not None else group_places(question)
        self.groups = len(places)
        self._places = places
        self.keys = [[spelled(key, place[i]) for place in places] for i, key in enumerate(question.keys)]
        self._estimates: dict[Value, Estimate] = {}

    def columns(self) -> tuple[KeyColumn | ValueColumn, ...]:
        """The columns asked for, with the rows that pass, in order."""
        rows = self._rows()
        return tuple(self._column(column, rows) for column in self.question.columns)

    def estimate(self, value: Value) -> Estimate:
        if value not in self._estimates:
            self._estimates[value] = self.evaluator.estimate(value, self.confidence)
        return self._estimates[value]

    def _column(self, column: KeyPlace | ValuePlace, rows: list[int]) -> KeyColumn | ValueColumn:
        if isinstance(column, KeyPlace):
            spelled = self.keys[column.key]
            return KeyColumn(column.name, key_type(self.question.keys[column.key]), tuple(spelled[row] for row in rows))
        estimate = self.estimate(column.value)
        values, low, high = (
            tuple(_number(part[row], estimate.whole) for row in rows)
            for part in (estimate.values, estimate.low, estimate.high)
        )
        kind = "integer" if estimate.whole else "number"
        name = self._mechanism(column.value)
        conditions = [self.plans[place].condition for place in sorted(statistics_of(column.value))]
        assumed = [f"the interval assumes {condition}" for condition in dict.fromkeys(conditions) if condition]
        note = "; ".join(part for part in (*assumed, _note(estimate, rows)) if part)
        return ValueColumn(column.name, kind, values, low, high, name, estimate.assumes, note)  # type: ignore[arg-type]

    def _mechanism(self, value: Value) -> str:
        used = [self.mechanisms[place] for place in sorted(measures_of(value))]
        used += [self.plans[place].name for place in sorted(statistics_of(value))]
        names = list(dict.fromkeys(used))
        return " + ".join(names) if names else "constant"

    # --- on released numbers ------------------------------------------------------------------------------------------

    def _rows(self) -> list[int]:
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
        last = None if question.limit is None else question.offset + question.limit
        return rows[question.offset : last]

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


def _note(estimate: Estimate, rows: list[int]) -> str:
    """Says where an interval is no more than what was known before."""
    wide = 0 if estimate.empty is None else int(sum(bool(estimate.empty[row]) for row in rows))
    if not wide:
        return ""
    if len(rows) == 1:
        return "the interval is the whole range: there may be too few rows, or none"
    return f"{wide} of {len(rows)} intervals are the whole range: there may be too few rows, or none"


def key_type(key: Key) -> KeyType:
    match key:
        case DeclaredKey(values=values):
            kinds: dict[type, KeyType] = {str: "text", int: "integer", bool: "boolean"}
            return kinds[type(values[0])]
        case BinnedKey(kind="date"):
            return "date"
        case BinnedKey():
            return "integer" if whole(key) else "number"
        case UnknownKey():
            return "text"
    assert_never(key)


def _number(value: Any, whole: bool) -> float:
    return int(value) if whole else float(value)


def _ranks(values: list[Any]) -> list[tuple[bool, Any]]:
    return [(value is None, 0 if value is None else value) for value in values]

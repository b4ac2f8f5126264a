"""How wide the intervals of a question are expected to be, and the least ε for a width. Public facts only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, log10, nan

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import Measurement
from confide.mechanism.interval.interval import nearest_double
from confide.policy import Policy
from confide.privacy.amount import show, shown_value
from confide.privacy.budget import Budget
from confide.privacy.limits import MOST_SEARCHED
from confide.query.question import Question, ShownValue, all_values, measures_of, statistics_of
from confide.release.answer.chosen import choice_notes, expected_level, least_level
from confide.release.answer.evaluation import Estimate, Evaluator, doubles, is_linear
from confide.release.answer.miss_rate import needed_confidences
from confide.release.answer.plan import PlannedColumn, Within
from confide.release.arguments import by_name
from confide.release.expected import expected_rows, group_count
from confide.release.sql.allocation import Allocation, allocate
from confide.release.sql.grids import settled
from confide.release.sql.statistics import expect_statistic, plan_statistic

_ASSUMED_ROWS = 1_000
_LARGEST_EPSILON = Fraction(10_000)
_SMALLEST_EPSILON = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class Forecast:
    """A question with what is publicly known, or assumed, of its size."""

    question: Question
    budget: Budget
    confidence: float
    split: Mapping[str, Fraction]
    rows: float
    public_rows: int | None
    notes: tuple[str, ...]
    policy: Policy
    steady: bool

    def at(self, epsilon: Fraction) -> tuple[tuple[PlannedColumn, ...], Allocation]:
        """The expected intervals at ε: those of a made-up group of typical rows, by the code of the real ones."""
        question = self.question
        groups = group_count(question)
        measured, shown = (chosen(question, self.confidence, groups) for chosen in (least_level, expected_level))
        allocation = allocate(question, self.budget, epsilon, self.confidence, self.split, self.public_rows)
        made_up = [
            Measurement(np.array([round(measure.typical * Fraction(self.rows))], dtype=object), mechanism.law)
            for measure, mechanism in zip(question.measures, allocation.mechanisms, strict=True)
        ]
        expected: list[Estimate] = []
        read = settled(question, allocation.plans, self.policy, self.steady)
        for statistic, plan in zip(read.statistics, allocation.plans, strict=True):
            # The mechanism is what it will be; how wide it is depends on how many rows the caller expects.
            level = needed_confidences(all_values(question), measured)[len(expected)]
            paid = plan.setting
            seen = plan_statistic(statistic, paid.epsilon, level, round(self.rows), plan.name, paid.delta)
            expected.append(expect_statistic(seen, statistic))
        evaluator = Evaluator(question.measures, made_up, expected)
        columns = []
        for column in question.columns:
            if not isinstance(column, ShownValue):
                continue
            result = evaluator.estimate(column.value, shown)
            low, high = (float(doubles(ends)[0]) for ends in (result.low, result.high))
            half = high / 2 - low / 2 if high > low else 0.0
            # Not the made-up group's: cutting at an impossible value would make it look narrower than it may be.
            known = evaluator.half_width(column.value, shown)
            half = half if known is None else nearest_double(known)
            used = [allocation.mechanisms[place].name for place in sorted(measures_of(column.value))]
            used += [allocation.plans[place].name for place in sorted(statistics_of(column.value))]
            names = " + ".join(dict.fromkeys(used))
            columns.append(PlannedColumn(column.name, half, float(doubles(result.values)[0]), names, result.assumes))
        return tuple(columns), allocation

    def smallest_epsilon(self, within: Within) -> Fraction:
        """The smallest ε, to four digits, at which every column is expected to be within what is asked."""
        asked = [column for column in self.question.columns if isinstance(column, ShownValue)]
        if max(len(self.question.measures) + len(self.question.statistics), len(asked)) > MOST_SEARCHED:
            raise ParameterError(
                f"within= looks for an ε for at most {MOST_SEARCHED} measured numbers at once; ask for fewer columns, "
                "or give epsilon="
            )
        target = _target(within, [column.name for column in asked])

        def holds(epsilon: Fraction) -> bool:
            columns, _ = self.at(epsilon)
            return all(column.half_width <= target(column) for column in columns)

        if not holds(_LARGEST_EPSILON):
            raise ParameterError(
                f"within={shown_value(within)} is not reached at any ε up to {show(_LARGEST_EPSILON)}; "
                "ask for a wider interval or larger groups"
            )
        low, high = _SMALLEST_EPSILON, _LARGEST_EPSILON
        while high / low > Fraction(100_01, 100_00):
            # Halving on a logarithmic scale, on numbers short enough to stay exact and readable.
            middle = _short(Fraction(float(low * high) ** 0.5))
            if not low < middle < high:
                break
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high


def forecast(
    question: Question,
    policy: Policy,
    confidence: float,
    split: Mapping[str, Fraction],
    rows: int | None,
    budget: Budget,
    steady: bool = True,
) -> Forecast:
    """How large groups are: told by the caller, else by the policy, else assumed, and said so."""
    groups = group_count(question) or 1
    sizes = [policy.tables[table].size for table in question.tables]
    known = rows if rows is not None else (max(size for size in sizes if size is not None) if any(sizes) else None)
    per_group = known / groups if known is not None else _ASSUMED_ROWS
    shown = [column.value for column in question.columns if isinstance(column, ShownValue)]
    depends = not all(is_linear(value, question.measures) for value in shown)
    notes: tuple[str, ...] = ()
    if depends:
        said = (
            "as the caller says"
            if rows is not None
            else "as the policy's size says"
            if known is not None
            else "assumed"
        )
        notes = (f"the width depends on how many rows a group has: {per_group:,.0f} here, {said}",)
    notes += choice_notes(question, group_count(question))
    return Forecast(
        question, budget, confidence, split, per_group, expected_rows(question, policy), notes, policy, steady
    )


def _target(within: Within, names: list[str]) -> Callable[[PlannedColumn], float]:
    if isinstance(within, Mapping):
        widths = by_name(within, "within", "{'n': 50, 'avg': '2%'}")
        unknown = sorted(set(widths) - set(names))
        if unknown:
            raise ParameterError(f"within names {', '.join(unknown)}, but the answer's columns are {', '.join(names)}")
        each = {name: _one_target(value) for name, value in widths.items()}
        return lambda column: each[column.name](column) if column.name in each else inf
    return _one_target(within)


def _one_target(within: float | int | str) -> Callable[[PlannedColumn], float]:
    if isinstance(within, str) and within.strip().endswith("%"):
        share = _positive(within.strip()[:-1], within) / 100
        return lambda column: share * abs(column.estimate)
    width = _positive(within, within)
    return lambda _: width


def _positive(value: object, given: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = nan
    if isinstance(value, bool) or not 0 < number < inf:
        raise ParameterError(
            f"within={shown_value(given)} is not a width; write a number above 0, such as 50, or a share such as '5%'"
        )
    return number


def _short(value: Fraction) -> Fraction:
    """Rounded up to five significant digits."""
    scale = Fraction(10) ** (ceil(log10(value)) - 5)
    return ceil(value / scale) * scale

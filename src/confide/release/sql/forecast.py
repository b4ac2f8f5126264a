"""How wide the intervals of a question are expected to be, and the least ε for a width. Public facts only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import Measurement
from confide.mechanism.interval.interval import nearest_double
from confide.mechanism.noise.law import Confidence
from confide.mechanism.statistic import StatisticPlan
from confide.policy import Policy
from confide.privacy.budget import Budget
from confide.privacy.limits import MOST_SEARCHED
from confide.query.question import (
    Commonest,
    Dated,
    Estimated,
    Measured,
    Question,
    ShownValue,
    Value,
    all_values,
    measures_of,
    statistics_of,
)
from confide.release.answer.chosen import choice_notes, expected_level, least_level
from confide.release.answer.digits import half_width
from confide.release.answer.estimate import Estimate, doubles
from confide.release.answer.evaluation import Evaluator, is_linear
from confide.release.answer.miss_rate import needed_confidences
from confide.release.answer.plan import FEWER, Depends, PlannedColumn, Within
from confide.release.answer.sampled_answer import ASSUMES as SAMPLED
from confide.release.answer.sampled_answer import sampled_columns
from confide.release.answer.wanted import wanted_width
from confide.release.expected import expected_rows, group_count, known_size
from confide.release.least_epsilon import smallest_epsilon
from confide.release.sql.allocation import Allocation, allocate
from confide.release.sql.grids import settled
from confide.release.sql.statistics import expect_statistic, plan_statistic
from confide.release.sql.together import told_by

_ASSUMED_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """A question with what is publicly known, or assumed, of its size."""

    question: Question
    budget: Budget
    confidence: float
    split: Mapping[str, Fraction]
    rows: float
    """Of a group, if all rows count and are shared evenly."""
    public_rows: int | None
    notes: tuple[str, ...]
    policy: Policy
    steady: bool
    population: bool = False
    """Whether intervals are for the population of which the rows are a random sample."""

    def at(self, epsilon: Fraction) -> tuple[tuple[PlannedColumn, ...], Allocation]:
        """The expected intervals at ε, and those for fewer rows where they depend on how many there are."""
        allocation = self._allocation(epsilon)
        columns = self._columns(allocation, self.rows)
        if any("rows" in column.depends for column in columns):
            fewer = [self._columns(allocation, self.rows * share) for share in FEWER]
            columns = [
                replace(own, fewer=tuple(less.half_width for less in others)) if "rows" in own.depends else own
                for own, *others in zip(columns, *fewer, strict=True)
            ]
        return tuple(columns), allocation

    def _allocation(self, epsilon: Fraction) -> Allocation:
        return allocate(
            self.question, self.budget, epsilon, self.confidence, self.split, self.public_rows, overlapping=True
        )

    def _columns(self, allocation: Allocation, rows: float) -> list[PlannedColumn]:
        """The intervals of a made-up group of so many typical rows, by the code of the real ones."""
        question = self.question
        groups = group_count(question)
        measured, shown = (chosen(question, self.confidence, groups) for chosen in (least_level, expected_level))
        made_up, seen = self.made_up(allocation, rows, measured)
        plans, expected = [plan for plan, _ in seen], [estimate for _, estimate in seen]
        told = told_by(allocation.together, len(question.measures))
        evaluator = Evaluator(question.measures, made_up, expected, told)
        columns = []
        sampled = iter(sampled_columns(question, made_up, [0]) if self.population else ())
        for column in question.columns:
            if not isinstance(column, ShownValue):
                continue
            result = evaluator.estimate(column.value, shown)
            if self.population:
                ends = next(sampled).population(shown)
                result = replace(result, low=ends[0], high=ends[1])
            low, high = (float(doubles(end)[0]) for end in (result.low, result.high))
            half = high / 2 - low / 2 if high > low else 0.0
            # Not the made-up group's: cutting at an impossible value would make it look narrower than it may be.
            known = evaluator.half_width(column.value, shown)
            half = min(half if known is None else nearest_double(known), _widest(column.value, question))
            used = [allocation.mechanisms[place].name for place in sorted(measures_of(column.value))]
            used += [allocation.plans[place].name for place in sorted(statistics_of(column.value))]
            own = column.value.inner if isinstance(column.value, Dated) else column.value
            ranks = plans[own.statistic].forecast.ranks if isinstance(own, Estimated) else None
            columns.append(
                PlannedColumn(
                    column.name,
                    half,
                    float(doubles(result.values)[0]),
                    " + ".join(dict.fromkeys(used)),
                    SAMPLED if self.population else result.assumes,
                    depends_on(column.value, question),
                    ranks=ranks,
                )
            )
        return columns

    def made_up(
        self, allocation: Allocation, rows: float, level: Confidence
    ) -> tuple[list[Measurement], list[tuple[StatisticPlan, Estimate]]]:
        """The numbers of a made-up group of so many typical rows; statistics at the confidence that values need."""
        question = self.question
        measured = [
            Measurement(np.array([round(measure.typical * Fraction(rows))], dtype=object), mechanism.law)
            for measure, mechanism in zip(question.measures, allocation.mechanisms, strict=True)
        ]
        for own in allocation.together:
            numbers = own.typical(rows, question)
            measured += [
                Measurement(np.array([number], dtype=object), mechanism.law)
                for number, mechanism in zip(numbers, own.mechanisms, strict=True)
            ]
        expected: list[tuple[StatisticPlan, Estimate]] = []
        read = settled(question, allocation.plans, self.policy, self.steady)
        levels = needed_confidences(all_values(question), level)
        for place, (statistic, plan) in enumerate(zip(read.statistics, allocation.plans, strict=True)):
            # The mechanism is what it will be; how wide it is depends on the rows, and on where values lie.
            spread = None if statistic.typical is None else float(statistic.typical[1] - statistic.typical[0])
            paid, count = plan.setting, max(1, round(rows))
            seen = plan_statistic(statistic, paid.epsilon, levels[place], count, plan.name, paid.delta, spread)
            expected.append((seen, expect_statistic(seen, statistic)))
        return measured, expected

    def rank_notes(self, columns: Sequence[PlannedColumn]) -> list[str]:
        """Of each quantile between which percentiles its ends lie: that takes no guess about values."""
        values = {column.name: column.value for column in self.question.columns if isinstance(column, ShownValue)}
        notes = []
        for column in columns:
            value = values[column.name]
            value = value.inner if isinstance(value, Dated) else value
            if column.ranks is None or not isinstance(value, Estimated):
                continue
            q, share = float(self.question.statistics[value.statistic].q or 0), column.ranks / max(1.0, self.rows)
            low, high = (f"{100 * min(max(end, 0.0), 1.0):.4g}" for end in (q - share, q + share))
            notes.append(
                f"{column.name}: its ends are some {column.ranks:,.0f} rows off the quantile, wherever values lie: "
                f"between the {low} and the {high} percentile of {self.rows:,.0f} rows"
            )
        return notes

    def commonest_notes(self, columns: Sequence[PlannedColumn]) -> list[str]:
        """Of each MODE how far ahead a value must be."""
        values = {column.name: column.value for column in self.question.columns if isinstance(column, ShownValue)}
        return [
            f"{column.name}: the answer says which values are possible, those whose noised counts are within "
            f"{column.half_width:,.0f} rows of the largest; a value that is {2 * column.half_width:,.0f} rows ahead of "
            "all others is told apart"
            for column in columns
            if isinstance(values[column.name], Commonest)
        ]

    def size_notes(self, allocation: Allocation, counts: Sequence[int] | None) -> list[str]:
        """How wide intervals are in the smallest, the middle and the largest group, where counts were released."""
        if not counts:
            return []
        ordered = sorted(max(1, count) for count in counts)
        sizes = dict.fromkeys((ordered[0], ordered[len(ordered) // 2], ordered[-1]))
        widths = {rows: self._columns(allocation, rows) for rows in sizes}
        said = []
        for place, column in enumerate(next(iter(widths.values()))):
            if "rows" in column.depends:
                each = [f"±{half_width(widths[rows][place].half_width)} with {rows:,} rows" for rows in sizes]
                said.append(f"{column.name}: {', '.join(each)}, as counts that were released before say of its groups")
        return said

    def smallest_epsilon(self, within: Within) -> Fraction:
        """The smallest ε, to four digits, at which every column is expected to be within what is asked."""
        asked = [column for column in self.question.columns if isinstance(column, ShownValue)]
        if max(len(self.question.measures) + len(self.question.statistics), len(asked)) > MOST_SEARCHED:
            raise ParameterError(
                f"within= looks for an ε for at most {MOST_SEARCHED} measured numbers at once; ask for fewer columns, "
                "or give epsilon="
            )
        target = wanted_width(within, [c.name for c in self.question.columns if isinstance(c, ShownValue)])

        def holds(epsilon: Fraction) -> bool:
            columns = self._columns(self._allocation(epsilon), self.rows)
            return all(column.half_width <= target(column.name, column.estimate) for column in columns)

        return smallest_epsilon(within, holds)


def forecast(
    question: Question,
    policy: Policy,
    confidence: float,
    split: Mapping[str, Fraction],
    rows: int | None,
    budget: Budget,
    steady: bool = True,
    population: bool = False,
) -> Forecast:
    """How large groups are: told by the caller, else by the policy, else assumed, and said so."""
    groups, known = group_count(question) or 1, known_size(question, policy)
    total = rows if rows is not None else None if known is None else known.rows
    per_group = total / groups if total is not None else _ASSUMED_ROWS
    shown = [column.value for column in question.columns if isinstance(column, ShownValue)]
    depends = {what for value in shown for what in depends_on(value, question)}
    notes = []
    if "rows" in depends:
        said = (
            "as the caller says"
            if rows is not None
            else f"as the policy's size of {known.table} says"
            if known is not None
            else "assumed, since the policy says no size"
        )
        notes.append(
            f"the width depends on how many rows of a group count: {per_group:,.0f} here, {said}, if all count"
            f"{' and groups are even' if groups > 1 else ''}; conditions, NULL and joins leave fewer"
        )
    if "values" in depends:
        notes.append(
            "the width depends on where values lie: evenly over their range here, or over what the policy calls typical"
        )
    notes += choice_notes(question, group_count(question))
    expected = expected_rows(question, policy)
    return Forecast(question, budget, confidence, split, per_group, expected, tuple(notes), policy, steady, population)


def _widest(value: Value, question: Question) -> float:
    """Half of what lies between the least and the most that a number can be; no interval is wider."""
    if not isinstance(value, Measured):
        return inf
    measure = question.measures[value.measure]
    if measure.floor is None or measure.ceiling is None:
        return inf
    return float((measure.ceiling - measure.floor) * measure.grain / 2)


def depends_on(value: Value, question: Question) -> tuple[Depends, ...]:
    """What the width of an interval depends on beside the noise; nothing where the laws say it alone."""
    if is_linear(value, question.measures) or isinstance(value, Commonest):
        return ()
    total = isinstance(value, Estimated) and question.statistics[value.statistic].kind == "total"
    return ("values",) if total else ("rows", "values")

"""How wide the intervals of a derivation are expected to be: its steps carried out on made-up groups, all alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from confide.errors import QueryError
from confide.mechanism import Measurement
from confide.mechanism.noise.law import Confidence, NoNoise
from confide.policy import Policy
from confide.privacy.budget import Budget
from confide.privacy.limits import LONGEST_MADE, MOST_FRAMED, MOST_MADE, MOST_SUMMED
from confide.query.derivation.derivation import Derivation
from confide.query.question import Question
from confide.query.tree import UnknownKey
from confide.release.answer.chosen import MOST_RELEASED, level
from confide.release.answer.derived.answered_numbers import AnsweredNumbers
from confide.release.answer.derived.cell import DerivedCell
from confide.release.answer.derived.cell_evaluation import CellEvaluation
from confide.release.answer.derived.cell_range import double
from confide.release.answer.derived.derived_answer import DerivedAnswer, shown_cells
from confide.release.answer.derived.derived_rows import DerivedRows
from confide.release.answer.estimate import Estimate
from confide.release.answer.plan import FEWER, Depends, PlannedColumn, Within
from confide.release.answer.wanted import wanted_width
from confide.release.expected import expected_rows, group_count
from confide.release.least_epsilon import smallest_epsilon
from confide.release.sql.allocation import Allocation, allocate
from confide.release.sql.forecast import Forecast, forecast

MADE_UP: Final = 10
"""Keys of undeclared domain that a forecast takes there to be."""
_LOOKED_AT: Final = 12
"""Rows whose widths are forecast, evenly among all."""


def portions(questions: Sequence[Question]) -> tuple[Fraction, ...]:
    """What each question has of a call: as many parts as it measures numbers."""
    counts = [
        sum(measure.l1 > 0 for measure in own.measures) + len(own.statistics) + (own.threshold is not None)
        for own in questions
    ]
    whole = sum(counts)
    if not whole:
        return tuple(Fraction(1, len(questions)) for _ in questions)
    return tuple(Fraction(count, whole) for count in counts)


def allocations(
    derivation: Derivation, policy: Policy, budget: Budget, epsilon: Fraction, levels: Sequence[Confidence]
) -> tuple[Allocation, ...]:
    """The noise that is bought for each question; what nothing is measured for costs nothing."""
    return tuple(
        allocate(own, budget, epsilon, level, None, expected_rows(own, policy), portion or Fraction(1))
        for own, level, portion in zip(derivation.questions, levels, portions(derivation.questions), strict=True)
    )


def needed_levels(derivation: Derivation, confidence: float) -> tuple[Confidence, ...]:
    """At which confidence each question's own statistics are made, so that every cell made of them holds. Known before
    anything is measured: from how many pieces cells are made of, and how many rows there may be to choose from.
    """
    if not any(question.statistics for question in derivation.questions):
        return tuple(confidence for _ in derivation.questions)
    nothing = [
        AnsweredNumbers(own, made_up_keys(own), _blank(own), _unknown(own), confidence, ())
        for own in derivation.questions
    ]
    answer = DerivedAnswer(derivation, nothing, confidence)
    most = max((answer.evaluation.share(cell) for row in answer.all_rows for cell in shown_cells(row)), default=1)
    rows = len(answer.all_rows) if answer.chosen is not None else 1
    shares = most * max(rows, 1)
    if derivation.crossing and any(made_up_keys(own) is not None for own in derivation.questions):
        shares *= MOST_RELEASED  # how many keys there are is private as yet
    needed = 1 - (1 - Fraction(confidence)) / shares
    return tuple(needed for _ in derivation.questions)


def require_room_for_cells(derivation: Derivation) -> None:
    """Refuses windows over too many rows, and texts that are too long, where that is known beforehand: all keys are
    public, and so is how many rows each partition has.
    """
    if any(made_up_keys(own) is not None for own in derivation.questions):
        return
    nothing = [AnsweredNumbers(own, None, _blank(own), _unknown(own), 0.5, ()) for own in derivation.questions]
    maker = DerivedRows(CellEvaluation(nothing, 0.5), frames=False)
    maker.rows(derivation.table)
    if maker.left_out:
        raise QueryError(
            f"a window with an order or a frame takes at most {MOST_FRAMED:,} rows of a partition, and all of them "
            f"together {MOST_SUMMED:,} rows of frames; use wider bins or fewer keys, PARTITION BY a key, "
            "narrower frames or fewer such windows, or OVER () without an order"
        )
    if maker.building.too_long:
        raise QueryError(
            f"texts of keys are put together to more than {LONGEST_MADE:,} letters, or all of them to more than "
            f"{MOST_MADE:,}; make shorter ones"
        )


def made_up_keys(question: Question) -> list[tuple[Any, ...]] | None:
    """Keys that stand for those of an undeclared domain; None if all keys are public."""
    if not any(isinstance(key, UnknownKey) for key in question.keys):
        return None
    return [
        tuple(f"key {row}" if isinstance(key, UnknownKey) else 0 for key in question.keys) for row in range(MADE_UP)
    ]


def _groups(question: Question) -> int:
    known = group_count(question)
    return MADE_UP if known is None else known


def _blank(question: Question) -> list[Measurement]:
    return [Measurement(np.zeros(_groups(question), dtype=np.int64), NoNoise()) for _ in question.measures]


def _unknown(question: Question) -> list[Estimate]:
    nothing = np.zeros(_groups(question))
    return [Estimate(nothing, nothing, nothing) for _ in question.statistics]


@dataclass(frozen=True, slots=True)
class DerivedForecast:
    """A derivation with what is publicly known, or assumed, of the sizes of its questions."""

    derivation: Derivation
    policy: Policy
    confidence: float
    budget: Budget
    forecasts: tuple[Forecast, ...]

    def at(self, epsilon: Fraction) -> tuple[tuple[PlannedColumn, ...], tuple[Allocation, ...]]:
        """The expected intervals at ε, and those for fewer rows where they depend on how many there are."""
        bought = self.bought(epsilon)
        columns = self._columns(bought, 1.0)
        if any("rows" in column.depends for column in columns):
            fewer = [self._columns(bought, share) for share in FEWER]
            columns = [
                replace(own, fewer=tuple(less.half_width for less in others)) if "rows" in own.depends else own
                for own, *others in zip(columns, *fewer, strict=True)
            ]
        return tuple(columns), bought

    def bought(self, epsilon: Fraction) -> tuple[Allocation, ...]:
        levels = needed_levels(self.derivation, self.confidence)
        return allocations(self.derivation, self.policy, self.budget, epsilon, levels)

    def smallest(self, within: Within) -> Fraction:
        names = [column.name for column in self.derivation.columns if not column.public]
        target = wanted_width(within, names)

        def holds(epsilon: Fraction) -> bool:
            columns = self._columns(self.bought(epsilon), 1.0)
            return all(column.half_width <= target(column.name, column.estimate) for column in columns)

        return smallest_epsilon(within, holds)

    def _columns(self, bought: Sequence[Allocation], share: float) -> list[PlannedColumn]:
        levels = needed_levels(self.derivation, self.confidence)
        sources = [
            self._numbers(own, allocation, known, share)
            for own, allocation, known in zip(self.forecasts, bought, levels, strict=True)
        ]
        answer = DerivedAnswer(self.derivation, sources, self.confidence)
        rows = answer.all_rows
        chosen = answer.chosen is not None and len(rows) > 1
        needed = level(self.confidence, 1, len(rows)) if chosen else self.confidence
        step = max(1, len(rows) // _LOOKED_AT)
        looked = rows[::step] + rows[-1:]
        planned = []
        for place, column in enumerate(self.derivation.columns):
            if column.public:
                continue
            cells = [row.cells[place] for row in looked]
            widths = [self._half(answer, cell, needed) for cell in cells]
            names = answer.made_of(place)[0]
            estimate = next((own for cell in cells if (own := answer.evaluation.value(cell)) is not None), 0.0)
            estimate = 0.0 if isinstance(estimate, str) else estimate
            depends: tuple[Depends, ...] = (
                () if all(answer.evaluation.linear(cell) is not None for cell in cells) else ("rows", "values")
            )
            ranges = [answer.evaluation.range(cell, needed).assumes for cell in cells]
            assumes = "density" if "density" in ranges else "always"
            planned.append(
                PlannedColumn(
                    column.name, max(widths, default=0.0), double(estimate), " + ".join(names), assumes, depends
                )
            )
        return planned

    def _half(self, answer: DerivedAnswer, cell: DerivedCell, needed: Confidence) -> float:
        """Of a sum of noise its law says the width alone: cutting where nothing can lie would make it look narrower."""
        known = answer.evaluation.half_width(cell, needed)
        if known is not None:
            return known
        found = answer.evaluation.range(cell, needed)
        if found.low is None or isinstance(found.low, bool | str):
            return 0.0
        low, high = double(found.low), double(found.high)
        return high / 2 - low / 2 if high > low else 0.0

    def _numbers(self, own: Forecast, allocation: Allocation, known: Confidence, share: float) -> AnsweredNumbers:
        """Every group as the made-up one."""
        question, groups = own.question, _groups(own.question)
        measured, expected = own.made_up(allocation, own.rows * share, known)
        measurements = [replace(part, values=np.repeat(part.values, groups)) for part in measured]
        estimates = [
            replace(e, values=np.repeat(e.values, groups), low=np.repeat(e.low, groups), high=np.repeat(e.high, groups))
            for _, e in expected
        ]
        names = [mechanism.name for mechanism in allocation.mechanisms] + [plan.name for plan in allocation.plans]
        conditions = ["" for _ in expected]
        return AnsweredNumbers(question, made_up_keys(question), measurements, estimates, known, names, conditions)


def derived_forecast(
    derivation: Derivation, policy: Policy, confidence: float, rows: int | None, budget: Budget, steady: bool
) -> DerivedForecast:
    none: Mapping[str, Fraction] = {}
    own = tuple(forecast(q, policy, confidence, none, rows, budget, steady) for q in derivation.questions)
    return DerivedForecast(derivation, policy, confidence, budget, own)


def forecast_notes(predicted: DerivedForecast) -> list[str]:
    """What the widths take for granted."""
    derivation = predicted.derivation
    notes = list(dict.fromkeys(note for own in predicted.forecasts for note in own.notes))
    if len(derivation.questions) > 1:
        notes.append(f"{len(derivation.questions)} inner questions share the cost, by how many numbers each measures")
    if any(made_up_keys(own) is not None for own in derivation.questions):
        notes.append(f"how many keys are released is private: the width is as for {MADE_UP} of them")
    if derivation.crossing:
        notes.append("where rows are compared, chosen or ranked the width depends on all of them: here all are alike")
    sets = [column.name for column in derivation.columns if not column.public and column.kind in ("text", "boolean")]
    if sets:
        notes.append(f"{', '.join(sets)}: the answer says which values are possible, not a width")
    return notes

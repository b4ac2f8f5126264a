"""What a question measures: read against a charge, and noised. The only place where its data and its noise meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.engine.protocol import Exact, Keep, Window, Windows
from confide.host.progress import tell
from confide.mechanism import Measurement, NoNoise
from confide.mechanism.statistic import StatisticPlan
from confide.policy import Policy
from confide.privacy.charge import Charge
from confide.query import Question
from confide.query.question import Measure, ShownValue, measures_of
from confide.release.answer.estimate import Estimate
from confide.release.answer.notes import key_notes
from confide.release.expected import few_rows
from confide.release.holdings import Holdings
from confide.release.sql.allocation import Allocation
from confide.release.sql.grids import grid_notes, settled
from confide.release.sql.statistics import measure_statistic
from confide.release.sql.together import cells_with


@dataclass(frozen=True, slots=True)
class MeasuredNumbers:
    """Released numbers of every group, with the names of the mechanisms of measures. `keys` as an engine gives them."""

    question: Question
    """As it was read: on the grids that were settled on."""
    keys: Sequence[tuple[Any, ...]] | None
    measurements: Sequence[Measurement]
    names: Sequence[str]
    statistics: Sequence[tuple[StatisticPlan, Estimate]]


def measured_numbers(holdings: Holdings, asked: Question, allocation: Allocation, charge: Charge) -> MeasuredNumbers:
    """Reads a question's summary against a charge and adds the noise that was bought."""
    question = settled(asked, allocation.plans, holdings.policy, holdings.engine.steady)
    keep = None if question.threshold is None else _keep(question.threshold, allocation, holdings)
    windows = {} if few_rows(question, holdings.policy) else rank_windows(question, allocation)
    read = holdings.engine.evaluate
    joint, summary, firsts = allocation.together, question.summary, [0]
    told = {place for own in joint for place in own.places}
    moved = list(range(len(summary.cells)))
    if joint:
        used = [measure for place, measure in enumerate(question.measures) if place not in told]
        summary, moved, firsts = cells_with(joint, summary, used)
    tell("reading", 0, 2)
    exact = _possible(question, lambda: read(summary, charge, holdings.ledger.secret, keep, windows))
    tell("measuring", 1, 2)
    source = holdings.randomness
    measurements = []
    for place, (measure, mechanism) in enumerate(zip(question.measures, allocation.mechanisms, strict=True)):
        if place == allocation.counted and allocation.keys is not None:
            measurements.append(Measurement(exact.noised, allocation.keys.law, allocation.keys.threshold))  # type: ignore[arg-type]
        elif place in told:
            # Told by the numbers that follow, and measured by none of its own.
            measurements.append(Measurement(np.zeros(len(exact.cells[firsts[0]]), dtype=np.int64), NoNoise()))
        else:
            terms = tuple((factor, moved[cell]) for factor, cell in measure.terms)
            measurements.append(mechanism.measure(_combine(terms, exact.cells), source))
    for own, first in zip(joint, firsts, strict=False):
        for row, mechanism in zip(own.strategy.rows, own.mechanisms, strict=True):
            terms = tuple((factor, first + atom) for atom, factor in enumerate(row) if factor)
            measurements.append(mechanism.measure(_combine(terms, exact.cells), source))
    names = [mechanism.name for mechanism in allocation.mechanisms]
    statistics = [
        (plan, measure_statistic(plan, statistic, exact.tallies[statistic.tally], source))
        for statistic, plan in zip(question.statistics, allocation.plans, strict=True)
    ]
    return MeasuredNumbers(question, exact.keys, measurements, names, statistics)


def answer_notes(question: Question, allocation: Allocation, policy: Policy) -> list[str]:
    """What an answer says beside its numbers; all of it was known before they were measured."""
    notes = [question.counted] if question.counted else []
    notes += grid_notes(question, policy)
    notes += key_notes(question, question.summary)
    return notes + together_notes(question, allocation) + threshold_notes(allocation)


def together_notes(question: Question, allocation: Allocation) -> list[str]:
    """Which columns are measured together, and by what."""
    values = [column for column in question.columns if isinstance(column, ShownValue)]
    return [
        joint.note([own.name for own in values if measures_of(own.value) & set(joint.places)])
        for joint in allocation.together
    ]


def threshold_notes(allocation: Allocation) -> list[str]:
    if allocation.keys is None:
        return []
    return [f"keys held by fewer than about {allocation.keys.threshold:,} units are left out"]


def _keep(threshold: Measure, allocation: Allocation, holdings: Holdings) -> Keep:
    """Which of some keys are shown. Each has noise of its own, so it does not matter which come together."""
    released = allocation.keys
    assert released is not None

    def keep(cells: tuple[Any, ...]) -> tuple[Any, Any]:
        shown = released.release(_combine(threshold.terms, cells), holdings.randomness)
        return shown.places, shown.values

    return keep


def _possible(question: Question, read: Callable[[], Exact]) -> Exact:
    """What is read, without the groups that have no rows in any data; nothing is read if all are such."""
    if question.possible == ():
        empty = np.empty(0, dtype=np.int64)
        return Exact((empty,) * len(question.summary.cells), None, ((),) * len(question.summary.tallies))
    exact = read()
    if question.possible is None:
        return exact
    places = np.array(question.possible, dtype=np.intp)
    tallies = tuple(tuple(tally[place] for place in question.possible) for tally in exact.tallies)
    return Exact(tuple(cell[places] for cell in exact.cells), None, tallies)


def rank_windows(question: Question, allocation: Allocation) -> Windows:
    """Through which windows of ranks each tally is looked at, of those that are not needed whole."""
    windows: dict[int, list[Window]] = {}
    whole = set()
    for statistic, plan in zip(question.statistics, allocation.plans, strict=True):
        window = plan.window()
        if window is None:
            whole.add(statistic.tally)
        else:
            windows.setdefault(statistic.tally, []).append(window)
    return {tally: found for tally, found in windows.items() if tally not in whole}


def _combine(terms: tuple[tuple[int, int], ...], cells: Sequence[Any]) -> Any:
    """Σ coefficient × cell, exactly: in Python's integers where 64 bits might not hold it."""
    if len(terms) == 1 and terms[0][0] == 1:
        return cells[terms[0][1]]
    return sum(cells[cell].astype(object) * coefficient for coefficient, cell in terms)

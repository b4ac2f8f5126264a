"""A question planned, and answered: charge before read, noise on every measure, then arithmetic on what came out."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from confide.engine.protocol import Keep, Window, Windows
from confide.errors import ParameterError
from confide.mechanism.quantile import window_of
from confide.policy.column import ROWS_LIMIT
from confide.privacy.amount import show, shown_value, whole_number
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss
from confide.query import Question
from confide.query.question import Measure
from confide.release.allocation import Allocation, allocate
from confide.release.answer import Answer
from confide.release.arguments import exact_epsilon
from confide.release.cost import Cost, budget_state
from confide.release.grids import few_rows, grid_notes, gridded
from confide.release.holdings import Holdings, Release
from confide.release.least import made_at
from confide.release.plan import Plan, Within, expected_rows, forecast, group_count
from confide.release.room import cut_to_room, require_room_for_answer
from confide.release.statistics import measure_statistic
from confide.release.table import Table


def plan_question(
    holdings: Holdings,
    question: Question,
    epsilon: object,
    within: Within | None,
    confidence: float,
    shares: Mapping[str, Fraction],
    rows: int | None,
) -> Plan:
    """The forecast of a question at ε, or at the least ε that gives a width. Public facts only."""
    known = None if rows is None else whole_number(rows)
    if rows is not None and (known is None or not 1 <= known <= ROWS_LIMIT):
        raise ParameterError(
            f"rows={shown_value(rows)} is not a number of rows; write a whole number from 1 to {ROWS_LIMIT:,}"
        )
    budget = holdings.ledger.budget
    question = gridded(question, holdings.policy)
    require_room_for_answer(question)
    predicted = forecast(question, holdings.policy, confidence, shares, known, budget)
    notes = [*predicted.notes, *grid_notes(question, holdings.policy)]
    if within is not None:
        exact = predicted.smallest_epsilon(within)
        notes.append(f"ε = {show(exact)} is the smallest that gives ±{within}")
    elif epsilon is not None:
        exact = exact_epsilon(epsilon)
    else:
        exact = budget.epsilon / 10
        notes.append("no epsilon was given: a tenth of the whole budget is shown")
    columns, allocation = made_at(exact, predicted.at)
    return Plan(
        columns=columns,
        epsilon=float(exact),
        cost=Cost.of(exact, allocation.loss),
        confidence=confidence,
        groups=group_count(question),
        unit=question.unit,
        neighbours=question.neighbours,
        affordable=holdings.affordable(allocation.loss),
        budget=budget_state(holdings.ledger, holdings.analyst),
        notes=tuple(notes),
    )


def answer_question(
    holdings: Holdings,
    question: Question,
    sql: str,
    epsilon: Fraction,
    confidence: float,
    shares: Mapping[str, Fraction],
) -> Answer:
    """The answer of a question at ε, charged once."""
    question = gridded(question, holdings.policy)
    split = repr(sorted((name, str(share)) for name, share in shares.items()))
    key = holdings.key("sql", question.fingerprint, str(epsilon), repr(confidence), split)

    def prepare() -> tuple[PrivacyLoss, Release]:
        ledger = holdings.ledger
        require_room_for_answer(question)
        expected = expected_rows(question, holdings.policy)
        allocation = made_at(
            epsilon, lambda tried: allocate(question, ledger.budget, tried, confidence, shares, expected)
        )

        def release(charge: Charge) -> bytes:
            keep = None if question.threshold is None else _keep(question.threshold, allocation, holdings)
            windows = {} if few_rows(question, holdings.policy) else rank_windows(question, allocation)
            exact = holdings.engine.evaluate(question.summary, charge, ledger.secret, keep, windows)
            return cut_to_room(_release(holdings, question, exact, allocation, epsilon, confidence))

        return allocation.loss, release

    return holdings.once(key, f"sql: {sql.strip()}", prepare, Answer.from_bytes)


def _keep(threshold: Measure, allocation: Allocation, holdings: Holdings) -> Keep:
    """Which of some keys are shown. Each has noise of its own, so it does not matter which come together."""
    released = allocation.keys
    assert released is not None
    return lambda cells: released.release(_combine(threshold.terms, cells), holdings.randomness).places


def rank_windows(question: Question, allocation: Allocation) -> Windows:
    """Through which windows of ranks each tally is looked at, of those that are not needed whole."""
    windows: dict[int, list[Window]] = {}
    whole = set()
    for statistic, plan in zip(question.statistics, allocation.plans, strict=True):
        window = window_of(plan)
        if window is None:
            whole.add(statistic.tally)
        else:
            windows.setdefault(statistic.tally, []).append(window)
    return {tally: found for tally, found in windows.items() if tally not in whole}


def _release(
    holdings: Holdings, question: Question, exact: Any, allocation: Allocation, epsilon: Fraction, confidence: float
) -> Answer:
    keys, cells, tallies = exact.keys, exact.cells, exact.tallies
    source = holdings.randomness
    notes = list(grid_notes(question, holdings.policy))
    if allocation.keys is not None:
        notes.append(f"keys held by fewer than about {allocation.keys.threshold} units are left out")
    measurements = [
        mechanism.measure(_combine(measure.terms, cells), source)
        for measure, mechanism in zip(question.measures, allocation.mechanisms, strict=True)
    ]
    names = [mechanism.name for mechanism in allocation.mechanisms]
    statistics = [
        (plan, measure_statistic(plan, statistic, tallies[statistic.tally], source))
        for statistic, plan in zip(question.statistics, allocation.plans, strict=True)
    ]
    table = Table(question, keys, measurements, names, confidence, statistics)
    return Answer(
        columns=table.columns(),
        confidence=confidence,
        cost=Cost.of(epsilon, allocation.loss),
        unit=question.unit,
        neighbours=question.neighbours,
        question=question.fingerprint,
        notes=tuple(notes),
        test_noise=not source.kernel,
    )


def _combine(terms: tuple[tuple[int, int], ...], cells: Sequence[Any]) -> Any:
    """Σ coefficient × cell, exactly: in Python's integers where 64 bits might not hold it."""
    if len(terms) == 1 and terms[0][0] == 1:
        return cells[terms[0][1]]
    return sum(cells[cell].astype(object) * coefficient for coefficient, cell in terms)

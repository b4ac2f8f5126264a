"""A question planned, and answered: charge before read, noise on every measure, then arithmetic on what came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from confide.host.progress import tell
from confide.policy import Policy
from confide.privacy.amount import show
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import PrivacyLoss
from confide.query import Question
from confide.query.identity import question_name, spelled_question
from confide.release.account import AUTO
from confide.release.answer.answer import Answer
from confide.release.answer.answer_table import AnswerTable
from confide.release.answer.notes import assuming_bounds, key_notes
from confide.release.answer.plan import Plan, Within
from confide.release.answer.sampled_answer import sampled_columns
from confide.release.answer.size import cut_to_room, require_room_for_answer, rows_that_fit, too_many
from confide.release.arguments import exact_epsilon, exact_rows
from confide.release.cost import Cost, budget_state, rooms
from confide.release.custody.known_counts import known_counts
from confide.release.expected import expected_rows, group_count
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.request import sql_purpose
from confide.release.sql.allocation import Allocation, allocate, widths_of
from confide.release.sql.forecast import Forecast, forecast
from confide.release.sql.grids import grid_notes, gridded, settled
from confide.release.sql.measuring import (
    MeasuredNumbers,
    answer_notes,
    measured_numbers,
    threshold_notes,
    together_notes,
)
from confide.release.sql.together import told_by


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """A question at ε, with the shares of its columns."""

    question: Question
    policy: Policy
    sql: str
    dialect: str
    epsilon: Fraction
    confidence: float
    shares: Mapping[str, Fraction]

    @property
    def purpose(self) -> str:
        return sql_purpose(self.sql, self.dialect)

    def identity(self) -> str:
        shares = tuple(sorted(self.shares.items()))
        return written("sql", spelled_question(self.question), self.epsilon, self.confidence, shares)

    def price(self, budget: Budget) -> "PricedQuestion":
        question = self.question
        require_room_for_answer(question)
        expected = expected_rows(question, self.policy)
        allocation = made_at(
            self.epsilon,
            lambda tried: allocate(question, budget, tried, self.confidence, self.shares, expected, overlapping=True),
        )
        return PricedQuestion(self, allocation)

    def decode(self, stored: bytes) -> Answer:
        return Answer.from_bytes(stored)


@dataclass(frozen=True, slots=True)
class PricedQuestion:
    """A question with the noise that was bought for each of its measures."""

    request: SqlRequest
    allocation: Allocation

    @property
    def loss(self) -> PrivacyLoss:
        return self.allocation.loss

    @property
    def widths(self) -> tuple[float, ...]:
        return widths_of(self.allocation, self.request.confidence)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        numbers = measured_numbers(holdings, self.request.question, self.allocation, charge)
        answer = _release(holdings, numbers, self.allocation, self.request)
        tell("measuring", 2, 2)
        return cut_to_room(answer)


def sql_request(
    policy: Policy,
    question: Question,
    sql: str,
    dialect: str,
    epsilon: Fraction,
    confidence: float,
    shares: Mapping[str, Fraction],
) -> SqlRequest:
    return SqlRequest(gridded(question, policy), policy, sql, dialect, epsilon, confidence, shares)


def plan_question(
    holdings: Holdings,
    question: Question,
    epsilon: object,
    within: Within | None,
    confidence: float,
    shares: Mapping[str, Fraction],
    rows: int | None,
    account: object = AUTO,
    population: bool = False,
) -> Plan:
    """The forecast of a question at ε, or at the least ε that gives a width. Public facts only."""
    known = exact_rows(rows)
    standing = holdings.standing()
    question = gridded(question, holdings.policy)
    require_room_for_answer(question)
    steady = holdings.engine.steady

    def under(name: str) -> Forecast:
        budget = standing.budget.under(name)
        return forecast(question, holdings.policy, confidence, shares, known, budget, steady, population)

    def price(budget: Budget) -> PricedQuestion:
        asked = standing.budget.epsilon / 10 if epsilon is None else exact_epsilon(epsilon)
        return SqlRequest(question, holdings.policy, "", "", asked, confidence, shares).price(budget)

    accounts = holdings.accounts(account)
    if len(accounts) == 1:
        chosen = accounts[0]
    elif within is None:
        chosen = holdings.preferred(standing, price, accounts)
    else:
        chosen = min(accounts, key=lambda name: under(name).smallest_epsilon(within))
    predicted = under(chosen)
    notes = [*predicted.notes, *_bound_notes(question), *key_notes(question, question.summary)]
    if within is not None:
        exact = predicted.smallest_epsilon(within)
        notes.append(
            f"ε = {show(exact)} is the smallest that gives ±{within}{' if that is so' if predicted.notes else ''}"
        )
    elif epsilon is not None:
        exact = exact_epsilon(epsilon)
    else:
        exact = standing.budget.epsilon / 10
        notes.append("no epsilon was given: a tenth of the whole budget is shown")
    columns, allocation = made_at(exact, predicted.at)
    notes += together_notes(question, allocation)
    notes += threshold_notes(allocation)
    notes += predicted.rank_notes(columns)
    notes += predicted.commonest_notes(columns)
    if any("rows" in column.depends for column in columns):
        notes += predicted.size_notes(allocation, known_counts(holdings, question))
    notes += grid_notes(settled(question, allocation.plans, holdings.policy, steady), holdings.policy)
    return Plan(
        columns=tuple(assuming_bounds(column, question.counted) for column in columns),
        epsilon=float(exact),
        cost=Cost.of(exact, allocation.loss),
        confidence=confidence,
        groups=group_count(question),
        unit=question.unit,
        neighbours=question.neighbours,
        affordable=standing.holds(allocation.loss),
        fitting=standing.room(allocation.loss),
        budget=budget_state(standing),
        notes=tuple(notes),
        threshold=None if allocation.keys is None else allocation.keys.threshold,
        account=chosen,
        rooms=rooms(standing, exact),
    )


def _bound_notes(question: Question) -> list[str]:
    """How many rows of a unit count; where several tables multiply them, what learns how many there are."""
    if " × " not in question.counted:
        return [question.counted] if question.counted else []
    return [f"{question.counted}; the noise is for all of them, and mechanism='truncate' learns how many a unit has"]


def _release(holdings: Holdings, numbers: MeasuredNumbers, allocation: Allocation, request: SqlRequest) -> Answer:
    confidence, question, keys = request.confidence, numbers.question, numbers.keys
    notes = answer_notes(question, allocation, holdings.policy)
    most = None if keys is None else rows_that_fit(question, keys)
    told = told_by(allocation.together, len(question.measures))
    table = AnswerTable(question, keys, numbers.measurements, numbers.names, confidence, numbers.statistics, most, told)
    if not table.whole:
        notes.append(too_many(table.groups))
    return Answer(
        columns=tuple(assuming_bounds(column, question.counted) for column in table.columns()),
        confidence=confidence,
        cost=Cost.of(request.epsilon, allocation.loss),
        unit=question.unit,
        neighbours=question.neighbours,
        question=question_name(request.question),
        notes=tuple(notes),
        test_noise=not holdings.randomness.kernel,
        chosen=table.chosen,
        sampled=sampled_columns(question, table.evaluator.measurements, table.rows),
    )

"""A derivation planned, and answered: its questions are charged as one, read and noised, and then computed with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from confide.errors import ParameterError, QueryError
from confide.policy import Policy
from confide.privacy.amount import show
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import ZCDP, PureDP
from confide.query.derivation.derivation import Derivation
from confide.query.identity import question_name, spelled_question
from confide.release.account import AUTO
from confide.release.answer.answer import Answer
from confide.release.answer.derived.answered_numbers import AnsweredNumbers
from confide.release.answer.derived.derived_answer import DerivedAnswer
from confide.release.answer.notes import assuming_bounds, key_notes
from confide.release.answer.plan import Plan, Within
from confide.release.answer.size import MOST_SHOWN, cut_to_room, too_many
from confide.release.arguments import Mechanism, exact_epsilon, exact_rows
from confide.release.cost import Cost, budget_state, rooms
from confide.release.expected import group_count
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.request import sql_purpose
from confide.release.sql.allocation import Allocation, widths_of
from confide.release.sql.derived_forecast import (
    DerivedForecast,
    allocations,
    derived_forecast,
    forecast_notes,
    needed_levels,
    require_room_for_cells,
)
from confide.release.sql.grids import gridded
from confide.release.sql.measuring import answer_notes, measured_numbers, threshold_notes

_KEYS_ALONE = "which rows are shown was decided by noised numbers; show those to see how certain that is"
_LEFT_OUT = "windows up to each row are NULL where there are too many rows; ask for fewer of them, or use wider bins"
_TOO_LONG = "texts of keys that would be too long are NULL; put fewer of them together"
_EVERY_GROUP = "every declared group counts as a row of an inner query, also one that nobody is in"


@dataclass(frozen=True, slots=True)
class DerivedRequest:
    """A derivation at ε, which all its questions share."""

    derivation: Derivation
    policy: Policy
    sql: str
    dialect: str
    epsilon: Fraction
    confidence: float

    @property
    def purpose(self) -> str:
        return sql_purpose(self.sql, self.dialect)

    def identity(self) -> str:
        return written("derived", spelled_question(self.derivation), self.epsilon, self.confidence)

    def price(self, budget: Budget) -> "PricedDerivation":
        require_room_for_cells(self.derivation)
        levels = needed_levels(self.derivation, self.confidence)
        bought = made_at(self.epsilon, lambda tried: allocations(self.derivation, self.policy, budget, tried, levels))
        return PricedDerivation(self, bought)

    def decode(self, stored: bytes) -> Answer:
        return Answer.from_bytes(stored)


@dataclass(frozen=True, slots=True)
class PricedDerivation:
    """A derivation with the noise that was bought for each question."""

    request: DerivedRequest
    bought: tuple[Allocation, ...]

    @property
    def loss(self) -> PureDP | ZCDP:
        """The sum over the questions: basic composition, within one call."""
        return added_losses(self.bought)

    @property
    def widths(self) -> tuple[float, ...]:
        return tuple(width for own in self.bought for width in widths_of(own, self.request.confidence))

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        request, derivation = self.request, self.request.derivation
        levels = needed_levels(derivation, request.confidence)
        sources, notes = [], []
        for question, allocation, level in zip(derivation.questions, self.bought, levels, strict=True):
            numbers = measured_numbers(holdings, question, allocation, charge)
            names = [*numbers.names, *(plan.name for plan, _ in numbers.statistics)]
            conditions = [plan.condition for plan, _ in numbers.statistics]
            estimates = [estimate for _, estimate in numbers.statistics]
            sources.append(
                AnsweredNumbers(
                    numbers.question, numbers.keys, numbers.measurements, estimates, level, names, conditions
                )
            )
            notes += answer_notes(numbers.question, allocation, holdings.policy)
        if derivation.gathering and any(question.keys for question in derivation.questions):
            notes.append(_EVERY_GROUP)
        if all(column.public for column in derivation.columns):
            notes.append(_KEYS_ALONE)
        answer = DerivedAnswer(derivation, sources, request.confidence, MOST_SHOWN)
        if answer.left_out:
            notes.append(_LEFT_OUT)
        if answer.too_long:
            notes.append(_TOO_LONG)
        if not answer.whole:
            notes.append(too_many(len(answer.present)))
        counted = "; ".join(dict.fromkeys(own.counted for own in derivation.questions if own.counted))
        return cut_to_room(
            Answer(
                columns=tuple(assuming_bounds(column, counted) for column in answer.columns()),
                confidence=request.confidence,
                cost=Cost.of(request.epsilon, self.loss),
                unit=derivation.unit,
                neighbours=derivation.neighbours,
                question=question_name(derivation),
                notes=tuple(dict.fromkeys(notes)),
                test_noise=not holdings.randomness.kernel,
                chosen=answer.chosen,
                jointly=answer.jointly,
            )
        )


def added_losses(bought: tuple[Allocation, ...]) -> PureDP | ZCDP:
    losses = [own.loss for own in bought]
    if isinstance(losses[0], PureDP):
        return PureDP(sum((own.epsilon for own in losses if isinstance(own, PureDP)), Fraction(0)))
    concentrated = [own for own in losses if isinstance(own, ZCDP)]
    rho, delta = (sum((getattr(own, name) for own in concentrated), Fraction(0)) for name in ("rho", "delta"))
    return ZCDP(rho, delta)


def derived_request(
    policy: Policy,
    derivation: Derivation,
    sql: str,
    dialect: str,
    epsilon: Fraction,
    confidence: float,
    split: Mapping[str, Fraction],
    mechanism: Mechanism,
) -> DerivedRequest:
    require_no_options(split, mechanism)
    return DerivedRequest(on_grids(derivation, policy), policy, sql, dialect, epsilon, confidence)


def on_grids(derivation: Derivation, policy: Policy) -> Derivation:
    return replace(derivation, questions=tuple(gridded(own, policy) for own in derivation.questions))


def plan_derivation(
    holdings: Holdings,
    derivation: Derivation,
    epsilon: object,
    within: Within | None,
    confidence: float,
    rows: int | None,
    account: object = AUTO,
) -> Plan:
    """The forecast of a derivation at ε, or at the least ε that gives a width. Public facts only."""
    known = exact_rows(rows)
    standing = holdings.standing()
    derivation = on_grids(derivation, holdings.policy)
    require_room_for_cells(derivation)

    def under(name: str) -> DerivedForecast:
        budget = standing.budget.under(name)
        return derived_forecast(derivation, holdings.policy, confidence, known, budget, holdings.engine.steady)

    def price(budget: Budget) -> PricedDerivation:
        asked = standing.budget.epsilon / 10 if epsilon is None else exact_epsilon(epsilon)
        return DerivedRequest(derivation, holdings.policy, "", "", asked, confidence).price(budget)

    accounts = holdings.accounts(account)
    if len(accounts) == 1:
        chosen = accounts[0]
    elif within is None:
        chosen = holdings.preferred(standing, price, accounts)
    else:
        chosen = min(accounts, key=lambda name: under(name).smallest(within))
    predicted = under(chosen)
    notes = forecast_notes(predicted)
    notes += dict.fromkeys(own.counted for own in derivation.questions if own.counted)
    notes += dict.fromkeys(note for own in derivation.questions for note in key_notes(own, own.summary))
    if within is not None:
        exact = predicted.smallest(within)
        notes.append(f"ε = {show(exact)} is the smallest that gives ±{within}{' if that is so' if notes else ''}")
    elif epsilon is not None:
        exact = exact_epsilon(epsilon)
    else:
        exact = standing.budget.epsilon / 10
        notes.append("no epsilon was given: a tenth of the whole budget is shown")
    columns, bought = made_at(exact, predicted.at)
    notes += dict.fromkeys(note for own in bought for note in threshold_notes(own))
    loss = added_losses(bought)
    counted = "; ".join(dict.fromkeys(own.counted for own in derivation.questions if own.counted))
    return Plan(
        columns=tuple(assuming_bounds(column, counted) for column in columns),
        epsilon=float(exact),
        cost=Cost.of(exact, loss),
        confidence=confidence,
        groups=group_count(derivation.questions[0]) if len(derivation.questions) == 1 else None,
        unit=derivation.unit,
        neighbours=derivation.neighbours,
        affordable=standing.holds(loss),
        fitting=standing.room(loss),
        budget=budget_state(standing),
        notes=tuple(notes),
        threshold=next((own.keys.threshold for own in bought if own.keys is not None), None),
        account=chosen,
        rooms=rooms(standing, exact),
    )


def require_no_options(split: Mapping[str, Fraction], mechanism: Mechanism) -> None:
    """What names columns of a question has no place where several are asked at once."""
    if split:
        raise ParameterError(
            "split is for a question by itself: inner questions share ε by how many numbers they measure"
        )
    if not isinstance(mechanism, str):
        raise QueryError("mechanism names columns of a question by itself; name one mechanism for all, or ask it alone")

"""One call of `plan` or `sql`: a text with its options, read once, into types of Python's own.

What is charged and what is measured come of the same numbers, whatever the caller's objects say when asked again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from confide.errors import BudgetError, ParameterError, QueryError
from confide.host.progress import Tell
from confide.policy import Policy
from confide.privacy.amount import show
from confide.query import Question
from confide.query.conjunction import Conjunction
from confide.query.derivation.correlated import refuse_correlated
from confide.query.derivation.derivation import Derivation
from confide.query.derivation.inner_number import alone, inner_numbers, with_numbers
from confide.query.grouping_union import tables_apart
from confide.query.parse import DIALECT, Parsed, parse_query
from confide.query.question import all_values
from confide.query.released_kind import is_label
from confide.query.rewrite.public_match import public_matches
from confide.release.answer.answer import Answer
from confide.release.answer.plan import Plan, Within
from confide.release.answer.wanted import plain_within, wider_than_wanted
from confide.release.arguments import (
    Mechanism,
    confidence_level,
    exact_bounds,
    exact_epsilon,
    exact_rows,
    exact_split,
    mechanism_names,
    plain_text,
)
from confide.release.cost import added_costs
from confide.release.guard import listening
from confide.release.holdings import Holdings
from confide.release.join.request import JoinRequest, join_request
from confide.release.planning import planned
from confide.release.questions import Limits, Questions, about_population
from confide.release.sql.derived_request import DerivedRequest, derived_request
from confide.release.sql.request import SqlRequest, sql_request
from confide.release.workload.rollup import RollupCall, measured_together, rollup_call


@dataclass(frozen=True, slots=True)
class SqlCall:
    """A question, and how it is to be answered; at which ε is said later."""

    holdings: Holdings
    question: Question | Conjunction | Derivation
    sql: str
    dialect: str
    confidence: float
    rows: int | None
    shares: Mapping[str, Fraction]
    limits: Limits
    options: Mechanism
    account: str
    population: bool

    def plan(self, epsilon: object, within: Within | None) -> Plan:
        """The forecast at ε, or at the least ε that gives a width."""
        return planned(
            self.holdings, self.question, epsilon, within, self.confidence, self.options, self.shares, self.limits,
            self.rows, self.account, self.population,
        )  # fmt: skip

    def answer(self, epsilon: object, within: Within | None, progress: Tell | None) -> Answer:
        """The answer at ε, or at the ε of a plan for a width."""
        account = self.account
        if within is not None:
            within = plain_within(within)
            plan = self.plan(None, within)
            epsilon, account = plan.cost.epsilon, plan.account or account
        request = self._request(epsilon)
        with listening(progress):
            asked = self.holdings.ask(request, account)
        answer = asked.result.for_population() if self.population else asked.result
        wider = () if within is None else wider_than_wanted(answer, within)
        return answer.marked(asked.stored, wider)

    def kept(self, epsilon: object) -> bool:
        """Whether the answer at ε is kept already."""
        holdings, request = self.holdings, self._request(epsilon)
        identities = [holdings.identified(request.identity(), own) for own in holdings.accounts(self.account)]
        return any(holdings.known(own, request.decode) is not None for own in identities)

    def _request(self, epsilon: object) -> SqlRequest | JoinRequest | DerivedRequest:
        policy, text = self.holdings.policy, (self.sql, self.dialect)
        if isinstance(self.question, Derivation):
            level = confidence_level(self.confidence)
            return derived_request(
                policy, self.question, *text, exact_epsilon(epsilon), level, self.shares, self.options
            )
        if isinstance(self.question, Conjunction):
            return join_request(
                policy, self.question, *text, epsilon, self.confidence, self.options, self.shares, self.limits
            )
        level = confidence_level(self.confidence)
        return sql_request(policy, self.question, *text, exact_epsilon(epsilon), level, self.shares)


@dataclass(frozen=True, slots=True)
class StepwiseCall:
    """A text with sub-queries among its rows. Each of them is asked first, like any question, and kept; then the number
    that came out is a constant of the text, wherever it stands. All have equal parts of ε, and all of it adds up: which
    question comes last may depend on what was released before (adaptive composition, [Whitehouse2023]).
    """

    text: Parsed
    inner: tuple[SqlCall, ...]
    """Different questions."""
    places: tuple[int, ...]
    """Of each sub-query in the text: which of them it is."""
    outer: Callable[[Parsed], SqlCall]
    policy: Policy

    def plan(self, epsilon: object, within: Within | None) -> Plan:
        """As if what is released first were what is expected of it."""
        if within is not None:
            raise ParameterError("within= is for one question; a sub-query in WHERE is one by itself: give epsilon=")
        whole = self.policy.budget.epsilon / 10 if epsilon is None else exact_epsilon(epsilon)
        part = whole / (len(self.inner) + 1)
        first = [call.plan(part, None) for call in self.inner]
        numbers = [Fraction(plan.columns[0].estimate) for plan in first]
        last = self._last(numbers).plan(part, None)
        notes = [
            f"a sub-query is released first, at ε = {show(part)}: {plan.columns[0].name}, expected ±"
            f"{plan.columns[0].half_width:.4g}; the plan takes it to be {plan.columns[0].estimate:.6g}"
            for plan in first
        ]
        every = [*first, last]
        return replace(
            last,
            epsilon=float(whole),
            cost=added_costs([plan.cost for plan in every]),
            affordable=all(plan.affordable for plan in every) and last.fitting > len(first),
            fitting=last.fitting // len(every),
            notes=(*notes, *last.notes),
        )

    def answer(self, epsilon: object, within: Within | None, progress: Tell | None) -> Answer:
        if within is not None:
            raise ParameterError("within= is for one question; a sub-query in WHERE is one by itself: give epsilon=")
        part = exact_epsilon(epsilon) / (len(self.inner) + 1)
        plan = self.plan(epsilon, None)  # what would be refused later is refused before anything is charged
        if not plan.affordable and not all(call.kept(part) for call in self.inner):
            raise BudgetError(f"the budget does not hold all steps of this call: {plan.budget}")
        first = [call.answer(part, None, progress) for call in self.inner]
        numbers = [Fraction(answer.values[0].values[0]) for answer in first]
        last = self._last(numbers).answer(part, None, progress)
        notes = [
            f"a sub-query was released first: {column.name} = {column.values[0]:.12g}, from {column.low[0]:.6g} to "
            f"{column.high[0]:.6g}; the answer is for this constant"
            for column in (answer.values[0] for answer in first)
        ]
        stored = last.stored and all(answer.stored for answer in first)
        cost = added_costs([answer.cost for answer in (*first, last)])
        return replace(last, notes=(*notes, *last.notes), cost=cost, stored=stored)

    def _last(self, numbers: Sequence[Fraction]) -> SqlCall:
        return self.outer(with_numbers(self.text, self.policy, [numbers[place] for place in self.places]))


def sql_call(
    holdings: Holdings,
    questions: Questions,
    sql: str,
    dialect: str,
    confidence: float,
    rows: int | None,
    split: Mapping[str, object] | None,
    bounds: Mapping[str, Sequence[object]] | None,
    mechanism: Mapping[str, str] | str,
    account: str,
    population: bool,
) -> SqlCall | StepwiseCall | RollupCall:
    """Read a text and its options, or refuse them. Nothing is charged."""
    limits, shares, options = exact_bounds(bounds), exact_split(split), mechanism_names(mechanism)
    rows = exact_rows(rows)
    sql, dialect = plain_text(sql), plain_text(dialect)

    def call(query: Parsed, own: bool = True) -> SqlCall:
        question = questions.bound(
            holdings, query, len(sql), limits if own else {}, dialect, options if own else "auto"
        )
        about_population(question, own and population)
        return SqlCall(
            holdings, question, sql if own else query.sql(DIALECT), dialect if own else DIALECT, confidence, rows,
            shares if own else {}, limits if own else {}, options if own else "auto", account, own and population,
        )  # fmt: skip

    found = questions.several(holdings, sql, dialect) if _names_several(sql) else None
    if found is not None:
        if limits or shares or options != "auto" or population:
            raise ParameterError("bounds, split, mechanism and population are for a text of one table")
        several, asked = found
        if isinstance(asked, Question) and measured_together(asked):
            return rollup_call(holdings, asked, several, sql, confidence, account)
        return call(tables_apart(parse_query(sql, dialect), several))
    if sql.upper().count("SELECT") > 1:
        text = parse_query(sql, dialect)
        query = public_matches(text, holdings.policy)
        numbers = inner_numbers(query, holdings.policy)
        for node in numbers:
            refuse_correlated(node, holdings.policy, holdings.engine)
        if numbers:
            first = tuple(call(alone(node), own=False) for node in numbers)
            if not all(isinstance(own.question, Question) for own in first):
                raise QueryError(
                    "a sub-query in WHERE is one aggregate over rows of the data; ask it first, and write the number "
                    "that comes out"
                )
            if any(is_label(value) for own in first for value in all_values(own.question)):  # type: ignore[arg-type]
                raise QueryError(
                    "a sub-query in WHERE stands for a number, and not for a date or what MODE finds; ask it first, "
                    "and write what comes out"
                )
            different = {own.question: own for own in reversed(first)}
            order = {question: place for place, question in enumerate(different)}
            places = tuple(order[own.question] for own in first)
            return StepwiseCall(query, tuple(different.values()), places, call, holdings.policy)
        if query is not text:
            return call(query)
    question = questions.read(holdings, sql, limits, dialect, options)
    about_population(question, population)
    return SqlCall(holdings, question, sql, dialect, confidence, rows, shares, limits, options, account, population)


def _names_several(sql: object) -> bool:
    """Whether a text may ask for several tables: only then it is parsed for that."""
    said = sql.upper() if isinstance(sql, str) else ""
    return any(word in said for word in ("ROLLUP", "CUBE", "GROUPING"))

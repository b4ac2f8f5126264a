"""One call of `plan` or `sql`: a text with its options, read once, into types of Python's own.

What is charged and what is measured come of the same numbers, whatever the caller's objects say when asked again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from confide.host.progress import Tell
from confide.query import Question
from confide.query.conjunction import Conjunction
from confide.query.derivation.derivation import Derivation
from confide.release.answer.answer import Answer
from confide.release.answer.plan import Plan, Within
from confide.release.answer.wanted import plain_within, wider_than_wanted
from confide.release.arguments import (
    Mechanism,
    confidence_level,
    exact_bounds,
    exact_epsilon,
    exact_split,
    mechanism_names,
    plain_text,
)
from confide.release.guard import listening
from confide.release.holdings import Holdings
from confide.release.join.request import JoinRequest, join_request
from confide.release.planning import planned
from confide.release.questions import Limits, Questions, about_population
from confide.release.sql.derived_request import DerivedRequest, derived_request
from confide.release.sql.request import SqlRequest, sql_request


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
) -> SqlCall:
    """Read a text and its options, or refuse them. Nothing is charged."""
    limits, shares, options = exact_bounds(bounds), exact_split(split), mechanism_names(mechanism)
    sql, dialect = plain_text(sql), plain_text(dialect)
    question = questions.read(holdings, sql, limits, dialect, options)
    about_population(question, population)
    return SqlCall(holdings, question, sql, dialect, confidence, rows, shares, limits, options, account, population)

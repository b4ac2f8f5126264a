"""What a session's SQL means: text, declared views and options, read into a question."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from confide.errors import ParameterError, QueryError
from confide.policy import KeyUnit, Policy
from confide.query import Question, bind
from confide.query.conjunction import BY_ROW, Conjunction, bind_conjunction, is_conjunction, private_tables
from confide.query.derivation.derivation import Derivation
from confide.query.derivation.released_table import bind_derivation
from confide.query.derivation.shape import Shapes
from confide.query.grouping_sets import GroupingSets, grouping_sets
from confide.query.parse import Parsed, Select, parse, parse_query
from confide.query.rewrite import plain_form
from confide.query.rewrite.aggregate_names import named_aggregates
from confide.query.sample_means import population_refusal
from confide.query.view import View, expanded
from confide.release.arguments import Mechanism
from confide.release.holdings import Holdings

_MOST_REMEMBERED = 100
_OF_JOINS = (
    "population=True is for rows that are independent draws, and joined rows are none; leave it out to get the "
    "interval for the rows themselves"
)

_OF_DERIVED = (
    "population=True is for means and shares that a question asks for itself, not for what is computed of released "
    "numbers; leave it out, or ask for the mean without more"
)
Kept = TypeVar("Kept", Question, Derivation, Question | Derivation)
Limits = Mapping[str, tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Reads questions, and remembers them: what is planned is usually asked next, on the same public facts."""

    views: dict[str, View] = field(default_factory=dict)
    _remembered: dict[tuple[str, ...], Question | Derivation] = field(default_factory=dict)
    _several: dict[tuple[str, ...], tuple[GroupingSets, Question]] = field(default_factory=dict)

    def read(
        self, holdings: Holdings, sql: str, limits: Limits, dialect: str, options: Mechanism
    ) -> Question | Conjunction | Derivation:
        """A question whose bounds are known beforehand, or one over a join whose mechanism finds them; or what is made
        of the answers of such questions.
        """
        key = _key(sql, dialect, limits, options)
        remembered = self._remembered.get(key)
        if remembered is not None and not self.views:
            return remembered
        found = self.bound(holdings, parse_query(sql, dialect), len(sql), limits, dialect, options)
        if self.views or isinstance(found, Conjunction):
            return found
        return self.keep(key, found)

    def several(
        self, holdings: Holdings, sql: str, dialect: str
    ) -> tuple[GroupingSets, Question | Conjunction | Derivation] | None:
        """What a text asks for if it names several tables, and its plain question."""
        key = _key(sql, dialect, {}, "auto")
        remembered = self._several.get(key)
        if remembered is not None and not self.views:
            return remembered
        several = grouping_sets(parse_query(sql, dialect))
        if several is None:
            return None
        question = self.bound(holdings, several.select, len(sql), {}, dialect, "auto")
        if isinstance(question, Question) and not self.views:
            if len(self._several) >= _MOST_REMEMBERED:
                self._several.clear()  # other threads may be at it as well
            self._several[key] = several, question
        return several, question

    def bound(
        self, holdings: Holdings, query: Parsed, length: int, limits: Limits, dialect: str, options: Mechanism
    ) -> Question | Conjunction | Derivation:
        """A parsed text of some length."""
        query = named_aggregates(query)
        if options == "sample":
            options = sampled(holdings.policy)

        def ask(select: Select) -> Question | Conjunction:
            return self._asked(holdings, select, length, limits, dialect, options)

        try:
            if not isinstance(query, Select) or Shapes(holdings.policy).derived(query):
                return bind_derivation(query, holdings.policy, holdings.engine, ask)
            return ask(query)
        except RecursionError:
            raise QueryError("the query is nested too deep; write it flatter") from None

    def _asked(
        self, holdings: Holdings, select: Select, length: int, limits: Limits, dialect: str, options: Mechanism
    ) -> Question | Conjunction:
        """One SELECT over rows of the data."""
        found = expanded(select, length, self.views) if self.views else None
        policy, at_most = holdings.policy, None
        if found is not None:
            select, at_most = found[0], found[1].at_most
        select = plain_form(select, policy, holdings.engine)
        if is_conjunction(select, policy, options):
            return bind_conjunction(select, policy, holdings.engine, dialect)
        try:
            return bind(select, policy, holdings.engine, limits, dialect, options, at_most)
        except QueryError as refusal:
            raise _advised(refusal, holdings, select, dialect, options) from None

    def bounded(self, holdings: Holdings, sql: str, limits: Limits, dialect: str) -> "BoundedText":
        """A text over the policy's own tables, whose bounds are known beforehand."""
        return BoundedText(self, holdings, sql, limits, dialect)

    def remembered(self, key: tuple[str, ...]) -> Question | None:
        found = self._remembered.get(key)
        return found if isinstance(found, Question) else None

    def keep(self, key: tuple[str, ...], question: Kept) -> Kept:
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()  # other threads may be at it as well
        self._remembered[key] = question
        return question


@dataclass(slots=True, eq=False)
class BoundedText:
    """A text that may be looked at under several mechanisms: it is parsed once, and only if it was not read before."""

    _questions: Questions
    _holdings: Holdings
    sql: str
    _limits: Limits
    _dialect: str
    _select: Select | None = None

    def under(self, mechanism: str) -> Question:
        """The question under a mechanism: `auto` gives sums their sensitivity, `svt` the rows of a unit."""
        key = _key(self.sql, self._dialect, self._limits, mechanism)
        question = self._questions.remembered(key)
        if question is not None:
            return question
        holdings = self._holdings
        if self._select is None:
            self._select = plain_form(parse(self.sql, self._dialect), holdings.policy, holdings.engine)
        question = bind(self._select, holdings.policy, holdings.engine, self._limits, self._dialect, mechanism)
        return self._questions.keep(key, question)


def sampled(policy: Policy) -> str:
    """The mechanism behind `sample`: a keyed hash keeps at most the declared rows of each unit, then integer noise."""
    if not isinstance(policy.unit, KeyUnit):
        raise QueryError(
            "the mechanism sample keeps some rows of each unit, and under `unit: row` each unit has one; "
            f"there are auto, {', '.join(BY_ROW)}"
        )
    return "laplace"


def about_population(question: Question | Conjunction | Derivation, population: object) -> None:
    """Refuse, before anything is charged, what says nothing of the population that rows are drawn from."""
    if not isinstance(population, bool):
        raise ParameterError("population is True or False")
    if not population:
        return
    others = _OF_JOINS if isinstance(question, Conjunction) else _OF_DERIVED
    refusal = population_refusal(question) if isinstance(question, Question) else others
    if refusal is not None:
        raise QueryError(refusal)


def _advised(refusal: QueryError, holdings: Holdings, select: Select, dialect: str, mechanism: Mechanism) -> QueryError:
    """A refusal, with what to ask instead: where a join is not along references, its bounds may be learnt."""
    policy = holdings.policy
    if mechanism != "auto" or not isinstance(policy.unit, KeyUnit) or private_tables(select, policy) <= 1:
        return refusal
    try:
        bind_conjunction(select, policy, holdings.engine, dialect)
    except QueryError:
        return refusal
    return QueryError(f"{refusal}; or ask with mechanism='truncate', which learns how much one unit changes")


def _key(sql: object, dialect: object, bounds: object, mechanism: Mechanism) -> tuple[str, ...]:
    texts = [value for part in (sql, dialect) for value in (type(part).__name__, part if type(part) is str else "")]
    named = mechanism if isinstance(mechanism, str) else repr(sorted(mechanism.items()))
    return *texts, repr(bounds), named

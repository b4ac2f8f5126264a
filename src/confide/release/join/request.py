"""Questions over joins that one unit may change in any number of rows: which mechanism, with what part of ε each."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Final

from confide.errors import ParameterError, QueryError
from confide.mechanism.join.truncation import Levels, Race, Truncation
from confide.mechanism.noise.law import miss_rate
from confide.mechanism.smooth.gaussian import SmoothGaussian, tuned
from confide.mechanism.smooth.vector import SmoothVector
from confide.policy import KeyUnit, Policy
from confide.privacy.amount import shown_value
from confide.privacy.budget import Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import written
from confide.privacy.loss import ZCDP, PureDP
from confide.query.conjunction import BY_ROW, BY_UNIT, Conjunction, distinct_owners
from confide.query.grid import LARGEST_SUMMARY
from confide.query.grouping import group_count
from confide.query.identity import SPELLING
from confide.query.question import all_values
from confide.query.weight import MOST_ADDED, Weight
from confide.release.answer.answer import Answer
from confide.release.answer.chosen import least_level
from confide.release.answer.miss_rate import needed_confidences
from confide.release.arguments import confidence_level, exact_epsilon, pure_share
from confide.release.holdings import Holdings
from confide.release.least_epsilon import made_at
from confide.release.request import sql_purpose

POWERS: Final = 64  # of two, by which the contributions of units are summed in each group
LARGEST_CONTRIBUTION: Final = 2**20
"""How many joined rows one unit may have at most, where the caller says nothing else; more are cut."""

MOST_REMOVED: Final = 10
"""Private tables of a join for `residual`: it counts what is left without each set of them."""

Bounds = Mapping[str, tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A question over a join at ε, with the mechanism that is asked for and what the caller says of its columns."""

    question: Conjunction
    sql: str
    dialect: str
    mechanism: str
    epsilon: Fraction
    confidence: float
    parts: tuple[Fraction, ...]
    """Of ε, for each weight; they add up to 1."""
    largest: tuple[int, ...]
    """Of each weight, the most that one unit adds, in whole grains; 0 where the mechanism finds it."""

    @property
    def purpose(self) -> str:
        return sql_purpose(self.sql, self.dialect)

    def identity(self) -> str:
        asked = (self.question, self.mechanism, self.epsilon, self.confidence, self.parts, self.largest)
        return written("join", *asked, spelling=SPELLING)

    def price(self, budget: Budget) -> "PricedJoin":
        return made_at(self.epsilon, lambda tried: _priced(self, budget, tried))

    def decode(self, stored: bytes) -> Answer:
        return Answer.from_bytes(stored)


@dataclass(frozen=True, slots=True)
class PricedJoin:
    """A question over a join with everything that decides its mechanisms: public facts only."""

    request: JoinRequest
    misses: tuple[float, ...]
    """For each weight how often its interval may miss, so that every column holds with the confidence."""
    shares: tuple[Fraction, ...]
    """Of ε, for each weight."""
    loss: PureDP | ZCDP

    @property
    def largest(self) -> tuple[int, ...]:
        return self.request.largest

    @property
    def question(self) -> Conjunction:
        return self.request.question

    @property
    def mechanism(self) -> str:
        return self.request.mechanism

    @property
    def groups(self) -> int:
        return group_count(self.question)

    def smooth(self, place: int) -> SmoothVector | SmoothGaussian:
        """Where there is a δ, Gaussian noise: it is the narrower at the same ρ, the more so the more groups there are.

        A unit that is replaced is one that goes and one that comes.
        """
        if isinstance(self.loss, ZCDP):
            part = self.request.parts[place]
            changes = 2 if self.question.neighbours == "replace-one" else 1
            tuning = tuned(len(self.question.private) - 1)  # each further table may multiply what a row changes
            return SmoothGaussian(self.loss.rho * part, self.loss.delta * part, changes, tuning)
        return SmoothVector(self.shares[place], self.groups)

    @property
    def owners(self) -> int:
        """How many units a joined row may have."""
        return len(distinct_owners(self.question))

    def cut(self, place: int) -> Race | Truncation:
        """One group's mechanism: a unit may be in all groups, so each has its part of ε."""
        epsilon = self.shares[place] / self.groups
        kind = Race if self.mechanism == "r2t" else Truncation
        return kind(Levels(self.largest[place], self.owners), epsilon, self.misses[place])

    @property
    def widths(self) -> tuple[float, ...]:
        if self.mechanism in BY_ROW:
            return tuple(self.smooth(place).expected_half_width(1, miss) for place, miss in enumerate(self.misses))
        return tuple(self.cut(place).expected_half_width(1) for place in range(len(self.misses)))

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        from confide.release.join.measure import measured_join  # noqa: PLC0415  loaded when used

        return measured_join(holdings, self, charge).to_bytes()


def join_request(
    policy: Policy,
    question: Conjunction,
    sql: str,
    dialect: str,
    epsilon: object,
    confidence: object,
    mechanism: object,
    split: Mapping[str, Fraction],
    bounds: Bounds,
) -> JoinRequest:
    """A question over a join as it is asked, or a refusal."""
    level, name = confidence_level(confidence), _chosen(policy, mechanism)
    names = [weight.name for weight in question.weights]
    for what, given in (("split", split), ("bounds", bounds)):
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ParameterError(f"{what} names {', '.join(unknown)}, but what is added up is {', '.join(names)}")
    wanted = [split.get(weight, Fraction(1)) for weight in names]
    parts = tuple(part / sum(wanted) for part in wanted)
    largest = _all_largest(question, name, bounds)
    return JoinRequest(question, sql, dialect, name, exact_epsilon(epsilon), level, parts, largest)


def _all_largest(question: Conjunction, name: str, bounds: Bounds) -> tuple[int, ...]:
    if name not in BY_UNIT:
        if bounds:
            raise ParameterError(f"bounds say what one unit adds at most; the mechanism {name} needs none")
        return (0,) * len(question.weights)
    groups = group_count(question)
    if groups * POWERS > LARGEST_SUMMARY:
        raise QueryError(
            f"sums by powers of two in {groups:,} groups would be more than the {LARGEST_SUMMARY:,} rows that a "
            "summary may have; use fewer groups, or wider bins"
        )
    return tuple(_largest(weight, bounds.get(weight.name)) for weight in question.weights)


def _priced(request: JoinRequest, budget: Budget, exact: Fraction) -> PricedJoin:
    question, name = request.question, request.mechanism
    if name == "residual" and len(question.private) > MOST_REMOVED:
        raise QueryError(
            f"the join has {len(question.private)} private tables, copies included; the mechanism residual looks at "
            f"every set of them, and takes at most {MOST_REMOVED}: ask for fewer, or with mechanism='elastic'"
        )
    loss, share = pure_share(budget, exact)
    if name in BY_ROW and isinstance(loss, ZCDP):
        loss = ZCDP(loss.rho, budget.explicit_delta(loss))
    if question.neighbours == "replace-one":
        share /= 2  # a unit that is replaced is one that goes and one that comes
    shares = tuple(share * part for part in request.parts)
    chosen = least_level(question, request.confidence, group_count(question))
    levels = needed_confidences(all_values(question), chosen)
    misses = tuple(miss_rate(levels[place]) for place in range(len(question.weights)))
    priced = PricedJoin(request, misses, shares, loss)
    for place in range(len(shares)):
        _ = priced.smooth(place) if name in BY_ROW else priced.cut(place)
    return priced


def _chosen(policy: Policy, mechanism: object) -> str:
    by_key = isinstance(policy.unit, KeyUnit)
    known = BY_UNIT if by_key else BY_ROW
    if mechanism == "auto":
        return known[0]
    if mechanism not in known:
        what = f"the policy protects {policy.unit}" if by_key else "the policy protects single rows (`unit: row`)"
        raise QueryError(
            f"a join of private tables has no mechanism {shown_value(mechanism)} here: {what}, so there are auto, "
            f"{', '.join(known)}"
        )
    return str(mechanism)


def _largest(weight: Weight, bound: tuple[Fraction, Fraction] | None) -> int:
    if weight.span.low < 0:
        raise QueryError(
            f"{weight.name} adds up numbers that may be negative, and a unit's part is cut from above only; "
            f"ask SUM(GREATEST(x, 0)) and SUM(GREATEST(-x, 0)) apart"
        )
    if bound is None:
        return min(LARGEST_CONTRIBUTION * max(1, weight.span.high), MOST_ADDED)
    low, high = bound
    largest = floor(high / weight.grain)
    if low != 0 or not 1 <= largest <= MOST_ADDED:
        raise ParameterError(
            f"bounds[{weight.name!r}] must be [0, most], what one unit adds at most: from 1 to 2^58 of its grain"
        )
    return largest

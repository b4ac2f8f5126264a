"""Deciding whether synthetic answers may be used: the interval from public data, one bit from the private ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from confide.errors import ParameterError, QueryError
from confide.host.progress import tell
from confide.mechanism.tally import Tally
from confide.policy import Policy
from confide.privacy.amount import parse_amount, root, shown_value
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.identity import sealed_name, written
from confide.privacy.limits import MOST_VERDICTS
from confide.privacy.loss import PureDP
from confide.query.grouping import group_count, key_size
from confide.query.identity import SPELLING
from confide.query.key_value import spelled
from confide.query.question import ShownKey
from confide.release.account import AUTO
from confide.release.answer.size import require_room_for_verdicts
from confide.release.arguments import plain_text
from confide.release.cost import Cost
from confide.release.expected import few_rows
from confide.release.holdings import Holdings
from confide.release.questions import BoundedText
from confide.release.verdict.subject import Subject, Wanted, answer_reading, fetch, subject_of, too_wide
from confide.release.verdict.synthetic_copy import SyntheticCopy, open_copy, used_columns
from confide.release.verdict.verdict import Verdict, Verdicts
from confide.trust.choice import Chooser, Chosen
from confide.trust.seen import (
    Imagined,
    Seen,
    imagined_mean,
    imagined_sum,
    imagined_values,
    imagined_whole,
    quantile_of,
)
from confide.trust.target import Distance, Prefer, Target

ReadBounded = Callable[[Any], BoundedText]
"""Texts, as the session reads them."""


@dataclass(frozen=True, slots=True)
class VerdictGroup:
    """One key of a query, or all of its rows: the synthetic answer and everything public about the decision."""

    question: int
    place: int
    key: dict[str, Any]
    chooser: Chooser

    @property
    def target(self) -> Target:
        return self.chooser.target


@dataclass(frozen=True, slots=True)
class VerdictRequest:
    """A checked request: what is to be decided, and how."""

    questions: tuple[Subject, ...]
    groups: tuple[VerdictGroup, ...]
    within: Distance
    mechanism: str
    prefer: Prefer
    version: str
    left_out: tuple[str, ...]

    @property
    def single(self) -> bool:
        """Whether one verdict was asked for, rather than a list or a group."""
        return len(self.questions) == 1 and not self.questions[0].grouped


def prepare_request(
    holdings: Holdings,
    sql: Any,
    synthetic: Any,
    within: object,
    mechanism: object,
    prefer: object,
    read: ReadBounded,
) -> VerdictRequest:
    """Everything that is told from the texts, the policy and the synthetic data: free, and wrong input ends here."""
    distance, texts = Distance.parse(within), _texts(sql)
    mechanism, prefer = plain_text(mechanism), plain_text(prefer)
    if not isinstance(mechanism, str):
        raise ParameterError(
            f"mechanism={shown_value(mechanism)} is not the name of a decider; write for example 'auto'"
        )
    if prefer not in ("balanced", "cautious"):
        raise ParameterError(
            f"prefer={shown_value(prefer)} is unknown; write 'balanced', or 'cautious' to bound a wrong yes"
        )
    questions = tuple(subject_of(read(text)) for text in texts)
    if sum(_group_count(question) for question in questions) > MOST_VERDICTS:
        raise ParameterError(f"that is more than {MOST_VERDICTS:,} verdicts at once; ask with fewer keys")
    if isinstance(synthetic, SyntheticCopy):
        return _request(questions, synthetic, distance, mechanism, prefer)
    with open_copy(holdings.policy, synthetic, _only_table(questions), _needed(questions), files=False) as copy:
        return _request(questions, copy, distance, mechanism, prefer)


def trust(holdings: Holdings, request: VerdictRequest, epsilon: object, account: object = AUTO) -> Verdict | Verdicts:
    """One bit for each group, at ε in all: queries share it, keys do not, as long as a unit is under one of them."""
    exact = parse_amount(epsilon, "epsilon")
    # The identity is kept and exported, and a plain hash of rows can be found by trying rows. Whose these rows are is
    # not ours to judge, so they are named under the ledger's secret.
    version = sealed_name(holdings.ledger.secret, "synthetic data", request.version)
    asked = holdings.ask(VerdictsAt(request, holdings.policy, exact, version), account)
    verdicts = asked.result.marked(asked.stored)
    return verdicts[0] if request.single else verdicts


@dataclass(frozen=True, slots=True)
class VerdictsAt:
    """A checked request at ε."""

    request: VerdictRequest
    policy: Policy
    epsilon: Fraction
    version: str
    """Of the synthetic data, sealed."""

    @property
    def purpose(self) -> str:
        first, *more = self.request.questions
        rest = f" and {len(more):,} more quer{'ies' if len(more) > 1 else 'y'}" if more else ""
        return f"trust: {first.sql.strip()}{rest}"

    def identity(self) -> str:
        request = self.request
        questions = tuple(question.question for question in request.questions)
        within = (request.within.amount, request.within.relative)
        parts = (questions, self.version, within, request.mechanism, request.prefer, self.epsilon)
        return written("trust", *parts, spelling=SPELLING)

    def price(self, budget: Budget) -> "PricedVerdicts":
        request = self.request
        loss, share = allowance(budget, self.epsilon, len(request.questions))
        chosen = tuple(group.chooser.choose(request.mechanism, share) for group in request.groups)
        wanted = tuple(_wanted(request, chosen))
        for want in wanted:
            reason = too_wide(want)
            if reason is not None and not few_rows(want.asked.question, self.policy):
                raise QueryError(reason)
        return PricedVerdicts(self, loss, share, chosen, wanted)

    def decode(self, stored: bytes) -> Verdicts:
        return Verdicts.from_bytes(stored)


@dataclass(frozen=True, slots=True)
class PricedVerdicts:
    """A decider for every group, and what it needs of the data."""

    asked: VerdictsAt
    loss: Currency
    share: Fraction
    chosen: tuple[Chosen, ...]
    wanted: tuple[Wanted, ...]

    @property
    def widths(self) -> tuple[float, ...]:
        return (1 / float(self.share),)

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        request = self.asked.request
        steps = len(request.groups)
        tell("reading", 0, steps)
        found = fetch(self.wanted, lambda summary: holdings.engine.evaluate(summary, charge, holdings.ledger.secret))
        seen = [own for question in found for own in question]
        cost = Cost.of(self.asked.epsilon, self.loss)
        verdicts: list[Verdict] = []
        for group, one, own in zip(request.groups, self.chosen, seen, strict=True):
            verdicts.append(_verdict(holdings, request, group, one, own, self.share, cost))
            tell("deciding", len(verdicts), steps)
        return Verdicts(tuple(verdicts), cost, request.left_out).to_bytes()


def allowance(budget: Budget, epsilon: Fraction, questions: int) -> tuple[Currency, Fraction]:
    """What a call costs, and the ε that each of its questions may use. A pure ε costs ε²/2 of ρ."""
    loss = budget.cost(epsilon)
    if isinstance(loss, PureDP):
        return loss, loss.epsilon / questions
    return loss, root(2 * loss.rho / questions)


# --- public -----------------------------------------------------------------------------------------------------------


def _request(
    questions: tuple[Subject, ...], copy: SyntheticCopy, within: Distance, mechanism: str, prefer: Prefer
) -> VerdictRequest:
    wanted = [Wanted(question, (answer_reading(question, mechanism),)) for question in questions]
    groups: list[VerdictGroup] = []
    left_out: list[str] = []
    for number, (question, seen) in enumerate(zip(questions, fetch(wanted, copy.exact), strict=True)):
        keys, possible = _keys(question), question.question.possible
        for place, own in enumerate(seen) if possible is None else ((place, seen[place]) for place in possible):
            label = ", ".join(f"{name} = {value}" for name, value in keys[place].items())
            answer, imagine, tally = _answer(question, own)
            fault = _fault(answer, within)
            if fault and not question.grouped:
                raise ParameterError(f"{fault} (query: {' '.join(question.sql.split())[:200]})")
            if fault or answer is None:
                left_out.append(f"no verdict for {label}: {fault}")
                continue
            target = Target(answer, within.tau(answer, question.grain))
            chooser = Chooser(question.facts, target, imagine, prefer, tally)
            groups.append(VerdictGroup(number, place, keys[place], chooser))
    if not groups:
        raise ParameterError("; ".join(left_out[:5]) or "no row can be in any group: WHERE rules out every one of them")
    require_room_for_verdicts([(questions[group.question].sql, group.key) for group in groups])
    version = copy.version
    return VerdictRequest(questions, tuple(groups), within, mechanism, prefer, version, tuple(left_out))


def _answer(question: Subject, seen: Seen) -> tuple[Fraction | None, Imagined, Tally | None]:
    """The synthetic answer, in steps of the grid, None for NULL; and what is imagined from it."""
    match question.facts.kind, seen:
        case "count", int():
            return Fraction(seen), imagined_whole(seen), None
        case "mean", (total, rows):
            return Fraction(total, rows) if rows else None, imagined_mean(total, rows), None
        case "sum", (total, rows):
            return Fraction(total) if rows else None, imagined_whole(total), None
        case "sum", Tally():
            return Fraction(seen.total()) if seen.rows else None, imagined_sum(seen), seen
        case _, Tally():
            assert question.facts.q is not None
            place = quantile_of(seen, question.facts.q)
            return place, imagined_values(seen, question.facts.ends), None
    raise TypeError("a reading that no aggregate asks for")


def _fault(answer: Fraction | None, within: Distance) -> str:
    if answer is None:
        return "the synthetic answer is NULL, because no synthetic row has a value there: there is nothing to trust"
    if answer == 0 and within.relative:
        return "the synthetic answer is 0, of which every percentage is 0; give within as a number, such as within=50"
    return ""


def _keys(question: Subject) -> list[dict[str, Any]]:
    """The keys of every group, by the names under which they are selected, or else by their own."""
    keys = question.question.keys
    names = {column.key: column.name for column in question.question.columns if isinstance(column, ShownKey)}
    places = product(*(range(key_size(key) or 0) for key in keys))
    return [
        {names.get(i, key.name): spelled(key, at) for i, (key, at) in enumerate(zip(keys, place, strict=True))}
        for place in places
    ]


def _group_count(question: Subject) -> int:
    return group_count(question.question)


def _only_table(questions: Sequence[Subject]) -> str | None:
    tables = {table for question in questions for table in question.question.tables}
    return next(iter(tables)) if len(tables) == 1 else None


def _needed(questions: Sequence[Subject]) -> dict[str, frozenset[str]]:
    """The columns that the questions read; a bound on contributions is not for a copy."""
    needed: dict[str, frozenset[str]] = {}
    for question in questions:
        for table, columns in used_columns(replace(question.question.summary, bound=None, order_by=())).items():
            needed[table] = needed.get(table, frozenset()) | columns
    return needed


def _texts(sql: Any) -> tuple[Any, ...]:
    if isinstance(sql, str):
        return (sql,)
    if not isinstance(sql, Sequence) or not sql:
        raise ParameterError("give a query, or a list of queries")
    if len(sql) > MOST_VERDICTS:
        raise ParameterError(f"that is more than {MOST_VERDICTS:,} queries at once; give shorter lists")
    return tuple(sql)


# --- private ----------------------------------------------------------------------------------------------------------


def _wanted(request: VerdictRequest, chosen: Sequence[Chosen]) -> list[Wanted]:
    """What the deciders need of the private data, in the order of the groups: one pass for all that can share one."""
    wanted = []
    for number, question in enumerate(request.questions):
        own = [(group, one) for group, one in zip(request.groups, chosen, strict=True) if group.question == number]
        if own:
            places = tuple(group.place for group, _ in own)
            wanted.append(Wanted(question, tuple(one.decider.reading for _, one in own), places))
    return wanted


def _verdict(
    holdings: Holdings,
    request: VerdictRequest,
    group: VerdictGroup,
    chosen: Chosen,
    seen: Seen,
    epsilon: Fraction,
    cost: Cost,
) -> Verdict:
    decider, question = chosen.decider, request.questions[group.question]
    grain, target = question.grain, group.target
    bit = decider.decide(seen, holdings.randomness)
    return Verdict(
        trusted=bool(bit[0]),
        query=question.sql,
        key=group.key,
        synthetic_answer=worth(target.answer, grain),
        interval=(worth(target.low, grain), worth(target.high, grain)),
        within=str(request.within),
        mechanism=decider.name,
        why=chosen.why,
        threshold=chosen.threshold * float(grain),
        effective=target.tau >= chosen.threshold,
        wrong_yes=decider.wrong_yes,
        prefer=request.prefer,
        assumes=decider.assumes,
        epsilon=float(epsilon),
        cost=cost,
        test_noise=not holdings.randomness.kernel,
    )


def worth(index: Fraction, grain: Fraction) -> float:
    """A place on the grid in the units of the column; whole numbers stay whole."""
    value = index * grain
    return int(value) if value.denominator == 1 else float(value)

"""Synthetic data for a workload: the path of `Session.synthesize`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from confide.errors import BudgetError, LedgerError, ParameterError
from confide.host.fork import inherited
from confide.policy import Policy, Table
from confide.privacy.amount import show, shown_value
from confide.privacy.budget import Currency
from confide.privacy.loss import PrivacyLoss
from confide.query import bind
from confide.query.scope import reading
from confide.query.sensitivity import Sensitivity, Stability, of_total
from confide.query.tabulation import Tabulation
from confide.query.tree import (
    Always,
    BinnedKey,
    Both,
    Bound,
    DeclaredKey,
    Field,
    Known,
    Predicate,
    Reading,
    Scan,
)
from confide.release.arguments import exact_epsilon
from confide.release.cost import Cost, budget_state
from confide.release.guard import callers, settled
from confide.release.holdings import Holdings, Release
from confide.release.plan import expected_rows
from confide.release.room import require_room
from confide.release.workload_sql import read_parts
from confide.synthesis.strategy import Strategy, choose_strategy
from confide.workload import Binned, BoundWorkload, Domain, Workload, domain_of

if TYPE_CHECKING:
    from confide.release.synthesis_plan import SynthesisPlan
    from confide.release.synthetic import Synthetic
    from confide.synthesis.rap import Tell

METHODS = ("rap",)


@dataclass(frozen=True, slots=True)
class SynthesisRequest:
    """What a caller sets; everything else follows from public facts."""

    workload: Workload
    epsilon: object
    table: str | None = None
    columns: Sequence[str] | None = None
    bins: Mapping[str, object] | None = None
    method: str = "rap"
    select: str = "auto"
    rounds: int | None = None
    picks: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """A request bound to a policy, with public facts only."""

    table: Table
    workload: BoundWorkload
    tabulation: Tabulation
    strategy: Strategy
    epsilon: Fraction
    cost: Currency
    tables: Sensitivity
    rows: int
    unit: str
    neighbours: Any
    expected: int | None


def synthesize(holdings: Holdings, request: SynthesisRequest, tell: "Tell | None" = None) -> "Synthetic":
    """Synthetic data for a workload; the same request again is free and the same."""
    design = _design(holdings, request)
    from confide.release.synthetic import Synthetic  # noqa: PLC0415

    facts = (design.workload, design.strategy, design.tabulation, str(design.epsilon))
    key = holdings.key("synthesize", sha256(repr(facts).encode()).hexdigest())
    known = holdings.known(key, Synthetic.from_bytes)
    if known is not None:
        return known
    if find_spec("jax") is None:
        raise ParameterError("synthesis needs the package jax: pip install 'confide[synthesis]'")
    if inherited("jax"):
        raise ParameterError(
            "this process was forked from one that had loaded jax, whose threads are not here: start it anew (spawn), "
            "or fork before anything is synthesized"
        )
    _planned(holdings, design, 0.95)  # refuses what any step would, before the first is charged
    return _run(holdings, design, key, tell)


def plan(holdings: Holdings, request: SynthesisRequest, confidence: object) -> "SynthesisPlan":
    """What `synthesize` would measure, and with what noise. Free."""
    return _planned(holdings, _design(holdings, request), confidence)


def _planned(holdings: Holdings, design: Design, confidence: object) -> "SynthesisPlan":
    from confide.release.synthesis_plan import plan_synthesis  # noqa: PLC0415  loaded when used

    return plan_synthesis(holdings, design, _words(design.strategy), confidence)


def _run(holdings: Holdings, design: Design, key: str, tell: "Tell | None") -> "Synthetic":
    from confide.release.curator import LedgerCurator  # noqa: PLC0415
    from confide.release.synthetic import Synthetic  # noqa: PLC0415
    from confide.synthesis import rap  # noqa: PLC0415  heavy, and loaded when used

    curator = LedgerCurator(holdings, design.tabulation, design.workload, design.cost, design.tables, design.rows, key)
    if not curator.begun and not holdings.affordable(design.cost):
        raise BudgetError(
            f"this would cost ε = {show(design.epsilon)}; {budget_state(holdings.ledger, holdings.analyst)}. "
            "Nothing was charged."
        )
    budget, step = holdings.ledger.budget, callers(tell)

    def so_far() -> str:
        paid = f"ε = {float(budget.as_epsilon(curator.spent)):.6g} of ε = {show(design.epsilon)} was spent"
        return f"{paid}; the same call goes on where this one stopped"

    try:
        found = settled(
            lambda: rap.run(curator, design.workload, design.strategy, step),
            lambda: curator.paid,
        )
    except KeyboardInterrupt as stopped:
        stopped.add_note(so_far())
        raise
    except (BudgetError, LedgerError) as refusal:
        if not curator.paid:
            raise
        rest = "the budget does not hold" if isinstance(refusal, BudgetError) else "the ledger could not be used for"
        raise type(refusal)(f"{rest} the rest of this call; {so_far()}") from None
    made = Synthetic(
        table=design.table,
        domain=design.workload.domain,
        relaxed=found.model.table,
        total=found.model.total,
        cost=Cost.of(design.epsilon, design.cost),
        workload=design.workload.describe(),
        method=_words(design.strategy),
        loss=found.loss,
        unit=design.unit,
        neighbours=design.neighbours,
        test_noise=not holdings.randomness.kernel,
    )

    def prepare() -> tuple[PrivacyLoss, Release]:
        # The last of the call's cost, what rounding left over: so a finished call costs exactly what was asked.
        return curator.rest, lambda _: made.to_bytes()

    return holdings.once(
        key, f"synthesize {design.table.name}: {design.workload.describe()}", prepare, Synthetic.from_bytes
    )


def _design(holdings: Holdings, request: SynthesisRequest) -> Design:
    policy = holdings.policy
    if not isinstance(request.workload, Workload):
        raise ParameterError(
            f"workload is a {type(request.workload).__name__}; give confide.marginals(k=3), confide.thresholds(...), "
            "confide.workload.from_sql([...]) or session.history()"
        )
    if request.method not in METHODS:
        raise ParameterError(f"method = {request.method!r} is not known; write {', '.join(METHODS)}")
    table = table_of(policy, request.table)
    whole = domain_of(table, request.columns, request.bins)
    workload = _bound(read_parts(request.workload, policy, holdings.engine, whole), whole, request.columns is not None)
    epsilon = exact_epsilon(request.epsilon)
    cost = holdings.ledger.budget.cost(epsilon)
    question = bind(f'SELECT COUNT(*) AS n FROM "{table.name}"', policy, holdings.engine)
    summary = question.summary
    rows = summary.bound.rows if summary.bound is not None else 1
    expected = expected_rows(question, policy)
    strategy = choose_strategy(
        workload, cost, expected, rows,
        select=request.select, rounds=request.rounds, picks=request.picks, rows=request.rows,
    )  # fmt: skip
    if workload.counts and strategy.select == "queries":
        raise ParameterError(
            "select = 'queries' chooses among thresholds, and the workload has single counts; use auto"
        )
    places = sum(workload.domain.sizes)
    require_room(
        4 * strategy.rows * places, f"{strategy.rows:,} rows of {places:,} places", "use fewer rows or wider bins"
    )
    source = _source(summary.relation)
    tabulation = Tabulation(
        relation=summary.relation,
        where=_declared(workload.domain, source),
        bound=None if summary.bound is None else Bound(summary.bound.unit, rows, rows),
        keys=tuple(_key(attribute, source) for attribute in workload.domain.attributes),
        sets=workload.sets,
        order_by=summary.order_by,
    )
    tables = of_total(1, 1, False, Stability(rows, rows, question.neighbours, grouped=True))
    return Design(
        table, workload, tabulation, strategy, epsilon, cost, tables, rows, question.unit, question.neighbours, expected
    )


def table_of(policy: Policy, name: str | None) -> Table:
    """The private table that is meant: the one named, or the only one."""
    private = {table.name: table for table in policy.private_tables}
    if name is not None:
        if not isinstance(name, str) or name not in private:
            raise ParameterError(f"there is no private table {shown_value(name)}; there are {', '.join(private)}")
        return private[name]
    if len(private) != 1:
        raise ParameterError(f"say which table to synthesize: table={' or table='.join(map(repr, private))}")
    return next(iter(private.values()))


def _bound(workload: Workload, whole: Domain, named: bool) -> BoundWorkload:
    """On the columns that were named; else on those that the workload speaks of: nothing is learnt of others."""
    bound = workload.bound(whole)
    if named:
        return bound
    used = sorted({column for columns in bound.sets for column in columns})
    return workload_on(bound, whole.kept([whole.names[column] for column in used]))


def workload_on(bound: BoundWorkload, domain: Domain) -> BoundWorkload:
    """The same workload on a domain that holds its columns."""
    names = bound.domain.names
    places = {place: domain.place_of(name) for place, name in enumerate(names) if name in domain.names}
    marks = tuple(type(own)(tuple(places[column] for column in own.columns), own.need) for own in bound.thresholds)
    return BoundWorkload(domain, marks, bound.counts)


def _source(relation: Any) -> str:
    """The alias of the table itself: the leftmost of what is joined on the way to the unit."""
    while not isinstance(relation, Scan):
        relation = relation.left
    return relation.source


def _declared(domain: Domain, source: str) -> Predicate:
    """Every column holds one of its places: so that all tables count the same rows."""
    parts: list[Predicate] = []
    for attribute in domain.attributes:
        seen = reading(Field(source, attribute.column))
        if isinstance(attribute, Binned) or not attribute.column.nulls:
            parts.append(Known(seen, negated=False))
    return parts[0] if len(parts) == 1 else Both(tuple(parts)) if parts else Always(True)


def _key(attribute: Any, source: str) -> DeclaredKey | BinnedKey:
    field = Field(source, attribute.column)
    if not isinstance(attribute, Binned):
        return DeclaredKey(attribute.name, field, attribute.values)
    seen = reading(field)
    assert isinstance(seen, Reading)
    kind = "date" if seen.span.date else "number"
    return BinnedKey(attribute.name, seen, attribute.first, attribute.width, attribute.size, kind)  # type: ignore[arg-type]


def _words(strategy: Strategy) -> str:
    match strategy.select:
        case "closure":
            return f"rap: all one- and two-way marginals at once, {strategy.rows} rows"
        case "all":
            return f"rap: all marginals of the workload at once, {strategy.rows} rows"
        case "marginals":
            return f"rap: {strategy.rounds} rounds of one marginal, {strategy.rows} rows"
    return f"rap: {strategy.rounds} rounds of {strategy.picks} queries, {strategy.rows} rows"

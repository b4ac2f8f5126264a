"""A parent table and the tables whose rows refer to it: what is made of each, under one cost.

For each child two tables are made: the parent's rows with the number of their children, of which a unit has one; and
the children's rows with the columns of their parent, of which a unit has as many as the policy says. Both are bound as
SQL is, so what a unit changes in them is what it changes in an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from confide.errors import BudgetError, ParameterError
from confide.host.progress import Tell
from confide.ledger.record.terms import Standing
from confide.policy import Identifier, KeyUnit, Number, Policy, Table
from confide.privacy.amount import show, shown_value
from confide.privacy.budget import Budget, Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.query import Question, bind
from confide.query.bind import bind_whole
from confide.query.tabulation import Tabulation
from confide.query.tree import BinnedKey, Bound, DeclaredKey, Join, Scan
from confide.release.arguments import exact_epsilon, private_table
from confide.release.cost import Cost, budget_state
from confide.release.guard import callers, listening
from confide.release.holdings import Holdings
from confide.release.synthetic.request import (
    SynthesisOptions,
    SynthesisRequest,
    WantedTable,
    curator_of,
    kept,
    planned,
    request_of,
    run_request,
)
from confide.release.synthetic.steps import share_of
from confide.release.synthetic.values import values_step
from confide.release.whole_table import TabulatedTable, declared, key_of
from confide.workload import Binned, BoundWorkload, Domain, Every, Workload, domain_of
from confide.workload.domain import Attribute

if TYPE_CHECKING:
    from confide.release.synthetic.plan import SynthesisPlan
    from confide.release.synthetic.related_tables import SyntheticTables

COUNTS: Final = "counts"
ROWS: Final = "rows"
COUNTS_SHARE: Final = Fraction(2, 5)
"""Of what a child's two tables cost, for the parent's rows and numbers: a unit changes less of them."""
MOST_COUNTS: Final = 64
"""Numbers of children are taken in bins if there may be more of them."""


@dataclass(frozen=True, slots=True)
class Child:
    """A table whose rows refer to the parent's, and how its two made tables name what is not theirs."""

    table: Table
    reference: str
    """Its column that holds the parent's key."""
    count: str
    """The parent's column that is made for how many rows it has here."""
    inherited: Mapping[str, str]
    """The names of the parent's columns beside the child's own."""

    @property
    def most(self) -> int:
        return self.table.at_most.rows


@dataclass(frozen=True, slots=True)
class TableFamily:
    parent: Table
    key: str
    children: tuple[Child, ...]


def family_of(policy: Policy, table: str | None, children: object) -> TableFamily:
    """The parent and its children, as the policy refers them to each other."""
    named = [children] if isinstance(children, str) else children
    if not isinstance(named, Sequence) or not named or not all(isinstance(name, str) for name in named):
        raise ParameterError(f"children={shown_value(children)} is not a list of tables, such as ['visit']")
    unit = policy.unit
    if not isinstance(unit, KeyUnit):
        raise ParameterError(
            "tables that refer to each other are made where the unit is a key of the parent table; here it is a row, "
            "so make one table at a time"
        )
    parent = private_table(policy, unit.table if table is None else table)
    if parent.name != unit.table:
        raise ParameterError(f"the parent is the table of the unit, {unit.table}, not {parent.name}")
    if not isinstance(parent.columns[unit.column], Identifier):
        raise ParameterError(f"{unit} is no id in the policy, so records could not be told by it: type: id")
    found = []
    for name in named:
        child = policy.tables.get(name)
        path = () if child is None or child.public or child.name == parent.name else policy.unit_path(name)
        if child is None or len(path) != 1 or path[0].to_column != unit.column:
            able = [own.name for own in policy.private_tables if len(policy.unit_path(own.name)) == 1]
            raise ParameterError(
                f"{shown_value(name)} has no reference to {unit}; tables that have one are {', '.join(able) or 'none'}"
            )
        inherited = {own: _free(f"{parent.name}_{own}", child.columns) for own in parent.columns}
        found.append(Child(child, path[0].column, _free(f"{name}_rows", parent.columns), inherited))
    if len({child.table.name for child in found}) < len(found):
        raise ParameterError(f"children names a table twice: {', '.join(named)}")
    return TableFamily(parent, unit.column, tuple(found))


def _free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name


# --- the two tables of a child ----------------------------------------------------------------------------------------


def bound_counts(holdings: Holdings, options: SynthesisOptions, family: TableFamily, child: Child) -> WantedTable:
    """The parent's rows, each with the number of its rows in the child's table, zero included."""
    parent, whole = family.parent, _domain_of(family, family.parent, options)
    columns = ", ".join(f"p.{_quoted(name)}" for name in whole.names)
    key, reference = _quoted(family.key), _quoted(child.reference)
    inner = (
        f"SELECT p.{key}, {columns}, COUNT(c.{reference}) AS made_count FROM {_quoted(parent.name)} p LEFT JOIN "
        f"{_quoted(child.table.name)} c ON c.{reference} = p.{key} GROUP BY p.{key}, {columns}"
    )
    question = bind(
        f"SELECT made_count, COUNT(*) AS n FROM ({inner}) AS i GROUP BY made_count", holdings.policy, holdings.engine
    )
    relation = question.summary.relation
    assert isinstance(relation, Join)
    assert isinstance(relation.right, Scan)
    (counted,) = question.keys
    assert isinstance(counted, BinnedKey)
    width = -(-(child.most + 1) // MOST_COUNTS)
    number = Number(child.count, Fraction(0), Fraction(child.most))
    count = Binned(number, 0, width)
    domain = Domain(parent.name, (*whole.attributes, count))
    values = values_step(domain, options.inside)
    pairs = [(own, relation.right.source) for own in whole.attributes]
    made = Table(parent.name, columns={**parent.columns, child.count: number})

    def counting(own: Binned) -> BinnedKey:
        return replace(counted, name=child.count, first=0, width=own.width, count=own.size)

    fine = () if values is None else values.attributes
    keys = [
        *(key_of(own, source) for own, source in pairs), counting(count),
        *(counting(own) if own.name == child.count else key_of(own, relation.right.source) for own in fine),
    ]  # fmt: skip
    # How many rows there are is known of the parent, not of the numbers.
    tabulated = replace(
        _tabulated(question, keys, pairs), whole=bind_whole(parent.name, holdings.policy, holdings.engine)
    )
    return WantedTable(made, _workload(options, domain), tabulated, values)


def bound_rows(holdings: Holdings, options: SynthesisOptions, family: TableFamily, child: Child) -> WantedTable:
    """The child's rows, each with the columns of its parent."""
    parent, table = family.parent, child.table
    own = _domain_of(family, table, options)
    theirs = _domain_of(family, parent, options)
    key, reference = _quoted(family.key), _quoted(child.reference)
    text = f"SELECT COUNT(*) AS n FROM {_quoted(table.name)} c JOIN {_quoted(parent.name)} p ON c.{reference} = p.{key}"
    question = bind(text, holdings.policy, holdings.engine)
    relation = question.summary.relation
    assert isinstance(relation, Join)
    assert isinstance(relation.left, Scan)
    assert isinstance(relation.right, Scan)
    pairs = [
        *((one, relation.left.source) for one in own.attributes),
        *((one, relation.right.source) for one in theirs.attributes),
    ]
    renamed = tuple(_renamed(one, child.inherited[one.name]) for one in theirs.attributes)
    domain = Domain(table.name, (*own.attributes, *renamed))
    values = values_step(own, options.inside)  # of the parent's columns, the other table has them
    fine = () if values is None else values.attributes
    keys = [
        *(replace(key_of(one, source), name=name) for (one, source), name in zip(pairs, domain.names, strict=True)),
        *(key_of(one, relation.left.source) for one in fine),
    ]
    columns = {one.name: one.column for one in renamed}
    made = Table(table.name, columns={**table.columns, **columns})
    return WantedTable(made, _workload(options, domain), _tabulated(question, keys, pairs), values)


def _tabulated(
    question: Question, keys: Sequence[DeclaredKey | BinnedKey], pairs: Sequence[tuple[Attribute, str]]
) -> TabulatedTable:
    summary = question.summary
    rows = 1 if summary.bound is None else summary.bound.rows
    bound = None if summary.bound is None else Bound(summary.bound.unit, rows, rows)
    tabulation = Tabulation(summary.relation, declared(pairs), bound, tuple(keys), (), summary.order_by)
    return TabulatedTable(tabulation, rows, question.unit, question.neighbours, question)


def _renamed(attribute: Attribute, name: str) -> Attribute:
    return replace(attribute, column=replace(attribute.column, name=name))  # type: ignore[arg-type]


def _domain_of(family: TableFamily, table: Table, options: SynthesisOptions) -> Domain:
    """Columns and bins are of whichever table has a column of that name."""
    tables = (family.parent, *(child.table for child in family.children))
    for name in (*(options.columns or ()), *(options.bins or ())):
        if not any(name in own.columns for own in tables):
            raise ParameterError(f"there is no column {shown_value(name)} in {', '.join(own.name for own in tables)}")
    columns = None if options.columns is None else [name for name in options.columns if name in table.columns]
    bins = {name: width for name, width in (options.bins or {}).items() if name in table.columns}
    return domain_of(table, columns, bins)


def _workload(options: SynthesisOptions, domain: Domain) -> BoundWorkload:
    workload = options.workload
    whole = isinstance(workload, Workload) and all(
        isinstance(part, Every) and part.columns is None for part in workload.parts
    )
    if not whole:
        raise ParameterError(
            "several tables are made for all their columns alike: confide.marginals(k=2), or confide.thresholds(r, k)"
        )
    return workload.bound(domain)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- the call ---------------------------------------------------------------------------------------------------------


def bind_family(
    holdings: Holdings, options: SynthesisOptions, family: TableFamily, budget: Budget, account: str
) -> list[SynthesisRequest]:
    """For each child its two requests; what they cost adds up to the cost of the call, to the last digit."""
    if options.start is not None:
        raise ParameterError("a start is of one table; several tables are made without one")
    cost = budget.cost(exact_epsilon(options.epsilon))
    found: list[SynthesisRequest] = []
    spent: list[Currency] = []
    last = 2 * len(family.children) - 1
    for child in family.children:
        for kind, share in ((COUNTS, COUNTS_SHARE), (ROWS, 1 - COUNTS_SHARE)):
            part = _less(cost, spent) if len(found) == last else share_of(cost, share / len(family.children))
            bound = (bound_counts if kind == COUNTS else bound_rows)(holdings, options, family, child)
            names = (family.parent.name, *(own.table.name for own in family.children), child.table.name, kind)
            made = request_of(holdings, options, bound, part, account or budget.rule, names, tuple(spent))
            found.append(made)
            spent.append(part)
    return found


def _less(cost: Currency, spent: Sequence[Currency]) -> Currency:
    """What is left of a cost."""
    if isinstance(cost, PureDP):
        return PureDP(cost.epsilon - sum((own.epsilon for own in spent if isinstance(own, PureDP)), Fraction(0)))
    return ZCDP(cost.rho - sum((own.rho for own in spent if isinstance(own, ZCDP)), Fraction(0)), cost.delta)


def synthesize_family(
    holdings: Holdings, options: SynthesisOptions, children: object, progress: Tell | None = None
) -> "SyntheticTables":
    """The tables of a family; the same call again is free and the same."""
    from confide.release.synthetic.related_tables import SyntheticTables  # noqa: PLC0415  loaded when used

    callers(progress)
    standing = holdings.standing()
    family = family_of(holdings.policy, options.table, children)
    requests = _chosen(holdings, options, family, standing)
    for request in requests:
        request.method.require()
        planned(standing, request, 0.95)  # refuses what any step would, before the first is charged
    known = [kept(holdings, request) for request in requests]
    whole = _whole(holdings, options, requests[0].account)
    begun = any(own is not None for own in known) or curator_of(holdings, requests[0]).begun
    if not begun and not standing.holds(whole):
        raise BudgetError(
            f"this would cost ε = {show(requests[0].epsilon)}; {budget_state(standing)}. Nothing was charged."
        )
    with listening(progress):
        made = [
            run_request(holdings, holdings.standing(), request) if own is None else own
            for request, own in zip(requests, known, strict=True)
        ]
    return SyntheticTables(
        family.parent.name,
        family.key,
        {child.table.name: child.reference for child in family.children},
        {child.table.name: child.count for child in family.children},
        {child.table.name: dict(child.inherited) for child in family.children},
        {child.table.name: (made[2 * at], made[2 * at + 1]) for at, child in enumerate(family.children)},
        Cost.of(requests[0].epsilon, whole),
        stored=all(own is not None for own in known),
    )


def plan_family(holdings: Holdings, options: SynthesisOptions, children: object, confidence: object) -> "SynthesisPlan":
    """What `synthesize_family` would measure. Free."""
    standing = holdings.standing()
    family = family_of(holdings.policy, options.table, children)
    requests = _chosen(holdings, options, family, standing)
    plans = [planned(standing, request, confidence) for request in requests]
    whole = _whole(holdings, options, requests[0].account)
    names = [f"{request.table.name} with {' and '.join(_beside(request))}" for request in requests]
    first = plans[0]
    return replace(
        first,
        table=", ".join(dict.fromkeys(request.table.name for request in requests)),
        columns=tuple(f"{plan.table}.{column}" for plan in plans for column in plan.columns),
        workload="; ".join(plan.workload for plan in plans),
        queries=sum(plan.queries for plan in plans),
        steps=tuple(
            replace(step, what=f"{name}: {step.what}")
            for name, plan in zip(names, plans, strict=True)
            for step in plan.steps
        ),
        cost=Cost.of(requests[0].epsilon, whole),
        expected=None,
        affordable=standing.holds(whole),
        drawn={f"{plan.table}.{name}": how for plan in plans for name, how in plan.drawn.items()},
        left_out={f"{plan.table}.{name}": why for plan in plans for name, why in plan.left_out.items()},
    )


def _beside(request: SynthesisRequest) -> tuple[str, ...]:
    return (f"numbers of {request.part[-2]}",) if request.part[-1] == COUNTS else (f"columns of {request.part[0]}",)


def _whole(holdings: Holdings, options: SynthesisOptions, account: str) -> Currency:
    return holdings.standing().budget.under(account).cost(exact_epsilon(options.epsilon))


def _chosen(
    holdings: Holdings, options: SynthesisOptions, family: TableFamily, standing: Standing
) -> list[SynthesisRequest]:
    """The requests under the account under which they were begun, or else the first that holds all of them."""
    accounts = list(reversed(holdings.accounts(options.account)))
    found = [bind_family(holdings, options, family, standing.budget.under(name), name) for name in accounts]
    if len(found) == 1:
        return found[0]
    begun = [own for own in found if kept(holdings, own[0]) is not None or curator_of(holdings, own[0]).begun]
    held = [own for own, name in zip(found, accounts, strict=True) if standing.holds(_whole(holdings, options, name))]
    return [*begun, *held, *found][0]

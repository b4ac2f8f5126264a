"""Joins of private tables that one unit may change in any number of rows: counts and sums over them, as one question.

Under `unit: row` every private table of the join is an occurrence that one row may enter or leave; copies of a table
(a self-join) change together. Under a key every private occurrence has an owner, found along its references. Nothing
here bounds what one unit changes: the mechanism does, from the data, privately.
"""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import KeyUnit, Policy
from confide.privacy.limits import MOST_JOINED_GROUPS
from confide.query.clause import check_clauses, check_parts, whole_number
from confide.query.expression import predicate
from confide.query.grouping import bind_keys, key_size
from confide.query.join import join_pairs, table_of
from confide.query.magnitude import check_magnitudes
from confide.query.parse import DIALECT, parse
from confide.query.possible_groups import possible_groups
from confide.query.quantile import quantile_call
from confide.query.question import Condition, Measure, Neighbours, Order, ShownKey, ShownValue, all_values
from confide.query.released import Released, aliases_of
from confide.query.result_columns import result_columns
from confide.query.rewrite import plain_form
from confide.query.scope import Catalog, Scope, Source
from confide.query.tree import (
    Always,
    Both,
    Constant,
    Field,
    Join,
    Key,
    Predicate,
    Relation,
    Scan,
    UnknownKey,
)
from confide.query.typed_division import check_released_division
from confide.query.weight import Weight, Weights

BY_ROW: Final = ("residual", "elastic")
"""Mechanisms that find how much one row changes a join."""
BY_UNIT: Final = ("truncate", "r2t")
"""Mechanisms that cut what one unit has in a join, or in a table."""
_ANSWERED = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset")


@dataclass(frozen=True, slots=True)
class Conjunction:
    """A join on equal columns with a filter, keys of public domain, and what is added up over its rows; then what is
    shown of the sums: columns, HAVING, ORDER BY and LIMIT, as in a `Question` whose statistics are the weights.

    `owners`: for every private occurrence the column that holds the key of its unit; empty under `unit: row`.
    `optional`: public tables that a LEFT JOIN adds to the rest, and the pairs each is joined on. They are no
    occurrences: they repeat rows of the join, no more often than rows of theirs agree on those columns, and drop none.
    """

    occurrences: tuple[Scan, ...]
    pairs: tuple[tuple[Field, Field], ...]
    where: Predicate
    keys: tuple[Key, ...]
    weights: tuple[Weight, ...]
    columns: tuple[ShownKey | ShownValue, ...]
    having: Condition | None
    order: tuple[Order, ...]
    limit: int | None
    offset: int
    owners: tuple[Field, ...]
    neighbours: Neighbours
    unit: str
    optional: tuple[tuple[Scan, tuple[tuple[Field, Field], ...]], ...] = ()
    possible: tuple[int, ...] | None = None
    """As of a `Question`."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """None: what is measured here has mechanisms of its own."""
        return ()

    @property
    def private(self) -> tuple[int, ...]:
        """Places of the private occurrences."""
        return tuple(place for place, scan in enumerate(self.occurrences) if not scan.public)

    @property
    def copies(self) -> tuple[tuple[int, ...], ...]:
        """Places of the private occurrences, those of one table together."""
        tables = dict.fromkeys(self.occurrences[place].table for place in self.private)
        return tuple(tuple(p for p in self.private if self.occurrences[p].table == table) for table in tables)

    @property
    def relation(self) -> Relation:
        relation = relation_of(self.occurrences, self.pairs)
        for scan, on in self.optional:
            relation = Join(relation, scan, on, optional=True)
        return relation


def is_conjunction(select: exp.Select, policy: Policy, mechanism: object) -> bool:
    """Whether a query is one over a join whose bounds are found privately: by its tables, and the mechanism asked for.

    Under `unit: row` every join of private tables is. Under a key only a mechanism that learns bounds makes it one, for
    declared bounds assume nothing and what is learnt does. `r2t` is a mechanism of sums of one table as well.
    """
    if mechanism == "auto":
        return not isinstance(policy.unit, KeyUnit) and private_tables(select, policy) > 1
    if mechanism == "r2t":
        return private_tables(select, policy) > 1 or not _has_statistic(select)
    return mechanism in (*BY_ROW, *BY_UNIT)


def _has_statistic(select: exp.Select) -> bool:
    nodes = (node for item in select.expressions for node in item.walk())
    return any(isinstance(node, exp.Sum | exp.Avg) or quantile_call(node) is not None for node in nodes)


def private_tables(select: exp.Select, policy: Policy) -> int:
    """How many private tables the FROM of a query names, copies included; its inner queries do not count."""
    clause = select.args.get("from_")
    nodes = [] if clause is None else [clause.this]
    nodes += [join.this for join in select.args.get("joins") or ()]
    known = {name.casefold(): table for name, table in policy.tables.items()}
    named = [known.get(node.name.casefold()) for node in nodes if isinstance(node, exp.Table)]
    return sum(table is not None and not table.public for table in named)


def bind_conjunction(text: str | exp.Select, policy: Policy, catalog: Catalog, dialect: str = DIALECT) -> Conjunction:
    """The question that a SQL text asks, as a join without contribution bounds; it may be parsed already."""
    select = text if isinstance(text, exp.Select) else plain_form(parse(text, dialect), policy, catalog)
    check_clauses(select)
    check_parts(select)
    for name, value in select.args.items():
        if value and name not in _ANSWERED:
            raise QueryError(
                f"{name.strip('_').upper()} is not answered where one unit may change any number of joined "
                "rows; a query has SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING, ORDER BY and LIMIT"
            )
    scope = Scope(policy, catalog)
    clause = select.args.get("from_")
    if clause is None:
        raise QueryError("the query has no FROM; write SELECT COUNT(*) FROM a JOIN b ON a.key = b.key")
    table_of(clause.this, scope)
    pairs: list[tuple[Field, Field]] = []
    optional: dict[str, tuple[tuple[Field, Field], ...]] = {}
    for join in select.args.get("joins") or ():
        left = bool(join.args.get("side"))
        right, own = join_pairs(join, scope)
        if left and right.private:
            raise QueryError(
                "LEFT JOIN to a private table is not answered where one unit may change any number of joined rows; "
                "write JOIN, or LEFT JOIN to a public table"
            )
        if any(first.source in optional for first, _ in own):
            raise QueryError(f"{right.label} is joined on a column of a LEFT JOIN, which may be NULL; write JOIN there")
        if left:
            scope.replace(replace(right, optional=True))
            optional[right.name] = tuple(dict.fromkeys(own))
        else:
            pairs += own
    named = tuple(scope.sources)
    if not any(source.private for source in named):
        raise QueryError("the query reads public tables only; they need no privacy, read them directly")
    where = select.args.get("where")
    condition = predicate(where.this, scope) if where is not None else Always(True)
    check_released_division(select, scope)
    keys = bind_keys(select, scope)
    _check_keys(keys)
    weights = Weights(scope)
    columns = result_columns(select, keys, scope, lambda node, _: weights.value(node))
    released = Released(aliases_of(select.expressions), columns, keys, weights, scope)
    having, order = select.args.get("having"), select.args.get("order")
    condition_shown = released.condition(having.this) if having is not None else None
    orders = released.orders(order, dialect) if order is not None else ()
    owners: list[Field] = []
    if isinstance(policy.unit, KeyUnit):
        owners = [_owner(source, scope, pairs) for source in named if source.private]
    every = [Scan(s.table.name, s.name, s.table.public) for s in scope.sources if s.table is not None]
    scans = tuple(scan for scan in every if scan.source not in optional)
    replaced = policy.replaces(scan.table for scan in scans if not scan.public)
    question = Conjunction(
        scans,
        tuple(dict.fromkeys(pairs)),
        condition,
        keys,
        weights.named(columns),
        columns,
        condition_shown,
        orders,
        whole_number(select, "limit"),
        whole_number(select, "offset") or 0,
        tuple(owners),
        "replace-one" if replaced else "add-remove",
        str(policy.unit),
        tuple((scan, optional[scan.source]) for scan in every if scan.source in optional),
    )
    check_magnitudes(all_values(question), (), [weight.grain for weight in question.weights])
    possible = possible_groups(question, condition_shown, catalog)
    if possible == ():
        raise QueryError("no row can be in any group: WHERE, HAVING or the joins rule out every one of them")
    return replace(question, possible=possible)


def _owner(source: Source, scope: Scope, pairs: list[tuple[Field, Field]]) -> Field:
    """The column with the key of the unit whose row this is; tables on the way that are not there are joined to it."""
    policy = scope.policy
    assert source.table is not None
    assert isinstance(policy.unit, KeyUnit)
    if source.table.name == policy.unit.table:
        return source.field(policy.unit.column)
    step = policy.unit_path(source.table.name)[0]
    field = source.field(step.column)
    if step.to_table == policy.unit.table:
        return field
    equal = equal_fields(pairs, field)
    parent = next(
        (
            own
            for own in scope.sources
            if own.table is not None
            and own.table.name == step.to_table
            and Field(own.name, own.columns[step.to_column]) in equal
        ),
        None,
    )
    if parent is None:
        parent = scope.add_link(step.to_table)
        pairs.append((field, parent.field(step.to_column)))
    return _owner(parent, scope, pairs)


def _check_keys(keys: tuple[Key, ...]) -> None:
    groups = 1
    for key in keys:
        if isinstance(key, UnknownKey):
            raise QueryError(f"the values of {key.name} are not public; a join groups by columns with declared values")
        groups *= key_size(key) or 1
    if groups > MOST_JOINED_GROUPS:
        raise QueryError(f"the keys make {groups:,} groups; at most {MOST_JOINED_GROUPS:,} are answered for a join")


# --- the shape of a join ----------------------------------------------------------------------------------------------


def relation_of(scans: tuple[Scan, ...], pairs: tuple[tuple[Field, Field], ...]) -> Relation:
    """The join of some occurrences, each hung on an earlier one; they must be connected by pairs among them."""
    inside = {scan.source for scan in scans}
    open_pairs = [pair for pair in pairs if {pair[0].source, pair[1].source} <= inside]
    relation: Relation = scans[0]
    seen, waiting = {scans[0].source}, list(scans[1:])
    while waiting:
        place = next(
            (
                place
                for place, scan in enumerate(waiting)
                if any(
                    {one.source, two.source} <= seen | {scan.source}
                    for one, two in open_pairs
                    if scan.source in (one.source, two.source)
                )
            ),
            None,
        )
        if place is None:
            raise QueryError(
                "the tables of the join are not connected; a cross join is not answered, add ON a.key = b.key"
            )
        scan = waiting.pop(place)
        seen.add(scan.source)
        on = tuple(
            pair
            for pair in open_pairs
            if {pair[0].source, pair[1].source} <= seen and scan.source in (pair[0].source, pair[1].source)
        )
        relation = Join(relation, scan, on, optional=False)
    return relation


def equal_fields(pairs: Any, field: Field) -> frozenset[Field]:
    """The columns that pairs make equal to a column, itself included."""
    equal, before = {field}, 0
    while len(equal) > before:
        before = len(equal)
        for one, two in pairs:
            if one in equal or two in equal:
                equal |= {one, two}
    return frozenset(equal)


def distinct_owners(question: Conjunction) -> tuple[Field, ...]:
    """One column for every entity of a joined row: owners that the join makes equal are one."""
    found: list[Field] = []
    for owner in question.owners:
        if not any(owner in equal_fields(question.pairs, other) for other in found):
            found.append(owner)
    return tuple(found)


def sources_of(node: object) -> frozenset[str]:
    """The occurrences that an expression speaks of."""
    if isinstance(node, tuple):
        return frozenset().union(*(sources_of(part) for part in node)) if node else frozenset()
    if isinstance(node, Field):
        return frozenset((node.source,))
    if isinstance(node, Constant) or not is_dataclass(node) or isinstance(node, type):
        return frozenset()
    parts = (sources_of(getattr(node, own.name)) for own in fields(node))
    return frozenset().union(*parts)


def filters_of(where: Predicate) -> dict[str, tuple[Predicate, ...]]:
    """The parts of a filter that speak of one occurrence alone: only these make a residual smaller."""
    parts = where.parts if isinstance(where, Both) else (where,)
    result: dict[str, tuple[Predicate, ...]] = {}
    for part in parts:
        sources = sources_of(part)
        if len(sources) == 1:
            (source,) = sources
            result[source] = (*result.get(source, ()), part)
    return result


Mechanism = Literal["residual", "elastic", "r2t", "truncate", "sample"]

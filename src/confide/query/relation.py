"""FROM: which rows a query speaks of, whose they are, and how many of them one unit can change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from confide.errors import ParameterError, QueryError
from confide.policy import Contribution, Identifier, KeyUnit
from confide.query.clause import check_inner_clauses, check_subquery
from confide.query.conjunction import sources_of
from confide.query.expression import predicate
from confide.query.join import bind_join, equal_pairs, equal_units, plain, root_of, table_of, unit_of
from confide.query.joined_rows import JoinedRows, joined_rows
from confide.query.parse import shown
from confide.query.rewrite.left_join import filtered_aggregates
from confide.query.scope import Scope, Source
from confide.query.tree import (
    Always,
    BinnedKey,
    Bound,
    Cell,
    Derived,
    Field,
    Join,
    Key,
    PerUnit,
    Predicate,
    Relation,
    Scan,
)
from confide.query.unit_aggregate import unit_aggregate

Neighbours = Literal["add-remove", "replace-one"]
Limits = Mapping[str, tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True)
class From:
    """A bound FROM clause. `rows` and `groups`: the most rows one unit can have in it, and groups they fall into."""

    relation: Relation
    unit: Field | None
    unit_fields: frozenset[Field]
    """Every column that equals the unit's key in each row."""
    bound: Bound | None
    rows: int
    groups: int
    neighbours: Neighbours
    complete: bool
    """Every row of the one private table is in the relation exactly once (no join, no inner query)."""
    order_by: tuple[Field, ...]
    tables: tuple[str, ...]
    joined: JoinedRows | None = None
    """What `rows` and `groups` are made of, where they follow from the policy's tables."""
    counted: str = ""
    """Of each unit how many rows count, and what says so; empty where nothing is ever left out."""

    def under(self, keys: tuple[Key, ...]) -> "From":
        """With as many groups as such keys make of one unit's rows."""
        if self.joined is None or self.bound is None or not keys:
            return self
        keyed = sources_of(tuple(key.number if isinstance(key, BinnedKey) else key.field for key in keys))
        groups = self.joined.groups(keyed)
        told = f", in at most {groups:,} group{'s' * (groups > 1)}" if groups < self.rows else ""
        return replace(self, groups=groups, bound=replace(self.bound, groups=groups), counted=f"{self.counted}{told}")


def bind_from(select: exp.Select, scope: Scope, limits: Limits) -> From:
    """The FROM clause of a query. `limits` are bounds given by the caller for columns of an inner query."""
    clause = select.args.get("from_")
    if clause is None:
        raise QueryError("the query has no FROM; write SELECT COUNT(*) FROM a_table")
    relation, unit, tables, inside = _first(clause.this, scope, limits)
    if limits and not isinstance(relation, PerUnit):
        raise ParameterError(f"bounds are given for {next(iter(limits))}, but there is no inner query that computes it")
    for join in select.args.get("joins") or ():
        relation = bind_join(relation, join, scope, unit)
    private = [source for source in scope.sources if source.private]
    if not private:
        raise QueryError("the query reads public tables only; they need no privacy, read them directly")
    tables += tuple(source.table.name for source in private if source.table is not None)
    if isinstance(scope.policy.unit, KeyUnit):
        return _by_key(relation, unit, private, scope, tuple(dict.fromkeys(tables)), inside)
    return _by_row(relation, private, scope)


def row_condition(clause: exp.Where | None, scope: Scope, source: From) -> Predicate:
    """WHERE, in which rows may be looked for that belong to the same unit, or to nobody."""
    if clause is None:
        return Always(True)
    scope.matching, scope.unit, scope.pairs = True, source.unit, tuple(equal_pairs(source.relation))
    try:
        return predicate(clause.this, scope)
    finally:
        scope.matching = False


def _by_row(relation: Relation, private: list[Source], scope: Scope) -> From:
    if len(private) > 1 or private[0].table is None:
        raise QueryError(
            "under `unit: row` one row of a private table could change any number of joined rows, so private tables "
            "are not joined; declare a key as the unit, with references, to join along them"
        )
    table = private[0].table
    rows, node = 1, relation
    while isinstance(node, Join) and node.right.public:
        columns = tuple(right.name for _, right in node.on)
        rows *= max(1, scope.catalog.multiplicity(node.right.table, columns))
        node = node.left
    if not isinstance(node, Scan) or node.public:
        raise QueryError(f"start from the private table: FROM {table.name} JOIN the public one")
    neighbours: Neighbours = "replace-one" if scope.policy.replaces((table.name,)) else "add-remove"
    complete = isinstance(relation, Scan)
    return From(relation, None, frozenset(), None, rows, rows, neighbours, complete, (), (table.name,))


def _by_key(
    relation: Relation,
    unit: Field | None,
    private: list[Source],
    scope: Scope,
    tables: tuple[str, ...],
    inside: str,
) -> From:
    policy = scope.policy
    assert isinstance(policy.unit, KeyUnit)
    neighbours: Neighbours = "replace-one" if policy.replaces(tables) else "add-remove"
    if unit is not None and isinstance(relation, PerUnit):
        return From(relation, unit, frozenset((unit,)), None, 1, 1, neighbours, False, (), tables, counted=inside)
    if unit is None:
        relation, unit = _reach_unit(relation, private, scope)
    # Every column takes part in the order of a unit's rows, so that rows that tie are the same to every query.
    order_by = tuple(
        Field(source.name, column)
        for source in sorted(scope.sources, key=lambda source: source.label)
        for _, column in sorted(source.columns.items())
    )
    equal, limit, joined = equal_units(relation, unit), scope.at_most, None
    if limit is None:
        joined = joined_rows(relation, scope.sources, policy, scope.catalog)
        limit = Contribution(joined.rows, joined.groups(frozenset()))
    said = "as at_most of the view says" if joined is None else f"by at_most: {joined.words}"
    bound = Bound(unit, limit.rows, limit.groups)
    counted = "; ".join(part for part in (inside, _counted(policy.unit, limit.rows, said)) if part)
    return From(
        relation, unit, equal, bound, limit.rows, limit.groups, neighbours, False, order_by, tables, joined, counted
    )


def _counted(unit: KeyUnit, rows: int, said: str) -> str:
    """Which rows of a unit count, by which bound."""
    if rows == 1:
        return f"one row of each {unit} counts"
    return f"at most {rows:,} rows of each {unit} count, {said}"


def _reach_unit(relation: Relation, private: list[Source], scope: Scope) -> tuple[Relation, Field]:
    """The column that says whose row it is; a chain of references is joined as far as it is needed."""
    unit = unit_of(private, scope)
    if unit is not None:
        return relation, unit
    policy, owner = scope.policy, root_of(private)
    assert owner.table is not None
    assert isinstance(policy.unit, KeyUnit)
    for step in policy.unit_path(owner.table.name):
        field = owner.field(step.column)
        if step.to_table == policy.unit.table:
            return relation, field
        owner = scope.add_link(step.to_table)
        scan = Scan(step.to_table, owner.name, public=False)
        relation = Join(relation, scan, ((field, owner.field(step.to_column)),), optional=False)
    raise QueryError(f"no chain of references leads from {owner.label} to the unit")


def _first(node: exp.Expr, scope: Scope, limits: Limits) -> tuple[Relation, Field | None, tuple[str, ...], str]:
    if isinstance(node, exp.Subquery):
        return _per_unit(node, scope, limits)
    source = table_of(node, scope)
    assert source.table is not None
    return Scan(source.table.name, source.name, source.table.public), None, (), ""


# --- one row per unit -------------------------------------------------------------------------------------------------


def _per_unit(node: exp.Subquery, scope: Scope, limits: Limits) -> tuple[PerUnit, Field, tuple[str, ...], str]:
    """`(SELECT key, SUM(x) AS total FROM ... WHERE ... GROUP BY key) AS t`: aggregates of each unit's own rows, and
    how many rows they are clamped to.
    """
    select, alias = node.this, node.alias or "per_unit"
    if not isinstance(scope.policy.unit, KeyUnit):
        raise QueryError(
            "an inner query sums the rows of each unit, and under `unit: row` each unit has one row; ask directly"
        )
    check_subquery(node)
    if not isinstance(select, exp.Select):
        raise QueryError("FROM (...) takes SELECT key, SUM(x) AS total FROM a_table GROUP BY key")
    check_inner_clauses(select)
    select = filtered_aggregates(select, scope.policy)
    inner = Scope(scope.policy, scope.catalog, scope.names, scope.room)
    source = bind_from(select, inner, {})
    if source.bound is None or source.unit is None:
        raise QueryError("inner queries go one level deep")
    where = select.args.get("where")
    condition = row_condition(where, inner, source)
    _check_groups(select, inner, source)
    name = scope.next_name()
    key, columns = _columns(select, inner, source, limits, name)
    unit = Identifier(source.unit.name)
    scope.add_derived(
        alias, name, None if key is None else (key, unit), ((own, derived) for own, derived, _ in columns)
    )
    parts = tuple((derived.name, cell, derived.span) for _, derived, cell in columns)
    relation = PerUnit(source.relation, condition, source.unit, parts, name)
    told = f"in the inner query counts and sums are cut at what {source.rows:,} rows give: {source.counted}"
    return relation, Field(name, unit), (*source.tables, *inner.inner_tables), told


def _check_groups(select: exp.Select, inner: Scope, source: From) -> None:
    group = select.args.get("group")
    nodes = [node.unnest() for node in group.expressions] if group is not None else []
    extras = group is not None and any(value for name, value in group.args.items() if name != "expressions")
    fields = [inner.find(node) if isinstance(node, exp.Column) else None for node in nodes]
    if extras or len(fields) != 1 or fields[0] not in source.unit_fields:
        assert source.unit is not None
        raise QueryError(f"an inner query has one row per unit: GROUP BY {source.unit.name}")


def _columns(
    select: exp.Select, inner: Scope, source: From, limits: Limits, name: str
) -> tuple[str | None, list[tuple[str, Derived, Cell]]]:
    """The name under which the unit's key is shown, if it is; and the aggregates under theirs."""
    assert source.unit is not None
    key: str | None = None
    columns: list[tuple[str, Derived, Cell]] = []
    for item in select.expressions:
        node = item.unalias().unnest()
        if isinstance(node, exp.Column):
            field = plain(inner.find(node))
            if field not in source.unit_fields or key is not None:
                raise QueryError(f"the inner SELECT holds {source.unit.name} once and aggregates, not {shown(node)}")
            key = item.alias or field.name
            continue
        if not item.alias:
            raise QueryError(f"give {shown(item)} a name in the inner query: {shown(item)} AS total")
        cell, span = unit_aggregate(node, inner, source.rows, limits.get(item.alias), item.alias)
        # The space keeps it apart from the unit's own column, whatever that is called.
        columns.append((item.alias, Derived(name, f"{source.unit.name} {len(columns)}", span), cell))
    names = [own.casefold() for own, _, _ in columns] + ([key.casefold()] if key is not None else [])
    if len(set(names)) < len(names):
        raise QueryError("two columns of the inner query have one name; give one another with AS")
    unknown = [given for given in limits if given not in {own for own, _, _ in columns}]
    if unknown:
        raise ParameterError(f"bounds are given for {unknown[0]}, which the inner query does not compute")
    return key, columns

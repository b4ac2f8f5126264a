"""FROM and JOIN: which rows a query speaks of, whose they are, and how many of them one unit can change.

A joined row must belong to one unit. Private tables are joined only along declared references, and where both sides name
their unit the two must agree, so a unit's rows never depend on another unit's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Identifier, KeyUnit, Policy
from confide.query.expression import predicate
from confide.query.join import bind_join, equal_units, own_unit, plain, table_of
from confide.query.scope import Catalog, Scope, Source
from confide.query.tree import Always, Bound, Field, Join, Number, PerUnit, Relation, Scan
from confide.query.unit_aggregate import unit_aggregate

Neighbours = Literal["add-remove", "replace-one"]


@dataclass(frozen=True, slots=True)
class From:
    """A bound FROM clause. `rows` and `groups`: the most rows, and groups they fall into, that one unit can have in it."""

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


def bind_from(select: exp.Select, scope: Scope, limits: Mapping[str, tuple[Number, Number]]) -> From:
    """The FROM clause of a query. `limits` are bounds given by the caller for columns of an inner query."""
    clause = select.args.get("from_")
    if clause is None:
        raise QueryError("the query has no FROM; write SELECT COUNT(*) FROM a_table")
    relation, unit = _first(clause.this, scope, limits, _named_queries(select))
    for join in select.args.get("joins") or ():
        relation = bind_join(relation, join, scope, unit)
    private = [source for source in scope.sources.values() if source.private]
    if not private:
        raise QueryError("the query reads public tables only; they need no privacy, read them directly")
    if isinstance(scope.policy.unit, KeyUnit):
        return _by_key(relation, unit, private, scope)
    return _by_row(relation, private, scope)


def _by_row(relation: Relation, private: list[Source], scope: Scope) -> From:
    if len(private) > 1 or private[0].table is None:
        raise QueryError(
            "under `unit: row` one row of a private table could change any number of joined rows, so private tables are not "
            "joined; declare a key as the unit, with references, to join along them"
        )
    table = private[0].table
    rows, node = 1, relation
    while isinstance(node, Join):
        columns = tuple(right.name for _, right in node.on)
        rows *= max(1, scope.catalog.multiplicity(node.right.table, columns)) if node.right.public else 1
        node = node.left
    if isinstance(node, Scan) and node.public:
        raise QueryError(f"start from the private table: FROM {table.name} JOIN {node.table}")
    neighbours: Neighbours = "replace-one" if table.rows == "public" else "add-remove"
    complete = isinstance(relation, Scan)
    return From(relation, None, frozenset(), None, rows, rows, neighbours, complete, (), (table.name,))


def _by_key(relation: Relation, unit: Field | None, private: list[Source], scope: Scope) -> From:
    policy = scope.policy
    assert isinstance(policy.unit, KeyUnit)
    neighbours: Neighbours = "replace-one" if policy.tables[policy.unit.table].rows == "public" else "add-remove"
    tables = tuple(source.table.name for source in private if source.table is not None)
    if unit is not None and isinstance(relation, PerUnit):
        return From(
            relation, unit, frozenset((unit,)), None, 1, 1, neighbours, False, (), tables or (policy.unit.table,)
        )
    if unit is None:
        relation, unit = _reach_unit(relation, private, scope)
    limits = [source.table.at_most for source in private if source.table is not None]
    rows, groups = max(limit.rows for limit in limits), max(limit.groups for limit in limits)
    order_by = tuple(
        Field(source.alias, column)
        for source in sorted(scope.sources.values(), key=lambda source: source.alias)
        for _, column in sorted(source.columns.items())
    )
    equal = frozenset(equal_units(relation, unit))
    return From(relation, unit, equal, Bound(unit, rows, groups), rows, groups, neighbours, False, order_by, tables)


def _reach_unit(relation: Relation, private: list[Source], scope: Scope) -> tuple[Relation, Field]:
    """The column that says whose row it is; a chain of references is joined as far as it is needed."""
    for source in private:
        unit = own_unit(source, scope.policy)
        if unit is not None:
            return relation, unit
    table = private[0].table
    assert table is not None
    alias = private[0].alias
    for place, step in enumerate(scope.policy.unit_path(table.name)):
        assert isinstance(scope.policy.unit, KeyUnit)
        if step.to_table == scope.policy.unit.table:
            return relation, Field(alias, scope.policy.tables[step.table].columns[step.column])
        target = scope.policy.tables[step.to_table]
        link = f"unit_{place}"
        scope.add_table(target.name, link)
        on = (
            (
                Field(alias, scope.policy.tables[step.table].columns[step.column]),
                Field(link, target.columns[step.to_column]),
            ),
        )
        relation, alias = Join(relation, Scan(target.name, link, public=False), on, optional=False), link
    raise QueryError(f"no chain of references leads from {table.name} to the unit")


def _first(
    node: exp.Expr, scope: Scope, limits: Mapping[str, tuple[Number, Number]], named: Mapping[str, exp.Select]
) -> tuple[Relation, Field | None]:
    if isinstance(node, exp.Table) and node.name in named:
        node = exp.Subquery(
            this=named[node.name].copy(), alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
        )
    if isinstance(node, exp.Subquery):
        per_unit = bind_per_unit(node, scope.policy, scope.catalog, limits)
        scope.add_derived(per_unit.source, per_unit.unit, [(name, span) for name, _, span in per_unit.columns])
        return per_unit, Field(per_unit.source, Identifier(per_unit.unit.name))
    source = table_of(node, scope)
    assert source.table is not None
    return Scan(source.table.name, source.alias, source.table.public), None


def _named_queries(select: exp.Select) -> dict[str, exp.Select]:
    clause = select.args.get("with_")
    if clause is None:
        return {}
    if clause.args.get("recursive"):
        raise QueryError("recursive queries are not answered")
    named = {}
    for item in clause.expressions:
        if not isinstance(item.this, exp.Select) or item.args.get("scalar") or item.args["alias"].args.get("columns"):
            raise QueryError("WITH takes a plain query: WITH t AS (SELECT key, SUM(x) AS total FROM ... GROUP BY key)")
        named[item.alias] = item.this
    return named


# --- one row per unit ---------------------------------------------------------------------------------------------


def bind_per_unit(
    node: exp.Subquery, policy: Policy, catalog: Catalog, limits: Mapping[str, tuple[Number, Number]]
) -> PerUnit:
    """`(SELECT key, SUM(x) AS total FROM ... WHERE ... GROUP BY key) AS t`: aggregates of each unit's own rows."""
    select, alias = node.this, node.alias or "per_unit"
    if not isinstance(policy.unit, KeyUnit):
        raise QueryError(
            "an inner query sums the rows of each unit, and under `unit: row` each unit has one row; ask directly"
        )
    if not isinstance(select, exp.Select):
        raise QueryError("FROM (...) takes SELECT key, SUM(x) AS total FROM a_table GROUP BY key")
    for clause in ("having", "order", "limit", "offset", "distinct", "qualify", "windows", "with_"):
        if select.args.get(clause):
            raise QueryError(
                f"{clause.strip('_').upper()} is not answered in an inner query; put conditions into its WHERE"
            )
    scope = Scope(policy, catalog)
    source = bind_from(select, scope, {})
    if isinstance(source.relation, PerUnit):
        raise QueryError("inner queries go one level deep")
    assert source.unit is not None
    where = select.args.get("where")
    condition = predicate(where.this, scope) if where is not None else Always(True)
    groups = select.args["group"].expressions if select.args.get("group") else []
    named = [plain(scope.field(group)) if isinstance(group, exp.Column) else None for group in groups]
    unit_fields = source.unit_fields
    if len(named) != 1 or named[0] not in unit_fields:
        raise QueryError(f"an inner query has one row per unit: GROUP BY {source.unit.name}")
    columns = []
    for item in select.expressions:
        inner = item.unalias()
        if isinstance(inner, exp.Column):
            if plain(scope.field(inner)) not in unit_fields:
                raise QueryError(f"the inner SELECT holds {source.unit.name} and aggregates, not {inner.sql()[:60]}")
            continue
        if not item.alias:
            raise QueryError(f"give {item.sql()[:60]} a name in the inner query: ... AS total")
        columns.append((item.alias, *unit_aggregate(inner, scope, source.rows, limits.get(item.alias))))
    return PerUnit(source.relation, condition, source.unit, tuple(columns), alias)

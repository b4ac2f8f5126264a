"""FROM and JOIN: which rows a query speaks of, whose they are, and how many of them one unit can change.

A joined row must belong to one unit. Private tables are joined only along declared references, and where both sides name
their unit the two must agree, so a unit's rows never depend on another unit's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Identifier, KeyUnit, Policy, Table
from confide.query.expression import literal_number, number, predicate
from confide.query.parse import conjuncts
from confide.query.scope import Catalog, Scope, Source
from confide.query.tree import (
    Always,
    Bound,
    Cell,
    Derived,
    Field,
    Join,
    Number,
    PerUnit,
    Predicate,
    Reading,
    Relation,
    Scan,
    Span,
)

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
        relation = _join(relation, join, scope, unit)
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
    equal = frozenset(_equal_units(relation, unit))
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


def own_unit(source: Source, policy: Policy) -> Field | None:
    """The column of this source that holds the unit's key itself, if it has one."""
    if not isinstance(policy.unit, KeyUnit) or source.table is None or source.table.public:
        return None
    if source.table.name == policy.unit.table:
        return Field(source.alias, source.columns[policy.unit.column])
    path = policy.unit_path(source.table.name)
    return Field(source.alias, source.columns[path[0].column]) if len(path) == 1 else None


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
    source = _table(node, scope)
    assert source.table is not None
    return Scan(source.table.name, source.alias, source.table.public), None


def _table(node: exp.Expr, scope: Scope) -> Source:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        what = node.this.sql()[:60] if isinstance(node, exp.Table) else node.sql()[:60]
        raise QueryError(f"{what} is not a table of the policy; FROM takes tables the policy names")
    if node.args.get("db") or node.args.get("catalog"):
        raise QueryError(f"{node.sql()[:60]}: write the table's name alone, as the policy does")
    extras = [name for name, value in node.args.items() if value and name not in ("this", "alias")]
    if extras:
        raise QueryError(f"{extras[0].upper()} after a table is not answered")
    if node.args.get("alias") and node.args["alias"].args.get("columns"):
        raise QueryError("column aliases after a table are not answered")
    return scope.add_table(node.name, node.alias_or_name)


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


# --- joins -----------------------------------------------------------------------------------------------------------------


def _join(left: Relation, join: exp.Join, scope: Scope, unit: Field | None) -> Relation:
    kind, side = (join.args.get(name) or "" for name in ("kind", "side"))
    if join.args.get("method") or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        words = " ".join(word for word in (join.args.get("method"), side, kind) if word)
        raise QueryError(f"a {words} JOIN is not answered; write JOIN or LEFT JOIN with ON a.key = b.key")
    earlier = list(scope.sources.values())
    right = _table(join.this, scope)
    assert right.table is not None
    pairs = _using(join, earlier, right, scope) if join.args.get("using") else _on(join, right, scope)
    optional = side == "LEFT"
    if not right.table.public:
        pairs += _private_pairs(pairs, earlier, right, scope, unit, optional)
    return Join(left, Scan(right.table.name, right.alias, right.table.public), tuple(dict.fromkeys(pairs)), optional)


def _private_pairs(
    pairs: list[tuple[Field, Field]],
    earlier: list[Source],
    right: Source,
    scope: Scope,
    unit: Field | None,
    optional: bool,
) -> list[tuple[Field, Field]]:
    """Check that a join of private tables follows a reference; the pairs of unit columns that must agree besides."""
    if not isinstance(scope.policy.unit, KeyUnit):
        return []
    if all(not source.private for source in earlier) and optional:
        raise QueryError(
            f"a LEFT JOIN cannot start from a public table; write FROM {right.alias} LEFT JOIN the public one"
        )
    own = own_unit(right, scope.policy)
    others = [own_unit(source, scope.policy) for source in earlier] if unit is None else [unit]
    agree = [(other, own) for other in others if other is not None and own is not None]
    private_earlier = [source for source in earlier if source.private]
    if private_earlier and not any(_follows(a, b, private_earlier, right) or (a, b) in agree for a, b in pairs):
        assert right.table is not None
        raise QueryError(
            f"{right.table.name} is joined on columns that no reference of the policy connects; "
            f"{_references(scope.policy, right.table, private_earlier)}"
        )
    if private_earlier and not agree and not any(_follows(a, b, private_earlier, right) for a, b in pairs):
        raise QueryError(
            f"nothing says that a row of {right.alias} belongs to the same unit; join it along its reference"
        )
    if optional and not agree:
        raise QueryError(f"a LEFT JOIN of {right.alias} needs the unit's key in both tables; write JOIN")
    return agree


def _follows(left: Field, right: Field, earlier: list[Source], new: Source) -> bool:
    owner = next((source for source in earlier if source.alias == left.source), None)
    if owner is None or owner.table is None or new.table is None:
        return False
    forward = owner.table.references.get(left.name) == (new.table.name, right.name)
    return forward or new.table.references.get(right.name) == (owner.table.name, left.name)


def _references(policy: Policy, right: Table, earlier: list[Source]) -> str:
    known = [
        f"{table.name}.{column} = {target}.{key}"
        for table in policy.tables.values()
        for column, (target, key) in table.references.items()
        if right.name in (table.name, target)
    ]
    return "it can be joined ON " + " or ".join(known) if known else f"the policy declares no reference of {right.name}"


def _on(join: exp.Join, right: Source, scope: Scope) -> list[tuple[Field, Field]]:
    condition = join.args.get("on")
    if condition is None:
        raise QueryError(f"{right.alias} is joined without ON; a cross join is not answered, write ON a.key = b.key")
    pairs = []
    for part in conjuncts(condition) if isinstance(condition, exp.And) else (condition,):
        part = part.unnest()
        if not isinstance(part, exp.EQ) or not all(
            isinstance(side, exp.Column) for side in (part.this, part.expression)
        ):
            raise QueryError(f"ON {part.sql()[:60]}: joins are on equal columns; put other conditions into WHERE")
        first, second = _plain(scope.field(part.this)), _plain(scope.field(part.expression))
        if first.source == right.alias:
            first, second = second, first
        if second.source != right.alias or first.source == right.alias:
            raise QueryError(f"ON {part.sql()[:60]} does not connect {right.alias} with the tables before it")
        pairs.append((first, second))
    return pairs


def _using(join: exp.Join, earlier: list[Source], right: Source, scope: Scope) -> list[tuple[Field, Field]]:
    pairs = []
    for name in join.args["using"]:
        owners = [source for source in earlier if name.name in source.columns]
        if len(owners) != 1 or name.name not in right.columns:
            raise QueryError(
                f"USING ({name.name}): the column must be in {right.alias} and in one table before it; write ON"
            )
        pairs.append(
            (Field(owners[0].alias, owners[0].columns[name.name]), Field(right.alias, right.columns[name.name]))
        )
    return pairs


def _plain(subject: Field | Reading | Derived) -> Field:
    if isinstance(subject, Derived):
        raise QueryError(f"{subject.name} is computed; joins are on columns of tables")
    return subject.field if isinstance(subject, Reading) else subject


# --- one row per unit ------------------------------------------------------------------------------------------------------


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
    named = [_plain(scope.field(group)) if isinstance(group, exp.Column) else None for group in groups]
    unit_fields = source.unit_fields
    if len(named) != 1 or named[0] not in unit_fields:
        raise QueryError(f"an inner query has one row per unit: GROUP BY {source.unit.name}")
    columns = []
    for item in select.expressions:
        inner = item.unalias()
        if isinstance(inner, exp.Column):
            if _plain(scope.field(inner)) not in unit_fields:
                raise QueryError(f"the inner SELECT holds {source.unit.name} and aggregates, not {inner.sql()[:60]}")
            continue
        if not item.alias:
            raise QueryError(f"give {item.sql()[:60]} a name in the inner query: ... AS total")
        columns.append((item.alias, *_unit_aggregate(inner, scope, source.rows, limits.get(item.alias))))
    return PerUnit(source.relation, condition, source.unit, tuple(columns), alias)


def _equal_units(relation: Relation, unit: Field) -> set[Field]:
    """Columns that a join makes equal to the unit's key."""
    equal = {unit}
    while isinstance(relation, Join):
        for pair in relation.on:
            if not relation.optional and equal & set(pair):
                equal |= set(pair)
        relation = relation.left
    return equal


def _unit_aggregate(node: exp.Expr, scope: Scope, rows: int, limit: tuple[Number, Number] | None) -> tuple[Cell, Span]:
    """One aggregate of a unit's rows, and the span its value is clamped to."""
    if isinstance(node, exp.Least | exp.Greatest) and len(node.expressions) == 1:
        cell, span = _unit_aggregate(node.this, scope, rows, limit)
        edge = literal_number(node.expressions[0]) / span.grain
        if edge.denominator != 1:
            raise QueryError(f"the bound {node.expressions[0].sql()} is not a multiple of the grain {span.grain}")
        low, high = (
            (span.low, min(span.high, int(edge)))
            if isinstance(node, exp.Least)
            else (max(span.low, int(edge)), span.high)
        )
        if low > high:
            raise QueryError(f"{node.sql()[:60]} can only have one value")
        return cell, Span(low, high, span.grain, span.nullable)
    cell, span = _unit_cell(node, scope, rows)
    if limit is not None:
        low, high = (end.span.grain * end.span.low / span.grain for end in limit)
        if low.denominator != 1 or high.denominator != 1 or low >= high:
            raise QueryError(f"the bounds given for {node.sql()[:60]} must be [low, high] on the grain {span.grain}")
        span = Span(int(low), int(high), span.grain, span.nullable)
    return cell, span


def _unit_cell(node: exp.Expr, scope: Scope, rows: int) -> tuple[Cell, Span]:
    where: Predicate = Always(True)
    if isinstance(node, exp.Filter):
        where, node = predicate(node.expression.this, scope), node.this
    match node:
        case exp.Count(this=exp.Star()):
            return Cell("rows", None, where), Span(0, rows, nullable=False)
        case exp.Count(this=exp.Distinct()) if len(node.this.expressions) == 1:
            subject = node.this.expressions[0]
            kind: Literal["distinct", "known"] = "distinct"
        case exp.Count() if not node.expressions:
            subject, kind = node.this, "known"
        case exp.Sum() | exp.Min() | exp.Max():
            inner = number(node.this, scope)
            if isinstance(node, exp.Sum):
                span = inner.span
                if span.date:
                    raise QueryError("dates are not summed")
                total = Span(min(span.low * rows, span.low, 0), max(span.high * rows, span.high, 0), span.grain)
                return Cell("total", inner, where), total
            return Cell("smallest" if isinstance(node, exp.Min) else "largest", inner, where), inner.span
        case _:
            raise QueryError(
                f"{node.sql()[:60]}: an inner query takes COUNT, COUNT(DISTINCT x), SUM, MIN and MAX of a unit's rows"
            )
    bound = scope.field(subject) if isinstance(subject, exp.Column) else number(subject, scope)
    return Cell(kind, bound, where), Span(0, rows, nullable=False)

"""Views: a join that is declared once, by name, and then asked about as a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Contribution, KeyUnit, Policy
from confide.privacy.limits import LONGEST_QUERY, LONGEST_VIEW_NAME
from confide.query.parse import parse, shown
from confide.query.spelling import nearest

_PARTS = ("expressions", "from_", "joins", "where")
PLACED = "placed"
"""Marks a column that stands in for one of a view: no column of the result, whatever that is called."""


@dataclass(frozen=True, slots=True)
class View:
    """Its name, its SELECT, how long that is, and what one unit may have in it; its columns by the names they are
    asked for.
    """

    name: str
    select: exp.Select
    length: int = field(compare=False)
    columns: tuple[str, ...]
    at_most: Contribution | None


def declare_view(name: str, sql: str, at_most: Contribution | None, policy: Policy, dialect: str) -> View:
    """A view, checked as far as its own text goes; what binds it checks the rest."""
    if not name.isidentifier() or len(name) > LONGEST_VIEW_NAME:
        raise QueryError(f"{name[:60]!r} is no name for a view; use letters, digits and _, at most {LONGEST_VIEW_NAME}")
    if name.casefold() in {table.casefold() for table in policy.tables}:
        raise QueryError(f"{name} is a table of the policy; give the view another name")
    if at_most is not None and not isinstance(policy.unit, KeyUnit):
        raise QueryError("at_most bounds the rows of one unit, and under `unit: row` each unit has one; leave it out")
    select = parse(sql, dialect)
    extras = [part for part, value in select.args.items() if value and part not in _PARTS]
    if extras:
        raise QueryError(
            f"a view is SELECT columns FROM a JOIN b ON ... WHERE ...; {extras[0].strip('_').upper()} is for the "
            "questions that are asked about it"
        )
    columns = []
    for item in select.expressions:
        if not isinstance(item.unalias(), exp.Column) or isinstance(item.unalias().this, exp.Star):
            raise QueryError(f"{shown(item)}: a view names columns of its tables; compute in the questions about it")
        columns.append(item.alias_or_name)
    if len({column.casefold() for column in columns}) < len(columns):
        raise QueryError("two columns of the view have one name; give one another with AS")
    if not columns:
        raise QueryError("a view names the columns that questions may use")
    return View(name, select, len(sql), tuple(columns), at_most)


def expanded(select: exp.Select, length: int, views: Mapping[str, View]) -> tuple[exp.Select, View] | None:
    """A question of some length with a view put in place; None if it asks no view."""
    clause = select.args.get("from_")
    tables = [] if clause is None else [clause.this]
    tables += [join.this for join in select.args.get("joins") or ()]
    named = [views[table.name.casefold()] for table in tables if _is_view(table, views)]
    if not named:
        return None
    queries = {item.alias.casefold() for clause in select.find_all(exp.With) for item in clause.expressions}
    if named[0].name.casefold() in queries:
        raise QueryError(f"{named[0].name} is a view; give the query of WITH another name")
    if len(tables) > 1:
        raise QueryError(f"{named[0].name} is a view: it is asked by itself; put the join into the view")
    view, alias = named[0], tables[0].alias_or_name
    if length + view.length > LONGEST_QUERY:
        raise QueryError(
            f"the query and the view {view.name} have {length + view.length:,} characters together; "
            f"at most {LONGEST_QUERY:,} are read"
        )
    select, inside = select.copy(), view.select.copy()
    known = {name.casefold(): item.unalias() for name, item in zip(view.columns, inside.expressions, strict=True)}
    for item in select.expressions:
        inner = item.unalias()
        if isinstance(inner, exp.Column) and not item.alias:
            item.replace(exp.alias_(inner.copy(), inner.name, quoted=True))
    own = {item.alias.casefold(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    outer = select.transform(lambda node: _placed(node, view, alias, known, own))
    outer.set("from_", inside.args["from_"])
    outer.set("joins", inside.args.get("joins"))
    conditions = [part.args["where"].this for part in (inside, outer) if part.args.get("where") is not None]
    if conditions:
        outer.set("where", exp.Where(this=exp.and_(*conditions)))
    assert isinstance(outer, exp.Select)
    return outer, view


def _is_view(table: exp.Expr, views: Mapping[str, View]) -> bool:
    return isinstance(table, exp.Table) and not table.args.get("db") and table.name.casefold() in views


def _placed(
    node: exp.Expr, view: View, alias: str, known: Mapping[str, exp.Expr], own: Mapping[str, exp.Expr]
) -> exp.Expr:
    """A column of the view as the column it stands for. Aliases of the SELECT stay in HAVING and ORDER BY, and become
    what they stand for in GROUP BY; elsewhere they are no columns, whatever the view's tables call theirs.
    """
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return node
    if node.table and node.table.casefold() != alias.casefold():
        raise QueryError(f"there is no table {node.table[:60]} here; the view is called {alias}")
    name, clause = node.name.casefold(), node.find_ancestor(exp.AggFunc, exp.Where, exp.Group, exp.Having, exp.Order)
    aliased = name in own and not node.table
    if aliased and isinstance(clause, exp.Having | exp.Order) and isinstance(clause.parent, exp.Select):
        return node
    if name in known:
        column = known[name].copy()
        column.meta[PLACED] = True
        return column
    if aliased and isinstance(clause, exp.Group):
        return own[name].transform(lambda part: _placed(part, view, alias, known, {}))
    raise QueryError(
        f"there is no column {node.name[:60]}; {nearest(node.name, view.columns, f'the view {view.name} has')}"
    )

"""Conditions in the ON of a LEFT JOIN, in a query that makes one row of all rows of a unit.

`a LEFT JOIN b ON a.key = b.key AND p(b)` leaves a row of `a` with nothing beside it where no row of `b` passes. What
is aggregated of columns of `b` alone skips what is unknown, so it is the same over the plain join with FILTER (WHERE
p(b)). That is what is written here; a query that aggregates anything else is left as it is, and refused.
"""

from collections.abc import Iterable

from sqlglot import exp

from confide.policy import Policy
from confide.query.parse import conjuncts


def filtered_aggregates(select: exp.Select, policy: Policy) -> exp.Select:
    """The query with such conditions at its aggregates; itself, if there are none."""
    joins = select.args.get("joins") or ()
    wanted = [place for place, join in enumerate(joins) if join.side == "LEFT" and _others(join)]
    if len(wanted) != 1:
        return select
    result = select.copy()
    join = result.args["joins"][wanted[0]]
    clause = result.args.get("from_")
    tables = [clause and clause.this, *(own.this for own in result.args["joins"])]
    if not all(isinstance(node, exp.Table) for node in tables):
        return select
    others = _others(join)
    counted = [node for item in result.expressions for node in item.find_all(exp.AggFunc)]
    plain = [node for node in counted if not node.find(exp.Star) and node.find(exp.Column) is not None]
    spoken = [column for node in (*others, *counted) for column in node.find_all(exp.Column)]
    if len(plain) < len(counted) or not _all_of(spoken, join.this, tables, policy):
        return select
    for node in counted:
        condition = exp.and_(*(other.copy() for other in others))
        node.replace(exp.Filter(this=node.copy(), expression=exp.Where(this=condition)))
    pairs = [part for part in _parts(join.args["on"]) if _is_pair(part)]
    join.set("on", exp.and_(*pairs))
    return result


def _parts(on: exp.Expr) -> list[exp.Expr]:
    inner = on.unnest()
    return list(conjuncts(inner)) if isinstance(inner, exp.And) else [inner]


def _others(join: exp.Join) -> list[exp.Expr]:
    on = join.args.get("on")
    return [] if on is None else [part for part in _parts(on) if not _is_pair(part)]


def _is_pair(part: exp.Expr) -> bool:
    node = part.unnest()
    return isinstance(node, exp.EQ) and all(
        isinstance(side.unnest(), exp.Column) for side in (node.this, node.expression)
    )


def _all_of(columns: Iterable[exp.Column], table: exp.Table, tables: list[exp.Table], policy: Policy) -> bool:
    """Whether columns are of one table, by their names."""
    known = {name.casefold(): {column.casefold() for column in own.columns} for name, own in policy.tables.items()}
    own = known.get(table.name.casefold(), set())
    foreign = {name for other in tables if other is not table for name in known.get(other.name.casefold(), ())}
    return all(
        column.table.casefold() == table.alias_or_name.casefold()
        if column.table
        else column.name.casefold() in own - foreign
        for column in columns
    )

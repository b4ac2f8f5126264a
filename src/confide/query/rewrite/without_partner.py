"""`a LEFT JOIN b ON a.key = b.key WHERE b.key IS NULL`, the rows that have no partner, as NOT EXISTS.

Where b.key equals another column in ON, no joined row has a NULL there but those that found no partner, and each of
these is there once. What else ON says of the partner goes with it. A table that is named elsewhere in the query stays.
"""

from sqlglot import exp

from confide.privacy.limits import MOST_TABLES
from confide.query.parse import conjuncts


def without_partner(select: exp.Select) -> exp.Select:
    """The query with such joins as conditions; itself, if there are none."""
    where, joins = select.args.get("where"), select.args.get("joins") or ()
    if where is None or not any(join.side == "LEFT" for join in joins):
        return select
    if len(joins) >= MOST_TABLES:
        return select  # it is refused for that, and each join would be looked for in all of it
    with_ = select.args.get("with_")
    if with_ is not None and {item.alias.casefold() for item in with_.expressions} & _tables(select):
        return select  # what EXISTS names is a table, and no query of WITH
    result = select.copy()
    for join in list(result.args["joins"]):
        if join.side == "LEFT" and join.kind in ("", "OUTER") and isinstance(join.this, exp.Table):
            _replaced(result, join)
    return result


def _tables(select: exp.Select) -> set[str]:
    clause, joins = select.args.get("from_"), select.args.get("joins") or ()
    nodes = [*([] if clause is None else [clause.this]), *(join.this for join in joins)]
    return {node.name.casefold() for node in nodes if isinstance(node, exp.Table)}


def _replaced(select: exp.Select, join: exp.Join) -> None:
    name, on = join.this.alias_or_name.casefold(), _on(select, join)
    if on is None:
        return
    inner = select.args["where"].this.unnest()
    parts = list(conjuncts(inner)) if isinstance(inner, exp.And) else [inner]
    tests = [part for part in parts if _is_null(part, name)]
    keys = {side.name.casefold() for part in _parts(on) for side in _sides(part) if side.table.casefold() == name}
    if len(tests) != 1 or tests[0].unnest().this.unnest().name.casefold() not in keys:
        return
    apart = [tests[0], join]
    for column in select.find_all(exp.Column):
        if column.table.casefold() == name and not any(_within(column, own) for own in apart):
            return
    found = exp.select("1").from_(join.this.copy()).where(on.copy())
    rest = [part.copy() for part in parts if part is not tests[0]]
    condition = exp.and_(*rest, exp.Not(this=exp.Exists(this=found)))
    select.set("joins", [own for own in select.args["joins"] if own is not join])
    select.set("where", exp.Where(this=condition))


def _on(select: exp.Select, join: exp.Join) -> exp.Expr | None:
    """What a join says, USING written out where there is one other table."""
    if any(value for name, value in join.args.items() if name not in ("this", "on", "using", "side", "kind")):
        return None
    using, clause = join.args.get("using"), select.args.get("from_")
    if not using:
        return join.args.get("on")
    if clause is None or not isinstance(clause.this, exp.Table) or len(select.args["joins"]) != 1:
        return None
    tables = clause.this.alias_or_name, join.this.alias_or_name
    return exp.and_(
        *(
            exp.EQ(
                **{
                    side: exp.column(own.name, table)
                    for side, table in zip(("this", "expression"), tables, strict=True)
                }
            )
            for own in using
        )
    )


def _parts(on: exp.Expr) -> list[exp.Expr]:
    inner = on.unnest()
    return list(conjuncts(inner)) if isinstance(inner, exp.And) else [inner]


def _sides(part: exp.Expr) -> list[exp.Column]:
    node = part.unnest()
    sides = [node.this.unnest(), node.expression.unnest()] if isinstance(node, exp.EQ) else []
    return [own for own in sides if isinstance(own, exp.Column)] if len(sides) == 2 else []


def _is_null(part: exp.Expr, table: str) -> bool:
    node = part.unnest()
    return (
        isinstance(node, exp.Is)
        and not node.args.get("negate")
        and isinstance(node.expression, exp.Null)
        and isinstance(node.this.unnest(), exp.Column)
        and node.this.unnest().table.casefold() == table
    )


def _within(node: exp.Expr, other: exp.Expr) -> bool:
    above: exp.Expr | None = node
    while above is not None and above is not other:
        above = above.parent
    return above is other

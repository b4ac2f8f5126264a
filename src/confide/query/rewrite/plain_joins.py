"""Joins written from the other side, or with parentheses around some of them, as plain joins from left to right.

`a RIGHT JOIN b` is `b LEFT JOIN a`. `a JOIN (b JOIN c ON p) ON q` joins a, b and c on p and q: inner joins may be taken
in any order.
"""

from sqlglot import exp

_PLAIN = ("", "INNER", "CROSS")


def plain_joins(select: exp.Select) -> exp.Select:
    """The query with such joins written out, in its inner queries as well; itself, if there are none."""
    if not any(_otherwise(own) for own in select.find_all(exp.Select)):
        return select
    result = select.copy()
    for own in list(result.find_all(exp.Select)):
        _flatten(own)
        _turn(own)
    return result


def _otherwise(select: exp.Select) -> bool:
    clause, joins = select.args.get("from_"), select.args.get("joins") or ()
    nodes = [clause.this if clause is not None else None, *(join.this for join in joins)]
    return any(join.side == "RIGHT" for join in joins) or any(_held(node) is not None for node in nodes)


def _held(node: exp.Expr | None) -> exp.Table | None:
    """The first of the tables that parentheses without a name hold."""
    if not isinstance(node, exp.Paren | exp.Subquery) or node.args.get("alias") is not None:
        return None
    inner = node.this
    return inner if isinstance(inner, exp.Table) else _held(inner)


def _is_inner(join: exp.Join) -> bool:
    extras = [name for name, value in join.args.items() if value and name not in ("this", "on", "kind")]
    return not extras and str(join.args.get("kind") or "").upper() in _PLAIN


def _flatten(select: exp.Select) -> None:
    """Parentheses around tables that inner joins put together."""
    clause = select.args.get("from_")
    joins = list(select.args.get("joins") or ())
    if clause is None:
        return
    first = _held(clause.this)
    if first is not None:
        joins = [*_taken(first), *joins]
        clause.set("this", first)
    found: list[exp.Join] = []
    for join in joins:
        table = _held(join.this)
        inside = [] if table is None else _taken(table)
        if table is None or not _is_inner(join) or not all(map(_is_inner, inside)):
            if table is not None:
                table.set("joins", inside or None)
            found.append(join)
            continue
        on = join.args.get("on")
        found.append(exp.Join(this=table, **({} if inside or on is None else {"on": on})))
        if inside and on is not None:
            own = inside[-1].args.get("on")
            inside[-1].set("kind", None)
            inside[-1].set("on", on if own is None else exp.and_(own, on))
        found += inside
    select.set("joins", found or None)


def _taken(table: exp.Table) -> list[exp.Join]:
    """The joins of a table in parentheses, which it holds no more."""
    joins = list(table.args.get("joins") or ())
    table.set("joins", None)
    return joins


def _turn(select: exp.Select) -> None:
    """A RIGHT JOIN of the first two tables."""
    clause, joins = select.args.get("from_"), select.args.get("joins") or ()
    if clause is None or not joins or joins[0].side != "RIGHT" or any(join.side == "RIGHT" for join in joins[1:]):
        return
    if any(item.find(exp.Star) is not None and not item.find(exp.Count) for item in select.expressions):
        return  # a star shows columns in the order of the tables
    left, right = clause.this, joins[0].this
    clause.set("this", right)
    joins[0].set("this", left)
    joins[0].set("side", "LEFT")

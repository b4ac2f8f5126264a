"""Shorter ways to say a condition or a grouping, written out: IS DISTINCT FROM, comparisons of rows, GROUP BY ALL."""

from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query.aggregate_call_name import holds_aggregate

_NULLS_ALIKE: Final = ("duckdb", "spark", "spark2", "databricks")
"""Dialects in which rows are compared as one value: a NULL in them is like any other, and the outcome never NULL."""


def told_apart(node: exp.Expr, dialect: str) -> exp.Expr:
    """`a IS [NOT] DISTINCT FROM b`: NULL is like any other value."""
    one, two = node.this, node.expression
    same = [_known(own) for own in (one, two) if not isinstance(own.unnest(), exp.Literal | exp.Null | exp.Boolean)]
    equal = exp.EQ(this=one.copy(), expression=two.copy())
    null = [own for own in (one, two) if isinstance(own.unnest(), exp.Null)]
    if null:
        other = two if null[0] is one else one
        found: exp.Expr = exp.Is(this=other.copy(), expression=exp.Null())
    else:
        found = exp.Paren(this=exp.and_(*same, equal))
        if len(same) == 2:
            neither = exp.and_(*(exp.Is(this=own.copy(), expression=exp.Null()) for own in (one, two)))
            found = exp.Paren(this=exp.or_(neither, found))
    return exp.Not(this=found) if isinstance(node, exp.NullSafeNEQ) else found


def _known(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null()))


def rows_compared(node: exp.Expr, dialect: str) -> exp.Expr:
    """`(a, b) = (1, 2)` and `(a, b) IN ((1, 2), (3, 4))`, part by part, with NULL as the dialect has it."""
    if not isinstance(node.this, exp.Tuple):
        return node
    wanted = [node.expression] if isinstance(node, exp.EQ) else node.expressions
    if not wanted or not all(isinstance(own, exp.Tuple) for own in wanted):
        return node
    parts = node.this.expressions
    if any(len(own.expressions) != len(parts) for own in wanted):
        raise QueryError("rows of different lengths are compared; write (a, b) = (1, 2)")

    def same(one: exp.Expr, two: exp.Expr) -> exp.Expr:
        if dialect in _NULLS_ALIKE:
            return told_apart(exp.NullSafeEQ(this=one.copy(), expression=two.copy()), dialect)
        return exp.EQ(this=one.copy(), expression=two.copy())

    every = [
        exp.Paren(this=exp.and_(*(same(one, two) for one, two in zip(parts, own.expressions, strict=True))))
        for own in wanted
    ]
    return exp.Paren(this=exp.or_(*every))


def all_keys(node: exp.Expr, dialect: str) -> exp.Expr:
    """GROUP BY ALL: by whatever of the SELECT list is no aggregate."""
    group = node.args.get("group")
    if group is not None and node.find_ancestor(exp.Select, exp.With) is not None:
        _written_out(node, group)
    if group is None or group.args.get("all") is not True or group.expressions:
        return node
    keys = [
        item.unalias().copy() if isinstance(item.unalias(), exp.Column) else exp.Literal.number(place)
        for place, item in enumerate(node.expressions, 1)
        if not holds_aggregate(item) and item.find(exp.Window) is None and item.find(exp.Column) is not None
    ]
    if any(isinstance(item.unalias(), exp.Star) for item in node.expressions):
        return node
    node.set("group", exp.Group(expressions=keys) if keys else None)
    return node


def _written_out(select: exp.Expr, group: exp.Group) -> None:
    """GROUP BY 1 of an inner query, as the expression that stands there."""
    for node in list(group.expressions):
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            place = int(node.name) - 1
            item = select.expressions[place].unalias() if 0 <= place < len(select.expressions) else None
            if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
                node.replace(item.copy())

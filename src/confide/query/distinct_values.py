"""Distinct values: which of them a condition leaves, and what all that there may be add up to."""

from sqlglot import exp

from confide.policy import Category
from confide.query.comparison import joined
from confide.query.expression import predicate
from confide.query.scope import Scope
from confide.query.tree import Field, Predicate


def where_distinct(node: exp.Expr, where: Predicate, scope: Scope) -> tuple[exp.Expr, Predicate]:
    """CASE WHEN p THEN column END has the distinct values that the column has where p holds; numbers have a CASE of
    their own.
    """
    inner = node.unnest()
    if isinstance(inner, exp.Case) and inner.this is None and len(inner.args["ifs"]) == 1:
        (branch,), last = inner.args["ifs"], inner.args.get("default")
        kept = branch.args["true"].unnest()
        if isinstance(kept, exp.Column) and (last is None or isinstance(last, exp.Null)) and _is_text(kept, scope):
            return kept, joined((where, predicate(branch.this, scope)), every=True)
    return node, where


def _is_text(node: exp.Column, scope: Scope) -> bool:
    """Whether a column is no number, so that CASE of it is none either."""
    field = scope.field(node)
    return isinstance(field, Field) and not (isinstance(field.column, Category) and field.column.kind is int)


def all_below(low: int) -> int:
    """What all whole numbers from `low` to -1 add up to."""
    return -(-low * (-low + 1) // 2) if low < 0 else 0

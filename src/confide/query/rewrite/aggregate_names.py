"""Aggregates by their other names: VAR is VARIANCE, APPROX_COUNT_DISTINCT a count of distinct values, SUMIF a FILTER.

Dialects have many spellings of one aggregate. Each is turned into the one that is bound, so that they are one question.
What is called approximate elsewhere is measured like everything else: its error is the noise, and the interval says it.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from confide.errors import QueryError
from confide.query.aggregate_call_name import DISTINCT, FILTERED, SHARES, UNARY, plain_name
from confide.query.parse import shown

Query = TypeVar("Query", bound=exp.Query)

_TRUTHS = (exp.Predicate, exp.And, exp.Or, exp.Not)


def named_aggregates(select: Query) -> Query:
    """The query with every aggregate under the name that is bound; itself, if it is so already."""
    if not any(_standard(node) is not None for node in select.walk()):
        return select
    result = select.copy()
    # From the inside out, so that what is put in place of a call holds its parts in their final form.
    for node in reversed(list(result.walk())):
        build = _standard(node)
        if build is not None:
            node.replace(build())
    return result


def _standard(node: exp.Expr) -> Callable[[], exp.Expr] | None:
    """What makes the same aggregate under the name that is bound; None if a node is no other name of one."""
    match node:
        case exp.ApproxDistinct():
            return lambda: _distinct([node.this])
        case exp.WithinGroup(this=exp.Mode(this=None)):
            return lambda: _mode(node)
        case exp.Mode(args={"deterministic": exp.Boolean()}):
            return lambda: exp.Mode(this=node.this.copy())
        case exp.Mode(this=exp.Order()):
            raise QueryError(f"{shown(node)}: leave ORDER BY out; of equally common values the noise decides")
        case exp.Mode() if node.args.get("deterministic") is not None:
            raise QueryError(f"{shown(node)}: MODE takes one column, MODE(x); ask several columns one by one")
        case exp.Count(this=None) if not node.expressions:
            return lambda: exp.Count(this=exp.Star())
        case exp.Sum() | exp.Avg() if isinstance(node.this, exp.Expr) and isinstance(node.this.unnest(), _TRUTHS):
            return lambda: type(node)(this=one_or_zero(node.this.unnest()))
        case exp.SafeDivide():
            return lambda: exp.Div(this=exp.paren(node.this.copy()), expression=exp.paren(node.expression.copy()))
        case exp.Anonymous() | exp.AnonymousAggFunc() | exp.CombinedAggFunc():
            return _by_name(node, plain_name(node), node.expressions)
    return None


def _by_name(node: exp.Expr, name: str, parts: list[exp.Expr]) -> Callable[[], exp.Expr] | None:
    if name in UNARY:
        return lambda: UNARY[name](this=_only(node, parts, 1)[0])
    if name == "countstar" and not parts:
        return lambda: exp.Count(this=exp.Star())
    if name in DISTINCT:
        return lambda: _distinct(_only(node, parts, 1))
    if name in SHARES:
        return lambda: _quantile(_only(node, parts, 2))
    if name in FILTERED:
        return lambda: _filtered(FILTERED[name], _only(node, parts, 2))
    return None


def _only(node: exp.Expr, parts: list[exp.Expr], count: int) -> list[exp.Expr]:
    if len(parts) != count:
        raise QueryError(f"{shown(node)} takes {count} argument{'s' * (count > 1)} here")
    return [part.copy() for part in parts]


def _distinct(parts: list[exp.Expr]) -> exp.Expr:
    return exp.Count(this=exp.Distinct(expressions=[part.copy() for part in parts]))


def one_or_zero(condition: exp.Expr) -> exp.Expr:
    """What databases add up of conditions; one that is unknown counts nowhere."""
    no = exp.If(this=exp.Not(this=exp.paren(condition.copy())), true=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=exp.Literal.number(1)), no])


def _mode(node: exp.WithinGroup) -> exp.Expr:
    """MODE() WITHIN GROUP (ORDER BY x); a direction decides between equally common values alone."""
    order = node.args.get("expression")
    ordered = order.expressions if isinstance(order, exp.Order) else []
    if len(ordered) != 1:
        raise QueryError(f"{shown(node)}: write MODE() WITHIN GROUP (ORDER BY x), or MODE(x)")
    return exp.Mode(this=ordered[0].this.copy())


def _quantile(parts: list[exp.Expr]) -> exp.Expr:
    return exp.Quantile(this=parts[0], quantile=parts[1])


def _filtered(aggregate: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    return exp.Filter(this=aggregate(this=parts[0]), expression=exp.Where(this=parts[1]))

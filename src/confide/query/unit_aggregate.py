"""Aggregates of one unit's own rows, in an inner query: each is clamped to a public span."""

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from confide.errors import ParameterError, QueryError
from confide.query.comparison import joined
from confide.query.expression import number, predicate, scalar
from confide.query.literal import is_literal, literal_number
from confide.query.number import span_of
from confide.query.parse import shown
from confide.query.scope import Scope
from confide.query.tree import Always, Cell, Predicate, Span


def unit_aggregate(
    node: exp.Expr, scope: Scope, rows: int, limit: tuple[Fraction, Fraction] | None, name: str
) -> tuple[Cell, Span]:
    """One aggregate of a unit's rows, and the span its value is clamped to.

    LEAST and GREATEST with a constant narrow the span, as `limit`, the caller's bounds for it, does.
    """
    if isinstance(node, exp.Paren):
        return unit_aggregate(node.this, scope, rows, limit, name)
    if isinstance(node, exp.Least | exp.Greatest) and len(node.expressions) == 1 and is_literal(node.expressions[0]):
        cell, span = unit_aggregate(node.this, scope, rows, limit, name)
        edge = literal_number(node.expressions[0]) / span.grain
        if edge.denominator != 1:
            raise QueryError(f"the bound in {shown(node)} is not a multiple of the grain {span.grain}")
        least, most = (
            (span.low, min(span.high, int(edge)))
            if isinstance(node, exp.Least)
            else (max(span.low, int(edge)), span.high)
        )
        if least > most:
            raise QueryError(f"{shown(node)} could have no value: the aggregate cannot reach the bound")
        return cell, replace(span, low=least, high=most)
    cell, span = _cell(node, scope, rows)
    return cell, span if limit is None else _limited(span, limit, name)


def _limited(span: Span, limit: tuple[Fraction, Fraction], name: str) -> Span:
    low, high = (end / span.grain for end in limit)
    if low.denominator != 1 or high.denominator != 1 or low >= high:
        raise ParameterError(f"the bounds of {name} must be [low, high], low first, both multiples of {span.grain}")
    least, most = max(span.low, int(low)), min(span.high, int(high))
    if least > most:
        reach = f"[{span.low * span.grain}, {span.high * span.grain}]"
        raise ParameterError(f"the bounds of {name} leave nothing: the policy lets it reach {reach}")
    return replace(span, low=least, high=most)


def _cell(node: exp.Expr, scope: Scope, rows: int) -> tuple[Cell, Span]:
    where: Predicate = Always(True)
    if isinstance(node, exp.Filter):
        where, node = predicate(node.expression.this, scope), node.this
    kind: Literal["distinct", "known"]
    match node:
        case exp.Count(this=exp.Star()):
            return Cell("rows", None, where), Span(0, rows, nullable=False)
        case exp.CountIf():
            where = joined((where, predicate(node.this, scope)), every=True)
            return Cell("rows", None, where), Span(0, rows, nullable=False)
        case exp.Count(this=exp.Distinct()) if len(node.this.expressions) == 1:
            counted, kind = node.this.expressions[0], "distinct"
        case exp.Count() if not node.expressions:
            counted, kind = node.this, "known"
        case exp.Sum():
            subject = number(node.this, scope)
            span = subject.span
            if span.date:
                raise QueryError("dates are not summed; MIN and MAX of a date are answered")
            total = span_of(min(span.low * rows, span.low, 0), max(span.high * rows, span.high, 0), span.grain, True)
            return Cell("total", subject, where), total
        case exp.Min() | exp.Max() if not node.expressions:
            inner = number(node.this, scope)
            span = span_of(inner.span.low, inner.span.high, inner.span.grain, True, inner.span.date)
            return Cell("smallest" if isinstance(node, exp.Min) else "largest", inner, where), span
        case _:
            raise QueryError(
                f"{shown(node)}: an inner query takes COUNT, COUNT(DISTINCT x), SUM, MIN and MAX of a unit's rows"
            )
    return Cell(kind, scalar(counted, scope), where), Span(0, rows, nullable=False)

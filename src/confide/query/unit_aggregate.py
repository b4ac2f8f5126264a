"""Aggregates of one unit's own rows, in an inner query: each is clamped to a public span."""

from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.query.expression import number, predicate
from confide.query.literal import literal_number
from confide.query.scope import Scope
from confide.query.tree import Always, Cell, Number, Predicate, Span


def unit_aggregate(node: exp.Expr, scope: Scope, rows: int, limit: tuple[Number, Number] | None) -> tuple[Cell, Span]:
    """One aggregate of a unit's rows, and the span its value is clamped to."""
    if isinstance(node, exp.Least | exp.Greatest) and len(node.expressions) == 1:
        cell, span = unit_aggregate(node.this, scope, rows, limit)
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
        least, most = (end.span.grain * end.span.low / span.grain for end in limit)
        if least.denominator != 1 or most.denominator != 1 or least >= most:
            raise QueryError(f"the bounds given for {node.sql()[:60]} must be [low, high] on the grain {span.grain}")
        span = Span(int(least), int(most), span.grain, span.nullable)
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

"""Arithmetic on aggregates and constants: what a SELECT may make of released numbers."""

from collections.abc import Callable
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Literal

from sqlglot import exp

from confide.errors import QueryError
from confide.query.expression import predicate
from confide.query.literal import bare, literal_number
from confide.query.magnitude import held
from confide.query.question import Arithmetic, FixedNumber, Magnitude, Rounded, Value
from confide.query.scope import Scope
from confide.query.tree import Always, Predicate

_OPERATIONS: dict[type[exp.Expr], Literal["+", "-", "*", "/"]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_FOLDED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul, "/": truediv}
_REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)
_MOST_DIGITS = 12

Aggregate = Callable[[exp.Expr, Predicate], Value]
Named = Callable[[exp.Column], Value | None]
Ratio = Callable[[Value, Value], Value | None]


def composed(node: exp.Expr, aggregate: Aggregate, scope: Scope, ratio: Ratio, named: Named | None = None) -> Value:
    """The value of an expression; `aggregate` reads one aggregate over the rows that pass its FILTER, `ratio` knows
    what more is to say of a quotient, if anything, and `named` reads a column of the result by its name, outside of
    aggregates.
    """
    scope.room.take(1)

    def value(inner: exp.Expr) -> Value:
        return composed(inner, aggregate, scope, ratio, named)

    match node:
        case exp.Paren():
            return value(node.this)
        case exp.Literal():
            return FixedNumber(literal_number(node))
        case exp.Neg():
            inner = value(node.this)
            return (
                FixedNumber(-inner.value)
                if isinstance(inner, FixedNumber)
                else Arithmetic("-", FixedNumber(Fraction(0)), inner)
            )
        case exp.Column() if named is not None and (found := named(node)) is not None:
            return found
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            left, right = value(node.this), value(node.expression)
            if isinstance(node, exp.Div) and right == FixedNumber(Fraction(0)):
                raise QueryError("the query divides by zero")
            operation = _OPERATIONS[type(node)]
            if isinstance(left, FixedNumber) and isinstance(right, FixedNumber):
                return FixedNumber(held(_FOLDED[operation](left.value, right.value)))
            known = ratio(left, right) if operation == "/" else None
            return known if known is not None else Arithmetic(operation, left, right)
        case exp.Abs():
            inner = value(node.this)
            return FixedNumber(abs(inner.value)) if isinstance(inner, FixedNumber) else Magnitude(inner)
        case exp.Round():
            digits = literal_number(node.args["decimals"]) if node.args.get("decimals") else Fraction(0)
            if digits.denominator != 1 or not 0 <= digits <= _MOST_DIGITS:
                raise QueryError(f"ROUND takes 0 to {_MOST_DIGITS} digits")
            return Rounded(value(node.this), int(digits))
        case exp.Nullif() if _is_zero(node.expression):
            # The usual guard of a ratio, SUM(a) / NULLIF(SUM(b), 0): ours has no failing division to guard.
            return value(node.this)
        case exp.Coalesce() if len(node.expressions) == 1 and _is_zero(node.expressions[0]):
            return value(node.this)  # a released sum is never NULL
        case exp.Cast() if node.to.this in _REALS:
            return value(node.this)  # released numbers divide as real numbers anyway
        case exp.Filter():
            return aggregate(node.this, predicate(node.expression.this, scope))
    return aggregate(node, Always(True))


def _is_zero(node: exp.Expr) -> bool:
    inner = bare(node)
    return isinstance(inner, exp.Literal) and not inner.is_string and literal_number(inner) == 0

"""SQRT, LN, LOG, EXP and POWER by a constant: rounded to a public grain, the same integer on every engine.

An engine computes v = f(x)·s + ½ in double precision and takes the floor; s is the inverse of the grain, which leaves
at most 2¹⁶ steps, and none further than 2²⁰ from 0. Engines differ in the last bits of f. Why they give the same
integer: f is monotone, and the x of a row is one of finitely many points, all public. v of a point is off by less than
2⁻²² on every engine, as long as f is within 2⁻⁴³ of what it is of x in double precision (hundreds of units in the last
place; libraries are within two): x itself is off by 2⁻⁵², and a logarithm by that, times s < 2²⁶. All points beside a
step are looked at when a question is bound. Where v of one is within 2⁻²⁰ of a whole number its value is written out,
as computed here with 50 digits; all others are further away than engines differ, and points further from the step than
these are further away still. Total: x is inside the domain of f, by its range or because what is outside is NULL, so
nothing is zero, negative or too large for f; and the integer is clamped to its public span, whatever is computed.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Final, Literal, assert_never

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.literal import bare, is_literal, literal_number
from confide.query.parse import shown
from confide.query.quotient import guarded, nice_above, nowhere
from confide.query.scope import Scope
from confide.query.tree import Constant, CurveValue, Number

Kind = Literal["sqrt", "ln", "exp", "power"]
_STEPS: Final = 1 << 16
_FAR: Final = 1 << 20
_FINEST: Final = Fraction(1, 1 << 26)
_FEW_POINTS: Final = 1 << 18
"""So many points are looked at one by one; of more, those beside the steps."""
_MOST_POINTS: Final = 1 << 50
_NEAR: Final = 2.0**-20
_PARTS: Final = 200
"""Of a question that each such function counts for: its points are looked at, which takes some ten milliseconds."""
_MOST_WRITTEN: Final = 64
_DIGITS: Final = 50
_LARGEST: Final = Decimal(10) ** 100
_MOST_EXPONENT: Final = 8
Doubles = NDArray[np.float64]


def curve_of(node: exp.Expr, bound: Callable[[exp.Expr], Number], scope: Scope) -> Number | None:
    """The number that such a function is; None if a node is none."""
    match node:
        case exp.Sqrt():
            return curved("sqrt", Fraction(0), bound(node.this), node, scope)
        case exp.Ln():
            return curved("ln", Fraction(0), bound(node.this), node, scope)
        case exp.Log():
            if node.args.get("expression") is None:
                return curved("ln", Fraction(10), bound(node.this), node, scope)
            return curved("ln", _base(node), bound(node.expression), node, scope)
        case exp.Exp():
            return curved("exp", Fraction(0), bound(node.this), node, scope)
        case exp.Pow():
            if not is_literal(node.expression):
                raise QueryError(f"{shown(node)}: the exponent is a constant; write POWER(x, 2), or EXP of a product")
            return _power(node, literal_number(node.expression), bound(node.this), scope)
        case _:
            return None


def _base(node: exp.Log) -> Fraction:
    base = bare(node.this)
    if not is_literal(base) or literal_number(base) <= 1:
        raise QueryError(f"{shown(node)}: the base of a logarithm is a constant above 1; write LN(x) or LOG(10, x)")
    return literal_number(base)


def _power(node: exp.Pow, exponent: Fraction, inner: Number, scope: Scope) -> Number:
    """Small whole powers are products, and exact."""
    if exponent == Fraction(1, 2):
        return curved("sqrt", Fraction(0), inner, node, scope)
    if exponent.denominator == 1 and 0 <= exponent <= _MOST_EXPONENT:
        scope.room.repeat(inner, int(exponent))
        product: Number = arithmetic.constant(Fraction(1))
        for _ in range(int(exponent)):
            product = arithmetic.multiply(product, inner)
        return product if exponent else _one_where_known(inner)
    if max(abs(exponent.numerator), exponent.denominator) > 10**6 or abs(exponent) > 100:
        raise QueryError(f"{shown(node)}: the exponent is too large, or too long; write one such as 0.5 or 3")
    return curved("power", exponent, inner, node, scope)


def _one_where_known(inner: Number) -> Number:
    return arithmetic.add(arithmetic.times(inner, Fraction(0)), arithmetic.constant(Fraction(1)))


def curved(kind: Kind, parameter: Fraction, inner: Number, node: exp.Expr, scope: Scope) -> Number:
    """f of a number, rounded; or a refusal where the number may be outside of what f is of, or is too fine."""
    if inner.span.date:
        raise QueryError(f"{shown(node)} is of a number, not of a date")
    seen = scope.known(inner)
    if not seen.some:
        return nowhere()
    least = {"sqrt": 0, "exp": None, "ln": 1, "power": 0 if parameter > 0 else 1}[kind]
    if least is not None and seen.low < least:
        what = "below 0" if least == 0 else "0 or below"
        raise QueryError(
            f"{shown(node)}: the number may be {what} in a row; write CASE WHEN x > 0 THEN {shown(node)} END, "
            "or GREATEST(x, 1) in it, or give x a range"
        )
    scope.room.repeat(inner, 2)
    scope.room.take(_PARTS)
    argument = guarded(inner, seen.low, seen.high, scope)
    low, high = argument.span.low, argument.span.high
    step = argument.span.grain
    if not Fraction(1, 10**50) < step < 10**50:
        raise QueryError(f"{shown(node)}: the steps of the number are too fine, or too coarse; round it in there")
    ends = sorted(exact_value(kind, parameter, index * step) for index in (low, high))
    sizes = [abs(end) for end in ends if end] or [Decimal(1)]
    if max(sizes) > _LARGEST or min(sizes) < 1 / _LARGEST or max(abs(low), abs(high), high - low) > _MOST_POINTS:
        raise QueryError(f"{shown(node)} can reach numbers too large or too fine; round x in it, or narrow its range")
    spread = Fraction(ends[1] - ends[0])
    grain = nice_above(max(spread / _STEPS, Fraction(max(sizes)) / _FAR, _FINEST))
    for factor in (1, 2, 5, 10):
        found = _written_out(kind, parameter, (low, high), step, grain * factor)
        if found is not None:
            first, last = (floor(Fraction(end) / (grain * factor) + Fraction(1, 2)) for end in ends)
            span = arithmetic.span_of(first, last, grain * factor, argument.span.nullable)
            if isinstance(argument, Constant):
                return arithmetic.constant(first * grain * factor)
            return CurveValue(kind, parameter, argument, found, span)
    raise QueryError(f"{shown(node)}: the steps of the number are too fine; round it in there, ROUND(x, 2)")


def exact_value(kind: Kind, parameter: Fraction, x: Fraction) -> Decimal:
    """f of a number, in 50 digits: the same on every machine."""
    with localcontext() as context:
        context.prec = _DIGITS
        value = Decimal(x.numerator) / Decimal(x.denominator)
        match kind:
            case "sqrt":
                return value.sqrt()
            case "ln":
                base = Decimal(parameter.numerator) / Decimal(parameter.denominator)
                return value.ln() if not parameter else value.ln() / base.ln()
            case "exp":
                # Further out it is as much too large, or too small: a database may fail at what is nearly 0, too.
                return max(min(value, Decimal(1_000)), Decimal(-1_000)).exp()
            case "power":
                power = Decimal(parameter.numerator) / Decimal(parameter.denominator)
                return value**power if value else Decimal(0)
            case _:
                assert_never(kind)


def scale_of(kind: Kind, parameter: Fraction, grain: Fraction) -> float:
    """What f is multiplied with: steps of the result in one, and for logarithms the inverse of that of the base."""
    with localcontext() as context:
        context.prec = _DIGITS
        scale = Decimal(grain.denominator) / Decimal(grain.numerator)
        if kind == "ln" and parameter:
            scale /= (Decimal(parameter.numerator) / Decimal(parameter.denominator)).ln()
        return float(scale)


@lru_cache(maxsize=64)
def _written_out(
    kind: Kind, parameter: Fraction, ends: tuple[int, int], step: Fraction, grain: Fraction
) -> tuple[tuple[int, int], ...] | None:
    """The points that are too near a step, with their values; None if these are too many."""
    points = _points(kind, parameter, ends, step, grain)
    place = _doubles(kind, parameter, points, step, grain) + 0.5
    near = points[np.abs(place - np.rint(place)) < 2 * _NEAR]
    if len(near) > _MOST_WRITTEN:
        return None
    found = []
    for index in near:
        exact = Fraction(exact_value(kind, parameter, int(index) * step)) / grain + Fraction(1, 2)
        if abs(exact - round(exact)) < Fraction(_NEAR):
            found.append((int(index), floor(exact)))
    return tuple(found)


def _doubles(kind: Kind, parameter: Fraction, points: Doubles, step: Fraction, grain: Fraction) -> Doubles:
    x = points * float(step)
    scale = scale_of(kind, parameter, grain)
    with np.errstate(all="ignore"):
        match kind:
            case "sqrt":
                return np.asarray(np.sqrt(x) * scale)
            case "ln":
                return np.asarray(np.log(x) * scale)
            case "exp":
                return np.asarray(np.exp(x) * scale)
            case "power":
                return np.asarray(np.power(x, float(parameter)) * scale)
            case _:
                assert_never(kind)


def _points(kind: Kind, parameter: Fraction, ends: tuple[int, int], step: Fraction, grain: Fraction) -> Doubles:
    """All points, or those on both sides of every step."""
    low, high = ends
    if high - low < _FEW_POINTS:
        return np.arange(low, high + 1, dtype=np.float64)
    first, last = sorted(float(exact_value(kind, parameter, index * step)) / float(grain) for index in ends)
    levels = (np.arange(floor(first) - 1, floor(last) + 3) - 0.5) / scale_of(kind, parameter, grain)
    with np.errstate(all="ignore"):
        match kind:
            case "sqrt":
                x = np.square(np.maximum(levels, 0))
            case "ln":
                x = np.exp(levels)
            case "exp":
                x = np.log(np.maximum(levels, 1e-300))
            case "power":
                x = np.power(np.maximum(levels, 1e-300), 1 / float(parameter))
            case _:
                assert_never(kind)
    beside = np.floor(x / float(step))[:, None] + np.arange(-2, 4)[None, :]
    return np.unique(np.clip(beside, low, high))

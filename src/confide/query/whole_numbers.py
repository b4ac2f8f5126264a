"""Whole numbers of a number: FLOOR, CEIL, ROUND, TRUNC, SIGN, and division by a constant with its remainder.

All of them are floors of numbers on a grid, so every engine gives the same integers. ROUND goes half away from zero.
"""

from fractions import Fraction

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.literal import literal_number
from confide.query.parse import shown
from confide.query.quotient import quotient
from confide.query.scope import Scope
from confide.query.tree import Constant, Number, Predicate

_MOST_DIGITS = 15


def floor_of(inner: Number) -> Number:
    return arithmetic.floored(inner, Fraction(1))


def ceiling_of(inner: Number) -> Number:
    return arithmetic.negate(arithmetic.floored(arithmetic.negate(inner), Fraction(1)))


def rounded(node: exp.Round | exp.Trunc, inner: Number, scope: Scope) -> Number:
    """ROUND(x, digits), or TRUNC(x): to the nearest multiple of a power of ten, or to the next one towards zero."""
    digits = Fraction(0)
    if isinstance(node, exp.Round) and node.args.get("decimals") is not None:
        digits = literal_number(node.args["decimals"])
    if digits.denominator != 1 or abs(digits) > _MOST_DIGITS:
        raise QueryError(f"{shown(node)}: the digits are a whole number from -{_MOST_DIGITS} to {_MOST_DIGITS}")
    step = Fraction(10) ** -int(digits)
    return _towards_zero(inner, step, step / 2 if isinstance(node, exp.Round) else Fraction(0), scope)


def truncated(inner: Number, scope: Scope) -> Number:
    """The next whole number towards zero."""
    return _towards_zero(inner, Fraction(1), Fraction(0), scope)


def _towards_zero(inner: Number, step: Fraction, before: Fraction, scope: Scope) -> Number:
    """The next multiple of a step towards zero, of what is so much further away from it."""
    away = arithmetic.constant(before)

    def upward(positive: Number) -> Number:
        return arithmetic.times(arithmetic.floored(arithmetic.add(positive, away), step), step)

    span = inner.span
    if span.low >= 0:
        return upward(inner)
    downward = arithmetic.negate(upward(arithmetic.negate(inner)))
    if span.high <= 0:
        return downward
    scope.room.repeat(inner, 3)
    return _by_sign(inner, upward(inner), downward)


def sign_of(inner: Number, scope: Scope) -> Number:
    scope.room.repeat(inner, 2)
    one, zero = arithmetic.constant(Fraction(1)), arithmetic.constant(Fraction(0))
    above, below = arithmetic.compare(">", inner, zero), arithmetic.compare("<", inner, zero)
    branches = ((above, one), (below, arithmetic.negate(one)))
    if not inner.span.nullable:
        return arithmetic.choice(branches, zero)
    return arithmetic.choice((*branches, (arithmetic.compare("=", inner, zero), zero)), None)


def divided(node: exp.IntDiv | exp.Mod, dividend: Number, divisor: Number, scope: Scope) -> Number:
    """How often a constant goes into a number, or what is left. Dialects differ below zero, so nothing is below it."""
    if isinstance(node, exp.IntDiv) and not isinstance(divisor, Constant) and dividend.span.low >= 0:
        return quotient(node, dividend, divisor, scope, cut=True)
    if not isinstance(divisor, Constant) or divisor.index <= 0:
        raise QueryError(f"{shown(node)}: divide by a constant above 0; a column may hold zero")
    if dividend.span.low < 0:
        raise QueryError(f"{shown(node)}: the dividend may be below 0, where dialects differ; write FLOOR(x / 10)")
    step = arithmetic.value_of(divisor)
    times = arithmetic.floored(dividend, step)
    if isinstance(node, exp.IntDiv):
        return times
    scope.room.repeat(dividend, 1)
    rest = arithmetic.subtract(dividend, arithmetic.times(times, step))
    most = min(dividend.span.high * dividend.span.grain, step - rest.span.grain)
    return arithmetic.narrowed(rest, Fraction(0), most)


def _by_sign(inner: Number, positive: Number, negative: Number) -> Number:
    at_least: Predicate = arithmetic.compare(">=", inner, arithmetic.constant(Fraction(0)))
    if not inner.span.nullable:
        return arithmetic.choice(((at_least, positive),), negative)
    below = arithmetic.compare("<", inner, arithmetic.constant(Fraction(0)))
    return arithmetic.choice(((at_least, positive), (below, negative)), None)

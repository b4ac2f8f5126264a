"""Division by what a row holds, where public facts say that it is not 0: by the range, WHERE, CASE or NULLIF.

x / y is rounded to a public grain, to the nearest, half up: ⌊x/(y·h) + ½⌋ is one whole division of integers,
⌊(2ax + by) / 2by⌋ on the grids of both, so every engine gives the same. Nothing can fail: the divisor that is written
is NULL where it is not what it is known to be, whatever order a database computes things in, and all integers fit 64
bits, or the division is refused.
"""

from fractions import Fraction
from typing import Final

from sqlglot import exp

from confide.errors import QueryError
from confide.query import number as arithmetic
from confide.query.comparison import Operation, joined
from confide.query.parse import shown
from confide.query.scope import Scope, not_zero
from confide.query.tree import Always, Choice, Constant, Divided, Number, Span

_STEPS: Final = 1 << 26
"""A quotient has at most about so many grains."""
_FEWEST: Final = 1 << 8
_NARROW: Final = 1 << 61


def quotient(node: exp.Expr, dividend: Number, divisor: Number, scope: Scope, cut: bool = False) -> Number:
    """One number of a row over another; with `cut` the whole part of it, towards zero."""
    if dividend.span.date or divisor.span.date:
        raise QueryError(f"{shown(node)}: dates are not divided; days between two dates are `a - b`")
    low, high, zero = _known(divisor, scope)
    if low > high:
        return nowhere()
    if zero:
        raise QueryError(
            f"{shown(node)}: the divisor may be 0 in a row; write x / NULLIF(y, 0), or CASE WHEN y > 0 THEN x / y END, "
            "give y a range without 0, or divide aggregates, SUM(a) / SUM(b)"
        )
    parts = []
    if high > 0:
        parts.append((">", dividend, guarded(divisor, max(low, 1), high, scope)))
    if low < 0:
        flipped = arithmetic.negate(divisor)
        parts.append(("<", arithmetic.negate(dividend), guarded(flipped, max(-high, 1), -low, scope)))
    if not parts:
        return nowhere()
    scope.room.repeat(dividend, 2 * len(parts))
    scope.room.repeat(divisor, 4 * len(parts))
    # One grain for both signs, or their hull would be on a finer one.
    grain = Fraction(1) if cut else _grain([(top, bottom) for _, top, bottom in parts])
    found = [_divided(node, top, bottom, grain, cut) for _, top, bottom in parts]
    if len(found) == 1:
        return found[0]
    zero_constant = arithmetic.constant(Fraction(0))
    return arithmetic.choice(
        (
            (arithmetic.compare(">", divisor, zero_constant), found[0]),
            (arithmetic.compare("<", divisor, zero_constant), found[1]),
        ),
        None,
    )


def nowhere() -> Number:
    """A number that no row has."""
    return arithmetic.choice(((Always(False), arithmetic.constant(Fraction(0))),), None)


def guarded(number: Number, low: int, high: int, scope: Scope) -> Number:
    """A number that is known to be within so much where it counts; NULL where it is not."""
    span = number.span
    least, most = max(low, span.low), min(high, span.high)
    if isinstance(number, Constant) or (least, most) == (span.low, span.high):
        return number
    sides: list[tuple[Operation, int]] = [(">=", least)] if least > span.low else []
    sides += [("<=", most)] if most < span.high else []
    ends = [
        arithmetic.compare(operation, number, Constant(end, Span(end, end, span.grain, nullable=False)))
        for operation, end in sides
    ]
    scope.room.repeat(number, len(ends))
    inside = arithmetic.narrowed(number, least * span.grain, most * span.grain)
    return arithmetic.choice(((joined(tuple(ends), every=True), inside),), None)


def _known(divisor: Number, scope: Scope) -> tuple[int, int, bool]:
    """Between which indices a divisor is, and whether it may be 0 there."""
    seen = scope.known(divisor)
    nullified = (
        isinstance(divisor, Choice)
        and divisor.otherwise is None
        and all(not_zero(condition) == value for condition, value in divisor.branches)
    )
    zero = seen.low <= 0 <= seen.high and divisor not in scope.not_zero and not nullified
    return seen.low, seen.high, zero


def _grain(parts: list[tuple[Number, Number]]) -> Fraction:
    """1, 2 or 5 times a power of ten, so that the largest quotient has not too many of them."""
    most = max(
        Fraction(top.span.largest) * top.span.grain / (bottom.span.low * bottom.span.grain) for top, bottom in parts
    )
    steps = _STEPS
    while steps >= _FEWEST:
        grain = nice_above(most / steps) if most else Fraction(1)
        if all(_fits(top, bottom, grain) for top, bottom in parts):
            return grain
        steps //= 4
    raise QueryError(
        "the two sides of a division are too wide for exact arithmetic on their grains; round them first, or use "
        "coarser grains in the policy"
    )


def nice_above(least: Fraction) -> Fraction:
    """The smallest of 1, 2 and 5 times a power of ten that is not below a number above 0."""
    power = Fraction(1)
    while power >= least:
        power /= 10
    while power * 10 < least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _factors(top: Number, bottom: Number, grain: Fraction) -> tuple[int, int]:
    ratio = top.span.grain / (bottom.span.grain * grain)
    return ratio.numerator, ratio.denominator


def _fits(top: Number, bottom: Number, grain: Fraction) -> bool:
    a, b = _factors(top, bottom, grain)
    return 4 * a * top.span.largest + 4 * b * bottom.span.high < _NARROW


def _divided(node: exp.Expr, top: Number, bottom: Number, grain: Fraction, cut: bool) -> Number:
    if not _fits(top, bottom, grain):
        raise QueryError(f"{shown(node)}: the numbers are too wide for a whole division; round them first")
    a, b = _factors(top, bottom, grain)
    if not cut:
        above = arithmetic.add(whole(top, 2 * a), whole(bottom, b))
        return _floor_of(above, whole(bottom, 2 * b), top, bottom, grain, half=True)
    upward = _floor_of(whole(top, a), whole(bottom, b), top, bottom, grain, half=False)
    if top.span.low >= 0:
        return upward
    negative = arithmetic.negate(top)
    downward = arithmetic.negate(_floor_of(whole(negative, a), whole(bottom, b), negative, bottom, grain, half=False))
    zero = arithmetic.constant(Fraction(0))
    at_least, below = arithmetic.compare(">=", top, zero), arithmetic.compare("<", top, zero)
    return arithmetic.choice(((at_least, upward), (below, downward)), None)


def _floor_of(above: Number, below: Number, top: Number, bottom: Number, grain: Fraction, half: bool) -> Number:
    ratio = top.span.grain / (bottom.span.grain * grain)
    corners = [
        (ratio * Fraction(one, two) + (Fraction(1, 2) if half else 0)).__floor__()
        for one in (top.span.low, top.span.high)
        for two in (bottom.span.low, bottom.span.high)
    ]
    nullable = top.span.nullable or bottom.span.nullable
    return Divided(above, below, arithmetic.span_of(min(corners), max(corners), grain, nullable))


def whole(number: Number, factor: int) -> Number:
    """The index of a number, so many times, as a number of its own."""
    span = number.span
    if isinstance(number, Constant):
        return arithmetic.constant(Fraction(number.index * factor))
    low, high = sorted((span.low * factor, span.high * factor))
    return arithmetic.scaled(number, factor, arithmetic.span_of(low, high, Fraction(1), span.nullable))

"""What a number of a row typically is, for forecasts alone: from where the policy believes most values to lie."""

from fractions import Fraction
from typing import Literal, assert_never

from confide.policy import Number as NumberColumn
from confide.policy import Unbounded
from confide.query.curve import exact_value
from confide.query.tree import (
    Absolute,
    Choice,
    Combined,
    Constant,
    CurveValue,
    Derived,
    Divided,
    FirstKnown,
    Floored,
    Number,
    Reading,
    Scaled,
    TextLength,
)

Ends = tuple[Fraction, Fraction]


def typical_ends(number: Number) -> Ends | None:
    """Between which indices most values of a number lie, if the policy says so of any column in it."""
    return _ends(number) if _is_said(number) else None


def _is_said(number: Number) -> bool:
    match number:
        case Reading(field):
            return isinstance(field.column, NumberColumn | Unbounded) and field.column.typical is not None
        case Scaled(inner) | Absolute(inner) | Floored(inner) | CurveValue(inner=inner):
            return _is_said(inner)
        case Divided(left, right) | Combined(_, left, right):
            return _is_said(left) or _is_said(right)
        case Choice(branches, otherwise):
            return any(_is_said(value) for _, value in branches) or (otherwise is not None and _is_said(otherwise))
        case FirstKnown(options):
            return any(map(_is_said, options))
        case Derived() | Constant() | TextLength():
            return False
        case _:
            assert_never(number)


def _ends(number: Number) -> Ends:
    """The ends that its parts give, within its span."""
    low, high = _unclamped(number)
    least, most = Fraction(number.span.low), Fraction(number.span.high)
    return min(max(low, least), most), min(max(high, least), most)


def _unclamped(number: Number) -> Ends:
    match number:
        case Reading(field) if _is_said(number):
            assert isinstance(field.column, NumberColumn | Unbounded)
            assert field.column.typical is not None
            low, high = field.column.typical
            return low / field.column.grain, high / field.column.grain
        case Reading() | Derived() | Constant() | TextLength():
            return Fraction(number.span.low), Fraction(number.span.high)
        case Scaled(inner, factor, offset):
            return _sorted(*(end * factor + offset for end in _ends(inner)))
        case Combined(operation, left, right):
            return _combined(operation, _ends(left), _ends(right), left == right)
        case Floored(inner, divisor):
            low, high = _ends(inner)
            return low / divisor, high / divisor
        case Divided(left, right):
            below = [max(end, Fraction(1)) for end in _ends(right)]
            return _sorted(*(one / other for one in _ends(left) for other in below))
        case CurveValue():
            return _curved(number)
        case Absolute(inner):
            low, high = _ends(inner)
            return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case Choice(branches, otherwise):
            values = [value for _, value in branches] + ([otherwise] if otherwise is not None else [])
            return _sorted(*(end for value in values for end in _ends(value)))
        case FirstKnown(options):
            return _ends(options[0])
        case _:
            assert_never(number)


def _curved(number: CurveValue) -> Ends:
    inner, grain = number.inner.span, number.span.grain
    ends = (min(max(end, Fraction(inner.low)), Fraction(inner.high)) for end in _ends(number.inner))
    return _sorted(*(Fraction(exact_value(number.kind, number.parameter, end * inner.grain)) / grain for end in ends))


def _combined(operation: Literal["add", "multiply", "least", "greatest"], left: Ends, right: Ends, same: bool) -> Ends:
    match operation:
        case "add":
            return left[0] + right[0], left[1] + right[1]
        case "multiply":
            products = [one * other for one in left for other in right]
            return (Fraction(0), max(products)) if same and left[0] < 0 < left[1] else _sorted(*products)
        case "least":
            return min(left[0], right[0]), min(left[1], right[1])
        case "greatest":
            return max(left[0], right[0]), max(left[1], right[1])
        case _:
            assert_never(operation)


def _sorted(*ends: Fraction) -> Ends:
    return min(ends), max(ends)

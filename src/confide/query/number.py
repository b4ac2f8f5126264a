"""Arithmetic on bounded integers: each function builds a node whose span follows from its parts.

Grids are rational: a sum is brought to the greatest common grain, a product multiplies grains, a constant factor scales
the grain itself and costs nothing. No operation can overflow: a span past `WIDEST` is refused before it is built.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from operator import eq, ge, gt, le, lt, ne
from typing import Literal

from confide.errors import QueryError
from confide.policy import Number as NumberColumn
from confide.policy import Unbounded
from confide.policy.column import INDEX_LIMIT
from confide.query.tree import (
    Absolute,
    Always,
    Choice,
    Combined,
    Compare,
    Constant,
    Field,
    FirstKnown,
    Floored,
    Known,
    Number,
    OneOf,
    Predicate,
    Reading,
    Scaled,
    Span,
)

WIDEST = 1 << 82
"""Rows (at most 2⁴⁴) times this stays below 2¹²⁶, so an exact 128-bit sum cannot overflow."""

LONGEST_CONSTANT = 1_000
"""Binary digits of a constant's numerator and denominator: about what doubles reach."""
LONGEST_GRAIN = 400
"""Of a grain's: squares of the widest numbers on such grains, summed over all rows, are doubles still."""

FIRST_DAY, LAST_DAY = ((end - date(1970, 1, 1)).days for end in (date.min, date.max))

Operation = Literal["<", "<=", "=", "<>", ">=", ">"]
_FLIPPED: dict[Operation, Operation] = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_HOLDS = {"<": lt, "<=": le, "=": eq, "<>": ne, ">=": ge, ">": gt}


def unbounded_reading(field: Field) -> Reading:
    """An unbounded column, within what 62 bits hold."""
    assert isinstance(field.column, Unbounded)
    grain, most = field.column.grain, INDEX_LIMIT - 1
    column = NumberColumn(field.name, -most * grain, most * grain, grain, typical=field.column.typical)
    return Reading(Field(field.source, column), Span(-most, most, grain))


def constant(value: Fraction) -> Constant:
    """A number; how large it may be is decided where it is used, since a comparison takes any that is not too long."""
    if max(abs(value.numerator), value.denominator).bit_length() > LONGEST_CONSTANT:
        raise QueryError(
            "the constants of an expression multiply or divide to a number that is too large, too small or too long; "
            "write fewer factors, or round them"
        )
    grain = Fraction(1, value.denominator)
    return Constant(value.numerator, Span(value.numerator, value.numerator, grain, nullable=False))


def value_of(node: Constant) -> Fraction:
    return node.index * node.span.grain


def add(left: Number, right: Number) -> Number:
    if left.span.date and right.span.date:
        raise QueryError("dates are compared, counted and binned, not added; days between two dates are `a - b`")
    if left.span.date or right.span.date:
        return _moved(left, right) if left.span.date else _moved(right, left)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return constant(value_of(left) + value_of(right))
    left, right = same_grain(left, right)
    if isinstance(right, Constant):
        return _shifted(left, right.index)
    if isinstance(left, Constant):
        return _shifted(right, left.index)
    a, b = left.span, right.span
    return Combined("add", left, right, span_of(a.low + b.low, a.high + b.high, a.grain, a.nullable or b.nullable))


def subtract(left: Number, right: Number) -> Number:
    """A difference; of two dates it is a number of days."""
    if left.span.date and right.span.date:
        left, right = as_days(left), as_days(right)
    return add(left, negate(right))


def _moved(day: Number, days: Number) -> Number:
    """A date so many days later."""
    if days.span.grain.denominator != 1:
        raise QueryError("a date is moved by whole days; write d + INTERVAL 3 DAY, or FLOOR of the number")
    if isinstance(days, Constant):
        return shifted_days(day, int(value_of(days)))
    later = add(as_days(day), _on_grain(days, Fraction(1)))
    return replace(later, span=_calendar(replace(later.span, date=True)))


def shifted_days(day: Number, days: int) -> Number:
    """A date so many days later, before the calendar's end."""
    if isinstance(day, Constant):
        index = day.index + days
        return Constant(index, _calendar(Span(index, index, Fraction(1), nullable=False, date=True)))
    later = _shifted(day, days)
    _calendar(later.span)
    return later


def _calendar(span: Span) -> Span:
    if not FIRST_DAY <= span.low <= span.high <= LAST_DAY:
        raise QueryError("a date that is moved so far may lie outside of the years 1 to 9999; move it by less")
    return span


def negate(inner: Number) -> Number:
    return times(inner, Fraction(-1))


def multiply(left: Number, right: Number) -> Number:
    _require_number(left, right)
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(right, Constant):
        return times(left, value_of(right))
    a, b = left.span, right.span
    if left == right:
        low = 0 if a.low <= 0 <= a.high else min(a.low**2, a.high**2)
        return Combined("multiply", left, right, span_of(low, a.largest**2, a.grain**2, a.nullable))
    corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
    span = span_of(min(corners), max(corners), a.grain * b.grain, a.nullable or b.nullable)
    return Combined("multiply", left, right, span)


def times(inner: Number, factor: Fraction) -> Number:
    """A constant factor changes the grain, not the index (but for its sign)."""
    _require_number(inner)
    if isinstance(inner, Constant):
        return constant(value_of(inner) * factor)
    if factor == 0 and not inner.span.nullable:
        return constant(Fraction(0))
    span = inner.span
    if factor == 0:
        return Scaled(inner, 0, 0, span_of(0, 0, span.grain, True))
    sign, grain = (1 if factor > 0 else -1), span.grain * abs(factor)
    low, high = sorted((span.low * sign, span.high * sign))
    if sign == 1 and grain == span.grain:
        return inner
    return Scaled(inner, sign, 0, span_of(low, high, grain, span.nullable))


def extreme(operation: Literal["least", "greatest"], left: Number, right: Number) -> Number:
    left, right = same_grain(left, right)
    a, b = left.span, right.span
    # SQL's LEAST and GREATEST pass over NULL where one side is known. So a side that is always known bounds the result
    # on the side that is picked, whatever the other is; and if none is, the hull of both is what is known.
    known = [span for span in (a, b) if not span.nullable] or None
    low, high = min(a.low, b.low), max(a.high, b.high)
    if known is not None and operation == "least":
        high = min(span.high for span in known)
    elif known is not None:
        low = max(span.low for span in known)
    return Combined(operation, left, right, span_of(low, high, a.grain, a.nullable and b.nullable, a.date))


def absolute(inner: Number) -> Number:
    _require_number(inner)
    if isinstance(inner, Constant):
        return constant(abs(value_of(inner)))
    span = inner.span
    low = 0 if span.low <= 0 <= span.high else min(abs(span.low), abs(span.high))
    return Absolute(inner, span_of(low, span.largest, span.grain, span.nullable))


def floored(inner: Number, step: Fraction) -> Number:
    """⌊value / step⌋, a whole number."""
    _require_number(inner)
    if isinstance(inner, Constant):
        return constant(Fraction(floor(value_of(inner) / step)))
    span, ratio = inner.span, inner.span.grain / step
    low, high = span.low * ratio.numerator, span.high * ratio.numerator
    if ratio.denominator == 1:
        return Scaled(inner, ratio.numerator, 0, span_of(low, high, Fraction(1), span.nullable))
    if ratio.numerator != 1:
        inner = Scaled(inner, ratio.numerator, 0, span_of(low, high, Fraction(1), span.nullable))
    divisor = min(ratio.denominator, max(abs(low), abs(high)) + 1)  # any larger one gives 0 and -1 as well
    return Floored(inner, divisor, span_of(low // divisor, high // divisor, Fraction(1), span.nullable))


def scaled(inner: Number, factor: int, span: Span) -> Number:
    """The index of a number, so many times, on a grid of its own."""
    return Scaled(inner, factor, 0, span)


def narrowed(inner: Number, low: Fraction, high: Fraction) -> Number:
    """A number of which more is known than follows from its parts; what is said of it must be so for every row."""
    if isinstance(inner, Constant):
        return inner
    span = inner.span
    least, most = max(span.low, ceil(low / span.grain)), min(span.high, floor(high / span.grain))
    return replace(inner, span=replace(span, low=least, high=most))


def choice(branches: tuple[tuple[Predicate, Number], ...], otherwise: Number | None) -> Number:
    numbers = list(same_grain(*(number for _, number in branches), *(() if otherwise is None else (otherwise,))))
    last = numbers.pop() if otherwise is not None else None
    spans = [number.span for number in numbers] + ([] if last is None else [last.span])
    span = _hull(spans, nullable=last is None or any(span.nullable for span in spans))
    return Choice(tuple(zip((predicate for predicate, _ in branches), numbers, strict=True)), last, span)


def first_known(options: tuple[Number, ...]) -> Number:
    options = same_grain(*options)
    spans = [option.span for option in options]
    return FirstKnown(options, _hull(spans, nullable=all(span.nullable for span in spans)))


def compare(operation: Operation, left: Number, right: Number) -> Predicate:
    """A comparison on one grid. A constant between two grid points moves to the one that leaves the truth unchanged."""
    if left.span.date != right.span.date:
        same_grain(left, right)
    if isinstance(left, Constant):
        if isinstance(right, Constant):
            return Always(bool(_HOLDS[operation](value_of(left), value_of(right))))
        left, right, operation = right, left, _FLIPPED[operation]
    if not isinstance(right, Constant):
        left, right = same_grain(left, right)
        return Compare(operation, left, right)
    place = value_of(right) / left.span.grain
    index = int(place)
    if place.denominator != 1:
        if operation == "=":
            return Always(False)
        if operation == "<>":
            return Known(left, negated=False) if left.span.nullable else Always(True)
        operation, index = ("<=", floor(place)) if operation in ("<", "<=") else (">=", ceil(place))
    # Past the ends of the span every comparison has one answer; keeping the constant near the span keeps it small.
    index = min(max(index, left.span.low - 1), left.span.high + 1)
    return Compare(operation, left, Constant(index, Span(index, index, left.span.grain, nullable=False)))


def one_of(subject: Number, constants: Sequence[Constant], negated: bool) -> Predicate:
    """Whether a number is, or is not, one of some constants. What is beyond its span, or between two points of its
    grid, it never is.
    """
    if any(constant.span.date != subject.span.date for constant in constants):
        same_grain(subject, *constants)
    span = subject.span
    places = {value_of(constant) / span.grain for constant in constants}
    indices = sorted(int(place) for place in places if place.denominator == 1 and span.low <= place <= span.high)
    if not indices:
        return Always(False) if not negated else Known(subject, negated=False) if span.nullable else Always(True)
    if len(indices) == 1:
        only = Constant(indices[0], Span(indices[0], indices[0], span.grain, nullable=False))
        return Compare("<>" if negated else "=", subject, only)
    return OneOf(subject, tuple(indices), negated)


def same_grain(*numbers: Number) -> tuple[Number, ...]:
    """All on the greatest common grain, all numbers or all dates."""
    if len({number.span.date for number in numbers}) > 1:
        raise QueryError("a date and a number do not mix here; write a date as DATE '2024-01-31'")
    grains = [number.span.grain for number in numbers]
    scale = lcm(*(grain.denominator for grain in grains))
    common = Fraction(gcd(*(int(grain * scale) for grain in grains)), scale)
    return tuple(_on_grain(number, common) for number in numbers)


def span_of(low: int, high: int, grain: Fraction, nullable: bool, date: bool = False) -> Span:
    """A span whose sum over all rows is exact in 128 bits, on a grain whose squares doubles hold."""
    if max(grain.numerator, grain.denominator).bit_length() > LONGEST_GRAIN:
        raise QueryError(
            "the constant factors of an expression make its steps too small, too large or too long to count with; "
            "use fewer factors, or round them"
        )
    if max(abs(low), abs(high)) >= WIDEST:
        reach = max(abs(low), abs(high)) * grain
        shown = f"{float(reach):.3g}" if reach < 10**300 else "10^300"
        raise QueryError(
            f"the expression can reach {shown} in steps of {grain if len(str(grain)) < 40 else 'almost nothing'}, "
            "too wide for an exact sum; use fewer factors, or a coarser grain in the policy"
        )
    return Span(low, high, grain, nullable, date)


def _require_number(*numbers: Number) -> None:
    if any(number.span.date for number in numbers):
        raise QueryError("arithmetic on dates is limited to their difference in days: `a - b`")


def as_days(number: Number) -> Number:
    """A date as the number of days since 1970-01-01."""
    span = replace(number.span, date=False)
    return Constant(number.index, span) if isinstance(number, Constant) else Scaled(number, 1, 0, span)


def as_date(days: Number, low: int, high: int) -> Number:
    """Days since 1970-01-01 as a date, of which it is known between which days it lies."""
    span = days.span
    return replace(
        days, span=_calendar(Span(max(span.low, low), min(span.high, high), span.grain, span.nullable, True))
    )


def _on_grain(number: Number, grain: Fraction) -> Number:
    factor = int(number.span.grain / grain)
    if factor == 1:
        return number
    span = number.span
    scaled = span_of(span.low * factor, span.high * factor, grain, span.nullable)
    if isinstance(number, Constant):
        return Constant(number.index * factor, scaled)
    return Scaled(number, factor, 0, scaled)


def _shifted(inner: Number, offset: int) -> Number:
    if offset == 0:
        return inner
    span = inner.span
    return Scaled(
        inner, 1, offset, span_of(span.low + offset, span.high + offset, span.grain, span.nullable, span.date)
    )


def _hull(spans: list[Span], nullable: bool) -> Span:
    low, high = min(span.low for span in spans), max(span.high for span in spans)
    return span_of(low, high, spans[0].grain, nullable, spans[0].date)

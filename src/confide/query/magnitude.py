"""How large and how small released numbers can become: what no double holds is refused from the text.

Noise has no bound, so this is no proof that arithmetic on released numbers stays finite: that arithmetic is total (see
`release.evaluation`). It keeps a question from being paid for whose answer could say nothing.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import log2
from typing import assert_never

from confide.errors import QueryError
from confide.policy.column import INDEX_LIMIT, ROWS_LIMIT
from confide.query.question import (
    Arithmetic,
    Association,
    Between,
    Commonest,
    Dated,
    Estimated,
    FixedNumber,
    Magnitude,
    Mean,
    Measured,
    Occurs,
    Rounded,
    Spread,
    Value,
)

WIDEST = 1_000
"""Doubles reach from 2⁻¹⁰²² to 2¹⁰²⁴; a little less leaves room for intervals."""
LONGEST = 1_000
"""Binary digits of the numerator and the denominator of a constant."""

Scale = tuple[float, float]
"""The smallest step and the largest size, as powers of two."""


def held(value: Fraction) -> Fraction:
    """A constant, if a double holds it and exact arithmetic with it is short."""
    if max(abs(value.numerator), value.denominator).bit_length() > LONGEST:
        raise QueryError(
            "the constants of the query multiply or divide to a number that is too large, too small or too long to "
            "hold; write fewer factors, or round them"
        )
    return value


def check_magnitudes(
    values: Iterable[Value], measures: Sequence[tuple[Fraction, int]], grains: Sequence[Fraction]
) -> None:
    """Refuse values that leave what doubles hold. `measures`: the grain of each, and what one row adds at most;
    `grains`: of each statistic.
    """
    rows, index = log2(ROWS_LIMIT), log2(INDEX_LIMIT)
    measured = [(log(grain), log(grain) + rows + max(1, most).bit_length()) for grain, most in measures]
    estimated = [(log(grain), log(grain) + rows + index) for grain in grains]
    known: dict[int, Scale] = {}

    def scale(value: Value) -> Scale:
        if id(value) not in known:
            known[id(value)] = _within(_scale(value))
        return known[id(value)]

    def _scale(value: Value) -> Scale:
        match value:
            case Measured(measure):
                return measured[measure]
            case Estimated(statistic) | Dated(Estimated(statistic)) | Commonest(statistic):
                return estimated[statistic]
            case FixedNumber(constant):
                size = log(abs(constant)) if constant else 0.0
                return size, size
            case Mean(grain=grain):
                return log(grain), log(grain) + index
            case Spread(grain=grain):
                return log(grain), 2 * (log(grain) + index)
            case Association(x=x, y=y):
                # A slope is y over x, and no flatter than one grain over a range; a covariance is their product.
                sizes = [abs(log(axis.grain)) + index for axis in (x, y)]
                return -sum(sizes), sum(sizes)
            case Occurs():
                return 0.0, 1.0
            case Arithmetic(operation, left, right):
                return _combined(operation, scale(left), scale(right))
            case Between(inner) | Magnitude(inner) | Rounded(inner):
                return scale(inner)
            case _:
                assert_never(value)

    for value in values:
        scale(value)


def log(value: Fraction) -> float:
    """The power of two, however long the number is."""
    return log2(value.numerator) - log2(value.denominator)


def _combined(operation: str, left: Scale, right: Scale) -> Scale:
    if operation == "*":
        return left[0] + right[0], left[1] + right[1]
    if operation == "/":
        # Of a noisy divisor the step is taken: nearer to zero nothing is divided by.
        return left[0] - right[1], left[1] - right[0]
    return min(left[0], right[0]), max(left[1], right[1]) + 1


def _within(scale: Scale) -> Scale:
    if not -WIDEST <= scale[0] <= scale[1] + 1 <= WIDEST:
        raise QueryError(
            "a column of the result could be larger, or smaller, than the numbers that it is computed in (about 1e300 "
            "and 1e-300); use fewer factors, or constants nearer to 1"
        )
    return scale

"""Sums that are told by another one: what they are multiples of, when that gains, and that they come out the same."""

from fractions import Fraction

import pytest

from confide.query import number as arithmetic
from confide.query.affine import AskedSum, affine, shared_sums, told_by
from confide.query.question import Arithmetic, FixedNumber, Measured, Value
from confide.query.tree import Always, Number, Reading, Span

EVERY = Always(True)
X = Reading(None, Span(0, 50, Fraction(1, 10), nullable=False))  # type: ignore[arg-type]


def shifted(number: Number, by: Fraction | int) -> Number:
    return arithmetic.add(number, arithmetic.constant(Fraction(by)))


def asked(number: Number, most: Fraction | int) -> AskedSum:
    return AskedSum(number, EVERY, Fraction(most), 1)


CASES: list[tuple[Number, Fraction, Fraction]] = [
    (X, Fraction(1), Fraction(0)),
    (shifted(X, 3), Fraction(1), Fraction(3)),
    (shifted(X, Fraction(1, 30)), Fraction(1), Fraction(1, 30)),
    (arithmetic.times(X, Fraction(-7, 2)), Fraction(-7, 2), Fraction(0)),
    (arithmetic.times(shifted(X, 3), Fraction(2)), Fraction(2), Fraction(6)),
    (shifted(arithmetic.times(shifted(X, -1), Fraction(-1, 3)), 5), Fraction(-1, 3), Fraction(16, 3)),
]


def exact(value: Value, totals: list[Fraction]) -> Fraction:
    match value:
        case Measured(place):
            return totals[place]
        case FixedNumber(constant):
            return constant
        case Arithmetic("+", left, right):
            return exact(left, totals) + exact(right, totals)
        case Arithmetic("*", left, right):
            return exact(left, totals) * exact(right, totals)
    raise AssertionError(value)


@pytest.mark.parametrize(("number", "factor", "shift"), CASES, ids=range(len(CASES)))
def test_a_number_is_a_multiple_of_its_base_and_a_constant(number: Number, factor: Fraction, shift: Fraction) -> None:
    found = affine(number)
    assert (found.base, found.factor, found.shift) == (X, factor, shift)


def test_every_sum_is_told_by_every_other() -> None:
    values = [Fraction(index, 10) for index in (0, 3, 17, 50, 50)]
    for wanted, factor, shift in CASES:
        for measured, other_factor, other_shift in CASES:
            told = told_by(affine(wanted), affine(measured), 0, 1)
            total = sum((other_factor * value + other_shift for value in values), Fraction(0))
            truth = sum((factor * value + shift for value in values), Fraction(0))
            assert exact(told, [total, Fraction(len(values))]) == truth


def test_what_is_shared() -> None:
    many = [asked(shifted(X, by), 5 + by) for by in range(90)]
    assert shared_sums(many) == {(X, EVERY): X}
    assert shared_sums([asked(shifted(X, 1), 6), asked(X, 5)]) == {(X, EVERY): X}
    multiples = [asked(arithmetic.times(X, Fraction(2)), 10), asked(arithmetic.times(X, Fraction(-1)), 5)]
    assert list(shared_sums(multiples)) == [(X, EVERY)]
    assert shared_sums([asked(X, 5)]) == {}
    assert shared_sums([]) == {}


def test_what_would_be_wider_is_not_shared() -> None:
    """x and x - 5, each of which one unit changes by 5: the second from the first and a count would have twice that."""
    assert shared_sums([asked(X, 5), asked(shifted(X, -5), 5)]) == {}
    assert shared_sums([asked(X, 0), asked(shifted(X, 1), 1)]) == {}
    other = AskedSum(shifted(X, 1), Always(False), Fraction(6), 1)
    assert shared_sums([asked(X, 5), other]) == {}, "other rows"

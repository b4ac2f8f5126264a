"""Interval arithmetic: on every point of the spans a computed number stays inside its own, on the grid it says."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import QueryError
from confide.policy import Number as NumberColumn
from confide.query import number as arithmetic
from confide.query.tree import Always, Compare, Constant, Field, Known, Number, Reading, Span
from tests.engine.reference import COMPARE, Reference

GRAINS = [Fraction(1), Fraction(1, 4), Fraction(3), Fraction(2, 3)]


def reading(name: str, low: int, high: int, grain: Fraction) -> Reading:
    column = NumberColumn(name, low * grain, high * grain, grain)
    return Reading(Field("s", column), Span(low, high, grain))


A, B = reading("a", -2, 3, Fraction(1, 4)), reading("b", 1, 2, Fraction(3))
LEAVES = st.sampled_from([A, B]) | st.fractions(-3, 3, max_denominator=4).map(arithmetic.constant)


def _trees(inner: st.SearchStrategy[Number]) -> st.SearchStrategy[Number]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda pair: arithmetic.add(*pair)),
        pairs.map(lambda pair: arithmetic.subtract(*pair)),
        pairs.map(lambda pair: arithmetic.multiply(*pair)),
        pairs.map(lambda pair: arithmetic.extreme("least", *pair)),
        pairs.map(lambda pair: arithmetic.extreme("greatest", *pair)),
        pairs.map(arithmetic.first_known),
        inner.map(arithmetic.absolute),
        st.tuples(inner, st.fractions(-3, 3, max_denominator=3)).map(lambda pair: arithmetic.times(*pair)),
        st.tuples(inner, inner, inner).map(
            lambda three: arithmetic.choice(((arithmetic.compare("<", three[0], three[1]), three[2]),), three[0])
        ),
    )


TREES: st.SearchStrategy[Number] = st.recursive(LEAVES, _trees, max_leaves=6)


@given(TREES)
def test_a_computed_number_stays_in_its_span(node: Number) -> None:
    values_a = [None, *(index * A.span.grain for index in range(-2, 4))]
    values_b = [None, *(index * B.span.grain for index in range(1, 3))]
    reference = Reference({})
    for a, b in product(values_a, values_b):
        index = reference.number(node, {"s": {"a": a, "b": b}})
        if index is None:
            assert node.span.nullable
        else:
            assert node.span.low <= index <= node.span.high


@pytest.mark.parametrize("one", [(-2, 3), (1, 2), (-3, -1), (0, 4)])
@pytest.mark.parametrize("two", [(-2, 3), (1, 2), (-3, -1), (0, 4)])
def test_a_product_reaches_from_corner_to_corner(one: tuple[int, int], two: tuple[int, int]) -> None:
    product_of = [a * b for a in range(one[0], one[1] + 1) for b in range(two[0], two[1] + 1)]
    found = arithmetic.multiply(reading("a", *one, Fraction(1)), reading("b", *two, Fraction(1))).span
    assert (found.low, found.high) == (min(product_of), max(product_of))


@pytest.mark.parametrize("ends", [(-7, 5), (-7, -3), (2, 9), (0, 1)])
@pytest.mark.parametrize("step", [1, 2, 3, 50])
def test_a_floor_reaches_from_that_of_one_end_to_that_of_the_other(ends: tuple[int, int], step: int) -> None:
    found = arithmetic.floored(reading("a", *ends, Fraction(1)), Fraction(step)).span
    assert (found.low, found.high) == (ends[0] // step, ends[1] // step)


@pytest.mark.parametrize(
    ("low", "high", "least", "most"), [(-9, 2, 0, 81), (-2, 9, 0, 81), (-9, -3, 9, 81), (3, 9, 9, 81)]
)
def test_a_square_reaches_as_far_as_its_number_on_either_side(low: int, high: int, least: int, most: int) -> None:
    number = reading("a", low, high, Fraction(1, 2))
    assert arithmetic.multiply(number, number).span == Span(least, most, Fraction(1, 4))


@given(st.sampled_from(["<", "<=", "=", "<>", ">=", ">"]), st.fractions(-2, 2, max_denominator=8))
def test_a_comparison_with_a_constant_off_the_grid_is_exact(operation: str, limit: Fraction) -> None:
    condition = arithmetic.compare(operation, A, arithmetic.constant(limit))  # type: ignore[arg-type]
    for index in range(A.span.low, A.span.high + 1):
        value = index * A.span.grain
        assert Reference({}).holds(condition, {"s": {"a": value}}) == COMPARE[operation](value, limit)
    assert not Reference({}).holds(condition, {"s": {"a": None}})


def test_constants_are_folded() -> None:
    two, three = arithmetic.constant(Fraction(2)), arithmetic.constant(Fraction(3))
    assert arithmetic.multiply(two, three) == arithmetic.constant(Fraction(6))
    assert arithmetic.add(two, three) == arithmetic.constant(Fraction(5))
    assert arithmetic.compare("<", two, three) == Always(True)
    assert arithmetic.times(two, Fraction(1, 2)) == arithmetic.constant(Fraction(1))


def test_a_constant_far_away_is_kept_near() -> None:
    condition = arithmetic.compare("<", A, arithmetic.constant(Fraction(10) ** 30))
    assert isinstance(condition, Compare)
    assert isinstance(condition.right, Constant)
    assert condition.right.index == A.span.high + 1


def test_unequal_to_what_is_not_on_the_grid_is_to_be_known() -> None:
    assert arithmetic.compare("<>", A, arithmetic.constant(Fraction(1, 8))) == Known(A, negated=False)
    assert arithmetic.compare("=", A, arithmetic.constant(Fraction(1, 8))) == Always(False)


@pytest.mark.parametrize("exponent", [82, 100, 2000])
def test_what_128_bits_do_not_sum_is_refused(exponent: int) -> None:
    with pytest.raises(QueryError, match="too wide for an exact sum"):
        arithmetic.span_of(0, 2**exponent, Fraction(1), False)
    assert arithmetic.span_of(0, 2**82 - 1, Fraction(1), False).high == 2**82 - 1


def test_dates_do_not_add() -> None:
    day = Reading(A.field, Span(0, 10, Fraction(1), date=True))
    with pytest.raises(QueryError, match="days between two dates"):
        arithmetic.add(day, day)
    with pytest.raises(QueryError, match="do not mix"):
        arithmetic.compare("<", day, A)
    assert arithmetic.subtract(day, day).span.low == -10

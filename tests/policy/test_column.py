from datetime import date
from fractions import Fraction

import pytest

from confide.policy import Category, Date, Number, Unbounded
from confide.policy.column import INDEX_LIMIT, ROWS_LIMIT, TOTAL_LIMIT, show


def test_a_number_lies_on_its_grid() -> None:
    cost = Number("cost", Fraction(-5), Fraction(10000), Fraction(1, 100))
    assert (cost.low_index, cost.high_index, cost.steps) == (-500, 1_000_000, 1_000_501)
    assert not cost.integer
    assert Number("age", Fraction(0), Fraction(115)).integer


def test_a_date_counts_days_since_1970() -> None:
    day = Date("day", date(1969, 12, 31), date(1970, 1, 2))
    assert (day.low_index, day.high_index, day.steps, day.grain) == (-1, 1, 3, 1)


def test_the_kind_of_a_category() -> None:
    assert Category("sex", ("F", "M")).kind is str
    assert Category("code", (1, 2)).kind is int
    assert Category("ok", (False, True)).kind is bool


def test_exact_sums_of_any_column_fit_the_engines_integers() -> None:
    assert INDEX_LIMIT * ROWS_LIMIT < TOTAL_LIMIT


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: Number("x", Fraction(2), Fraction(1)), "reversed"),
        (lambda: Number("x", Fraction(1), Fraction(1)), "single value"),
        (lambda: Number("x", Fraction(0), Fraction(1), Fraction(0)), "grain"),
        (lambda: Number("x", Fraction(0), Fraction(1), Fraction(-1)), "grain"),
        (lambda: Number("x", Fraction(0), Fraction(1, 3), Fraction(1, 10)), "not a multiple"),
        (lambda: Number("x", Fraction(0), Fraction(2**62)), "2^62"),
        (lambda: Number("x", Fraction(-(2**62)), Fraction(0)), "2^62"),
        (lambda: Number("x", Fraction(0), Fraction(10), Fraction(1), Fraction(1, 2)), "multiple"),
        (lambda: Number("x", Fraction(0), Fraction(10), Fraction(1), Fraction(0)), "multiple"),
        (lambda: Number("x", Fraction(0), Fraction(10), Fraction(1), Fraction(11)), "wider"),
        (lambda: Date("x", date(2020, 1, 2), date(2020, 1, 1)), "reversed"),
        (lambda: Date("x", date(2020, 1, 1), date(2020, 1, 9), Fraction(3, 2)), "one day"),
        (lambda: Category("x", ()), "empty"),
        (lambda: Category("x", ("1", 1)), "mix"),
        (lambda: Category("x", (True, 1)), "mix"),
        (lambda: Category("x", (2**62,)), "too large"),
        (lambda: Category("x", ("a", "b\0")), "no database stores"),
        (lambda: Category("x", ("\ud800",)), "no database stores"),
        (lambda: Unbounded("x", Fraction(0)), "grain"),
    ],
)
def test_columns_cannot_be_built_wrong(build: object, word: str) -> None:
    with pytest.raises(ValueError, match=word.replace("^", r"\^")):
        build()  # type: ignore[operator]


def test_a_category_cannot_hold_a_value_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        Category("x", ("a", "b", "a"))


def test_the_largest_column_is_allowed() -> None:
    assert Number("x", Fraction(1 - 2**62), Fraction(2**62 - 1)).high_index == 2**62 - 1


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Fraction(3), "3"),
        (Fraction(-3), "-3"),
        (Fraction(1, 100), "0.01"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(5, 2), "2.5"),
        (Fraction(1, 10**9), "0.000000001"),
        (Fraction(1, 3), "1/3"),
        (Fraction(0), "0"),
    ],
)
def test_exact_numbers_are_shown_as_people_write_them(amount: Fraction, text: str) -> None:
    assert show(amount) == text
    assert Fraction(text) == amount

"""Which values are sums of means, with what weights."""

from fractions import Fraction

from confide.query.question import Arithmetic, FixedNumber, Magnitude, Mean, Measured, Rounded
from confide.query.sample_means import sample_means

ONE, TWO = Mean(0, 1, 0, 0, 1, Fraction(1)), Mean(2, 1, 5, 0, 10, Fraction(1))


def fixed(value: int) -> FixedNumber:
    return FixedNumber(Fraction(value))


def test_sums_of_multiples() -> None:
    value = Arithmetic("-", Arithmetic("*", fixed(100), ONE), Arithmetic("/", TWO, fixed(4)))
    found = sample_means(Rounded(Arithmetic("+", value, fixed(7)), 2))
    assert found is not None
    assert dict((mean, weight) for weight, mean in found.means) == {ONE: 100, TWO: Fraction(-1, 4)}  # noqa: C402
    assert (found.constant, found.digits) == (7, 2)


def test_a_mean_that_occurs_twice_is_one() -> None:
    found = sample_means(Arithmetic("+", ONE, Arithmetic("*", ONE, fixed(2))))
    assert found is not None
    assert found.means == ((Fraction(3), ONE),)


def test_what_is_no_such_sum() -> None:
    for value in (
        fixed(3),
        Measured(0),
        Arithmetic("*", ONE, TWO),
        Arithmetic("/", fixed(1), ONE),
        Magnitude(ONE),
        Arithmetic("+", ONE, Measured(0)),
    ):
        assert sample_means(value) is None

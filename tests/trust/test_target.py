"""How a distance is read, and which numbers lie inside."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.trust.target import Distance, Target


@pytest.mark.parametrize(
    ("given", "amount", "relative"),
    [
        (50, 50, False),
        (0.1, Fraction(1, 10), False),
        ("2.5", Fraction(5, 2), False),
        ("1e3", 1000, False),
        ("5%", Fraction(1, 20), True),
        (" .2 % ", Fraction(1, 500), True),
        (Fraction(1, 3), Fraction(1, 3), False),
        (np.float64(4.5), Fraction(9, 2), False),
        (Decimal("0.5"), Fraction(1, 2), False),
    ],
)
def test_distances_are_read_exactly(given: object, amount: object, relative: bool) -> None:
    assert Distance.parse(given) == Distance(Fraction(amount), relative)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [0, -1, "0%", "-5%", "abc%", "abc", "%", "", "5%%", "1/0", float("nan"), float("inf"), "nan%", True, None, [5],
     10**31, "1e-400", "9" * 100],
)  # fmt: skip
def test_what_is_no_distance_is_refused_with_what_to_write(given: object) -> None:
    with pytest.raises(ParameterError, match=r"within=.*such as 50, or a share of the synthetic answer, such as '5%'"):
        Distance.parse(given)


def test_a_share_is_of_the_answer_and_a_number_is_in_units_of_the_column() -> None:
    assert Distance.parse("10%").tau(Fraction(-40), Fraction(1, 100)) == 4
    assert Distance.parse(3).tau(Fraction(-40), Fraction(1, 100)) == 300
    assert str(Distance.parse("12.8%")) == "12.8%"
    assert str(Distance.parse(50)) == "50"


@pytest.mark.parametrize(
    ("answer", "tau", "first", "last"),
    [(10, 3, 8, 12), (10, Fraction(5, 2), 8, 12), (10, Fraction(1, 10), 10, 10), (Fraction(21, 2), 1, 10, 11)],
)
def test_the_ends_are_outside(answer: Fraction, tau: Fraction, first: int, last: int) -> None:
    target = Target(Fraction(answer), Fraction(tau))
    assert (target.first, target.last) == (first, last)
    assert target.low < first
    assert last < target.high

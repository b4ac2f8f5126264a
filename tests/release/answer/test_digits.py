"""As many digits as an interval tells apart, and never an interval that is narrower than the exact one."""

from decimal import Decimal
from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.release.answer.digits import half_width, number, with_interval


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (20576, 20564, 20588, ("20,576", "20,564 … 20,588")),
        (92006, 91736, 92276, ("92,010", "91,730 … 92,280")),
        (424.8812, 423.83, 425.93, ("424.9", "423.8 … 426.0")),
        (8.581, 8.511, 8.651, ("8.581", "8.511 … 8.651")),
        (0.00001234, 0.0000111, 0.0000134, ("0.0000123", "0.0000111 … 0.0000134")),
        (5.0, 5.0, 5.0, ("5", "5 … 5")),
        (3.0, -inf, 9.0, ("3", "-∞ … 9")),
        (-0.001, -1.5, 1.4, ("0.0", "-1.5 … 1.4")),
        (41.3, 0.0, 105.0, ("41", "0 … 105")),
        (2**70, 2**70 - 10**18, 2**70 + 10**18, ("1.1806e+21", "1.1795e+21 … 1.1816e+21")),
        (2**2000, 0, 2**2001, (None, None)),
    ],
)
def test_digits(value: float, low: float, high: float, shown: tuple[str | None, str | None]) -> None:
    found = with_interval(value, low, high)
    assert shown in (found, (None, None))
    assert all(len(text) < 60 for text in found)


def read(text: str) -> Fraction:
    return Fraction(Decimal(text.replace(",", "")))


@given(
    st.integers(-(10**18), 10**18) | st.floats(-1e18, 1e18),
    st.integers(0, 10**9) | st.floats(0, 1e9),
    st.integers(0, 10**9) | st.floats(0, 1e9),
)
def test_an_interval_that_is_shown_holds_what_the_exact_one_holds(value: float, below: float, above: float) -> None:
    low, high = value - below, value + above
    if low == high:
        return
    estimate, interval = with_interval(value, low, high)
    ends = [read(text) for text in interval.split(" … ")]
    written = [Fraction(Decimal(repr(end))) for end in (low, high)]
    assert ends[0] <= written[0]
    assert ends[1] >= written[1]
    assert ends[0] <= read(estimate) <= ends[1]
    assert ends[1] - ends[0] <= Fraction(5, 4) * (written[1] - written[0]) + 2 * isinstance(low, int)


def test_numbers_and_half_widths() -> None:
    assert [number(part) for part in (1234567, 0.5, inf, -inf, 1e20, 1234.56)] == [
        "1,234,567", "0.5", "∞", "-∞", "1e+20", "1,234.6",
    ]  # fmt: skip
    assert [half_width(part) for part in (12.31, 0.0451, 270.2, 0, inf)] == ["13", "0.046", "280", "0", "∞"]

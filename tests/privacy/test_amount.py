import contextlib
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.privacy.amount import QUANTA, from_quanta, parse_amount, show, to_quanta_down, to_quanta_up

EXACT = [
    (1, Fraction(1)),
    (0.1, Fraction(1, 10)),
    (1e-9, Fraction(1, 10**9)),
    (Fraction(1, 3), Fraction(1, 3)),
    (Decimal("0.25"), Fraction(1, 4)),
    ("0.1", Fraction(1, 10)),
    (" 1/3 ", Fraction(1, 3)),
    ("1e-9", Fraction(1, 10**9)),
    (".5", Fraction(1, 2)),
    ("3.", Fraction(3)),
    ("1e6", Fraction(10**6)),
    (np.float64(0.1), Fraction(1, 10)),
    (np.int64(2), Fraction(2)),
]

REFUSED = [
    0,
    0.0,
    "0",
    -1,
    -0.5,
    "-1",
    True,
    False,
    float("nan"),
    float("inf"),
    float("-inf"),
    "nan",
    "-inf",
    "Infinity",
    1e308,
    "1e308",
    "1e-400",
    "1e999999999",
    "1e-999999999",
    "9" * 10_000,
    "1/" + "9" * 10_000,
    "1/0",
    "abc",
    "",
    "0x10",
    "1_0",
    "١",
    "1;2",
    10**5000,
    -(10**5000),
    Fraction(1, 10**5000),
    Fraction(10**70 + 1, 10**70),
    Decimal("1e999999"),
    Decimal("-1e-999999"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1." + "0" * 5000 + "1"),
    np.float64("nan"),
    np.bool_(True),
    None,
    [1],
    1j,
    b"1",
    10**6 + 1,
    1e-31,
]


@pytest.mark.parametrize(("given_value", "exact"), EXACT, ids=repr)
def test_reads_what_is_meant(given_value: object, exact: Fraction) -> None:
    assert parse_amount(given_value, "epsilon") == exact


@pytest.mark.parametrize("value", REFUSED, ids=[f"{type(value).__name__}-{n}" for n, value in enumerate(REFUSED)])
def test_refuses_with_the_name_and_the_range(value: object) -> None:
    started = time.perf_counter()
    with pytest.raises(ParameterError, match=r"epsilon = .* is refused: .*above 0 \(from 1e-30 to 1e6\)") as caught:
        parse_amount(value, "epsilon")
    assert len(str(caught.value)) < 300
    assert time.perf_counter() - started < 1


def test_the_message_shows_what_was_given() -> None:
    with pytest.raises(ParameterError, match="within = -1 is refused: it must be above 0"):
        parse_amount(-1, "within")


@given(st.floats(min_value=1e-30, max_value=1e6))
def test_a_float_is_its_shortest_decimal(value: float) -> None:
    assert parse_amount(value, "epsilon") == Fraction(repr(value)) == parse_amount(repr(value), "epsilon")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ParameterError):
        assert parse_amount(text, "epsilon") > 0


@given(st.integers(1, 40), st.integers(1, 1000), st.integers(0, 30))
def test_decimals_and_small_fractions_are_whole_quanta(denominator: int, numerator: int, digits: int) -> None:
    for amount in (Fraction(numerator, denominator), Fraction(numerator, 10**digits)):
        assert to_quanta_up(amount) == to_quanta_down(amount)
        assert from_quanta(to_quanta_up(amount)) == amount


@given(st.fractions(min_value=0, max_value=10))
def test_rounds_up_by_less_than_a_quantum(amount: Fraction) -> None:
    assert 0 <= from_quanta(to_quanta_up(amount)) - amount < Fraction(1, QUANTA)
    assert 0 <= amount - from_quanta(to_quanta_down(amount)) < Fraction(1, QUANTA)


def test_shows_short_decimals() -> None:
    assert [show(Fraction(text)) for text in ("3", "0.1", "1/3", "1e-9", "123456.7")] == [
        "3",
        "0.1",
        "0.333333",
        "1e-09",
        "123457",
    ]

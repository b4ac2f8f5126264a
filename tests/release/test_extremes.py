"""Whatever numbers an answer holds, it can be kept, read back, shown and taken elsewhere.

Which of them fail would otherwise tell of numbers that were never shown. And what is kept stays as it is: the same call
gives it again.
"""

import itertools
import json
import math
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from confide.release.answer.answer import Answer, KeyColumn, ValueColumn
from confide.release.cost import Cost
from confide.release.verdict.verdict import Verdict, Verdicts

INTEGERS = (0, -1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40, 10**300, -(10**400))
NUMBERS = (0.0, -0.0, 5e-324, 1e-300, 1e15, 1e22, 1.7976931348623157e308, math.inf, -math.inf, math.nan)
KEYS: dict[str, tuple[Any, ...]] = {
    "text": ("", "a", "\x00\x1b[2J", "🜚", None, "\u2028"),
    "integer": (0, -(2**63), 2**63 - 1, None),
    "number": (0.1, -0.0, 1e308, 5e-324, None),
    "boolean": (True, False, None),
    "date": (date(1, 1, 1), date(9999, 12, 31), None),
}


def answer(*columns: KeyColumn | ValueColumn) -> Answer:
    return Answer(columns, 0.95, Cost(Fraction(1, 3)), "row", "add-remove", "q", ("a note",))


def shown(found: Answer) -> None:
    """Every way in which an answer leaves."""
    again = Answer.from_bytes(found.to_bytes())
    assert again.to_bytes() == found.to_bytes()
    for one in (found, again):
        assert str(one)
        assert one._repr_html_()
        json.loads(one.to_json(), parse_constant=pytest.fail)
        assert len(one.to_dicts()) == len(one)
        assert one.to_arrow().num_rows == len(one)
        assert one.to_polars().height == len(one)
        assert len(one.to_pandas()) == len(one)
        json.loads(one.plot().to_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize("value", INTEGERS, ids=lambda value: f"{len(str(value))} digits")
def test_whole_numbers_of_any_size(value: int) -> None:
    for low, high in ((value, value), (value - 1, value + 1), (-math.inf, math.inf)):
        shown(answer(ValueColumn("n", "integer", (value, 1), (low, 0), (high, 2), "laplace", "always")))


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_of_any_kind(value: float) -> None:
    for low, high in itertools.product(NUMBERS, NUMBERS):
        shown_quickly = answer(ValueColumn("n", "number", (value,), (low,), (high,), "laplace", "density", "a note"))
        assert Answer.from_bytes(shown_quickly.to_bytes()).to_bytes() == shown_quickly.to_bytes()
    shown(answer(ValueColumn("n", "number", (value, 1.0), (value, value), (value, 2.0), "laplace", "always")))


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_kind(kind: Any) -> None:
    values = KEYS[kind]
    numbers = tuple(range(len(values)))
    shown(answer(KeyColumn("k", kind, values), ValueColumn("n", "integer", numbers, numbers, numbers, "m", "always")))


def test_an_answer_without_rows() -> None:
    shown(answer(KeyColumn("k", "text", ()), ValueColumn("n", "number", (), (), (), "laplace", "always")))


@pytest.mark.parametrize("value", [*INTEGERS[:-1], *NUMBERS])
def test_verdicts_on_any_number(value: float) -> None:
    one = Verdict(
        True, "SELECT 1", {"k": None, "d": date(1, 1, 1)}, value, (value, value), "5", "svt", "why", value, True, None,
        "balanced", "", 0.5, Cost(Fraction(1)),
    )  # fmt: skip
    several = Verdicts((one,), Cost(Fraction(1)))
    again = Verdicts.from_bytes(several.to_bytes())
    assert again.to_bytes() == several.to_bytes()
    for made in (several, again):
        assert str(made)
        assert str(made[0])
        assert made._repr_html_()
        json.loads(made.to_json())

"""Roots and logarithms: engines may differ in the last bits of a function and still give one integer."""

import math
from fractions import Fraction
from random import Random
from time import process_time

import pytest

from confide.errors import QueryError
from confide.query import bind
from confide.query.curve import _written_out, exact_value, scale_of
from confide.query.tree import CurveValue
from tests.query.samples import CATALOG, POLICIES

FUNCTIONS = [
    "SQRT(income)",
    "LN(income + 1)",
    "LOG(2, age + 1)",
    "EXP(height)",
    "POWER(income, 0.3)",
    "POWER(age + 1, -2.5)",
]
DOUBLES = {"sqrt": math.sqrt, "ln": math.log, "exp": math.exp}


def curve(expression: str) -> CurveValue:
    question = bind(f"SELECT SUM({expression}) AS s FROM person", POLICIES["row"], CATALOG)
    (subject,) = {cell.subject for cell in question.summary.cells if cell.kind == "total"}
    assert isinstance(subject, CurveValue)
    return subject


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_any_engine_within_the_assumed_error_gives_the_exact_integer(expression: str) -> None:
    """The function of every engine is off by up to 2⁻⁴³ of its value, in either direction."""
    node, rng = curve(expression), Random(3)
    inner, grain, scale = node.inner.span, node.span.grain, scale_of(node.kind, node.parameter, node.span.grain)
    written = dict(node.written)
    for index in {inner.low, inner.high, *(rng.randint(inner.low, inner.high) for _ in range(3_000))}:
        x = float(index) * float(inner.grain)
        value = x ** float(node.parameter) if node.kind == "power" else DOUBLES[node.kind](x)
        exact = math.floor(
            Fraction(exact_value(node.kind, node.parameter, index * inner.grain)) / grain + Fraction(1, 2)
        )
        for off in (-(2.0**-43), 0.0, 2.0**-43):
            told = written.get(index, math.floor(value * (1 + off) * scale + 0.5))
            assert told == exact
        assert node.span.low <= exact <= node.span.high


def test_points_beside_a_step_are_written_out() -> None:
    """√(n/4 + …) meets half a grain exactly: with a grain of 1, ½ is the root of ¼."""
    found = _written_out("sqrt", Fraction(0), (0, 100), Fraction(1, 4), Fraction(1))
    assert dict(found or ()) == {1: 1, 9: 2, 25: 3, 49: 4, 81: 5}


def test_many_of_them_are_bound_in_a_second_or_refused() -> None:
    text = ", ".join(f"SUM(SQRT(income + {place})) AS s{place}" for place in range(190))
    begun = process_time()
    with pytest.raises(QueryError, match="says more than"):
        bind(f"SELECT {text} FROM person", POLICIES["row"], CATALOG)
    assert process_time() - begun < 2


def test_a_number_with_too_many_points_is_told_to_round() -> None:
    with pytest.raises(QueryError, match="too fine"):
        curve("LN(income * 0.000000001 * height * height + 0.0000000000001)")


@pytest.mark.parametrize(
    "function", ["SQRT({})", "LN({})", "LOG({})", "LOG(3, {})", "EXP({})", "POWER({}, -2.5)", "POWER({}, 99.5)"]
)
@pytest.mark.parametrize("size", ["0", "1", "-1", "1e3", "-2500", "1e12", "-1e12", "1e-12", "1e30", "1e300", "-1e300"])
def test_a_function_is_bound_or_refused_in_words_however_far_its_argument_lies(function: str, size: str) -> None:
    """EXP of something below −1,000 ended in an error of the arithmetic itself."""
    for argument in (f"age * {size}", f"age + {size}", f"height * {size}", size, f"CASE WHEN age > 0 THEN {size} END"):
        for place in (f"SUM({function.format(argument)})", f"{function.format(f'COUNT(*) * {size}')}"):
            try:
                bind(f"SELECT {place} AS s FROM person", POLICIES["row"], CATALOG)
            except QueryError:
                continue

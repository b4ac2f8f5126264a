"""Arithmetic on released numbers is total: whatever noise came out, a finite estimate lies inside its interval."""

import json
from fractions import Fraction
from math import inf, isfinite, isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import QueryError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Measurement, NoNoise
from confide.privacy.loss import PureDP
from confide.query import bind
from confide.query.question import (
    Arithmetic,
    Association,
    Axis,
    Between,
    Comparison,
    Estimated,
    FixedNumber,
    Magnitude,
    Mean,
    Measure,
    Measured,
    Occurs,
    Order,
    Question,
    Rounded,
    ShownValue,
    Spread,
    Value,
)
from confide.query.tree import Always, Scan, Summary
from confide.release.answer.answer import Answer
from confide.release.answer.answer_table import AnswerTable
from confide.release.answer.estimate import Estimate
from confide.release.answer.evaluation import Evaluator
from confide.release.answer.miss_rate import needed_confidences
from confide.release.cost import Cost
from tests.query.samples import CATALOG, POLICIES

GRAINS = (Fraction(1), Fraction(1, 100), Fraction(10) ** 120, Fraction(1, 10**120))
LAWS = (
    DiscreteLaplace(Fraction(7)),
    DiscreteGaussian(Fraction(90)),
    DiscreteLaplace(Fraction(2**230)),
    NoNoise(),
)
EXTREMES = [0, 1, -1, 2, 2**62, -(2**62), 2**63, 2**100, -(2**100), 2**200, 2**1100, -(2**1100), 10**4_000]
MEASURES = tuple(
    Measure("m", ((1, place),), grain, 1, 1, floor, Fraction(1))
    for place, (grain, floor) in enumerate((grain, floor) for grain in GRAINS for floor in (0, None))
)
EDGES = np.array([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324])
STATISTICS = (
    Estimate(EDGES, EDGES, EDGES),
    Estimate(EDGES, np.full(6, -inf), np.full(6, inf), assumes="density"),
)
constants = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000) | st.sampled_from(
    [Fraction(0), Fraction(10) ** 290, Fraction(1, 10**290), -(Fraction(10) ** 150), Fraction(1, 3)]
)
leaves = st.one_of(
    st.integers(0, len(MEASURES) - 1).map(Measured),
    st.integers(0, 1).map(Estimated),
    constants.map(FixedNumber),
    st.just(Mean(0, 1, 50, 0, 100, Fraction(1, 100))),
    st.just(Mean(4, 0, 0, -(2**61), 2**61, Fraction(10) ** 120)),
    st.builds(
        Spread,
        st.just(0),
        st.just(1),
        st.just(0),
        st.just(2**40),
        st.sampled_from(GRAINS),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        Association,
        st.sampled_from(["corr", "r2", "covariance", "slope", "intercept"]),
        st.builds(Axis, st.just(1), st.just(2), st.just(30), st.sampled_from([1, 2**40]), st.sampled_from(GRAINS)),
        st.builds(Axis, st.just(3), st.just(4), st.just(-9), st.sampled_from([1, 2**40]), st.sampled_from(GRAINS)),
        st.just(5),
        st.sampled_from([0, 6]),
        st.booleans(),
    ),
    st.builds(Occurs, st.integers(0, len(MEASURES) - 1), st.booleans()),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        st.builds(Magnitude, inner),
        st.builds(Rounded, inner, st.integers(0, 12)),
        inner.map(lambda value: Between(value, Fraction(-5), Fraction(10) ** 100)),
    ),
    max_leaves=12,
)
noisy = st.lists(st.sampled_from(EXTREMES), min_size=6, max_size=6)


def evaluator(numbers: list[list[int]], laws: list[int]) -> Evaluator:
    measurements = [Measurement(np.array(own, dtype=object), LAWS[law]) for own, law in zip(numbers, laws, strict=True)]
    return Evaluator(MEASURES, measurements, STATISTICS)


def check(estimate: Estimate) -> None:
    for value, low, high in zip(estimate.values, estimate.low, estimate.high, strict=True):
        assert not isnan(low)
        assert not isnan(high)
        assert isinstance(value, int) or isfinite(value)
        assert low <= value <= high


@given(
    values,
    st.lists(noisy, min_size=len(MEASURES), max_size=len(MEASURES)),
    st.lists(st.integers(0, len(LAWS) - 1), min_size=len(MEASURES), max_size=len(MEASURES)),
    st.sampled_from([0.5, 0.95, 0.999999999]),
)
@settings(max_examples=120, deadline=None)
def test_every_value_of_every_noise(value: Value, numbers: list[list[int]], laws: list[int], confidence: float) -> None:
    needed_confidences([value], confidence)
    check(evaluator(numbers, laws).estimate(value, confidence))


@given(values, values, st.lists(noisy, min_size=len(MEASURES), max_size=len(MEASURES)), st.sampled_from("<>="))
@settings(max_examples=60, deadline=None)
def test_an_answer_of_every_noise_is_stored_and_shown(
    value: Value, other: Value, numbers: list[list[int]], operation: str
) -> None:
    columns = (ShownValue("v", value), ShownValue("n", Measured(0)))
    having = Comparison({"<": "<=", ">": ">=", "=": "<>"}[operation], value, other)  # type: ignore[arg-type]
    question = Question(
        Summary(Scan("t", "s0", False), Always(True), None, (), ()), MEASURES, (), None, columns, having,
        (Order(other, True), Order(Measured(0), False)), None, 0, "add-remove", "row", ("t",),
    )  # fmt: skip
    measurements = [Measurement(np.array(own, dtype=object), LAWS[0]) for own in numbers]

    class Told:
        name, condition = "em", ""

    statistics = [(Told(), estimate) for estimate in STATISTICS]
    table = AnswerTable(question, [()] * 6, measurements, ["laplace"] * len(MEASURES), 0.95, statistics)
    cost = Cost.of(Fraction(1), PureDP(Fraction(1)))
    answer = Answer(table.columns(), 0.95, cost, "row", "add-remove", "q")
    stored = answer.to_bytes()
    again = Answer.from_bytes(stored)
    assert again.to_bytes() == stored
    assert b"NaN" not in stored
    assert "NaN" not in again.to_json()
    json.loads(again.to_json())
    assert again.to_arrow().num_rows == len(again)
    assert str(again)


def test_a_long_product_keeps_confidences_that_can_be_told_from_one() -> None:
    """Halved at each level, the miss rate of the first factor would be 0 in doubles."""
    value: Value = Mean(0, 1, 0, -5, 5, Fraction(1))
    for _ in range(90):
        value = Arithmetic("*", value, Mean(0, 1, 0, -5, 5, Fraction(1)))
    check(evaluator([[100] * 6] * len(MEASURES), [0] * len(MEASURES)).estimate(value, 0.95))


@pytest.mark.parametrize(
    "shown",
    [
        "COUNT(*) * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30",
        "ABS(COUNT(*) * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 * 1e30 + 1)",
        "COUNT(*) / 1e30 / 1e30 / 1e30 / 1e30 / 1e30 / 1e30 / 1e30 / 1e30 / 1e30 / 1e30 / 1e30",
        "COUNT(*) + " + " * ".join(["1e30"] * 40),
        " * ".join(["COUNT(*)"] * 60),
        "AVG(age" + " * 1e30" * 20 + ")",
        "VARIANCE(age" + " / 1e30" * 20 + ")",
        "SUM(CASE WHEN age > " + " * ".join(["1e30"] * 40) + " THEN 1 ELSE 0 END)",
        "COUNT(*) / (1 - 1)",
        "SUM(age + " + " / ".join(["1e-30"] * 40) + ")",
    ],
)
def test_what_no_double_holds_is_refused_from_the_text(shown: str) -> None:
    with pytest.raises(QueryError, match=r"too large|smaller|too wide|too small|divides by zero"):
        bind(f"SELECT {shown} AS a FROM person", POLICIES["row"], CATALOG)


@pytest.mark.parametrize(
    "shown", ["COUNT(*) * 1e30 / 1e30", "SUM(age) * 1e-9", "AVG(income) / 1e6 * 100", "COUNT(*) * COUNT(*) / SUM(age)"]
)
def test_ordinary_factors_are_answered(shown: str) -> None:
    assert bind(f"SELECT {shown} AS a FROM person", POLICIES["row"], CATALOG).columns

"""Estimates and intervals from noised numbers: they hold at least as often as they say, and hold their estimates."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Law, Measurement, NoNoise, TestRandomness, draw
from confide.query.question import Arithmetic, FixedNumber, Magnitude, Mean, Measure, Measured, Rounded, Spread, Value
from confide.release.answer.estimate import Estimate
from confide.release.answer.evaluation import Evaluator

RUNS = 4_000
LAPLACE, NORMAL = DiscreteLaplace(Fraction(7)), DiscreteGaussian(Fraction(90))


def evaluator(truths: list[int], laws: list[Law], seed: int = 1, floors: list[int | None] | None = None) -> Evaluator:
    """Many noised copies of the same exact numbers, as if each were a group."""
    floors = floors or [None] * len(truths)
    measures = [
        Measure("m", ((1, place),), Fraction(1, 2) if place == 1 else Fraction(1), 1, 1, floor, Fraction(1))
        for place, floor in enumerate(floors)
    ]
    noised = [
        Measurement(np.full(RUNS, truth) + draw(law, (RUNS,), TestRandomness(seed + place)), law)
        for place, (truth, law) in enumerate(zip(truths, laws, strict=True))
    ]
    return Evaluator(measures, noised)


def coverage(result: Estimate, truth: float) -> float:
    assert np.all(result.low <= result.values)
    assert np.all(result.values <= result.high)
    slack = 1e-9 * max(1.0, abs(truth))
    return float(np.mean((result.low <= truth + slack) & (truth - slack <= result.high)))


A, B, C = Measured(0), Measured(1), Measured(2)
CASES: list[tuple[Value, float]] = [
    (A, 500),
    (B, 100),
    (Arithmetic("+", A, B), 600),
    (Arithmetic("-", A, FixedNumber(Fraction(3, 10))), 499.7),
    (Arithmetic("*", FixedNumber(Fraction(-2)), A), -1000),
    (Arithmetic("/", A, B), 5),
    (Arithmetic("/", Arithmetic("*", FixedNumber(Fraction(100)), B), A), 20),
    (Arithmetic("*", A, B), 50_000),
    (Arithmetic("/", Arithmetic("+", A, C), B), 7),
    (Arithmetic("-", Arithmetic("/", A, B), Arithmetic("/", C, B)), 3),
    (Magnitude(Arithmetic("-", B, A)), 400),
    (Rounded(Arithmetic("/", A, B), 1), 5),
]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize(("value", "truth"), CASES, ids=[str(place) for place in range(len(CASES))])
def test_intervals_cover(value: Value, truth: float, confidence: float) -> None:
    result = evaluator([500, 200, 200], [LAPLACE, NORMAL, LAPLACE]).estimate(value, confidence)
    # Five standard errors below nominal happens by chance once in three million tests.
    assert coverage(result, truth) >= confidence - 5 * (confidence * (1 - confidence) / RUNS) ** 0.5


@pytest.mark.parametrize("rows", [0, 1, 3, 20, 400])
def test_means_and_spreads_cover_for_every_group_size(rows: int) -> None:
    values = np.resize([-10, -4, 0, 3, 9], rows)
    laws: list[Law] = [LAPLACE, NORMAL, DiscreteLaplace(Fraction(60))]
    numbers = evaluator([rows, int(values.sum()), int((values**2).sum())], laws)
    mean = Mean(total=1, count=0, centre=50, low=40, high=60, grain=Fraction(1))
    result = numbers.estimate(mean, 0.9)
    if rows == 0:
        whole = (result.low == 40) & (result.high == 60)
        assert whole.mean() >= 0.9, "an empty group's interval is the whole range"
        assert result.empty is not None
    else:
        assert coverage(result, 50 + values.mean()) >= 0.9 - 5 * (0.09 / RUNS) ** 0.5
    for sample, root in ((True, False), (True, True), (False, True)):
        if rows < 2:
            continue
        truth = values.var(ddof=int(sample))
        spread = Spread(squares=2, total=1, count=0, radius=10, grain=Fraction(1, 2), sample=sample, root=root)
        expected = truth**0.5 / 2 if root else truth / 4
        assert coverage(numbers.estimate(spread, 0.9), expected) >= 0.9 - 5 * (0.09 / RUNS) ** 0.5


def test_impossible_values_are_cut_off() -> None:
    result = evaluator([0], [LAPLACE], floors=[0]).estimate(A, 0.95)
    assert result.values.min() == 0
    assert result.low.min() == 0
    assert coverage(result, 0) >= 0.94


def test_impossible_values_leave_no_point() -> None:
    """Counts, sums of counts, shares, means and spreads whose noise takes them beyond what is possible."""
    laws: list[Law] = [LAPLACE, NORMAL, DiscreteLaplace(Fraction(60))]
    low = evaluator([0, 0, 0], laws, floors=[0, 0, 0])
    for value in (A, B, Arithmetic("+", A, B), Arithmetic("*", FixedNumber(Fraction(-1, 2)), A)):
        result = low.estimate(value, 0.95)
        assert np.all(result.low < result.high)
        assert coverage(result, 0) >= 0.93
    groups = evaluator([400, -4000, 40_000], laws, floors=[0, None, 0])
    mean = groups.estimate(Mean(total=1, count=0, centre=50, low=40, high=60, grain=Fraction(1)), 0.9)
    assert np.all(mean.low < mean.high), "every value is at the least"
    assert coverage(mean, 40) >= 0.88
    alike = evaluator([400, 0, 0], laws, floors=[0, None, 0])
    for root in (False, True):
        spread = Spread(squares=2, total=1, count=0, radius=10, grain=Fraction(1), sample=True, root=root)
        result = alike.estimate(spread, 0.9)
        assert np.all(result.low < result.high), "every value is the same"
        assert coverage(result, 0) >= 0.88


def test_a_number_has_no_interval_beyond_its_ceiling() -> None:
    measures = [Measure("distinct", ((1, 0),), Fraction(1), 1, 1, 0, Fraction(1), ceiling=6)]
    for truth in (0, 3, 6):
        noised = Measurement(np.full(RUNS, truth) + draw(LAPLACE, (RUNS,), TestRandomness(truth)), LAPLACE)
        for value, sign in ((A, 1), (Arithmetic("-", FixedNumber(Fraction(0)), A), -1)):
            result = Evaluator(measures, [noised]).estimate(value, 0.9)
            assert np.all((sign * result.low >= min(0, 6 * sign)) & (np.abs(result.high) <= 6))
            assert np.all(result.low < result.high)
            assert coverage(result, sign * truth) >= 0.88


def test_a_division_that_may_be_by_zero_is_unbounded() -> None:
    numbers = evaluator([500, 0, 3], [LAPLACE, NORMAL, NoNoise()])
    result = numbers.estimate(Arithmetic("/", A, Arithmetic("*", B, C)), 0.95)
    assert np.isinf(result.high).mean() > 0.9
    assert np.isfinite(result.values).all()
    assert result.low.min() == -inf


def test_whole_numbers_stay_whole() -> None:
    result = evaluator([5, 6, 7], [LAPLACE, NoNoise(), NoNoise()]).estimate(Arithmetic("+", A, C), 0.9)
    assert result.whole
    assert all(isinstance(value, int) for value in result.values.tolist())
    exact = evaluator([5], [NoNoise()]).estimate(A, 0.9)
    assert (exact.low == exact.high).all()


def test_a_measure_used_twice_is_one_term() -> None:
    result = evaluator([5], [LAPLACE]).estimate(Arithmetic("-", A, A), 0.9)
    assert (result.low == 0).all()
    assert (result.high == 0).all()

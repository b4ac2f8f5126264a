"""Laws of noise: tails and quantiles that are never too small.

And what an ε too small for exact arithmetic ends in: a refusal before anything is read, for every mechanism.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, TestRandomness, gaussian, laplace
from confide.mechanism.join.truncation import Levels, Race, Truncation
from confide.mechanism.noise.law import LARGEST_SCALE, LARGEST_WALK, MOST_ROWS, _smallest, miss_rate
from confide.mechanism.quantile.choice import MAKERS, quantile_plan
from confide.mechanism.selection.sparse_vector import SparseVector
from confide.mechanism.statistic import Setting
from confide.mechanism.tally import REACH, Tally
from confide.mechanism.total.choice import SUMMERS, mean_plan, total_plan
from tests.conformance.exact_law import tails, weight

LAWS = [
    DiscreteLaplace(Fraction(1, 100)),
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(Fraction(2)),
    DiscreteLaplace(Fraction(50, 7)),
    DiscreteLaplace(Fraction(40)),
    DiscreteGaussian(Fraction(1, 10_000)),
    DiscreteGaussian(Fraction(1, 5)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(100)),
    DiscreteGaussian(Fraction(200, 3)),
    DiscreteGaussian(Fraction(256**2 - 1)),  # summed
    DiscreteGaussian(Fraction(256**2 + 1)),  # bounded by the normal tail
]
CONFIDENCES = [0.01, 0.3, 0.5, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999999, 1 - 1e-12]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tails_are_upper_bounds_and_tight(law):
    exact = np.array([float(tail) for tail in tails(law)])
    places = np.unique(np.geomspace(1, len(exact), 60).astype(int)) - 1
    bounds = law.tails(places.astype(float))
    large = isinstance(law, DiscreteGaussian) and law.variance > 256**2
    assert np.all(bounds >= exact[places])
    near = exact[places] > 1e-9
    assert np.all(bounds[near] <= exact[places][near] * (1 + (1e-2 if large else 1e-9)) + 5e-324)
    assert np.allclose([law.tail(int(place)) for place in places], bounds, rtol=1e-2 if large else 1e-12, atol=0)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tails_left_of_zero_are_upper_bounds(law):
    exact = [float(tail) for tail in tails(law)]
    for place in range(min(len(exact), 40)):
        expected = 1 - exact[place]  # P(X > -place - 1) = 1 - P(X > place)
        assert law.tail(-place - 1) >= expected
        assert law.tail(-place - 1) <= expected + 2e-6
        assert law.tails(np.array([-place - 1.0]))[0] >= expected
        assert law.tails(np.array([-place - 1.0]))[0] <= expected + 2e-6


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_real_thresholds_count_the_integers_beyond_them(law):
    assert law.tails(np.array([2.0, 2.7, -0.5])).tolist() == law.tails(np.array([2.0, 2.0, -1.0])).tolist()


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantiles_are_the_smallest_that_cover(law, confidence):
    exact = tails(law)
    miss = 1 - Fraction(confidence)
    width = law.half_width(confidence)
    assert 2 * Fraction(exact[min(width, len(exact) - 1)]) <= miss
    if width > 0:
        assert 2 * Fraction(exact[width - 1]) > miss * Fraction(999, 1000)
    upper = law.upper(confidence)
    assert Fraction(exact[min(upper, len(exact) - 1)]) <= miss
    if upper > 0:
        assert Fraction(exact[upper - 1]) > miss * Fraction(999, 1000)


@pytest.mark.parametrize("exponent", [6, 12, 18, 24, 30])
def test_wide_laws_approach_their_continuous_limits(exponent):
    scale = Fraction(10) ** exponent
    laplace = DiscreteLaplace(scale).half_width(0.95) / float(scale)
    gaussian = DiscreteGaussian(scale**2).half_width(0.95) / float(scale)
    assert laplace == pytest.approx(2.995732273553991, rel=2e-6)
    assert gaussian == pytest.approx(1.959963984540054, rel=2e-6)
    if exponent >= 18:  # conservative: never below the limit
        assert laplace >= 2.995732273553991 * (1 - 1e-15)
        assert gaussian >= 1.959963984540054 * (1 - 1e-15)


@given(st.fractions(Fraction(1, 1000), Fraction(10**8)), st.floats(0.01, 0.9999))
def test_laplace_quantile_solves_its_equation(scale, confidence):
    law = DiscreteLaplace(scale)
    width = law.half_width(confidence)
    ratio = weight(law, 1)
    miss = 2 * weight(law, width + 1) / (1 + ratio)  # P(|X| > width)
    assert Fraction(miss) <= 1 - Fraction(confidence)
    if width > 0:
        assert Fraction(2 * weight(law, width) / (1 + ratio)) > (1 - Fraction(confidence)) * (1 - Fraction(1, 10**9))


def test_variances():
    for law in LAWS:
        exact = tails(law)
        variance = sum((2 * place + 1) * float(tail) for place, tail in enumerate(exact)) * 2
        if isinstance(law, DiscreteLaplace):
            assert law.variance == pytest.approx(variance, rel=1e-12, abs=1e-300)
        else:
            assert float(law.variance) >= variance * (1 - 1e-12)


def test_no_noise_is_certain():
    law = NoNoise()
    assert (law.half_width(0.95), law.upper(0.95), law.variance) == (0, 0, 0)
    assert (law.tail(0), law.tail(-1)) == (0, 1)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, float("nan"), float("inf"), "0.95", True, None])
@pytest.mark.parametrize("law", [NoNoise(), DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(2))], ids=str)
def test_refuses_what_is_not_a_confidence(law, confidence):
    for quantile in (law.half_width, law.upper):
        with pytest.raises(ParameterError, match="confidence"):
            quantile(confidence)


@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian])
def test_laws_are_exact_and_positive(kind):
    with pytest.raises(TypeError, match="Fraction"):
        kind(2.0)
    for value in (0, -1, 2**400):
        with pytest.raises(ValueError, match="positive"):
            kind(Fraction(value))


@pytest.mark.parametrize("near", [0, 1, 36, 37, 38, 39, 60, 10**9])
@pytest.mark.parametrize("least", [0, 1, 37])
def test_the_smallest_is_found_wherever_one_starts_to_look(least, near):
    asked = []
    assert _smallest(lambda number: asked.append(number) or number >= least, near) == least
    assert min(asked) >= 0
    assert len(asked) <= 2 + 2 * abs(near - least).bit_length() + 2


@pytest.mark.parametrize("rate", [0.4, 0.3, 0.025, 1e-9, 1e-200])
@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(Fraction(1, 1000)),
        DiscreteLaplace(Fraction(10**9, 7)),
        DiscreteLaplace(Fraction(10**100)),
        DiscreteGaussian(Fraction(1, 1000)),
        DiscreteGaussian(Fraction(10**9, 7)),
        DiscreteGaussian(Fraction(10**100)),
    ],
    ids=str,
)
def test_the_look_starts_near_the_quantile(law, rate):
    found = _smallest(lambda width: law.tail(width) <= rate, 0)
    assert abs(law.near(rate) - found) <= 2 + found / 100


TINY = Fraction(1, 10**30)
WIDEST = (-REACH, REACH)
QUANTILES = [Fraction(1, 2), Fraction(123457, 10**6), Fraction(0), Fraction(999_999, 10**6)]
EPSILONS = [Fraction(1, 10**exponent) for exponent in (0, 3, 6, 9, 12, 15, 18, 24, 30)]
ROWS_OF_A_UNIT = [1, 1000, 10**9]
TALLIES = [
    Tally(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)),
    Tally(np.array([-REACH, 0, REACH]), np.array([1, 2, 1])),
    Tally(np.array([0]), np.array([5])),
    Tally(np.array([-REACH, -1, REACH]), np.array([MOST_ROWS // 2, 1, MOST_ROWS // 4])),
]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_quantile_that_can_be_planned_can_be_measured(name, neighbours):
    """Whatever the rows of a unit, and however many rows there are: nothing wraps, nothing raises."""
    refused = 0
    for q in QUANTILES:
        for epsilon in EPSILONS[:: 2 if name == "smooth" else 1]:
            for rows in ROWS_OF_A_UNIT:
                try:
                    plan = quantile_plan(q, (-1000, 1000), epsilon, 0.999999, neighbours, rows, name)
                except EpsilonTooSmall:
                    refused += 1
                    continue
                _ = plan.forecast
                # em counts every row by itself, so it is not given 2^44 of them
                for tally in TALLIES[:-1] if name == "em" else TALLIES:
                    result = plan.measure(tally, TestRandomness(1))
                    assert -1000 <= result.interval.low <= result.estimate <= result.interval.high <= 1000
    assert refused


@pytest.mark.parametrize("plan_of", [total_plan, mean_plan])
@pytest.mark.parametrize("name", SUMMERS)
def test_a_sum_that_can_be_planned_can_be_measured(name, plan_of):
    for neighbours in ("add-remove", "replace-one"):
        for domain in (WIDEST, (-10, 30), (REACH - 7, REACH)):
            # Noise of more than 50 bits takes tables, and r2t one for each power of two: few of those.
            for epsilon in (1, TINY) if domain == WIDEST or name == "svt" else (Fraction(1, 10**9),):
                if name in ("r2t", "tail") and domain == WIDEST and (epsilon == TINY or neighbours == "replace-one"):
                    continue
                try:
                    plan = plan_of(domain, Fraction(epsilon), 0.95, neighbours, 1, name)
                except EpsilonTooSmall:
                    assert epsilon < Fraction(1, 10**12)
                    continue
                _ = plan.forecast, plan.condition
                for tally in TALLIES[3:]:
                    result = plan.measure(tally.clipped(*domain), TestRandomness(1))
                    assert result.interval.low <= result.estimate <= result.interval.high


def test_ranks_of_2_44_rows_are_those_of_big_integers():
    """d·rank passes 2^63 for the finest quantiles of so many rows; exponents and margins are those of exact numbers."""
    q = Fraction(123457, 10**6)
    values = np.arange(9, dtype=np.int64)
    counts = np.array([1, MOST_ROWS // 3, 5, MOST_ROWS // 5, 1, 1, MOST_ROWS // 7, 2, 3])
    tally = Tally(values, counts)
    setting = Setting((0, 8), Fraction(1), 0.95, "add-remove")
    end = MAKERS["pair"](setting, q).lower(q, Fraction(1, 2), 0.01)
    starts, _, exponents = end.segments(tally.condensed(*end.window(tally.rows)), (0, 8))
    below = {int(v): sum(counts.tolist()[: int(v)]) for v in values}
    upto = {int(v): sum(counts.tolist()[: int(v) + 1]) for v in values}
    peak = 16 * (q.numerator * (tally.rows - 1) + 1) - end.shift
    for start, exponent in zip(starts.tolist(), exponents.tolist(), strict=True):
        if 0 < start <= 8:
            high = max(0, below[start] * 16 * q.denominator - peak)
            low = max(0, peak - upto[start] * 16 * q.denominator)
            assert exponent == min(end.most, end.steepness * high + low) or exponent in (0, end.most)
    stream = MAKERS["svt"](setting, q).lower(q, Fraction(1, 2), 0.01).stream(tally, (0, 8))
    assert int(stream.lengths.sum()) == 9
    assert (np.diff(stream.margins) >= 0).all()


@pytest.mark.parametrize("kind", [Race, Truncation])
@pytest.mark.parametrize("owners", [1, 2, 3])
def test_totals_of_units_are_refused_before_they_are_read(kind, owners):
    with pytest.raises(EpsilonTooSmall, match="too small"):
        kind(Levels(2**20, owners), TINY, 0.05)
    least = kind(Levels(2**58, owners), Fraction(1, 10**9), 0.05)
    assert least.measure([2**100] * len(least.levels.edges), TestRandomness(1)).low >= 0


def test_the_limits_themselves():
    assert laplace(2**90, Fraction(1, 2**100)).law.scale == LARGEST_SCALE
    with pytest.raises(EpsilonTooSmall, match="too small"):
        laplace(2**91, Fraction(1, 2**100))
    with pytest.raises(EpsilonTooSmall, match="too small"):
        gaussian(2**200, Fraction(1, 2**400))
    assert SparseVector(Fraction(4, LARGEST_WALK), 1, 1).query_scale <= LARGEST_WALK
    with pytest.raises(EpsilonTooSmall, match="too small"):
        SparseVector(Fraction(1, LARGEST_WALK), 1, 1)


def test_a_miss_rate_is_below_one_minus_the_confidence_by_one_double() -> None:
    random = np.random.default_rng(3)
    doubles = [*random.random(500).tolist(), *(1 - random.random(500) * 1e-12).tolist(), 0.95, 1e-12]
    thirds = [Fraction(int(n), 3 * 10**20) for n in random.integers(1, 10**18, 200)]
    for confidence in (*doubles, *thirds, *(1 - own for own in thirds)):
        rate = miss_rate(confidence)
        assert rate < 1 - Fraction(confidence)
        assert rate == math.nextafter(float(1 - Fraction(confidence)), 0)


@pytest.mark.parametrize("none", [0, 1, True, False, 0.0, 1.0, -0.5, math.nan, "0.95", None, Fraction(1)])
def test_what_is_no_confidence_is_refused(none: object) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        miss_rate(none)  # type: ignore[arg-type]

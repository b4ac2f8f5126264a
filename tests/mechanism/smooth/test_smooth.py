"""Smooth bounds and their noise.

The largest discounted bound is the same as by looking at every step, from few of them.
"""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from confide.errors import ParameterError
from confide.mechanism import TestRandomness, laplace
from confide.mechanism.join.elastic import Elastic
from confide.mechanism.join.residual import Residual
from confide.mechanism.smooth.smooth import (
    ANSWER_SHARE,
    DILATE,
    LOG_STEPS,
    ROUNDING,
    SCALE_MISS,
    SLIDE,
    Smooth,
    _accepted,
    _rounded,
    cauchy_quantile,
    cauchy_tail,
    log_largest,
    rounded_cauchy,
)
from confide.mechanism.smooth.vector import SmoothVector
from confide.privacy.loss import PureDP
from tests.mechanism.fitting import fits
from tests.mechanism.scripted import Scripted


def _density(z):
    return math.sqrt(2) / (math.pi * (1 + z**4))


def test_the_two_suprema():
    grid = np.linspace(0, 50, 500_001)
    slide = (4 * grid**3 / (1 + grid**4)).max()
    assert slide == pytest.approx(3**0.75, rel=1e-6)
    assert slide <= SLIDE
    assert np.abs(1 - 4 * grid**4 / (1 + grid**4)).max() <= DILATE


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.5, 30.0, 99.0, 101.0, 1e4])
def test_tails_in_closed_form(distance):
    beyond = 2 * quad(_density, distance, math.inf)[0]
    assert cauchy_tail(distance) == pytest.approx(beyond, rel=1e-6, abs=1e-12)


@given(st.floats(1e-12, 0.9))
def test_quantiles_invert_the_tail(miss):
    distance = cauchy_quantile(miss)
    assert cauchy_tail(distance) <= miss
    assert cauchy_tail(distance * 0.999) > miss * 0.999


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(12345, 7)])
def test_noise_is_the_rounded_continuous_law(scale):
    """A chi-square test against the closed form; a false alarm once in 10,000 were the seed drawn."""
    source, runs = TestRandomness(5), 10_000
    drawn = np.array([rounded_cauchy(100, scale, source) - 100 for _ in range(runs)])
    step = max(1, round(float(scale) / 4))
    edges = step * np.arange(0, 12) + 0.5
    beyond = np.array([cauchy_tail(edge / float(scale)) / 2 for edge in edges])
    cells = np.concatenate([[1 - 2 * beyond[0]], np.repeat(np.append(beyond[:-1] - beyond[1:], beyond[-1]), 2)])
    places = np.searchsorted(edges, np.abs(drawn))
    observed = np.bincount(np.where(places == 0, 0, 2 * places - (drawn > 0)), minlength=len(cells))
    assert fits(observed, cells)


def _log_ratio(answer, scale, other, other_scale):
    """The largest |ln P/P'| over released integers, from the closed form."""
    half = np.array([-0.5, 0.5])

    def probabilities(middle, spread):
        values = np.arange(-3000, 3001)
        ends = (values[:, np.newaxis] - middle + half) / spread
        upper = np.array([[(cauchy_tail(e) / 2 if e >= 0 else 1 - cauchy_tail(-e) / 2) for e in row] for row in ends])
        return upper[:, 0] - upper[:, 1]

    here, there = probabilities(answer, scale), probabilities(other, other_scale)
    seen = (here > 1e-9) & (there > 1e-9)
    return np.abs(np.log(here[seen] / there[seen])).max()


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_neighbours_are_as_close_as_the_share_of_the_answer(epsilon):
    """The answer moves by S and S by a factor e^α, the worst that is allowed, in each of the four ways."""
    smooth, bound = Smooth(epsilon), 8.0
    factor, alpha = float(smooth.factor), float(smooth.alpha)
    worst = 0.0
    for moved in (-8, 8):
        for grown in (-alpha, alpha):
            worst = max(worst, _log_ratio(0, factor * bound, moved, factor * bound * math.exp(grown)))
    assert 0.8 * float(epsilon) * 0.65 < worst <= float(epsilon) * 0.65


def test_nine_tenths_of_the_noise_would_not_be_enough():
    """The check above can fail."""
    smooth = Smooth(Fraction(1, 2))
    factor, alpha = 0.8 * float(smooth.factor), float(smooth.alpha)
    assert _log_ratio(0, factor * 8, 8, factor * 8 * math.exp(-alpha)) > 0.5 * 0.65


@pytest.mark.parametrize("bound", [0.0, 3.0, 1e6])
def test_the_released_scale_is_an_upper_bound_as_often_as_said(bound):
    smooth, source, miss = Smooth(Fraction(1)), TestRandomness(6), 0.2
    scales = np.array([smooth.measure(0, bound, miss, source)[1] for _ in range(1500)])
    short = (scales < max(bound, 2.0**-10)).mean()
    assert short <= SCALE_MISS * miss + 4 * math.sqrt(SCALE_MISS * miss / 1500)  # false alarm 3e-5
    assert short > SCALE_MISS * miss / 3
    assert np.median(scales) == pytest.approx(smooth.expected_scale(bound, miss), rel=0.1)


def test_bits_that_do_not_tell_are_not_guessed():
    assert _accepted(2**63, 2**63, 64, beyond=False) is True  # U = V = ½: V(1 + U⁴) < 1
    assert _accepted(2**64 - 1, 2**64 - 1, 64, beyond=False) is False
    assert _accepted(0, 2**64 - 1, 64, beyond=False) is None  # V(1 + U⁴) is 1 to 64 bits
    assert _accepted(0, 0, 64, beyond=True) is None
    assert _rounded(0, 64, Fraction(1), beyond=True) is None  # 1/U is unbounded
    assert _rounded(2**63, 64, Fraction(10), beyond=True) == 20
    assert _rounded(2**63 - 1, 64, Fraction(1), beyond=False) is None  # just below ½: 0 or 1
    assert _rounded(2**63, 64, Fraction(1), beyond=False) == 1


def test_more_bits_are_drawn_where_rounding_needs_them():
    half = (2**63 - 1).to_bytes(8)
    source = Scripted(b"\x00", half, b"\x00" * 8, b"\x00" * 8)
    assert rounded_cauchy(7, Fraction(1), source) == 7
    assert source.used_up
    source = Scripted(b"\x01", (2**63).to_bytes(8), b"\x00" * 8)
    assert rounded_cauchy(7, Fraction(10), source) == 2


def test_a_cost_too_small_to_compute_with_is_refused():
    with pytest.raises(ParameterError, match="epsilon"):
        Smooth(Fraction(1, 10**6))
    assert Smooth(Fraction(3)).loss.epsilon == 3


@pytest.mark.parametrize("size", [1, 3, 20])
def test_the_parts_of_a_vector_cost_epsilon_together(size):
    epsilon = Fraction(1, 2)
    vector = SmoothVector(epsilon, size)
    answers = SLIDE / vector.factor + DILATE * size * (vector.alpha + ROUNDING)
    assert answers == epsilon * ANSWER_SHARE
    assert vector._log.noise.loss == PureDP(epsilon * (1 - ANSWER_SHARE))
    assert vector._log.noise.law == laplace(LOG_STEPS + 1, epsilon * (1 - ANSWER_SHARE)).law


def plain(local, farthest, alpha):
    steps = np.arange(farthest + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return float((np.log(local(steps)) - alpha * steps).max())


@pytest.mark.parametrize("seed", range(40))
def test_it_is_that_of_all_steps(seed):
    random = np.random.default_rng(seed)
    powers = random.integers(0, 6, 4)
    weights = random.choice([0, 1, 3, 10**6, 10**12], 4)
    jump = random.integers(0, 5_000)

    def local(steps):
        grown = sum(weight * steps**power for weight, power in zip(weights, powers, strict=True))
        return np.minimum(grown, 10.0**14) + 1e15 * (steps >= jump)

    for alpha in (2.0, 0.1, 0.003):
        farthest = math.ceil(5 / alpha) + int(jump)
        assert log_largest(local, farthest, alpha) == pytest.approx(plain(local, farthest, alpha), rel=1e-13)


def test_nothing_is_nothing():
    assert log_largest(np.zeros_like, 1000, 0.1) == -math.inf


def test_a_small_epsilon_takes_few_steps():
    looked = 0

    def local(steps):
        nonlocal looked
        looked += len(steps)
        return (steps + 3) ** 9

    alpha = 3e-8
    found = log_largest(local, math.ceil(9 / alpha), alpha)
    assert found == pytest.approx(9 * math.log(9 / alpha) - 9, abs=1e-6)
    assert looked < 500_000


@pytest.mark.parametrize("count", [2, 5, 16])
def test_elastic_sensitivity_at_the_smallest_epsilon(count):
    """Steps beyond joins/α hold nothing larger; of sixteen tables all steps would be more than memory holds."""
    for same in (True, False):
        tables = tuple("r" if same else f"r{place}" for place in range(count))
        joins = tuple((place, (((place - 1, "b"), (place, "a")),)) for place in range(1, count))
        frequencies = {(place, column): 1 + place % 3 for place in range(count) for column in "ab"}
        elastic = Elastic(tables, 0, joins, frequencies)
        for alpha in (1.5, 0.2, 0.01):
            expected = plain(elastic.local, math.ceil(count**2 / alpha) + 2, alpha)
            assert elastic.smooth(alpha) == pytest.approx(math.exp(expected), rel=1e-9)
        begun = time.perf_counter()
        assert elastic.smooth(5.5e-7) > 0
        assert time.perf_counter() - begun < 5


def test_residual_sensitivity_of_many_copies_at_the_smallest_epsilon():
    copies = (0, 1, 2, 3, 4)
    sets = [frozenset(place for place in copies if bits >> place & 1) for bits in range(1, 32)]
    residual = Residual((copies[:3], copies[3:]), {places: 6 - len(places) for places in sets})
    begun = time.perf_counter()
    assert residual.smooth(5.5e-7) >= residual.local((0, 0))
    assert time.perf_counter() - begun < 5

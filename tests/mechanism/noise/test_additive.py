"""Noise that is added: the laws that the mechanisms state, sums that do not wrap, and parameters that are refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.mechanism import (
    Additive,
    DiscreteGaussian,
    DiscreteLaplace,
    KernelRandomness,
    Measurement,
    NoNoise,
    TestRandomness,
    exact,
    gaussian,
    laplace,
)
from confide.mechanism.noise.additive import added
from confide.privacy.loss import ZCDP, PureDP


def test_intervals_are_the_values_with_the_exact_quantile_on_both_sides():
    law = DiscreteLaplace(Fraction(2))
    intervals = Measurement(np.array([[10, -3]]), law).intervals(0.95)
    assert intervals.low.tolist() == [[4, -9]]
    assert intervals.high.tolist() == [[16, 3]]
    assert (intervals.confidence, intervals.assumes) == (0.95, "always")


def test_exact_numbers_have_intervals_of_no_width():
    intervals = Measurement(np.array([5]), NoNoise()).intervals(0.9)
    assert intervals[0].low == intervals[0].high == 5


def test_sums_beyond_64_bits_become_python_integers():
    assert added(np.array([2**63 - 1]), 1).tolist() == [2**63]
    assert added(np.array([2**63 - 1]), 1).dtype == object
    assert added(np.array([-(2**63)]), np.array([-1])).tolist() == [-(2**63) - 1]
    assert added(np.array([2**70], dtype=object), -(2**70)).dtype == np.int64  # the sum decides, not what went in
    assert added(np.array([5], dtype=np.uint64), np.array([3])).tolist() == [8]
    wide = Measurement(np.array([2**63 - 5]), DiscreteLaplace(Fraction(100))).intervals(0.95)
    assert wide.high.tolist() == [2**63 - 5 + 300]


@pytest.mark.parametrize("values", [np.array([1.0]), np.array([True]), np.array(["1"])])
def test_only_integers_are_measured(values):
    with pytest.raises(TypeError, match="integers"):
        added(values, 1)


EPSILONS = st.fractions(Fraction(1, 10**6), Fraction(50))


@given(st.integers(1, 10**15), EPSILONS)
def test_laplace_scale_is_enough_and_a_double(sensitivity, epsilon):
    mechanism = laplace(sensitivity, epsilon)
    assert mechanism.loss == PureDP(epsilon)
    scale = mechanism.law.scale
    assert scale >= sensitivity / epsilon
    assert scale <= sensitivity / epsilon * (1 + Fraction(1, 2**51))
    assert Fraction(float(scale)) == scale


@given(st.fractions(Fraction(1, 10), Fraction(10**20)), EPSILONS)
def test_gaussian_variance_is_enough_and_the_square_of_a_double(squared, rho):
    mechanism = gaussian(squared, rho)
    assert mechanism.loss == ZCDP(rho)
    variance = mechanism.law.variance
    assert variance >= squared / (2 * rho)
    assert variance <= squared / (2 * rho) * (1 + Fraction(1, 2**49))
    assert Fraction(math.isqrt(variance.numerator), math.isqrt(variance.denominator)) ** 2 == variance


def test_names_and_laws():
    assert laplace(2, Fraction(1)) == Additive("discrete laplace", DiscreteLaplace(Fraction(2)), PureDP(Fraction(1)))
    assert gaussian(8, Fraction(1)) == Additive("discrete gaussian", DiscreteGaussian(Fraction(4)), ZCDP(Fraction(1)))
    assert exact() == Additive("exact", NoNoise(), PureDP(Fraction(0)))
    assert laplace(0, Fraction(1)) == gaussian(0, Fraction(1)) == exact()


@pytest.mark.parametrize("source", [TestRandomness(1), KernelRandomness()], ids=["test", "kernel"])
@pytest.mark.parametrize("mechanism", [laplace(1, Fraction(1, 2)), gaussian(1, Fraction(1, 100)), exact()], ids=str)
@pytest.mark.parametrize(
    "numbers",
    [np.array([[1, -2], [3, 4]]), np.zeros(200, dtype=np.int64), np.array([2**90, -(2**90)], dtype=object)],
    ids=["few", "many", "wide"],
)
def test_measures_arrays_of_any_shape(mechanism, numbers, source):
    before = numbers.copy()
    measurement = mechanism.measure(numbers, source)
    assert measurement.values.shape == numbers.shape
    assert measurement.law == mechanism.law
    assert (numbers == before).all()
    assert np.abs(measurement.values - numbers).max() < 200  # false alarm below 1e-40


def test_fresh_noise_in_every_cell_and_call():
    mechanism = laplace(1000, Fraction(1, 100))
    source = KernelRandomness()
    noise = np.concatenate([mechanism.measure(np.zeros(10, dtype=np.int64), source).values for _ in range(10)])
    assert len(set(noise.tolist())) > 95


def test_floats_are_refused():
    with pytest.raises(TypeError, match="integers"):
        laplace(1, Fraction(1)).measure(np.array([1.5]), TestRandomness(1))


@pytest.mark.parametrize(
    "amount", [Fraction(0), Fraction(-1), float("nan"), float("inf"), 1e308, "1e-400", True, Fraction(1, 10**400)]
)
def test_refuses_amounts_that_protect_nobody_or_drown_everything(amount):
    with pytest.raises(ParameterError):
        laplace(1, amount)
    with pytest.raises(ParameterError):
        gaussian(1, amount)


@pytest.mark.parametrize("sensitivity", [-1, 1.5, "2", None, True])
def test_refuses_sensitivities_that_are_none(sensitivity):
    with pytest.raises(ParameterError):
        laplace(sensitivity, Fraction(1))
    with pytest.raises(ParameterError):
        gaussian(sensitivity, Fraction(1))

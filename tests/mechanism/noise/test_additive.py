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
    NoNoise,
    TestRandomness,
    exact,
    gaussian,
    laplace,
)
from confide.privacy.loss import ZCDP, PureDP

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

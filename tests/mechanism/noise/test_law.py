from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise
from confide.mechanism.noise.law import _smallest
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

from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, gaussian, laplace
from tests.conformance.opendp_noise import _measurement, opendp_draws


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(Fraction(2)),
        DiscreteLaplace(Fraction(1, 3).limit_denominator(2**10)),
        DiscreteLaplace(Fraction(2.1)),
        DiscreteGaussian(Fraction(0.3) ** 2),
        DiscreteGaussian(Fraction(10**6) ** 2),
    ],
    ids=str,
)
def test_draws_only_laws_whose_scale_is_a_double(law):
    drawn = opendp_draws(law, 5)
    representable = (
        law.scale.denominator & (law.scale.denominator - 1) == 0 if isinstance(law, DiscreteLaplace) else True
    )
    if representable:
        assert drawn.dtype == np.int64
        assert drawn.shape == (5,)
    else:
        assert drawn is None


@pytest.mark.parametrize(
    "law", [DiscreteGaussian(Fraction(2)), DiscreteLaplace(Fraction(2**41)), DiscreteGaussian(Fraction(2**82))], ids=str
)
def test_leaves_other_laws_alone(law):
    assert opendp_draws(law, 5) is None


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1, 10), Fraction(7, 11), Fraction(3)])
def test_opendp_states_the_loss_that_was_asked_for(epsilon):
    """Its own privacy map, at the scale that we ask for, agrees with ours: the noise is at least what ε needs."""
    mechanism = laplace(3, epsilon)
    assert Fraction(_measurement(mechanism.law).map(3)) <= epsilon * (1 + Fraction(1, 2**50))
    mechanism = gaussian(9, epsilon)
    assert Fraction(_measurement(mechanism.law).map(3.0)) <= epsilon * (1 + Fraction(1, 2**50))


def test_zero_draws():
    assert opendp_draws(DiscreteLaplace(Fraction(2)), 0).shape == (0,)

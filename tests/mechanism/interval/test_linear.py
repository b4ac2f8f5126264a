import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, combined_half_width
from confide.mechanism.interval.linear import _chernoff, _kept, _one_by_one, _spread, dominating_half_width
from tests.conformance.exact_law import probability

LAPLACE = DiscreteLaplace
GAUSSIAN = DiscreteGaussian
SMALL = [
    [(1, LAPLACE(Fraction(2))), (-1, LAPLACE(Fraction(2)))],
    [(1, LAPLACE(Fraction(1, 2))), (3, LAPLACE(Fraction(2)))],
    [(2, GAUSSIAN(Fraction(5))), (3, LAPLACE(Fraction(1)))],
    [(1, GAUSSIAN(Fraction(2))), (1, GAUSSIAN(Fraction(3))), (1, GAUSSIAN(Fraction(5)))],
    [(Fraction(1, 2), LAPLACE(Fraction(3))), (Fraction(1, 3), LAPLACE(Fraction(2)))],
    [(5, LAPLACE(Fraction(1, 10))), (1, LAPLACE(Fraction(1)))],
]


def _law_of_sum(terms, reach=120):
    """The distribution of the sum by plain enumeration, as a dictionary."""
    sums = {Fraction(0): 1.0}
    for coefficient, law in terms:
        noise = {value: float(probability(law, value)) for value in range(-reach, reach + 1)}
        noise = {value: chance for value, chance in noise.items() if chance > 1e-9}
        following: dict[Fraction, float] = {}
        for total, chance in sums.items():
            for value, other in noise.items():
                place = total + coefficient * value
                following[place] = following.get(place, 0) + chance * other
        sums = following
    return sums


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("terms", SMALL, ids=str)
def test_small_sums_have_their_exact_quantile(terms, confidence):
    sums = _law_of_sum(terms)
    width = combined_half_width(terms, confidence)
    assert isinstance(width, Fraction)
    inside = sum(chance for place, chance in sums.items() if abs(place) <= width)
    less = sum(chance for place, chance in sums.items() if abs(place) < width)
    assert inside >= confidence - 1e-7  # the enumeration leaves out less than that
    assert less < confidence + 1e-6


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("bound", [_one_by_one, _chernoff, _spread])
@pytest.mark.parametrize("terms", SMALL, ids=str)
def test_every_bound_covers(terms, bound, confidence):
    sums = _law_of_sum(terms)
    width = bound(_kept(terms), 1 - confidence)
    assert sum(chance for place, chance in sums.items() if abs(place) <= width) >= confidence - 1e-7


@pytest.mark.parametrize("terms", SMALL, ids=str)
def test_dominating_widths_serve_for_smaller_coefficients(terms):
    width = dominating_half_width(terms, 0.9)
    generator = np.random.default_rng(1)
    for _ in range(6):
        smaller = [(coefficient * Fraction(int(generator.integers(0, 17)), 16), law) for coefficient, law in terms]
        inside = sum(chance for place, chance in _law_of_sum(smaller).items() if abs(place) <= width)
        assert inside >= 0.9 - 1e-7


def test_wide_sums_approach_their_limits():
    scale = 10**9
    two = combined_half_width([(1, LAPLACE(Fraction(scale))), (-1, LAPLACE(Fraction(scale)))], 0.95) / scale
    assert (1 + two / 2) * math.exp(-two) <= 0.05
    assert two < 4.1131 * 1.01
    normal = combined_half_width([(3, GAUSSIAN(Fraction(scale**2))), (4, GAUSSIAN(Fraction(scale**2)))], 0.95) / scale
    assert 5 * 1.959963984 <= normal < 5 * 1.959963984 * 1.01
    mixed = combined_half_width([(1, GAUSSIAN(Fraction(10**50))), (10**5, LAPLACE(Fraction(10**20)))], 0.95) / 10**25
    assert 1.96 < mixed < 4.0


@pytest.mark.parametrize("count", [2, 10, 30, 64, 100, 400])
def test_never_worse_than_one_by_one(count):
    for law in (LAPLACE(Fraction(5)), GAUSSIAN(Fraction(30)), LAPLACE(Fraction(10**7))):
        for confidence in (0.5, 0.95, 1 - 1e-9):
            terms = [(1, law)] * count
            assert combined_half_width(terms, confidence) <= _one_by_one(_kept(terms), 1 - confidence) * Fraction(
                1001, 1000
            )
    if count >= 30:
        limit = 1.96 * math.sqrt(count * LAPLACE(Fraction(5)).variance)
        assert limit * 0.98 < combined_half_width([(1, LAPLACE(Fraction(5)))] * count, 0.95) < 1.5 * limit


def test_one_term_and_none():
    law = LAPLACE(Fraction(2))
    assert combined_half_width([(-3, law)], 0.95) == 18
    assert combined_half_width([(Fraction(1, 100), law)], 0.95) == Fraction(6, 100)
    assert combined_half_width([(1, law), (0, law), (7, NoNoise())], 0.95) == 6
    assert combined_half_width([(7, NoNoise())], 0.95) == 0
    assert combined_half_width([], 0.95) == 0
    assert dominating_half_width([], 0.95) == 0

"""Half-widths for sums of many noises: proven ones are above the exact ones, and not far above."""

from fractions import Fraction

import numpy as np
import pytest

from confide.fit.tail import half_width
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace

LAPLACE = DiscreteLaplace(Fraction(3))
GAUSS = DiscreteGaussian(Fraction(9))


def exact_tail(coefficients: list[int], law: DiscreteLaplace | DiscreteGaussian, width: float) -> float:
    """P(|Σ c X| > width) for whole coefficients, by convolution of the laws themselves."""
    reach = 200
    right = -np.diff(law.tails(np.arange(reach + 1, dtype=np.float64)))
    single = np.concatenate([right[::-1], [1 - 2 * law.tails(np.zeros(1))[0]], right])
    total = np.ones(1)
    for coefficient in coefficients:
        stretched = np.zeros(2 * coefficient * reach + 1)
        stretched[::coefficient] = single
        total = np.convolve(total, stretched)
    places = np.arange(len(total)) - len(total) // 2
    return float(total[np.abs(places) > width].sum())


@pytest.mark.parametrize("law", [LAPLACE, GAUSS])
@pytest.mark.parametrize("coefficients", [[1] * 40, [1] * 20 + [2] * 10, [1] * 30 + [3] * 5 + [7], [5] + [1] * 25])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_bound_holds_and_is_close(
    law: DiscreteLaplace | DiscreteGaussian, coefficients: list[int], confidence: float
) -> None:
    width = half_width([(np.array(coefficients, dtype=float), law)], confidence)
    assert exact_tail(coefficients, law, width) <= 1 - confidence
    deviation = (law.variance * sum(each**2 for each in coefficients)) ** 0.5
    slack = width - sum(set(coefficients)) / 2 - 0.02 * deviation  # the spreading costs half of each coefficient
    assert exact_tail(coefficients, law, slack - 1) > 0.8 * (1 - confidence)


def test_signs_zeros_and_scale_do_not_matter() -> None:
    plain = half_width([(np.array([1.0] * 30 + [2.0] * 5), LAPLACE)], 0.95)
    mixed = half_width([(np.array([-1.0, 1.0] * 15 + [-2.0] * 5 + [0.0] * 100), LAPLACE)], 0.95)
    scaled = half_width([(np.array([1e-6] * 30 + [2e-6] * 5), LAPLACE)], 0.95)
    assert mixed == pytest.approx(plain)
    assert scaled == pytest.approx(plain * 1e-6)


def test_one_noise_has_its_own_quantile_and_none_has_zero() -> None:
    assert half_width([(np.array([2.0, 0.0]), GAUSS)], 0.95) == pytest.approx(2 * GAUSS.half_width(0.95))
    assert half_width([(np.zeros(3), GAUSS)], 0.95) == 0.0
    assert half_width([], 0.95) == 0.0


def test_many_different_coefficients_fall_back_to_chernoff() -> None:
    generator = np.random.default_rng(2)
    coefficients = generator.uniform(0.5, 1.0, 2000)
    deviation = float((GAUSS.variance * (coefficients**2).sum()) ** 0.5)
    width = half_width([(coefficients, GAUSS)], 0.95)
    assert 1.96 * deviation < width < 2.75 * deviation


def test_a_million_equal_noises() -> None:
    """A normal limit: the half-width is near 1.96 standard deviations."""
    width = half_width([(np.ones(10**6), LAPLACE)], 0.95)
    assert 1.96 < width / (LAPLACE.variance * 10**6) ** 0.5 < 2.0


def test_two_laws_add_up() -> None:
    both = half_width([(np.ones(50), LAPLACE), (np.ones(50), GAUSS)], 0.95)
    deviation = float((50 * LAPLACE.variance + 50 * float(GAUSS.variance)) ** 0.5)
    assert 1.95 * deviation < both < 2.1 * deviation


def test_noise_that_is_next_to_none_has_no_width() -> None:
    law = DiscreteLaplace(Fraction(1, 1000))
    assert half_width([(np.ones(1000), law)], 0.999) == 0.0
    assert half_width([(np.ones(1000), DiscreteLaplace(Fraction(1)))], 0.999) > 0

"""Widths of sums of many noises, against exact convolutions: never too narrow, and hardly wider."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace
from confide.mechanism.interval.many import gaussian_factor, laplace_widths


def law_of(law: DiscreteGaussian | DiscreteLaplace, reach: int) -> np.ndarray:
    right = -np.diff(law.tails(np.arange(reach + 1, dtype=np.float64)))
    return np.concatenate([right[::-1], 1 - 2 * law.tails(np.zeros(1)), right])


def outside(laws: list[np.ndarray], width: float) -> float:
    """P(|Σ X| > width) by convolution."""
    whole = np.ones(1)
    for law in laws:
        whole = np.convolve(whole, law)
    places = np.arange(len(whole)) - len(whole) // 2
    return float(whole[np.abs(places) > width].sum())


def multiplied(law: np.ndarray, factor: int) -> np.ndarray:
    wide = np.zeros((len(law) - 1) * factor + 1)
    wide[::factor] = law
    return wide


COEFFICIENTS = ([1], [1, 1], [5, 1], [1] * 8, [7, 3, 2, 1, 1, 1], [1] * 25)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("coefficients", COEFFICIENTS)
def test_gaussian_sums_are_covered(coefficients: list[int], confidence: float) -> None:
    for variance in (4, 100, 900):
        law = DiscreteGaussian(Fraction(variance))
        width = gaussian_factor(float(variance), confidence) * math.sqrt(variance * sum(c * c for c in coefficients))
        own = law_of(law, 8 * math.isqrt(variance) + 10)
        assert outside([multiplied(own, c) for c in coefficients], width) <= 1 - confidence


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("coefficients", COEFFICIENTS)
def test_laplace_sums_are_covered(coefficients: list[int], confidence: float) -> None:
    for scale in (1, 10, 40):
        law = DiscreteLaplace(Fraction(scale))
        second, fourth = (np.array([float(sum((c * scale) ** p for c in coefficients))]) for p in (2, 4))
        (width,) = laplace_widths(second, fourth, float(scale), confidence)
        own = law_of(law, 16 * scale)
        assert outside([multiplied(own, c) for c in coefficients], width) <= 1 - confidence + 1e-6 * len(coefficients)


def test_they_are_hardly_wider_than_they_must_be() -> None:
    assert gaussian_factor(2.0**24, 0.95) <= 1.9600 * 1.002
    for terms in (1, 10, 100, 10_000):
        second, fourth = np.array([float(terms)]), np.array([float(terms)])
        (width,) = laplace_widths(second, fourth, 2.0**14, 0.95)
        exact = {1: 2.1183, 10: 1.9790, 100: 1.9620, 10_000: 1.95998}[terms]
        assert width / math.sqrt(2 * terms) <= exact * (1.025 if terms == 10 else 1.006)


def test_the_least_sum_of_powers_decides() -> None:
    """A sum of one large and many small terms is not taken for one of many alike."""
    second, fourth = np.array([2.0, 2.0]), np.array([1.0 + 1e-4, 2e-4])
    few, many = laplace_widths(second, fourth, 2.0**14, 0.99)
    assert few > many


def test_nothing_is_as_wide_as_nothing() -> None:
    assert laplace_widths(np.zeros(1), np.zeros(1), 1.0, 0.95)[0] == 0

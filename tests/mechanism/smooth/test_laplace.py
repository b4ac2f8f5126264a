"""FLEX's Laplace noise: its exact law against the declared (ε, δ), its draws against its law, its interval."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.smooth.laplace import SmoothLaplace, gamma_quantile, rounded_laplace
from confide.mechanism.smooth.smooth import ANSWER_SHARE

ONE = Fraction(1)


def law(centre, scale, reach):
    """P(answer + scale·Z rounds to k), k from -reach to reach."""
    distance = np.abs(np.arange(-reach, reach + 1) - centre)
    inner = np.where(distance == 0, 2 - 2 * np.exp(-0.5 / scale), np.exp(-(distance - 0.5) / scale))
    return np.where(distance == 0, inner, inner - np.exp(-(distance + 0.5) / scale)) / 2


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(4)])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_neighbours_are_apart_by_no_more_than_declared(epsilon, delta):
    """The answer moves by all of S, and S by all of α, up or down; integers alone, without the share for ln S."""
    mechanism = SmoothLaplace(epsilon, Fraction(delta), 1)
    limit, alpha, factor = math.exp(epsilon * ANSWER_SHARE), float(mechanism.alpha), float(mechanism.factor)
    for bound in (1.0, 7.0):
        for turn in (-1, 1):
            other = bound * math.exp(turn * alpha)
            moved = int(min(bound, other))
            reach = int(60 * factor * max(bound, other)) + 10
            here, there = law(0, factor * bound, reach), law(moved, factor * other, reach)
            for first, second in ((here, there), (there, here)):
                assert np.maximum(first - limit * second, 0).sum() <= delta * (1 + 1e-9)


def test_a_smoothness_that_forgets_delta_is_caught():
    """α as for pure noise of bounded dilation: the tail gives it away. A mutant, caught."""
    mechanism = SmoothLaplace(ONE, Fraction(1, 10**6), 1)
    limit, factor = math.exp(ANSWER_SHARE), float(mechanism.factor)
    here, there = law(0, factor, 4_000), law(0, factor * math.exp(0.3), 4_000)
    assert np.maximum(there - limit * here, 0).sum() > 1e-4


def test_draws_have_the_law():
    """χ² of 20,000 draws in 13 cells; 60 is exceeded once in 10^7."""
    source, scale, runs = TestRandomness(4), Fraction(5, 2), 20_000
    drawn = Counter(max(-6, min(6, rounded_laplace(0, scale, source))) for _ in range(runs))
    exact = law(0, 2.5, 400)
    cells = [exact[:395].sum(), *exact[395:406], exact[406:].sum()]
    statistic = sum((drawn[place - 6] - runs * share) ** 2 / (runs * share) for place, share in enumerate(cells))
    assert statistic < 60


@pytest.mark.parametrize("size", [1, 3, 40, 1_000])
@pytest.mark.parametrize("delta", [0.1, 1e-9])
def test_quantiles_of_sums(size, delta):
    from scipy.stats import gamma  # noqa: PLC0415

    assert gamma_quantile(size, delta) >= max(size, gamma.isf(delta, size) * (1 - 1e-9))
    assert gamma_quantile(size, delta) <= max(1.01 * size, gamma.isf(delta, size) * (1 + 1e-6))


def test_the_interval_covers():
    """Nine in ten of 600; fewer than 500 would happen once in 10^6 at 0.9."""
    mechanism, source = SmoothLaplace(ONE, Fraction(1, 10**6), 3), TestRandomness(2)
    hits = widths = 0
    for _ in range(200):
        noised, half = mechanism.measure([100, 0, 7], 5.0, 0.1, source)
        hits += sum(abs(value - exact) <= half for value, exact in zip(noised, (100, 0, 7), strict=True))
        widths += half
    assert hits >= 500
    assert abs(widths / 200 / mechanism.expected_half_width(5.0, 0.1) - 1) < 0.2


def test_bad_arguments():
    with pytest.raises(ParameterError, match="at least"):
        SmoothLaplace(Fraction(1, 10**6), Fraction(1, 10**6), 1)
    with pytest.raises(ParameterError, match="delta must lie strictly between"):
        SmoothLaplace(ONE, Fraction(0), 1)
    with pytest.raises(ValueError, match="integers are measured"):
        SmoothLaplace(ONE, Fraction(1, 10**6), 2).measure([1], 1.0, 0.1, TestRandomness(1))
    assert SmoothLaplace(ONE, Fraction(1, 10**6), 1).loss.delta == Fraction(1, 10**6)


def test_a_bound_beyond_all_sums_is_cut():
    noised, _ = SmoothLaplace(ONE, Fraction(1, 10**6), 1).measure([0], 1e300, 0.1, TestRandomness(1))
    assert abs(noised[0]) < 2**170

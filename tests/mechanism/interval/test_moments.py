from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import (
    DiscreteGaussian,
    DiscreteLaplace,
    NoNoise,
    TestRandomness,
    deviation_intervals,
    draw,
    variance_estimates,
    variance_intervals,
)

RADIUS = 1000
LAWS = (DiscreteLaplace(Fraction(3)), DiscreteLaplace(Fraction(3 * RADIUS)), DiscreteLaplace(Fraction(3 * RADIUS**2)))
EXACT = (NoNoise(), NoNoise(), NoNoise())


def _measured(values, laws, runs, seed=1):
    source = TestRandomness(seed)
    exact = (len(values), sum(values), sum(value * value for value in values))
    return [number + draw(law, runs, source) for number, law in zip(exact, laws, strict=True)]


@pytest.mark.parametrize("sample", [True, False])
def test_without_noise_the_interval_is_the_variance(sample):
    values = np.random.default_rng(1).integers(-RADIUS, RADIUS + 1, 500).tolist()
    intervals = variance_intervals(*_measured(values, EXACT, 1), EXACT, RADIUS, 0.95, sample=sample)
    variance = np.var(values, ddof=1 if sample else 0)
    assert intervals.contains(np.array([variance])).all()
    assert intervals.high[0] - intervals.low[0] < 1e-6 * variance


@pytest.mark.parametrize("sample", [True, False])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_groups_that_may_be_too_small_get_the_whole_range(size, sample):
    intervals = variance_intervals(*_measured([5] * size, LAWS, 5000), LAWS, RADIUS, 0.9, sample=sample)
    whole = (intervals.low == 0) & (intervals.high == RADIUS**2 * (2 if sample else 1))
    if size <= sample:
        assert whole.mean() >= 0.9
    exact = variance_intervals(*_measured([5] * size, EXACT, 1), EXACT, RADIUS, 0.9, sample=sample)[0]
    assert (exact.low, exact.high) == (
        (0, RADIUS**2 * (2 if sample else 1)) if size <= sample else (0, pytest.approx(0, abs=1e-6))
    )


@pytest.mark.parametrize("sample", [True, False])
def test_intervals_stay_within_what_is_possible_and_estimates_within_them(sample):
    generator = np.random.default_rng(2)
    counts = generator.integers(-30, 300, 3000)
    sums = generator.integers(-100 * RADIUS, 100 * RADIUS, 3000)
    squares = generator.integers(-100 * RADIUS**2, 300 * RADIUS**2, 3000)
    intervals = variance_intervals(counts, sums, squares, LAWS, RADIUS, 0.95, sample=sample)
    assert (intervals.low >= 0).all()
    assert (intervals.low <= intervals.high).all()
    assert (intervals.high <= RADIUS**2 * (2 if sample else 1)).all()
    estimates = variance_estimates(counts, sums, squares, intervals, sample=sample)
    assert intervals.contains(estimates).all()
    roots = deviation_intervals(intervals)
    assert roots.contains(np.sqrt(estimates)).all()
    assert (roots.low**2 <= intervals.low * (1 + 1e-12)).all()
    assert roots.assumes == "always"


def test_large_groups_have_nearly_the_width_of_the_noise_in_their_squares():
    """Mean in the middle, n = 10⁵: the exact quantile of X₂ - V·Y over n is the least that any method can reach."""
    size = 10**5
    squares = size * RADIUS**2 // 3
    interval = variance_intervals(np.array([size]), np.array([0]), np.array([squares]), LAWS, RADIUS, 0.95)[0]
    source = TestRandomness(3)
    noise = np.abs(draw(LAWS[2], 400_000, source) - RADIUS**2 / 3 * draw(LAWS[0], 400_000, source))
    ideal = np.quantile(noise, 0.95) / size
    assert ideal < (interval.high - interval.low) / 2 < 1.15 * ideal


def test_skewed_groups_are_narrower_than_the_parts_bounded_one_by_one():
    size, mean = 10**5, -RADIUS * 8 // 10
    squares = size * (mean**2 + 10**4)
    interval = variance_intervals(np.array([size]), np.array([size * mean]), np.array([squares]), LAWS, RADIUS, 0.95)[0]
    third = 1 - Fraction(5, 300)
    apart = (
        LAWS[2].half_width(third) + 2 * abs(mean) * LAWS[1].half_width(third) + mean**2 * LAWS[0].half_width(third)
    ) / size
    assert interval.high - 10**4 < 0.66 * apart


def test_sums_beyond_64_bits():
    radius = 2**40
    laws = tuple(DiscreteGaussian(Fraction(16 * radius ** (2 * power))) for power in range(3))
    counts, sums = np.array([2**30]), np.array([2**69], dtype=object)
    squares = np.array([2**30 * (2**78 + 2**70)], dtype=object)  # mean 2³⁹, variance 2⁷⁰
    interval = variance_intervals(counts, sums, squares, laws, radius, 0.95, sample=False)[0]
    assert 2**70 in interval
    assert interval.high < 2**70 + 2**80 * 100 / 2**30


def test_a_single_possible_value_has_no_variance():
    interval = variance_intervals(np.array([50]), np.array([0]), np.array([0]), LAWS, 0, 0.95)[0]
    assert (interval.low, interval.high) == (0, 0)

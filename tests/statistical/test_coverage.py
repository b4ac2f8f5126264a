"""Coverage of the intervals for ratios, variances and sums: never below nominal, for any size of group.

Each case has 10,000 runs and an exact binomial test at level 10⁻⁵. The seeds are fixed, so a case passes or fails for
good; were they drawn, one of the few hundred cases would fail by chance once in a few hundred runs.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from confide.mechanism import (
    DiscreteGaussian,
    DiscreteLaplace,
    KernelRandomness,
    Measurement,
    NoNoise,
    TestRandomness,
    combined_half_width,
    deviation_intervals,
    draw,
    ratio_estimates,
    ratio_intervals,
    variance_intervals,
)

RUNS = 10_000
RADIUS = 500
SIZES = [0, 1, 2, 5, 50, 10**6]
MEANS = {"middle": 0, "low end": -RADIUS, "high end": RADIUS, "inside": RADIUS // 3}
SPREADS = [1, 8]  # even and odd, so that both confidences meet every mean; scale of the count's noise
KINDS = ["laplace", "gaussian", "laplace over gaussian", "gaussian over laplace", "over exact", "exact over"]


def _not_below(covered, confidence, level=1e-5):
    misses = int((~covered).sum())
    chance = binom.sf(misses - 1, covered.size, 1 - confidence)
    assert chance > level, f"{misses} misses in {covered.size} runs at {confidence}"


def _law(kind, scale):
    return DiscreteLaplace(Fraction(scale)) if kind == "laplace" else DiscreteGaussian(Fraction(scale) ** 2)


def _pair(kind, spread):
    """Laws of the sum and of the count."""
    top, _, bottom = kind.partition(" over ") if " over " in kind else (kind, "", kind)
    if kind == "over exact":
        return _law("laplace", spread * RADIUS), NoNoise()
    if kind == "exact over":
        return NoNoise(), _law("laplace", spread)
    return _law(top, spread * RADIUS), _law(bottom, spread)


def _ratio_case(size, mean, spread, kind, source, confidence):
    sums_law, counts_law = _pair(kind, spread)
    sums = size * mean + draw(sums_law, RUNS, source)
    counts = size + draw(counts_law, RUNS, source)
    intervals = ratio_intervals(
        sums, counts, sums_law, counts_law, confidence, low=-RADIUS, high=RADIUS, denominator_nonnegative=True
    )
    estimates = ratio_estimates(sums, counts, intervals, denominator_nonnegative=True)
    assert intervals.contains(estimates).all()
    whole = (intervals.low == -RADIUS) & (intervals.high == RADIUS)
    return whole if size == 0 else intervals.contains(np.full(RUNS, float(mean)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("size", SIZES)
def test_means_are_covered(size, spread, kind):
    for place, mean in enumerate(MEANS.values()):
        confidence = (0.5, 0.95)[(place + spread) % 2]
        _not_below(_ratio_case(size, mean, spread, kind, TestRandomness(place), confidence), confidence)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("top", [0, 3, -40, 10**4])
@pytest.mark.parametrize("bottom", [1, -1, 10, -10, 1000])
def test_ratios_without_bounds_are_covered(top, bottom, kind):
    """Sums over sums: either may be negative and nothing is known of the ratio."""
    source = TestRandomness(9)
    first, second = _law(kind, 3), _law(kind, 2)
    numerator, denominator = top + draw(first, RUNS, source), bottom + draw(second, RUNS, source)
    for confidence in (0.5, 0.95):
        intervals = ratio_intervals(numerator, denominator, first, second, confidence)
        _not_below(intervals.contains(np.full(RUNS, top / bottom)), confidence)


def test_large_groups_are_covered_about_as_often_as_stated():
    """The intervals are not merely wide: at n = 10⁶ they cover 95 to 96 times in a hundred."""
    for kind in KINDS[:4]:
        for mean in MEANS.values():
            if abs(mean) < RADIUS:
                assert _ratio_case(10**6, mean, 8, kind, TestRandomness(3), 0.95).mean() < 0.965


SHAPES = {
    "even": lambda size: np.linspace(-RADIUS, RADIUS, size).astype(np.int64),
    "at the low end": lambda size: np.full(size, -RADIUS),
    "at both ends": lambda size: np.where(np.arange(size) % 2, RADIUS, -RADIUS),
    "skewed": lambda size: (-RADIUS + np.minimum(RADIUS * np.linspace(0, 1, size) ** 6, RADIUS)).astype(np.int64),
}


def _variance_case(values, kind, spread, sample, source, confidence):
    laws = tuple(_law(kind, spread * RADIUS**power) for power in range(3))
    size, total, squares = len(values), int(values.sum()), int((values**2).sum())
    noised = [number + draw(law, RUNS, source) for number, law in zip((size, total, squares), laws, strict=True)]
    intervals = variance_intervals(*noised, laws, RADIUS, confidence, sample=sample)
    if size <= sample:
        return (intervals.low == 0) & (intervals.high == RADIUS**2 * (2 if sample else 1))
    truth = float(Fraction(squares * size - total**2, size * (size - sample)))
    covered = intervals.contains(np.full(RUNS, truth))
    roots = deviation_intervals(intervals).contains(np.full(RUNS, math.sqrt(truth)))
    assert (roots >= covered).all()
    return covered


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_variances_are_covered(size, shape, kind):
    values = SHAPES[shape](size)
    for sample, confidence in ((True, 0.95), (False, 0.5), (True, 0.5)):
        _not_below(_variance_case(values, kind, 2, sample, TestRandomness(5), confidence), confidence)


def test_sums_of_noised_numbers_are_covered():
    source = TestRandomness(6)
    laws = [_law("laplace", 3), _law("gaussian", 5), _law("laplace", 1000), _law("gaussian", 10**6)]
    for coefficients in ((1, -1, 0, 0), (2, 3, 0, 0), (100, 70, 1, 0), (0, 0, 500, -1), (10**5, 10**5, 300, 1)):
        terms = [*zip(coefficients, laws, strict=True)]
        noise = sum(coefficient * draw(law, RUNS, source) for coefficient, law in terms)
        for confidence in (0.5, 0.9, 0.99):
            covered = np.abs(noise) <= float(combined_half_width(terms, confidence))
            _not_below(covered, confidence)
            assert covered.mean() < confidence + 0.06


@pytest.mark.parametrize("law", [_law("laplace", Fraction(1, 3)), _law("laplace", 7), _law("gaussian", 10**5)], ids=str)
def test_single_numbers_are_covered(law):
    noise = draw(law, 100_000, TestRandomness(7))
    for confidence in (0.5, 0.9, 0.99):
        _not_below(Measurement(noise, law).intervals(confidence).contains(np.zeros(100_000)), confidence)


@pytest.mark.audit
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 12, 20, 35, 50, 100, 1000, 10**6])
def test_audit_means_are_covered(size, kind):
    source = KernelRandomness()
    for spread in (1, 3, 8, 100):
        for mean in (*MEANS.values(), -RADIUS + 1, RADIUS - 7, 1):
            for confidence in (0.5, 0.8, 0.95, 0.99):
                _not_below(_ratio_case(size, mean, spread, kind, source, confidence), confidence, 1e-8)


@pytest.mark.audit
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 12, 20, 35, 50, 100, 1000, 10**6])
def test_audit_variances_are_covered(size, kind):
    source = KernelRandomness()
    for shape in SHAPES.values():
        for spread in (1, 5):
            for sample in (True, False):
                for confidence in (0.5, 0.8, 0.95, 0.99):
                    covered = _variance_case(shape(size), kind, spread, sample, source, confidence)
                    _not_below(covered, confidence, 1e-8)

"""Intervals for a population hold over sampling and noise together: few rows, rare shares, skewed values."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, TestRandomness, draw
from confide.mechanism.interval import population
from confide.mechanism.interval.population import population_intervals

RUNS = 1500
Drawn = Callable[[Any, int], tuple[Any, float]]


def coin(share: float) -> Drawn:
    return lambda generator, rows: ((generator.random((RUNS, rows)) < share).astype(np.int64), share)


def rare_and_large(generator: Any, rows: int) -> tuple[Any, float]:
    return np.where(generator.random((RUNS, rows)) < 0.01, 1000, 0), 10.0


def skewed(generator: Any, rows: int) -> tuple[Any, float]:
    values = np.minimum(generator.exponential(30, (RUNS, rows)).astype(np.int64), 1000)
    return values, float(np.exp(-np.arange(1, 1001) / 30).sum())


SOURCES: dict[str, tuple[Drawn, int, int]] = {
    "half": (coin(0.5), 0, 1),
    "one in ten": (coin(0.1), 0, 1),
    "one in a hundred": (coin(0.01), 0, 1),
    "one in a thousand": (coin(0.001), 0, 1),
    "nearly all": (coin(0.995), 0, 1),
    "rare and large": (rare_and_large, 0, 1000),
    "skewed": (skewed, 0, 1000),
}


def found(source: str, rows: int, scale: int, confidence: float, gaussian: bool = False) -> tuple[Any, Any, float]:
    drawn, low, high = SOURCES[source]
    values, mean = drawn(np.random.default_rng(7), rows)
    centre = (low + high) // 2
    radius = max(high - centre, centre - low)
    total_law: Any = DiscreteLaplace(Fraction(scale * radius))
    count_law: Any = DiscreteLaplace(Fraction(2 * scale))
    if gaussian:
        total_law, count_law = DiscreteGaussian(Fraction((scale * radius) ** 2)), DiscreteGaussian(Fraction(scale**2))
    random = TestRandomness(3)
    totals = (values - centre).sum(axis=1) + draw(total_law, RUNS, random)
    counts = rows + draw(count_law, RUNS, random)
    ends = {"low": low - centre, "high": high - centre}
    intervals = population_intervals(totals, counts, total_law, count_law, confidence, **ends)
    return intervals.low + centre, intervals.high + centre, mean


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rows", [1, 15, 200, 1500])
@pytest.mark.parametrize("gaussian", [False, True])
def test_intervals_hold(source: str, rows: int, gaussian: bool) -> None:
    """At confidence 0.8, 1,500 samples: the bound is 5 standard deviations below."""
    low, high, mean = found(source, rows, 2, 0.8, gaussian)
    assert np.mean((low <= mean) & (mean <= high)) >= 0.8 - 5 * np.sqrt(0.16 / RUNS)
    assert (low < high).all()


@pytest.mark.parametrize(("source", "most"), [("half", 1.6), ("one in ten", 1.8)])
def test_shares_are_not_much_wider_than_noise_and_sampling_are(source: str, most: float) -> None:
    rows, scale = 1500, 2
    low, high, mean = found(source, rows, scale, 0.8)
    deviation = np.hypot(np.sqrt(mean * (1 - mean) / rows), np.sqrt(2) * scale / rows)
    assert 1.28 * deviation < np.median(high - low) / 2 < most * 1.28 * deviation


def test_the_interval_for_the_rows_alone_does_not_hold() -> None:
    """A control: what leaves sampling out misses far more often."""
    drawn, _, _ = SOURCES["half"]
    values, mean = drawn(np.random.default_rng(7), 1500)
    law = DiscreteLaplace(Fraction(2))
    ratio = (values.sum(axis=1) + draw(law, RUNS, TestRandomness(1))) / 1500
    half = law.half_width(0.8) / 1500
    assert np.mean(np.abs(ratio - mean) <= half) < 0.3


@pytest.mark.parametrize("rate", [0.4, 0.1, 0.01, 1e-4])
def test_limits_of_shares_go_up_with_the_share_and_towards_it_with_the_rows(rate: float) -> None:
    """The proof needs it for numbers of ones that are not whole as well."""
    rows = np.concatenate([np.arange(1, 60, 0.37), np.geomspace(60, 1e7, 100)])
    shares = np.concatenate([[1e-6, 1e-4], np.linspace(0.001, 1, 60)])
    limits = np.array([population._share_limit(np.full(rows.shape, share), rows, rate) for share in shares])
    assert (np.diff(limits, axis=1) >= -1e-12).all()
    assert (np.diff(limits, axis=0) >= -1e-12).all()


def test_limits_of_means_are_those_of_chernoff() -> None:
    limits = population._mean_limit(np.array([0.0, 0.5, 1.0]), np.array([100.0, 100.0, 100.0]), 0.05)
    assert limits[0] == 0
    assert limits[2] == pytest.approx(0.05 ** (1 / 100))
    p = limits[1]
    assert 100 * (0.5 * np.log(0.5 / p) + 0.5 * np.log(0.5 / (1 - p))) == pytest.approx(np.log(20))


def test_without_noise_shares_have_their_exact_limits() -> None:
    """Of no ones in 20 rows, with nothing to hide: p at which none come up so rarely."""
    exact = NoNoise()
    intervals = population_intervals(np.array([0]), np.array([20]), exact, exact, 0.9, low=0, high=1)
    rate = 0.1 * 0.7 / 2
    assert intervals.low[0] == 0
    assert intervals.high[0] == pytest.approx(1 - rate ** (1 / 20), abs=1e-6)


def test_rows_are_as_few_as_the_noise_of_their_number_allows() -> None:
    law, exact = DiscreteLaplace(Fraction(3)), NoNoise()
    intervals = population_intervals(np.array([0]), np.array([60]), exact, law, 0.9, low=0, high=1)
    rows, rate = 60 - law.upper(1 - Fraction(1, 10) / 20), 0.1 * 0.7 / 2
    assert intervals.high[0] == pytest.approx(1 - rate ** (1 / rows), abs=1e-6)


def test_groups_that_may_be_empty_get_the_whole_range() -> None:
    law = DiscreteLaplace(Fraction(4))
    intervals = population_intervals(np.array([3, 0]), np.array([5, -70]), law, law, 0.95, low=0, high=1)
    assert intervals.low.tolist() == [0, 0]
    assert intervals.high.tolist() == [1, 1]

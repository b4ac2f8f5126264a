"""Intervals of covariances, correlations and lines hold whatever the data are, and are never a point."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, TestRandomness, draw
from confide.mechanism.interval.association import (
    NoisedSums,
    correlation_intervals,
    covariance_intervals,
    intercept_intervals,
    slope_intervals,
)

RADIUS = (50, 1000)
UNITS = {"n": 1, "u": 50, "v": 1000, "uu": 50**2, "vv": 1000**2, "uv": 50 * 1000}
EXACT = {name: NoNoise() for name in UNITS}
NAMES = ("covariance", "sample covariance", "correlation", "slope", "intercept")
ZERO = -0.8
"""Where an intercept is taken, in radii of u."""


def laplace(scale: float) -> dict[str, Any]:
    return {name: DiscreteLaplace(Fraction(scale) * unit) for name, unit in UNITS.items()}


def gaussian(deviation: int) -> dict[str, Any]:
    return {name: DiscreteGaussian(Fraction((deviation * unit) ** 2)) for name, unit in UNITS.items()}


def noised(u: Any, v: Any, laws: dict[str, Any], runs: int, seed: int = 1) -> NoisedSums:
    source = TestRandomness(seed)
    exact = {"n": len(u), "u": u.sum(), "v": v.sum(), "uu": (u * u).sum(), "vv": (v * v).sum(), "uv": (u * v).sum()}
    values = {name: int(exact[name]) + draw(laws[name], runs, source) for name in UNITS}
    return NoisedSums(values, laws, RADIUS)  # type: ignore[arg-type]


def found(name: str, sums: NoisedSums, confidence: float) -> Any:
    calls: dict[str, Callable[[], Any]] = {
        "covariance": lambda: covariance_intervals(sums, confidence, sample=False),
        "sample covariance": lambda: covariance_intervals(sums, confidence, sample=True),
        "correlation": lambda: correlation_intervals(sums, confidence),
        "slope": lambda: slope_intervals(sums, confidence),
        "intercept": lambda: intercept_intervals(sums, confidence, ZERO),
    }
    return calls[name]()


def true_value(name: str, u: Any, v: Any) -> float | None:
    """In radii; None where there is no such number."""
    x, y = u / RADIUS[0], v / RADIUS[1]
    if len(u) == 0 or (name == "sample covariance" and len(u) == 1):
        return None
    c, d, e = ((x - x.mean()) * (y - y.mean())).sum(), ((x - x.mean()) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    if "covariance" in name:
        return float(c / (len(u) - (name == "sample covariance")))
    flat, even = (np.unique(numbers).size == 1 for numbers in (u, v))
    if flat or (even and name == "correlation"):
        return None
    if name == "correlation":
        return float(c / np.sqrt(d * e))
    return float(c / d) if name == "slope" else float(y.mean() + c / d * (ZERO - x.mean()))


def _at(ends: Any, true: float) -> Any:
    """What the doubles of this test tell apart from an end by rounding alone."""
    return np.isclose(ends, true, rtol=1e-12, atol=1e-14)


def data_sets() -> dict[str, tuple[Any, Any]]:
    generator = np.random.default_rng(5)
    u = generator.integers(-50, 51, 3000)
    tails = np.where(generator.random(3000) < 0.02, 50, -50)
    return {
        "related": (u, np.clip(12 * u + generator.integers(-400, 401, 3000), -1000, 1000)),
        "unrelated": (u, generator.integers(-1000, 1001, 3000)),
        "one line": (u, 20 * u),
        "falling line": (u, -20 * u),
        "in a corner": (u // 10 - 45, generator.integers(900, 1001, 3000)),
        "skewed": (tails, np.where(tails > 0, 1000, generator.integers(-1000, -900, 3000))),
        "u is flat": (np.full(300, 20), generator.integers(-1000, 1001, 300)),
        "v is flat": (u[:300], np.full(300, -700)),
        "few": (u[:15], 20 * u[:15]),
        "two": (np.array([-50, 50]), np.array([-1000, 1000])),
        "one": (np.array([50]), np.array([1000])),
        "nobody": (u[:0], u[:0]),
    }


DATA = data_sets()
RUNS = 1500


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("laws", [laplace(2), gaussian(3)], ids=["laplace", "gaussian"])
def test_intervals_hold(name: str, data: str, laws: dict[str, Any]) -> None:
    """At confidence 0.8, 1,500 runs: the bound is 5 standard deviations below, passed by chance once in 3 million."""
    u, v = DATA[data]
    _, intervals = found(name, noised(u, v, laws, RUNS), 0.8)
    true = true_value(name, u, v)
    widest = {"covariance": 1.0, "sample covariance": 2.0, "correlation": 1.0}.get(name, np.inf)
    held = (
        (intervals.low <= -widest) & (intervals.high >= widest)
        if true is None
        else intervals.contains(np.full(RUNS, true)) | _at(intervals.low, true) | _at(intervals.high, true)
    )
    assert held.mean() >= 0.8 - 5 * np.sqrt(0.16 / RUNS)


@pytest.mark.parametrize("name", NAMES)
def test_large_groups_are_not_far_from_what_the_error_is(name: str) -> None:
    """Intervals at 0.8, against the 0.8 quantile of the actual error: bounds that hold together cost less than this."""
    u, v = (np.tile(numbers, 30) for numbers in DATA["related"])
    estimates, intervals = found(name, noised(u, v, laplace(2), 600), 0.8)
    true = true_value(name, u, v)
    assert true is not None
    actual = np.quantile(np.abs(estimates - true), 0.8)
    half = np.median(intervals.high - intervals.low) / 2
    assert actual < half < (3.5 if name == "intercept" else 1.6) * actual


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_the_interval_is_the_number(name: str) -> None:
    u, v = DATA["related"]
    estimates, intervals = found(name, noised(u, v, EXACT, 1), 0.95)
    true = true_value(name, u, v)
    assert intervals.contains(np.array([true])).all()
    assert estimates[0] == pytest.approx(true)
    assert intervals.high[0] - intervals.low[0] < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_whatever_was_measured_estimates_lie_inside_and_no_interval_is_a_point(name: str) -> None:
    generator = np.random.default_rng(2)
    values = {part: generator.integers(-300 * unit, 900 * unit, 2000) for part, unit in UNITS.items()}
    laws = laplace(2)
    with np.errstate(all="ignore"):
        estimates, intervals = found(name, NoisedSums(values, laws, RADIUS), 0.95)  # type: ignore[arg-type]
    assert (intervals.low < intervals.high).all()
    assert intervals.contains(estimates).all()
    assert np.isfinite(estimates).all()
    if name == "correlation":
        assert (intervals.low >= -1).all()
        assert (intervals.high <= 1).all()


def test_a_correlation_beyond_one_keeps_a_width() -> None:
    """Products that noise made larger than squares allow: what is near 1 stays possible."""
    values = {"n": 5000, "u": 0, "v": 0, "uu": 5000 * 50**2 // 4, "vv": 5000 * 1000**2 // 4, "uv": 5000 * 20_000}
    sums = NoisedSums({name: np.array([number]) for name, number in values.items()}, laplace(2), RADIUS)  # type: ignore[arg-type, misc]
    estimates, intervals = correlation_intervals(sums, 0.95)
    assert estimates[0] == intervals.high[0] == 1
    assert 0.9 < intervals.low[0] < 0.999


def test_many_groups_share_few_widths() -> None:
    generator = np.random.default_rng(3)
    values = {name: generator.integers(0, 400 * unit, 4_000) for name, unit in UNITS.items()}
    with np.errstate(all="ignore"):
        _, intervals = correlation_intervals(NoisedSums(values, laplace(2), RADIUS), 0.95)  # type: ignore[arg-type]
    assert len(intervals) == 4_000

"""The largest discounted bound: the same as by looking at every step, from few of them."""

import math
import time

import numpy as np
import pytest

from confide.mechanism.join.elastic import Elastic
from confide.mechanism.join.residual import Residual
from confide.mechanism.smooth.discounted import log_largest


def plain(local, farthest, alpha):
    steps = np.arange(farthest + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return float((np.log(local(steps)) - alpha * steps).max())


@pytest.mark.parametrize("seed", range(40))
def test_it_is_that_of_all_steps(seed):
    random = np.random.default_rng(seed)
    powers = random.integers(0, 6, 4)
    weights = random.choice([0, 1, 3, 10**6, 10**12], 4)
    jump = random.integers(0, 5_000)

    def local(steps):
        grown = sum(weight * steps**power for weight, power in zip(weights, powers, strict=True))
        return np.minimum(grown, 10.0**14) + 1e15 * (steps >= jump)

    for alpha in (2.0, 0.1, 0.003):
        farthest = math.ceil(5 / alpha) + int(jump)
        assert log_largest(local, farthest, alpha) == pytest.approx(plain(local, farthest, alpha), rel=1e-13)


def test_nothing_is_nothing():
    assert log_largest(np.zeros_like, 1000, 0.1) == -math.inf


def test_a_small_epsilon_takes_few_steps():
    looked = 0

    def local(steps):
        nonlocal looked
        looked += len(steps)
        return (steps + 3) ** 9

    alpha = 3e-8
    found = log_largest(local, math.ceil(9 / alpha), alpha)
    assert found == pytest.approx(9 * math.log(9 / alpha) - 9, abs=1e-6)
    assert looked < 500_000


@pytest.mark.parametrize("count", [2, 5, 16])
def test_elastic_sensitivity_at_the_smallest_epsilon(count):
    """Steps beyond joins/α hold nothing larger; of sixteen tables all steps would be more than memory holds."""
    for same in (True, False):
        tables = tuple("r" if same else f"r{place}" for place in range(count))
        joins = tuple((place, (((place - 1, "b"), (place, "a")),)) for place in range(1, count))
        frequencies = {(place, column): 1 + place % 3 for place in range(count) for column in "ab"}
        elastic = Elastic(tables, 0, joins, frequencies)
        for alpha in (1.5, 0.2, 0.01):
            expected = plain(elastic.local, math.ceil(count**2 / alpha) + 2, alpha)
            assert elastic.smooth(alpha) == pytest.approx(math.exp(expected), rel=1e-9)
        begun = time.perf_counter()
        assert elastic.smooth(5.5e-7) > 0
        assert time.perf_counter() - begun < 5


def test_residual_sensitivity_of_many_copies_at_the_smallest_epsilon():
    copies = (0, 1, 2, 3, 4)
    sets = [frozenset(place for place in copies if bits >> place & 1) for bits in range(1, 32)]
    residual = Residual((copies[:3], copies[3:]), {places: 6 - len(places) for places in sets})
    begun = time.perf_counter()
    assert residual.smooth(5.5e-7) >= residual.local((0, 0))
    assert time.perf_counter() - begun < 5

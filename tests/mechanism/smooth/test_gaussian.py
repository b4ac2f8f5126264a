"""Gaussian noise after a noised bound: its exact law against the declared ρ and δ, its intervals, and what it gains."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.noise.law import LARGEST_SMOOTH
from confide.mechanism.smooth.gaussian import STEADY, SmoothGaussian, Tuning, tuned
from confide.mechanism.smooth.smooth import Smooth
from confide.mechanism.smooth.vector import SmoothVector
from confide.privacy.amount import root
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP

ORDERS = (1.01, 1.5, 2.0, 4.0, 12.0)
TIGHT = Tuning(Fraction(3, 10), Fraction(1, 20))
"""Little is spent on S being too low, so that nearly all of what is allowed is used."""


def log_law(variance, places):
    """ln P of a discrete Gaussian law."""
    steps = np.arange(-int(12 * math.sqrt(variance)) - 2, int(12 * math.sqrt(variance)) + 3)
    total = np.logaddexp.reduce(-(steps**2) / (2 * variance))
    return -(places**2) / (2 * variance) - total


def worst(mechanism, bound, other, moved, noise=1.0):
    """The largest D_a / (a·ρ) on F over orders and directions, and the chance of being outside of F, from the law."""
    law = mechanism._log_noise.law
    reach = int(9 * math.sqrt(law.variance)) + 70
    here, there = (math.ceil(math.log(scale) / mechanism._step) for scale in (bound, other))
    released = np.arange(min(here, there) - reach, max(here, there) + reach)
    scales = np.array([mechanism._above(int(steps), mechanism.delta) for steps in released])
    inside = scales >= min(bound, other)
    first, second = (log_law(float(law.variance), released - place) for place in (here, there))
    outside = max(np.exp(first[~inside]).sum(), np.exp(second[~inside]).sum())
    sums = {order: [[], []] for order in ORDERS}
    for scale, one, two in zip(scales[inside], first[inside], second[inside], strict=True):
        variance = float(mechanism.noise(scale).law.variance) * noise**2
        if max(one, two) < -60:
            continue
        values = np.arange(-int(9 * math.sqrt(variance)) - 1, moved + int(9 * math.sqrt(variance)) + 2)
        p, q = one + log_law(variance, values), two + log_law(variance, values - moved)
        for order in ORDERS:
            sums[order][0].append(np.logaddexp.reduce(order * p + (1 - order) * q))
            sums[order][1].append(np.logaddexp.reduce(order * q + (1 - order) * p))
    largest = max(
        np.logaddexp.reduce(parts) / (order - 1) / (order * float(mechanism.rho))
        for order, both in sums.items()
        for parts in both
    )
    return largest, outside


@pytest.mark.parametrize("tuning", [TIGHT, STEADY, tuned(3)])
@pytest.mark.parametrize("turn", [-1, 0, 1])
def test_neighbours_are_apart_by_no_more_than_declared(tuning, turn):
    """The integer moves by all of the smaller S, and S by all of α."""
    mechanism = SmoothGaussian(Fraction(2), Fraction(1, 10**4), 1, tuning)
    bound = 6.0
    other = bound * math.exp(turn * float(mechanism.alpha))
    ratio, outside = worst(mechanism, bound, other, int(min(bound, other)))
    assert ratio <= 1 + 1e-6
    assert outside <= 1e-4
    if tuning is TIGHT:
        assert ratio > 0.5


def test_half_the_noise_would_not_be_enough():
    """The check above can fail."""
    mechanism = SmoothGaussian(Fraction(2), Fraction(1, 10**4), 1, TIGHT)
    assert worst(mechanism, 6.0, 6.0 * math.exp(float(mechanism.alpha)), 6, noise=0.5)[0] > 1.5


def test_a_bound_that_is_not_raised_is_too_low_half_of_the_time():
    mechanism = SmoothGaussian(Fraction(2), Fraction(49, 100), 1, STEADY)
    assert worst(mechanism, 6.0, 6.0, 6)[1] > 0.3


@pytest.mark.parametrize("changes", [1, 2, 5, 40])
def test_a_chain_of_changes_moves_by_no_more_than_the_growth(changes):
    """S grows by e^α in each change and the integer by all of S: away from D, and, from the other end, towards it."""
    mechanism = SmoothGaussian(Fraction(3), Fraction(1, 10**6), changes)
    path = [math.exp(float(mechanism.alpha) * step) for step in range(changes + 1)]
    moved = sum(min(pair) for pair in pairwise(path))
    assert moved <= mechanism.growth <= moved * (1 + 1e-6)
    assert mechanism.growth >= changes


@pytest.mark.parametrize("bound", [0.0, 3.0, 1e6, 1e300])
def test_the_interval_covers(bound):
    """Nine in ten of 600; fewer than 500 would happen once in 10^6 at 0.9. The bound is rarely below S."""
    mechanism, source = SmoothGaussian(Fraction(1, 10), Fraction(1, 10**9)), TestRandomness(2)
    hits = widths = low = 0
    for _ in range(200):
        released = mechanism.release([100, 0, 7], bound, 0.1, source)
        hits += sum(
            abs(value - exact) <= released.half_width for value, exact in zip(released.values, (100, 0, 7), strict=True)
        )
        widths += released.half_width
        low += released.bound < min(bound, LARGEST_SMOOTH)
    assert hits >= 500
    assert low <= 8  # at a rate of 0.005; nine once in 10^6
    if bound:
        assert abs(widths / 200 / mechanism.expected_half_width(bound, 0.1) - 1) < 0.2
        assert hits < 600


def test_it_is_narrower_than_pure_noise_at_the_same_cost_wherever_it_is_asked():
    """Over ε, δ and confidence, for bounds that do not grow as α falls, and for such as grow with 1/α."""
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10), Fraction(50)):
        for delta in (1e-3, 1e-6, 1e-9, 1e-20):
            budget = Budget.of(50, delta)
            cost = budget.cost(epsilon)
            assert isinstance(cost, ZCDP)
            paid = root(2 * cost.rho), budget.explicit_delta(cost)
            for miss in (0.2, 0.05, 0.001):
                steady, even = (SmoothGaussian(cost.rho, paid[1], 1, tuning) for tuning in (STEADY, tuned(1)))
                vector, one = SmoothVector(paid[0], 1), Smooth(paid[0])
                assert steady.expected_half_width(1e6, miss) < 0.6 * vector.expected_half_width(1e6, miss)
                grown = [1e6 / float(mechanism.alpha) for mechanism in (even, one)]
                scale = one.expected_scale(grown[1], miss)
                assert even.expected_half_width(grown[0], miss) < 0.6 * one.half_width(scale, miss)
                deep = SmoothGaussian(cost.rho, paid[1], 1, tuned(3))
                cubes = [1e6 / float(mechanism.alpha) ** 3 for mechanism in (deep, vector)]
                assert deep.expected_half_width(cubes[0], miss) < 0.2 * vector.expected_half_width(cubes[1], miss)


def test_many_groups_cost_no_more_than_one():
    """Pure noise dilates with each of them."""
    mechanism = SmoothGaussian(Fraction(1, 10), Fraction(1, 10**9))
    many, half = mechanism.measure([5] * 50, 3.0, 0.1, TestRandomness(4))
    assert len(many) == 50
    pure = SmoothVector(root(Fraction(1, 5)), 50)
    assert half < 0.8 * pure.expected_half_width(3.0, 0.1)
    assert mechanism.alpha > 20 * pure.alpha


def test_bad_arguments():
    with pytest.raises(EpsilonTooSmall, match="for each row"):
        SmoothGaussian(Fraction(1, 10**11), Fraction(1, 10**6))
    with pytest.raises(EpsilonTooSmall, match="for each row"):
        SmoothGaussian(Fraction(1, 10**9), Fraction(1, 10**6), 10)
    with pytest.raises(ParameterError, match="delta must lie strictly between"):
        SmoothGaussian(Fraction(1), Fraction(0))
    assert SmoothGaussian(Fraction(1), Fraction(1, 10**6)).loss == ZCDP(Fraction(1), Fraction(1, 10**6))


@pytest.mark.parametrize("bound", [0.0, 1e-5, 2.0**200])
def test_nothing_fails_however_small_or_large_the_bound_is(bound):
    for rho, changes in ((Fraction(6, 10**11), 1), (Fraction(6, 10**7), 100), (Fraction(10**6), 1)):
        noised, half = SmoothGaussian(rho, Fraction(1, 10**12), changes).measure([0], bound, 0.1, TestRandomness(1))
        assert abs(noised[0]) < 2**190
        assert half >= 0

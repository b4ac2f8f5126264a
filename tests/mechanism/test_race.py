"""The race by itself: what its lanes cost, where its ends are, and what its best is."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.race import Lanes, best, powers_of_two


@pytest.mark.parametrize("changes", [(2,), (3, 3), (2, 4, 8, 16), (64, 1)])
def test_the_lanes_share_the_cost(changes):
    lanes = Lanes(changes, Fraction(3), 0.05, 0.05)
    shares = [noise.loss.epsilon for noise in lanes.noises]
    assert sum(shares) == 3
    assert shares[-1] == (Fraction(3, 2) if len(changes) > 1 else 3)
    scales = [noise.law.scale for noise in lanes.noises]
    assert all(float(c / e) == pytest.approx(float(s)) for c, e, s in zip(changes, shares, scales, strict=True))


@pytest.mark.parametrize("changes", [(2,), (2, 4, 8, 16)])
def test_no_lane_is_above_its_total_too_often(changes):
    lanes = Lanes(changes, Fraction(1), 0.05, 0.02)
    above = [noise.law.tail(cut) for noise, cut in zip(lanes.noises, lanes.penalties, strict=True)]
    assert sum(above) <= 0.05
    assert lanes.noises[-1].law.tail(lanes.margin) <= 0.02 < lanes.noises[-1].law.tail(lanes.margin - 1)


def test_the_ends_are_those_of_the_noised_lanes():
    lanes, totals = Lanes((2, 4, 8), Fraction(1), 0.1, 0.1), [500, 700, 2**80]
    first, second, third = (
        noise.noised(total, source)
        for source in [TestRandomness(4)]
        for noise, total in zip(lanes.noises, totals, strict=True)
    )
    low, last, high = lanes.run(totals, TestRandomness(4))
    assert low == max(value - cut for value, cut in zip((first, second, third), lanes.penalties, strict=True))
    assert (last, high) == (third, third + lanes.margin)


def test_nothing_is_not_below_zero_and_the_upper_end_not_below_the_lower():
    lanes = Lanes((2, 4), Fraction(1, 10), 0.1, 0.1)
    for seed in range(50):
        low, _, high = lanes.run([0, 0], TestRandomness(seed))
        assert 0 <= low <= high
    assert lanes.run([10**6, -(10**9)], TestRandomness(1))[2] > 10**5


def test_the_best_of_many_runs():
    assert best([-3, -1]) == 0
    assert best([2**80, 7]) == 2**80
    assert best(np.array([[1, -5], [2**70, -6]], dtype=object)).tolist() == [2**70, 0]


@pytest.mark.parametrize(("largest", "last"), [(0, 2), (1, 2), (2, 2), (3, 4), (1024, 1024), (1025, 2048)])
def test_levels_reach_the_largest_value(largest, last):
    levels = powers_of_two(largest)
    assert levels[0] == 2
    assert levels[-1] == last
    assert all(after == 2 * before for before, after in pairwise(levels))

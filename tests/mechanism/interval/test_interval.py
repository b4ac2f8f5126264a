"""Intervals as data, and those of bounded numbers: their exact coverage, by enumeration; they are never empty."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Interval, Intervals, NoNoise
from confide.mechanism.interval.interval import bounded_ends


def _intervals(low, high, dtype=None):
    return Intervals(np.array(low, dtype=dtype), np.array(high, dtype=dtype), 0.95, "always")


def test_one_interval_of_many():
    intervals = _intervals([1, 2], [3, 4])
    assert intervals[1] == Interval(2, 4, 0.95, "always")
    assert type(intervals[1].low) is int
    assert type(_intervals([1.0], [2.0])[0].low) is float
    assert list(intervals) == [intervals[0], intervals[1]]
    assert len(intervals) == 2
    assert 3 in intervals[0]
    assert 3.5 not in intervals[0]
    assert intervals.contains(np.array([3, 5])).tolist() == [True, False]


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="shape"):
        _intervals([1, 2], [3])


def test_scaled_integers_are_the_doubles_nearest_to_multiples_of_the_grain():
    scaled = _intervals([123456, -7], [123457, 29]).scaled(Fraction(1, 100))
    assert scaled.low.tolist() == [1234.56, -0.07]
    assert scaled.high.tolist() == [1234.57, 0.29]
    shifted = _intervals([1], [2]).scaled(Fraction(1, 10), Fraction(1, 5))
    assert (shifted.low.tolist(), shifted.high.tolist()) == ([0.3], [0.4])
    wide = _intervals([2**80], [2**80 + 1], dtype=object).scaled(Fraction(1, 3))
    assert wide.low.tolist() == [2**80 / 3]


def test_scaled_doubles_move_outward():
    third = Fraction(1, 3)
    scaled = _intervals([0.1, -math.inf], [0.1, math.inf]).scaled(third, Fraction(7))
    assert Fraction(scaled.low[0]) <= Fraction(0.1) * third + 7 <= Fraction(scaled.high[0])
    assert scaled.high[0] - scaled.low[0] < 1e-14
    assert scaled[1].low == -math.inf
    assert scaled[1].high == math.inf
    with pytest.raises(ValueError, match="positive"):
        scaled.scaled(Fraction(-1))


LAWS = [DiscreteLaplace(Fraction(scale)) for scale in ("1/5", "1", "7", "40")]
LAWS += [DiscreteGaussian(Fraction(variance)) for variance in ("1/20", "9", "2500")]  # type: ignore[misc]
NOMINAL = (0.5, 0.8, 0.95, 0.99)


def truths(low: int, high: int | None, half: int, one: int) -> list[int]:
    steps = {0, 1, 2, one - 1, one, one + 1, half - 1, half, half + 1, 2 * one, 2 * half, 2 * half + 1, 4 * half}
    found = {low + step for step in steps}
    if high is not None:
        found |= {high - step for step in steps} | {(low + high) // 2, (low + high) // 2 + 1}
    return sorted(theta for theta in found if theta >= low and (high is None or theta <= high))


@pytest.mark.parametrize(("law", "confidence"), list(product(LAWS, NOMINAL)), ids=str)
def test_every_truth_is_covered_as_often_as_said(law, confidence):
    """The coverage of a truth is a sum over the law: nothing is drawn."""
    half, one = law.half_width(confidence), law.upper(confidence)
    far = law.half_width(1 - Fraction(1, 10**9))
    noise = np.arange(-far, far + 1)
    masses = law.tails(noise - 1.0) - law.tails(noise.astype(float))
    for low, width in product((0, -3), (None, 1, 2, half, 2 * half + 1, 5 * half)):
        high = None if width is None else low + width
        for truth in truths(low, high, half, one):
            moved, least, most = bounded_ends(truth + noise, half, one, low, high)
            assert masses[(least <= truth) & (truth <= most)].sum() >= confidence - 1e-8
            assert ((low <= least) & (least <= moved) & (moved <= most)).all()
            assert high is None or (most <= high).all()
            assert half == 0 or high == low or (least < most).all(), "a point looks certain"


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_far_from_the_bounds_it_is_the_usual_interval(law):
    half, one = law.half_width(0.95), law.upper(0.95)
    values = np.arange(2 * half, 3 * half + 5)
    _, least, most = bounded_ends(values, half, one, 0, 6 * half + 10)
    assert (least == values - half).all()
    assert (most == values + half).all()


def test_beyond_a_bound_it_is_the_interval_of_the_bound():
    law = DiscreteLaplace(Fraction(10))
    half, one = law.half_width(0.95), law.upper(0.95)
    moved, least, most = bounded_ends(np.array([-1000, -1, 0, 1]), half, one, 0)
    assert moved.tolist() == [0, 0, 0, 1]
    assert least.tolist() == [0, 0, 0, 0]
    assert most.tolist() == [half, half, half, half + 1]


def test_integers_fractions_and_doubles_agree():
    values = np.arange(-30, 60)
    whole = bounded_ends(values, 10, 8, 0, 41)
    wide = bounded_ends(values.astype(object), 10, 8, 0, 41)
    assert all((one == two).all() for one, two in zip(whole, wide, strict=True))
    real = bounded_ends(values.astype(float), 10.0, 8.0, 0.0, 41.0)
    exact = bounded_ends(np.array([Fraction(int(v)) for v in values], dtype=object), Fraction(10), Fraction(8), 0, 41)
    assert all((one == two).all() for one, two in zip(real, exact, strict=True))
    assert (np.abs(real[1] - whole[1]) <= 0.5).all()
    assert (np.abs(real[2] - whole[2]) <= 0.5).all()


def test_large_integers_do_not_overflow():
    moved, least, most = bounded_ends(np.array([2**62, -(2**62)]), 2**62, 2**61, 0)
    assert moved.tolist() == [2**62, 0]
    assert least.tolist() == [2**61, 0]
    assert most.tolist() == [2**63, 2**62]


def test_without_noise_it_is_a_point():
    law = NoNoise()
    _, least, most = bounded_ends(np.array([0, 5]), law.half_width(0.95), law.upper(0.95), 0, 5)
    assert least.tolist() == most.tolist() == [0, 5]

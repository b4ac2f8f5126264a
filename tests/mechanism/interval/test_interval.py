import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import Interval, Intervals


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

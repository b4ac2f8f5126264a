from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteLaplace, Measurement, NoNoise
from confide.mechanism.noise.measurement import added


def test_intervals_are_the_values_with_the_exact_quantile_on_both_sides():
    law = DiscreteLaplace(Fraction(2))
    intervals = Measurement(np.array([[10, -3]]), law).intervals(0.95)
    assert intervals.low.tolist() == [[4, -9]]
    assert intervals.high.tolist() == [[16, 3]]
    assert (intervals.confidence, intervals.assumes) == (0.95, "always")


def test_exact_numbers_have_intervals_of_no_width():
    intervals = Measurement(np.array([5]), NoNoise()).intervals(0.9)
    assert intervals[0].low == intervals[0].high == 5


def test_sums_beyond_64_bits_become_python_integers():
    assert added(np.array([2**63 - 1]), 1).tolist() == [2**63]
    assert added(np.array([2**63 - 1]), 1).dtype == object
    assert added(np.array([-(2**63)]), np.array([-1])).tolist() == [-(2**63) - 1]
    assert added(np.array([2**70], dtype=object), -(2**70)).dtype == np.int64  # the sum decides, not what went in
    assert added(np.array([5], dtype=np.uint64), np.array([3])).tolist() == [8]
    wide = Measurement(np.array([2**63 - 5]), DiscreteLaplace(Fraction(100))).intervals(0.95)
    assert wide.high.tolist() == [2**63 - 5 + 300]


@pytest.mark.parametrize("values", [np.array([1.0]), np.array([True]), np.array(["1"])])
def test_only_integers_are_measured(values):
    with pytest.raises(TypeError, match="integers"):
        added(values, 1)

from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.tally import REACH, Tally
from confide.mechanism.total.clipping import Radius, clip_range
from tests.conformance.sparse_vector import output_probabilities
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, tallied


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centre", [0, 2, 5])
def test_counts_outside_nested_ranges_change_in_one_direction(relation, centre):
    radius = Radius(Fraction(1), 0.05, 6, base=2.0)
    each = {
        data: radius.stream(tallied(data), centre).margins for rows in range(5) for data in data_sets(range(7), rows)
    }
    for one, two in neighbours(range(7), 4, relation):
        changes = each[two] - each[one]
        assert np.abs(changes).max() <= 1
        assert (changes >= 0).all() or (changes <= 0).all()


def test_the_walk_costs_what_the_radius_does():
    walk = Radius(Fraction(1, 3), 0.05, 100).mechanism
    assert (walk.epsilon, walk.rise, walk.spread, walk.tops) == (Fraction(1, 3), 1, 1, 1)


def test_the_stream_counts_what_is_outside():
    radius = Radius(Fraction(1), 0.05, 100, base=2.0)
    tally = Tally.of([-40, 0, 3, 3, 5, 90])
    outside = radius.shift - radius.stream(tally, 3).margins
    assert radius.radii.tolist() == [0, 1, 2, 4, 8, 16, 32, 64, 100]
    assert outside.tolist() == [4, 4, 3, 2, 2, 2, 2, 1, 0]


@pytest.mark.parametrize("base", [2.0, 2**0.5, 2**0.25])
def test_dense_data_are_all_inside_as_often_as_said(base):
    """The exact probability of a radius below the largest distance, for the sparsest data that are dense enough."""
    radius = Radius(Fraction(1), 0.05, 10**6, base)
    scales = float(radius.mechanism.threshold_scale), float(radius.mechanism.query_scale)
    chances = []
    for largest in (1, 2, 3, 1000, 1447, 10**6):
        rim = [largest] if largest == 1 else [-(-largest // 2)] * (radius.needed - 1) + [largest]
        tally = Tally.of([0] * 50 + rim * (radius.needed if largest == 1 else 1))
        outputs = output_probabilities(radius.stream(tally, 0).margins, *scales)[:-1]
        chances.append(outputs[2 * radius.radii < largest].sum())
    assert max(chances) <= 0.05


def test_the_walk_rarely_goes_past_the_largest_distance():
    radius, source = Radius(Fraction(1), 0.05, 10**9, 2**0.25), TestRandomness(1)
    tally = Tally(np.arange(1, 1001), np.full(1000, 10))
    found = np.array([radius.measure(tally, 0, source) for _ in range(300)])
    assert (found >= 1000).all()
    assert np.mean(found <= 2 * 2**0.25 * 1001) > 0.98


def test_equal_values_have_the_least_radius():
    """And not none: to clip to a point would leave no noise, and an interval that looks certain."""
    radius = Radius(Fraction(5), 0.05, 10**9)
    assert radius.measure(Tally(np.array([7]), np.array([10_000])), 7, TestRandomness(1)) == 1
    assert Radius(Fraction(5), 0.05, 0).measure(Tally.of([7]), 7, TestRandomness(1)) == 0
    assert radius.measure(Tally.of([]), 7, TestRandomness(1)) == 1


def test_distances_as_wide_as_64_bits():
    radius = Radius(Fraction(1), 0.05, 2 * REACH)
    tally = Tally(np.array([-REACH, REACH]), np.array([5000, 5000]))
    assert radius.measure(tally, -REACH, TestRandomness(1)) == 2 * REACH


@pytest.mark.parametrize(
    ("centre", "radius", "domain", "kept"),
    [(5, 2, (0, 9), (3, 7)), (5, 20, (0, 9), (0, 9)), (0, 3, (10, 20), (10, 10)), (0, 3, (-20, -10), (-10, -10))],
)
def test_what_is_kept_of_the_domain(centre, radius, domain, kept):
    assert clip_range(centre, radius, domain) == kept

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.mechanism.tally import REACH, Buckets, Tally, bucketed, geometric_edges, weighted_total

rows = st.lists(st.integers(-50, 50), max_size=40)


@given(rows)
def test_a_tally_keeps_what_the_rows_say(values):
    tally = Tally.of(values)
    assert np.repeat(tally.values, tally.counts).tolist() == sorted(values)
    assert tally.rows == len(values)
    assert tally.total() == sum(values)
    assert tally.cumulative().tolist() == [0, *np.cumsum(tally.counts)]


@given(rows, st.integers(-60, 60), st.integers(0, 40))
def test_clipping_and_mirroring(values, low, width):
    tally = Tally.of(values)
    clipped = tally.clipped(low, low + width)
    assert np.repeat(clipped.values, clipped.counts).tolist() == sorted(np.clip(values, low, low + width))
    mirrored = tally.mirrored()
    assert np.repeat(mirrored.values, mirrored.counts).tolist() == sorted(-value for value in values)


@given(rows)
def test_order_statistics_are_padded_by_the_domain(values):
    places = np.arange(-1, len(values) + 3)
    expected = [-99, -99, *sorted(values), 99, 99]
    assert Tally.of(values).order_statistics(places, -99, 99).tolist() == expected


@pytest.mark.parametrize(
    ("values", "counts"),
    [([2, 1], [1, 1]), ([1, 1], [1, 1]), ([1, 2], [1, 0]), ([1], [1, 2]), ([[1]], [[1]])],
)
def test_a_tally_that_is_not_one_is_refused(values, counts):
    with pytest.raises(ValueError, match="tally"):
        Tally(np.array(values, dtype=np.int64), np.array(counts, dtype=np.int64))


def test_a_tally_of_doubles_is_refused():
    with pytest.raises(TypeError, match="integers"):
        Tally(np.array([1.0]), np.array([1], dtype=np.int64))


def test_totals_are_exact_beyond_64_bits():
    values, weights = np.array([-REACH, REACH - 1, REACH]), np.array([1, 10**6, 3 * 10**9])
    assert weighted_total(values, weights) == sum(int(v) * int(w) for v, w in zip(values, weights, strict=True))
    assert weighted_total(values[:0], weights[:0]) == 0


@given(st.lists(st.integers(-300, 300), max_size=40), st.sampled_from([2.0, 4.0, 2**0.25]))
def test_buckets_hold_every_row_once(values, base):
    edges = geometric_edges(base, 256)
    buckets = bucketed(Tally.of(values), edges)
    assert buckets.counts.sum() == len(values)
    clipped = [min(max(value, -256), 256) for value in values]
    assert buckets.sums[1].sum() - buckets.sums[0].sum() == sum(clipped)
    for sign in (0, 1):
        for place, edge in enumerate(edges):
            before = edges[place - 1] if place else -1
            inside = [v for v in clipped if (v >= 0) == bool(sign) and before < abs(v) <= edge]
            assert buckets.counts[sign, place] == len(inside)
            assert buckets.sums[sign, place] == sum(abs(v) for v in inside)


@pytest.mark.parametrize("base", [2.0, 4.0, 2**0.5, 2**0.25])
@pytest.mark.parametrize("largest", [0, 1, 2, 3, 1000, 2 * REACH])
def test_edges_go_from_one_to_the_largest_in_steps_of_the_base(base, largest):
    edges = geometric_edges(base, largest)
    assert edges[0] == 1
    assert edges[-1] == max(1, largest)
    assert list(edges) == sorted(set(edges))
    assert all(after <= before * base + 1 for before, after in pairwise(edges))


def test_buckets_that_do_not_fit_are_refused():
    nothing = np.zeros((2, 2), dtype=np.int64)
    with pytest.raises(ValueError, match="edges"):
        Buckets((2, 1), nothing, nothing)
    with pytest.raises(ValueError, match="count"):
        Buckets((1, 2, 3), nothing, nothing)

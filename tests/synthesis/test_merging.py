"""Merged places, and how they are taken apart."""

import numpy as np
import pytest

from confide.synthesis.merging import merged_places, shares_within, taken_apart
from confide.synthesis.relaxed import RelaxedTable


def test_neighbours_are_merged_until_they_hold_enough() -> None:
    counts = np.array([100.0, 3, 4, 2, 1, 50, -5, 2])
    assert merged_places(counts, 9, ordered=True).tolist() == [0, 1, 1, 1, 2, 2, 2, 2]
    assert merged_places(counts, 0, ordered=True).tolist() == [*range(8)]
    assert merged_places(counts, 1_000, ordered=True).tolist() == [0] * 8


def test_without_an_order_the_rare_ones_are_merged() -> None:
    counts = np.array([1.0, 100, 2, 60, 3, 4])
    places = merged_places(counts, 6, ordered=False)
    assert places[1] == 0
    assert places[3] == 1
    sums = np.bincount(places, weights=counts)
    assert (sums[:-1] >= 6).all()
    assert sums[-1] >= 2


@pytest.mark.parametrize("ordered", [False, True])
def test_every_place_is_of_one_merged_place_and_all_numbers_are_used(ordered: bool) -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        counts = generator.normal(5, 20, generator.integers(1, 30))
        places = merged_places(counts, float(generator.uniform(0, 60)), ordered)
        assert sorted(set(places.tolist())) == list(range(int(places.max()) + 1))
        if ordered:
            assert (np.diff(places) >= 0).all()
        shares = shares_within(counts, places)
        assert (shares >= 0).all()
        assert np.bincount(places, weights=shares) == pytest.approx(1)


def test_shares_are_those_of_the_counts_where_there_is_no_noise() -> None:
    counts, places = np.array([30.0, 10, 5, 0, 0]), np.array([0, 0, 1, 1, 2])
    assert shares_within(counts, places) == pytest.approx([0.75, 0.25, 1, 0, 1])


def test_taking_apart_keeps_what_merged_places_have() -> None:
    weights = np.random.default_rng(2).dirichlet(np.ones(2), 4)
    table = RelaxedTable((2, 1), np.concatenate([weights, np.ones((4, 1))], axis=1).astype(np.float32))
    merging = [np.array([0, 1, 1]), np.array([0, 0])]
    within = [np.array([1.0, 0.25, 0.75]), np.array([0.5, 0.5])]
    apart = taken_apart(table, merging, within)
    assert apart.sizes == (3, 2)
    assert apart.column(0)[:, 0] == pytest.approx(weights[:, 0])
    assert apart.column(0)[:, 2] == pytest.approx(0.75 * weights[:, 1])
    assert apart.marginal((0, 1), 0, 3).sum() == pytest.approx(1)

"""The values inside of bins: shares from noisy counts, drawing by them, tables that are divided by them."""

import numpy as np
import pytest

from confide.synthesis.inside import RefinedTable, ValueShares, onto_simplex, value_shares
from confide.synthesis.relaxed import RelaxedTable
from confide.workload import threshold_blocks
from confide.workload.workload import Marks

BINS = np.repeat(np.arange(4), [10, 10, 10, 5])


def counted() -> np.ndarray:
    """Heaps at every tenth value, little elsewhere, and a bin that is even."""
    truth = np.full(35, 20.0)
    truth[[0, 10]] = 5_000, 2_000
    truth[20:30] = 300
    return truth


def test_shares_of_each_bin_add_up_and_are_not_negative() -> None:
    for seed in range(20):
        noisy = counted() + np.random.default_rng(seed).normal(0, 10.0 ** (seed % 6), 35)
        found = value_shares(noisy, 10.0 ** (2 * (seed % 6)), BINS, np.array([5_180.0, 2_180, 0, 100]))
        assert found.shares.min() >= 0
        np.testing.assert_allclose(np.bincount(BINS, weights=found.shares), 1)


def test_heaps_are_kept_and_noise_is_not() -> None:
    """Of a bin whose values are alike little of the noise is left; a heap keeps its share."""
    truth = counted()
    rows = np.bincount(BINS, weights=truth)
    away, beside = [], []
    for seed in range(30):
        noisy = truth + np.random.default_rng(seed).normal(0, 100, 35)
        found = value_shares(noisy, 100.0**2, BINS, rows)
        assert found.shares[0] == pytest.approx(5_000 / 5_180, abs=0.07)
        away.append(np.abs(found.shares[20:30] - 0.1).sum() / 2)
        beside.append(np.abs(found.shares[1:10] - 20 / 5_180).sum() / 2)
    raw = [np.abs(np.random.default_rng(seed).normal(0, 100, 10)).sum() / 3_000 / 2 for seed in range(30)]
    assert np.mean(away) < 0.8 * np.mean(raw)
    assert np.mean(beside) < 0.018


def test_counts_without_noise_are_the_shares() -> None:
    truth = counted()
    found = value_shares(truth, 1 / 12, BINS, np.bincount(BINS, weights=truth))
    np.testing.assert_allclose(found.shares, truth / np.bincount(BINS, weights=truth)[BINS], atol=1e-3)


@pytest.mark.parametrize("noisy", [np.zeros(35), np.full(35, -1e9), np.full(35, 1e12), -np.arange(35.0)])
@pytest.mark.parametrize("rows", [0.0, -5.0, 1e15])
def test_any_counts_give_shares(noisy: np.ndarray, rows: float) -> None:
    assert value_shares(noisy, 1 / 12, BINS, np.full(4, rows)).shares.min() >= 0


def test_the_nearest_point_of_a_simplex() -> None:
    """Against a grid search."""
    point = np.array([3.0, -1.0, 1.5])
    grid = np.array([(a, b, 4 - a - b) for a in np.arange(0, 4.01, 0.02) for b in np.arange(0, 4.01 - a, 0.02)])
    best = grid[((grid - point) ** 2).sum(axis=1).argmin()]
    np.testing.assert_allclose(onto_simplex(point, 4.0), best, atol=0.03)


def test_values_are_drawn_by_their_shares_and_in_order() -> None:
    shares = np.array([0.5, 0.0, 0.5, 0.0, 1.0])
    values = ValueShares(np.array([0, 0, 0, 1, 1]), shares)
    places = np.repeat([0, 1], 4)
    drawn = values.draw(places, np.tile([0.0, 0.4999, 0.5, 1 - 2**-53], 2))
    assert drawn.tolist() == [0, 0, 2, 2, 4, 4, 4, 4]
    with pytest.raises(ValueError, match="add up to 1"):
        ValueShares(np.array([0, 0]), np.array([0.5, 0.4]))


def test_a_table_is_divided_as_its_records_are_drawn() -> None:
    """Marginals of values add up to those of bins, and are those of drawn records."""
    generator = np.random.default_rng(1)
    weights = generator.dirichlet(np.ones(3), 6), generator.dirichlet(np.ones(4), 6), generator.dirichlet(np.ones(2), 6)
    table = RelaxedTable((3, 4, 2), np.concatenate(weights, axis=1).astype(np.float32))
    noisy = counted() + generator.normal(0, 50, 35)
    shares = value_shares(noisy, 2500.0, BINS, np.full(4, 1_000.0))
    fine = RefinedTable(table, {1: shares})
    assert fine.sizes == (3, 35, 2)
    for columns in ((1,), (0, 1), (1, 2), (0, 1, 2)):
        whole = fine.marginal(columns, 0, fine.sizes[columns[0]])
        axis = columns.index(1)
        added = np.add.reduceat(whole, [0, 10, 20, 30], axis=axis)
        np.testing.assert_allclose(added, table.marginal(columns, 0, table.sizes[columns[0]]), atol=1e-6)
        np.testing.assert_allclose(fine.marginal(columns, 1, 3), whole[1:3])
    (_, cells), *_ = threshold_blocks(fine, Marks((0, 1), 1))
    alone, other = fine.marginal((0,), 0, 3), fine.marginal((1,), 0, 35)
    np.testing.assert_allclose(cells.reshape(3, 35), alone[:, None] + other - fine.marginal((0, 1), 0, 3), atol=1e-6)
    places = table.draw(60_000, generator)
    drawn = np.bincount(shares.draw(places[:, 1], generator.random(60_000)), minlength=35) / 60_000
    np.testing.assert_allclose(drawn, fine.marginal((1,), 0, 35), atol=0.006)

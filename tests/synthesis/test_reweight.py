"""Rows with new weights: they fit what was measured, stay where they were right, are drawn and kept."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.loss import PureDP
from confide.synthesis.curator import MeasuredMarginal
from confide.synthesis.reweight import StartingRows, reweight_strategy, with_more_rows
from confide.synthesis.weighted_rows import WeightedRows, reweighted
from confide.workload import ExactTables, tables_of

SIZES = (6, 5, 4)
PAIRS = tuple(combinations(range(3), 2))
ROWS = 20_000


def world(seed: int, tilt: float = 0.0) -> np.ndarray:
    """Columns that depend on each other; `tilt` moves the first."""
    random = np.random.default_rng(seed)
    first = random.choice(6, ROWS, p=np.exp(tilt * np.arange(6)) / np.exp(tilt * np.arange(6)).sum())
    second = np.minimum(first, random.integers(0, 5, ROWS))
    third = np.where(random.random(ROWS) < 0.8, (first + second) % 4, random.integers(0, 4, ROWS))
    return np.stack([first, second, third], axis=1)


def noisy(codes: np.ndarray, deviation: float, seed: int = 1) -> list[MeasuredMarginal]:
    random, exact = np.random.default_rng(seed), tables_of(codes, SIZES, PAIRS)
    sets = [(0,), (1,), (2,), *PAIRS]
    counts = [exact.marginal(own, 0, SIZES[own[0]]).reshape(-1) for own in sets]
    found = zip(sets, counts, strict=True)
    return [
        MeasuredMarginal(own, c + random.normal(0, deviation, len(c)), max(deviation**2, 1 / 12)) for own, c in found
    ]


def away(table: WeightedRows, exact: ExactTables, columns: tuple[int, ...] = (0, 1, 2)) -> float:
    shares = exact.marginal(columns, 0, SIZES[columns[0]]) / exact.rows
    return float(np.abs(shares - table.marginal(columns, 0, SIZES[columns[0]])).sum() / 2)


def fitted(codes: np.ndarray, start: np.ndarray, deviation: float) -> tuple[WeightedRows, float]:
    random = np.random.default_rng(2)
    rows = StartingRows("", "", start, np.ones(len(start)))
    measured = noisy(codes, deviation)
    places, prior = with_more_rows(rows, SIZES, measured[:3], ROWS, random)
    return reweighted(SIZES, places, prior, measured, ROWS, random)


def test_rows_of_another_population_come_to_fit_this_one() -> None:
    """Also where all three columns are looked at together, which is not measured: the beginning knows of them."""
    codes, other = world(1, 0.4), world(2)[:3_000]
    exact = tables_of(codes, SIZES, ((0, 1, 2),))
    before = WeightedRows(SIZES, other.astype(np.uint16), np.full(3_000, 1 / 3_000, np.float32))
    assert away(before, exact) > 0.25
    table, loss = fitted(codes, other, 20.0)
    assert away(table, exact) < 0.05
    assert all(away(table, exact, pair) < 0.04 for pair in PAIRS)
    assert 0.3 < loss < 2


def test_much_noise_moves_nothing_that_was_right() -> None:
    codes, same = world(1), world(2)[:3_000]
    exact = tables_of(codes, SIZES, ((0, 1, 2),))
    assert away(fitted(codes, same, 3_000.0)[0], exact) < 0.1


def test_what_the_beginning_lacks_is_found_in_rows_that_are_added() -> None:
    codes = world(1)
    lacking = world(2)[:3_000]
    lacking = lacking[lacking[:, 0] != 3]
    exact = tables_of(codes, SIZES, PAIRS)
    table, _ = fitted(codes, lacking, 5.0)
    assert table.marginal((0,), 3, 4)[0] == pytest.approx(exact.marginal((0,), 3, 4)[0] / ROWS, rel=0.05)


def test_unknown_places_are_drawn_from_noisy_counts() -> None:
    codes = world(1)
    start = world(2)[:2_000].copy()
    start[:, 2] = -1
    places, prior = with_more_rows(
        StartingRows("", "", start, np.ones(2_000)), SIZES, noisy(codes, 1.0)[:3], ROWS, np.random.default_rng(1)
    )
    assert len(places) == len(prior) == 4_000
    assert prior.sum() == pytest.approx(1)
    assert prior[2_000:].sum() == pytest.approx(0.1)
    np.testing.assert_array_equal(places[:2_000, :2], start[:, :2])
    drawn = np.bincount(places[:2_000, 2], minlength=4) / 2_000
    np.testing.assert_allclose(drawn, np.bincount(codes[:, 2], minlength=4) / ROWS, atol=0.04)


def test_weighted_rows_are_drawn_by_their_weights_and_kept() -> None:
    random = np.random.default_rng(1)
    places = np.array([[0, 1, 2], [5, 4, 3], [2, 2, 2]], dtype=np.uint16)
    table = WeightedRows(SIZES, places, np.array([0.5, 0.25, 0.25], np.float32))
    drawn = table.draw(1_000, random)
    assert [int((drawn == row).all(axis=1).sum()) for row in places] == [500, 250, 250]
    again = WeightedRows.from_bytes(table.to_bytes(), SIZES)
    assert again.to_bytes() == table.to_bytes()
    assert table.marginal((1, 2), 2, 5).tolist() == again.marginal((1, 2), 2, 5).tolist()
    assert table.marginal((0, 1), 0, 6).sum() == pytest.approx(1)
    assert table.marginal((0,), 2, 6).tolist() == [0.25, 0, 0, 0.25]
    for bad in ((places + 4, table.weights), (places, table.weights * 2), (places[:, :2], table.weights)):
        with pytest.raises(ValueError, match=r"weights|shape"):
            WeightedRows(SIZES, *bad)


def test_it_is_refused_without_rows_to_begin_with() -> None:
    with pytest.raises(ParameterError, match="begins with rows"):
        reweight_strategy(None, PureDP(Fraction(1)), None, 1)  # type: ignore[arg-type]

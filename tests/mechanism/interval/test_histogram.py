"""Quantiles told by a noised histogram: their intervals hold whatever the data are."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, TestRandomness, draw
from confide.mechanism.interval.histogram import quantile_cells

RUNS = 600
GENERATOR = np.random.default_rng(3)
DATA = {
    "even": np.full(40, 50),
    "one cell": np.where(np.arange(40) == 17, 900, 0),
    "both ends": np.where(np.isin(np.arange(40), [0, 39]), 500, 0),
    "skewed": (2000 * 0.8 ** np.arange(40)).astype(np.int64),
    "few": np.where(np.arange(40) == 3, 5, 0),
    "last": np.where(np.arange(40) == 39, 40, 0),
    "random": GENERATOR.integers(0, 30, 40),
}
LAWS: dict[str, Any] = {"laplace": DiscreteLaplace(Fraction(8)), "gaussian": DiscreteGaussian(Fraction(100))}


def true_cell(counts: Any, share: Fraction) -> int:
    return int(np.argmax(np.cumsum(counts) >= float(share) * counts.sum()))


@pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 2), Fraction(3, 4)])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold(share: Fraction, data: str, law: str) -> None:
    """At confidence 0.8, 600 runs: the bound is 5 standard deviations below."""
    counts, held, source = DATA[data], 0, TestRandomness(5)
    cell = true_cell(counts, share)
    for _ in range(RUNS):
        place, low, high = quantile_cells(counts + draw(LAWS[law], 40, source), LAWS[law], share, 0.8)
        assert 0 <= low <= high <= 39
        assert low <= place <= high + 1
        held += low <= cell <= high
    assert held / RUNS >= 0.8 - 5 * np.sqrt(0.16 / RUNS)


def test_many_rows_leave_few_cells() -> None:
    counts = np.full(40, 5_000)
    source = TestRandomness(1)
    found = [quantile_cells(counts + draw(LAWS["laplace"], 40, source), LAWS["laplace"], Fraction(1, 2), 0.95)]
    assert all(high - low <= 1 for _, low, high in found)


def test_without_noise_the_cell_is_known() -> None:
    for counts in DATA.values():
        for share in (Fraction(1, 21), Fraction(1, 3), Fraction(18, 19)):  # shares that end in no cell's last row
            cell = true_cell(counts, share)
            assert quantile_cells(counts, NoNoise(), share, 0.95)[1:] == (cell, cell)


def test_nobody_has_any_quantile() -> None:
    _, low, high = quantile_cells(np.zeros(40, dtype=np.int64), LAWS["laplace"], Fraction(1, 2), 0.95)
    assert (low, high) == (0, 39)

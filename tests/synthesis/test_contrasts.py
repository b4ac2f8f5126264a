"""Contrasts of all cells, and what measured tables tell of them."""

from itertools import combinations

import numpy as np
import pytest

from confide.synthesis.contrasts import Contrasts
from confide.synthesis.curator import MeasuredEffect, MeasuredMarginal
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.helmert import HelmertLine

SIZES = (3, 2, 4)


def centred(cells: np.ndarray) -> np.ndarray:
    """What the columns tell beside their parts, by the definition."""
    for axis in range(cells.ndim):
        cells = cells - cells.mean(axis=axis, keepdims=True)
    return cells


@pytest.mark.parametrize("sizes", [SIZES, (2,) * 9, (70, 3), (5,), (1, 4, 1), (100, 41)])
def test_the_change_turns_and_turns_back(sizes: tuple[int, ...]) -> None:
    cells = np.random.default_rng(1).random(int(np.prod(sizes)))
    change = Contrasts(sizes)
    contrasts = change.of(cells)
    assert change.cells(contrasts) == pytest.approx(cells, abs=1e-12)
    assert contrasts @ contrasts == pytest.approx(cells @ cells)
    assert contrasts[0] == pytest.approx(cells.sum() / np.sqrt(len(cells)))


@pytest.mark.parametrize("kind", [MeasuredMarginal, MeasuredEffect])
def test_what_is_measured_without_noise_is_the_contrasts_of_the_table(kind: type) -> None:
    table = np.random.default_rng(2).random(SIZES)
    total = table.sum()
    change = Contrasts(SIZES)
    every = change.of((table / total).reshape(-1))
    for columns in [part for k in range(4) for part in combinations(range(3), k)]:
        cells = table.sum(axis=tuple(axis for axis in range(3) if axis not in columns))
        own = cells if kind is MeasuredMarginal else centred(cells)
        known = change.pooled([kind(columns, np.asarray(own).reshape(-1), 1.0)], total)
        sizes = [SIZES[column] for column in columns]
        assert len(known) == (
            np.prod(sizes) - 1 if kind is MeasuredMarginal else np.prod([n - 1 for n in sizes]) if sizes else 0
        )
        assert known.values == pytest.approx(every[known.places], abs=1e-12)


def test_two_measurements_are_the_least_squares_of_both() -> None:
    """Against a system of equations with a row for every noisy count."""
    generator = np.random.default_rng(3)
    sizes, total = (2, 3), 50.0
    first = MeasuredMarginal((0, 1), generator.normal(8, 2, 6), 4.0)
    second = MeasuredMarginal((1,), generator.normal(16, 2, 3), 0.5)
    known = Contrasts(sizes).pooled([first, second], total)
    rows = np.concatenate([np.eye(6) / 2.0, np.kron(np.ones((1, 2)), np.eye(3)) / np.sqrt(0.5)])
    right = np.concatenate([first.counts / 2.0, second.counts / np.sqrt(0.5)])
    best = np.linalg.lstsq(rows, right, rcond=None)[0] / total
    spread = np.linalg.inv(rows.T @ rows) / total**2
    turn = np.array([Contrasts(sizes).of(own) for own in np.eye(6)]).T
    assert known.places.tolist() == [1, 2, 3, 4, 5]
    assert known.values == pytest.approx((turn @ best)[1:], abs=1e-12)
    assert known.deviations**2 == pytest.approx((turn @ spread @ turn.T).diagonal()[1:])


def test_a_block_of_helmert_rows_is_the_effect_and_its_contrasts_have_the_variance_of_its_noise() -> None:
    cells = np.random.default_rng(4).integers(0, 50, (3, 4))
    block = ProductBlock((0, 2), (HelmertLine(3), HelmertLine(4)))
    told = block.estimate(block.measure(cells).astype(float))
    assert told == pytest.approx(centred(cells.astype(float)), abs=1e-9)
    # Of the noise f·V of a row, the estimate's contrasts have V: rows are orthogonal, and f is their squared length.
    factors = block.factors
    assert factors is not None
    noise = np.diag(np.sqrt(factors.astype(float))) * block.fineness
    change = Contrasts((3, 4))
    seen = np.array([change.of(block.estimate(row).reshape(-1)) for row in noise])
    assert (seen**2).sum(axis=0) == pytest.approx([0] * 5 + [1, 1, 1, 0, 1, 1, 1], abs=1e-12)

"""Relaxed tables against the definition: sums over rows of products."""

from itertools import product

import numpy as np
import pytest

from confide.synthesis.relaxed import RelaxedTable
from confide.workload import Marks, threshold_blocks

SIZES = (2, 3, 4)


def table(rows: int = 7, seed: int = 0) -> RelaxedTable:
    generator = np.random.default_rng(seed)
    parts = [generator.dirichlet(np.full(size, 0.5), rows) for size in SIZES]
    return RelaxedTable(SIZES, np.concatenate(parts, axis=1).astype(np.float32))


@pytest.mark.parametrize("need", [1, 2, 3])
def test_whole_thresholds_are_polynomials_of_the_rows(need: int) -> None:
    own = table()
    expected = []
    for places in product(*map(range, SIZES)):
        chances = np.stack([own.column(column)[:, place] for column, place in enumerate(places)], axis=1)
        hits = [
            sum(
                np.prod(np.where(np.array(pattern), chance, 1 - chance))
                for pattern in product([0, 1], repeat=3)
                if sum(pattern) >= need
            )
            for chance in chances
        ]
        expected.append(np.mean(hits))
    found = np.concatenate([run for _, run in threshold_blocks(own, Marks((0, 1, 2), need), 5)])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_table_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="9 places"):
        RelaxedTable(SIZES, np.ones((3, 8), np.float32))

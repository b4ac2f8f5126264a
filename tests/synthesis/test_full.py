"""A table of all cells: sums of them, records, bytes."""

from itertools import permutations

import numpy as np
import pytest

from confide.synthesis.full import FullTable

SIZES = (2, 3, 4)
SHARES = np.random.default_rng(1).dirichlet(np.ones(24)).astype(np.float32)


def test_marginals_are_sums_in_the_order_of_their_columns() -> None:
    table, cells = FullTable(SIZES, SHARES), SHARES.reshape(SIZES).astype(np.float64)
    for k in (1, 2, 3):
        for columns in permutations(range(3), k):
            gone = "".join("abc"[column] for column in columns)
            wanted = np.einsum(f"abc->{gone}", cells)
            assert table.marginal(columns, 0, SIZES[columns[0]]) == pytest.approx(wanted, abs=1e-6)
            assert table.marginal(columns, 1, 2) == pytest.approx(wanted[1:2], abs=1e-6)


def test_records_stand_for_every_cell_give_or_take_one() -> None:
    table = FullTable(SIZES, SHARES)
    drawn = table.draw(10_000, np.random.default_rng(2))
    counts = np.bincount(np.ravel_multi_index(tuple(drawn.T), SIZES), minlength=24)
    assert (np.abs(counts - 10_000 * SHARES.astype(np.float64) / SHARES.sum(dtype=np.float64)) <= 1 + 1e-6).all()
    few = np.concatenate([table.draw(3, np.random.default_rng(seed)) for seed in range(3_000)])
    share = np.bincount(np.ravel_multi_index(tuple(few.T), SIZES), minlength=24) / len(few)
    assert share == pytest.approx(SHARES, abs=0.02)


def test_bytes_give_the_same_table_and_other_shapes_are_refused() -> None:
    table = FullTable(SIZES, SHARES)
    again = FullTable.from_bytes(table.to_bytes(), SIZES)
    assert again.to_bytes() == table.to_bytes()
    assert table.words == "24 cells"
    with pytest.raises(ValueError, match="24 cells"):
        FullTable.from_bytes(table.to_bytes()[:-4], SIZES)

"""Exact tables: sets within others follow from them."""

from itertools import combinations

import numpy as np
import pytest

from confide.workload.tables import maximal, tables_of
from tests.workload.samples import rows

SIZES = (3, 4, 5, 2)


def test_only_sets_that_no_other_contains_are_tabulated() -> None:
    sets = ((0,), (0, 1), (0, 1, 2), (3,), (1, 3), (0, 1, 2))
    assert maximal(sets) == ((0, 1, 2), (1, 3))


def test_smaller_tables_follow_from_larger_ones() -> None:
    codes = rows(SIZES)
    exact = tables_of(codes, SIZES, ((0, 1, 2, 3),))
    for size in (1, 2, 3):
        for columns in combinations(range(4), size):
            direct = tables_of(codes, SIZES, (columns,))
            ours, theirs = (one.marginal(columns, 0, SIZES[columns[0]]) for one in (exact, direct))
            np.testing.assert_array_equal(ours, theirs)
            assert ours.shape == tuple(SIZES[column] for column in columns)
    assert exact.rows == 300


def test_a_part_of_a_table_is_the_same_before_and_after_it_was_kept_whole() -> None:
    exact = tables_of(rows(SIZES), SIZES, ((0, 1, 2),))
    part = exact.marginal((1, 2), 1, 3)
    whole = exact.marginal((1, 2), 0, 4)
    np.testing.assert_array_equal(part, whole[1:3])
    np.testing.assert_array_equal(exact.marginal((1, 2), 1, 3), part)


def test_sets_that_were_not_tabulated_are_not_made_up() -> None:
    with pytest.raises(KeyError):
        tables_of(rows(SIZES), SIZES, ((0, 1),)).sparse((0, 2))

"""Thresholds from marginals, against counting row by row."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from confide.workload import Counting, Marks, counting_answer, marginals, tables_of, threshold_blocks, workload_blocks
from tests.workload.samples import domain, rows

SIZES = (2, 4, 6, 4)
SETS = ((2,), (0, 2), (1, 2, 3), (0, 1, 2, 3))
MARKS = [Marks(columns, need) for columns in SETS for need in range(1, len(columns) + 1)]


def by_rows(codes: NDArray[np.int64], marks: Marks) -> NDArray[np.int64]:
    """Every consistent query, one row after another: what inclusion and exclusion must give."""
    sizes = [SIZES[column] for column in marks.columns]
    own = codes[:, list(marks.columns)]
    return np.array([((own == y).sum(axis=1) >= marks.need).sum() for y in product(*map(range, sizes))])


@pytest.mark.parametrize("marks", MARKS, ids=str)
@pytest.mark.parametrize("block", [1, 7, 50, 10_000])
def test_answers_equal_counting_row_by_row_whatever_the_block(marks: Marks, block: int) -> None:
    codes = rows(SIZES)
    exact = tables_of(codes, SIZES, (marks.columns,))
    runs = list(threshold_blocks(exact, marks, block))
    assert [start for start, _ in runs] == list(np.cumsum([0, *(len(run) for _, run in runs[:-1])]))
    found = np.concatenate([run for _, run in runs])
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, by_rows(codes, marks))


def test_blocks_stay_small_however_large_the_workload() -> None:
    sizes = (50, 40, 30)
    exact = tables_of(rows(sizes), sizes, ((0, 1, 2),))
    lengths = [len(run) for _, run in threshold_blocks(exact, Marks((0, 1, 2), 2), 5_000)]
    assert max(lengths) <= 5_000
    assert sum(lengths) == 60_000


def test_a_workload_is_answered_threshold_by_threshold() -> None:
    workload = marginals(2).bound(domain())
    exact = tables_of(rows(SIZES), SIZES, workload.sets)
    blocks = list(workload_blocks(exact, workload))
    assert [block.threshold for block in blocks] == list(range(6))
    assert sum(len(block.answers) for block in blocks) == workload.size
    assert all(block.answers.sum() == 300 for block in blocks)


@pytest.mark.parametrize("need", [1, 2, 3])
def test_single_counts_over_lists_of_places(need: int) -> None:
    codes = rows(SIZES)
    counting = Counting(("sex", "ward", "age"), ((0,), (1, 2), (0, 3, 5)), need)
    matches = (codes[:, 0] == 0).astype(int) + np.isin(codes[:, 1], [1, 2]) + np.isin(codes[:, 2], [0, 3, 5])
    exact = tables_of(codes, SIZES, ((0, 1, 2),))
    assert counting_answer(exact, domain(), counting) == (matches >= need).sum()


def test_a_count_of_no_places_is_nothing() -> None:
    exact = tables_of(rows(SIZES), SIZES, ((0, 1),))
    assert counting_answer(exact, domain(), Counting(("sex", "ward"), ((), (1,)), 2)) == 0

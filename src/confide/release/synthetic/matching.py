"""Which made row belongs to which: rows of two tables that agree in the columns that both have."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def matched(wanted: Integers, found: Integers, generator: np.random.Generator) -> Integers:
    """For each row of `wanted` another row of `found`, of which there are as many: one that agrees in all columns, at
    random, as long as there are any; then in all but the last, and so on.
    """
    assert wanted.shape == found.shape
    chosen = np.full(len(wanted), -1, dtype=np.int64)
    open_rows, left = generator.permutation(len(wanted)), generator.permutation(len(found))
    for columns in range(wanted.shape[1], -1, -1):
        if not len(open_rows):
            break
        one, two = _cells(wanted[open_rows, :columns], found[left, :columns])
        first, second = np.argsort(one, kind="stable"), np.argsort(two, kind="stable")
        ranks, others = _ranks(one[first]), _ranks(two[second])
        # The i-th row of a cell meets the i-th row of the same cell on the other side.
        many = int(max(ranks.max(), others.max())) + 1
        names, theirs = one[first] * many + ranks, two[second] * many + others
        _, here, there = np.intersect1d(names, theirs, assume_unique=True, return_indices=True)
        chosen[open_rows[first[here]]] = left[second[there]]
        open_rows = np.delete(open_rows, first[here])
        left = np.delete(left, second[there])
    return chosen


def _cells(one: Integers, two: Integers) -> tuple[Integers, Integers]:
    """Numbers of the cells of the rows of two tables: the same for rows that agree."""
    both = np.concatenate([one, two])
    cells = np.zeros(len(both), dtype=np.int64)
    for column in both.T:
        _, cells = np.unique(cells * (int(column.max()) + 1) + column, return_inverse=True)
    return cells[: len(one)].astype(np.int64), cells[len(one) :].astype(np.int64)


def _ranks(ordered: Integers) -> Integers:
    """The place of each number among its equals, in a sorted list."""
    starts = np.searchsorted(ordered, ordered, side="left")
    ranks: Integers = np.arange(len(ordered)) - starts
    return ranks

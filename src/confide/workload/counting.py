"""Answers of whole thresholds from marginals, in blocks of bounded size.

The number of rows that match at least r of k places is Σ_{i≥r} (−1)^{i−r} C(i−1, i−r) e_i, where e_i adds up the
marginals of all sets of i of the k columns at the same places: inclusion and exclusion. It holds for exact integers and
for a relaxed table alike, because both are sums over rows of products.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.workload.domain import Domain
from confide.workload.workload import BoundWorkload, Counting, Marks

BLOCK: Final = 2**21
"""At most about so many cells are held at once."""

Cells = NDArray[Any]


class Tables(Protocol):
    """Whatever has marginals: exact counts, or a relaxed table."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many places each column has."""

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Cells:
        """The cells of a marginal whose place in the first column is in [start, stop), shaped by the columns."""


@dataclass(frozen=True, slots=True, eq=False)
class CellRun:
    """A run of answers of one threshold: cells `start` and on, in the order of the product of its columns."""

    threshold: int
    start: int
    answers: Cells


def threshold_blocks(tables: Tables, marks: Marks, block: int = BLOCK) -> Iterator[tuple[int, Cells]]:
    """All answers of a threshold, a run of cells at a time: where the run starts, and its answers."""
    sizes = [tables.sizes[column] for column in marks.columns]
    rest = math.prod(sizes[1:])
    step = max(1, block // rest)
    whole: dict[tuple[int, ...], Cells] = {}
    for start in range(0, sizes[0], step):
        stop = min(start + step, sizes[0])
        yield start * rest, _block(tables, marks, sizes, start, stop, whole).reshape(-1)


def workload_blocks(tables: Tables, workload: BoundWorkload, block: int = BLOCK) -> Iterator[CellRun]:
    """All answers of a workload's thresholds, a block at a time."""
    for place, marks in enumerate(workload.thresholds):
        for start, answers in threshold_blocks(tables, marks, block):
            yield CellRun(place, start, answers)


def counting_answer(tables: Tables, domain: Domain, counting: Counting) -> float:
    """The answer to one count."""
    columns = tuple(domain.place_of(name) for name in counting.columns)
    listed = [np.array(sorted(set(places)), dtype=np.int64) for places in counting.places]
    total = 0.0
    for order in range(counting.need, len(columns) + 1):
        factor = coefficient(order, counting.need)
        for chosen in combinations(range(len(columns)), order):
            total += factor * _box(tables, [columns[i] for i in chosen], [listed[i] for i in chosen])
    return total


def coefficient(order: int, need: int) -> int:
    """Of the sum of all marginals of `order` columns, in the number of rows that match at least `need`."""
    return math.comb(order - 1, order - need) * (-1 if (order - need) % 2 else 1)


def _block(
    tables: Tables, marks: Marks, sizes: list[int], start: int, stop: int, whole: dict[tuple[int, ...], Cells]
) -> Cells:
    k = len(sizes)
    if marks.need == k:
        return tables.marginal(marks.columns, start, stop)
    total: Cells | None = None
    shape = [stop - start, *sizes[1:]]
    for order in range(k, marks.need - 1, -1):
        factor = coefficient(order, marks.need)
        for chosen in combinations(range(k), order):
            columns = tuple(marks.columns[i] for i in chosen)
            if chosen[0] == 0:
                part = tables.marginal(columns, start, stop)
            else:
                if columns not in whole:
                    whole[columns] = tables.marginal(columns, 0, tables.sizes[columns[0]])
                part = whole[columns]
            part = part.reshape([shape[i] if i in chosen else 1 for i in range(k)])
            if total is None:
                total = part * factor if factor != 1 else part.copy()
            else:
                total += factor * part
    assert total is not None
    return total


def _box(tables: Tables, columns: list[int], listed: list[NDArray[np.int64]]) -> float:
    """The sum of the cells of a marginal whose places are listed."""
    if any(len(places) == 0 for places in listed):
        return 0.0
    rest = math.prod(tables.sizes[column] for column in columns[1:])
    step = max(1, BLOCK // rest)
    total = 0.0
    for start in range(0, tables.sizes[columns[0]], step):
        stop = min(start + step, tables.sizes[columns[0]])
        own = listed[0][(listed[0] >= start) & (listed[0] < stop)] - start
        if len(own):
            cells = tables.marginal(tuple(columns), start, stop)
            total += float(cells[np.ix_(own, *listed[1:])].sum(dtype=np.float64))
    return total

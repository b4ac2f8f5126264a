"""The net of small tables: every table of few rows over few cells, of which one is chosen by its largest error.

It is what other strategies are compared with where nothing is too large to be listed: the choice has exact chances, and
none of it is approximate. Over k cells there are C(k + n, n) tables of at most n rows, 74,613 for 16 cells and 6 rows.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.selection.exponential import Exponential
from confide.privacy.loss import PureDP

MOST_CELLS: Final = 16
MOST_ROWS: Final = 6
_AT_ONCE: Final = 1 << 22
"""Answers of tables that are looked at together."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """Releases a table of at most a few rows whose answers are near those of the data.

    Neighbours: those that differ in `changes` rows at most; a row that is replaced by another is one.
    Loss: ε-DP.
    Theorem: [BlumLigettRoth2013], Theorem 3.1: the exponential mechanism ([McSherryTalwar2007]) with the largest error
    of all answers for a score. Queries count rows, so one row moves an answer by at most 1, the largest of their errors
    too, and the scores of two tables by at most 2 beside each other.
    """

    queries: Integers
    """A row of zeros and ones for each answer: the cells that it counts."""
    tables: Integers
    """Counts of cells, a row for each table of the net."""
    mechanism: Exponential

    @property
    def loss(self) -> PureDP:
        return self.mechanism.loss

    def errors(self, counts: Integers) -> Integers:
        """Of every table of the net the largest error of all answers: a whole number."""
        exact = self.queries @ counts
        step = max(1, _AT_ONCE // max(1, len(self.queries)))
        parts = [
            np.abs(self.tables[begin : begin + step] @ self.queries.T - exact).max(axis=1)
            for begin in range(0, len(self.tables), step)
        ]
        return np.concatenate(parts)

    def choose(self, counts: Integers, randomness: Randomness) -> Integers:
        """The counts of the cells of one table. Counts of the data are below 2⁴⁴."""
        errors = self.errors(counts)
        places, _ = self.mechanism.select(errors, np.ones(len(errors), dtype=np.int64), randomness)
        found: Integers = self.tables[places[0]]
        return found


def net(epsilon: Fraction, changes: int, queries: Integers, rows: int) -> Net:
    """The net of all tables of at most `rows` rows for some queries of zeros and ones, at a loss of ε."""
    cells = queries.shape[1]
    if cells > MOST_CELLS or rows > MOST_ROWS:
        raise ParameterError(
            f"a net lists every table: it takes at most {MOST_CELLS} cells and {MOST_ROWS} rows, not {cells:,} and "
            f"{rows:,}; take wider bins"
        )
    if not np.isin(queries, (0, 1)).all():
        raise ValueError("the queries of a net count rows: zeros and ones")
    return Net(queries, tables_of_rows(cells, rows), Exponential(Fraction(epsilon), 2 * changes))


def tables_of_rows(cells: int, rows: int) -> Integers:
    """Every way to have at most so many rows in some cells: a cell more stands for the rows that are not there."""
    chosen = list(combinations_with_replacement(range(cells + 1), rows))
    places = np.array(chosen, dtype=np.int64).reshape(len(chosen), rows)
    found = np.zeros((len(places), cells + 1), dtype=np.int64)
    for column in range(rows):
        found[np.arange(len(places)), places[:, column]] += 1
    return found[:, :cells]

"""A relaxed table: rows whose columns hold probabilities of places instead of one place.

Each row is a product distribution, the table the mixture of its rows. Every count of a workload is a polynomial in its
entries and so can be fitted by gradients; rows that hold one place each are ordinary rows.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RelaxedTable:
    """`weights` has a row per row and, side by side, a column per place; each column's places add up to 1."""

    sizes: tuple[int, ...]
    weights: Weights

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.weights.shape[1] != sum(self.sizes) or not len(self.weights):
            raise ValueError(f"a relaxed table of {sum(self.sizes)} places has the shape {self.weights.shape}")

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where the places of each column begin."""
        return (0, *accumulate(self.sizes))

    @property
    def rows(self) -> int:
        return len(self.weights)

    def column(self, column: int) -> Weights:
        return self.weights[:, self.offsets[column] : self.offsets[column + 1]]

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Weights:
        """Shares of all rows: a contraction over the rows of the table."""
        shape = (stop - start, *(self.sizes[column] for column in columns[1:]))
        left = self.column(columns[0])[:, start:stop]
        if len(columns) == 1:
            shares: Weights = left.mean(axis=0)
            return shares
        for column in columns[1:-1]:
            left = (left[:, :, None] * self.column(column)[:, None, :]).reshape(self.rows, -1)
        cells: Weights = left.T @ (self.column(columns[-1]) / np.float32(self.rows))
        return cells.reshape(shape)


def cell_count(sizes: tuple[int, ...], columns: tuple[int, ...]) -> int:
    return math.prod(sizes[column] for column in columns)

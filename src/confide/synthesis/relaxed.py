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

    @property
    def words(self) -> str:
        return f"{self.rows} rows"

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Every row of the table stands behind as many records as any other, give or take one. The places of a column
        are spread over the records of a row as evenly as its probabilities allow, in random order: less noise than
        rounding each record by itself, and the same expectation.
        """
        shares = np.full(self.rows, count // self.rows)
        shares[generator.permutation(self.rows)[: count % self.rows]] += 1
        places = np.empty((count, len(self.sizes)), dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(shares)])
        for row in range(self.rows):
            own = slice(int(starts[row]), int(starts[row + 1]))
            for column in range(len(self.sizes)):
                ladder = np.cumsum(self.column(column)[row].astype(np.float64))
                drawn = generator.permutation(int(shares[row])) + generator.random(int(shares[row]))
                found = np.searchsorted(ladder, drawn / max(1, shares[row]) * ladder[-1], side="right")
                places[own, column] = np.minimum(found, self.sizes[column] - 1)
        return places[generator.permutation(count)]

    def to_bytes(self) -> bytes:
        return self.weights.astype("<f4").tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes, sizes: tuple[int, ...]) -> "RelaxedTable":
        weights = np.frombuffer(stored, dtype="<f4").reshape(-1, sum(sizes))
        return cls(sizes, weights.astype(np.float32))


def cell_count(sizes: tuple[int, ...], columns: tuple[int, ...]) -> int:
    return math.prod(sizes[column] for column in columns)

"""A table of all cells: the share of rows in every combination of places, where they are few enough to hold."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FullTable:
    """`shares` has a number for every cell of all columns together, in the order of their product; they add up to 1."""

    sizes: tuple[int, ...]
    shares: Shares

    def __post_init__(self) -> None:
        if self.shares.shape != (prod(self.sizes),):
            raise ValueError(f"a table of {prod(self.sizes)} cells has the shape {self.shares.shape}")

    @property
    def words(self) -> str:
        return f"{len(self.shares):,} cells"

    @cached_property
    def _marginals(self) -> dict[tuple[int, ...], Shares]:
        return {}

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Shares:
        """Shares of all rows, summed in double precision. The last marginal is kept: it is asked for in runs."""
        if columns not in self._marginals:
            gone = tuple(column for column in range(len(self.sizes)) if column not in columns)
            summed = self.shares.reshape(self.sizes).sum(axis=gone, dtype=np.float64)
            order = np.argsort(np.argsort(columns))
            self._marginals.clear()
            self._marginals[columns] = summed.transpose(order).astype(np.float32)
        return self._marginals[columns][start:stop]

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Every cell stands behind as many records as its share says, give or take one: less noise than independent
        draws, and the same expectation. Neighbouring cells share what rounding leaves.
        """
        ladder = np.cumsum(self.shares, dtype=np.float64)
        drawn = (np.arange(count) + generator.random()) / count * ladder[-1]
        found = np.minimum(np.searchsorted(ladder, drawn, side="right"), len(ladder) - 1)
        return np.stack(np.unravel_index(generator.permutation(found), self.sizes), axis=1).astype(np.int64)

    def to_bytes(self) -> bytes:
        return self.shares.astype("<f4").tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes, sizes: tuple[int, ...]) -> "FullTable":
        return cls(sizes, np.frombuffer(stored, dtype="<f4").astype(np.float32))

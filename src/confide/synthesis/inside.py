"""What is inside of bins: the share that each value has of its bin, from noisy counts of the values.

A model knows a column in bins. Its values are counted once, by themselves, and say how a bin's rows lie in it. All of
this is arithmetic on released numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.workload import Tables

Floats = NDArray[np.float64]

BEYOND: Final = 1.0
"""A heap is so many deviations beyond the largest of as many draws of noise as the bin has values."""
SHRUNK: Final = 1.5
"""What of a spread noise explains is taken for so much more: few values say little of their spread."""


@dataclass(frozen=True, eq=False)
class ValueShares:
    """For each value of a column, in order: the bin that it is in, and its share of that bin."""

    bins: NDArray[np.int64]
    shares: Floats

    def __post_init__(self) -> None:
        sums = np.bincount(self.bins, weights=self.shares)
        if self.bins.shape != self.shares.shape or not np.all(self.shares >= 0) or not np.allclose(sums, 1, atol=1e-5):
            raise ValueError("the shares of the values of each bin are at least 0 and add up to 1")

    @cached_property
    def ladder(self) -> Floats:
        """Of bin b the steps from b to b + 1: what a number b + u, with u between 0 and 1, falls onto."""
        ends = np.cumsum(self.shares)
        starts = np.concatenate([[0.0], ends])[np.searchsorted(self.bins, self.bins)]
        sums = (ends - starts)[np.searchsorted(self.bins, self.bins, side="right") - 1]
        ladder: Floats = self.bins + (ends - starts) / sums
        return ladder

    def draw(self, places: NDArray[np.int64], chances: Floats) -> NDArray[np.int64]:
        """A value for each bin that was drawn: the larger the chance, the larger the value in its bin."""
        found = np.searchsorted(self.ladder, places + chances, side="right")
        first = np.searchsorted(self.bins, places, side="left")
        last = np.searchsorted(self.bins, places, side="right") - 1
        values: NDArray[np.int64] = np.clip(found, first, last)
        return values


def value_shares(noisy: Floats, variance: float, bins: NDArray[np.int64], rows: Floats) -> ValueShares:
    """The share of each value of its bin, where `rows` says about how many rows each bin has.

    A value whose count is beyond what noise does to all values of its bin is taken as it was counted: data heap at
    round numbers. The rest of a bin is shrunk towards its mean, the more the less of its spread noise cannot explain
    ([JamesStein1961]). Then the nearest counts that are not negative and add up to the bin's are taken.
    """
    shares = np.empty(len(noisy))
    for place, (start, stop) in enumerate(_runs(bins)):
        total = max(float(rows[place]), math.sqrt(variance))
        shares[start:stop] = onto_simplex(_calmed(noisy[start:stop], variance), total) / total
    return ValueShares(bins, shares)


def _runs(bins: NDArray[np.int64]) -> list[tuple[int, int]]:
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(bins)], strict=True))


def _calmed(noisy: Floats, variance: float) -> Floats:
    """Counts of one bin without what only noise may be: heaps stay as they are."""
    most = math.sqrt(variance) * (math.sqrt(2 * math.log(max(2, len(noisy)))) + BEYOND)
    plain = np.ones(len(noisy), dtype=bool)
    while plain.sum() > 1:
        away = np.where(plain, np.abs(noisy - noisy[plain].mean()), -1.0)
        if away.max() <= most:
            break
        plain[away.argmax()] = False
    calm = noisy.astype(np.float64)
    if plain.any():
        mean = noisy[plain].mean()
        spread = float(((noisy[plain] - mean) ** 2).sum())
        kept = max(0.0, 1 - SHRUNK * variance * (plain.sum() - 1) / spread) if spread else 0.0
        calm[plain] = mean + kept * (noisy[plain] - mean)
    return calm


def onto_simplex(point: Floats, total: float) -> Floats:
    """The nearest point without negative parts whose parts add up to `total`."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(point) + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    nearest = np.maximum(point - level, 0.0)
    scaled: Floats = nearest * (total / nearest.sum())
    return scaled


@dataclass(frozen=True, eq=False)
class RefinedTable:
    """A table with the bins of some columns divided into their values. A value's share of a bin is the same in every
    cell: what else a row holds says nothing of where in its bin a value is.
    """

    table: Tables
    values: Mapping[int, ValueShares]

    @property
    def sizes(self) -> tuple[int, ...]:
        whole = enumerate(self.table.sizes)
        return tuple(len(self.values[place].bins) if place in self.values else size for place, size in whole)

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> Floats:
        first = self.values.get(columns[0])
        if first is None:
            cells = self.table.marginal(columns, start, stop).astype(np.float64)
        else:
            own = first.bins[start:stop]
            low, high = int(own[0]), int(own[-1]) + 1
            cells = self.table.marginal(columns, low, high).astype(np.float64)[own - low]
            cells = cells * _along(first.shares[start:stop], 0, len(columns))
        for axis, column in enumerate(columns[1:], 1):
            if column in self.values:
                fine = self.values[column]
                cells = np.take(cells, fine.bins, axis=axis) * _along(fine.shares, axis, len(columns))
        return np.asarray(cells)


def _along(values: Floats, axis: int, axes: int) -> Floats:
    shaped: Floats = values.reshape([-1 if place == axis else 1 for place in range(axes)])
    return shaped

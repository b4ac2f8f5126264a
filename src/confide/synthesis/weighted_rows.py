"""Rows with weights: what a table that was there before becomes when it is made to fit noisy counts."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.curator import MeasuredMarginal

SPLIT: Final = 0.5
CHUNK: Final = 5
"""Steps between two looks at what is left."""
PATIENCE: Final = 4
MOST_STEPS: Final = 400
MOMENTUM: Final = 0.9
GROWTH: Final = 1.03
LARGEST_STEP: Final = 50.0
_MOST_KEYS: Final = 2**27
"""Places of all rows in all tables that are kept at once."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """`places` has a row per row and a column per column; `weights` are their shares of all rows."""

    sizes: tuple[int, ...]
    places: NDArray[np.uint16]
    weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        good = self.places.shape == (len(self.weights), len(self.sizes)) and len(self.weights) > 0
        if not good or np.any(self.places.max(axis=0) >= np.array(self.sizes)):
            raise ValueError(f"rows of {len(self.sizes)} columns have the shape {self.places.shape}, or other places")
        if not np.all(self.weights >= 0) or abs(float(self.weights.sum(dtype=np.float64)) - 1) > 1e-3:
            raise ValueError("weights are at least 0 and add up to 1")

    @property
    def words(self) -> str:
        return f"{len(self.weights):,} rows with weights"

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> NDArray[np.float32]:
        shape = (stop - start, *(self.sizes[column] for column in columns[1:]))
        first = self.places[:, columns[0]].astype(np.int64)
        inside = (first >= start) & (first < stop)
        own = self.places[inside][:, list(columns)].astype(np.int64)
        own[:, 0] -= start
        key = np.ravel_multi_index(tuple(own.T), shape)
        shares: NDArray[np.float32] = np.bincount(key, self.weights[inside], prod(shape)).astype(np.float32)
        return shares.reshape(shape)

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Each row as often as its weight says, give or take one."""
        ladder = np.cumsum(self.weights, dtype=np.float64)
        points = (np.arange(count) + generator.random()) / count * ladder[-1]
        chosen = np.minimum(np.searchsorted(ladder, points, side="right"), len(ladder) - 1)
        drawn: NDArray[np.int64] = self.places[chosen[generator.permutation(count)]].astype(np.int64)
        return drawn

    def to_bytes(self) -> bytes:
        """Columns one after the other: alike values side by side."""
        head = struct.pack("<Q", len(self.weights))
        return head + self.places.T.astype("<u2").tobytes() + self.weights.astype("<f4").tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes, sizes: tuple[int, ...]) -> "WeightedRows":
        (rows,) = struct.unpack_from("<Q", stored)
        places = np.frombuffer(stored, "<u2", rows * len(sizes), 8).reshape(len(sizes), rows).T
        weights = np.frombuffer(stored, "<f4", rows, 8 + 2 * rows * len(sizes))
        return cls(sizes, places.astype(np.uint16), weights.astype(np.float32))


def reweighted(
    sizes: tuple[int, ...],
    places: NDArray[np.uint16],
    prior: NDArray[np.float64],
    measured: Sequence[MeasuredMarginal],
    total: float,
    generator: np.random.Generator,
) -> tuple[WeightedRows, float]:
    """Weights of the rows that explain noisy counts, no further from `prior` than need be; and the mean squared error
    that is left, in units of the noise.

    Weights are moved by factors, along the gradient of the squared errors ([Liu2021]): the way from `prior` leads past
    weights that explain more and more, and how much of what is left is noise says how far to go. As with a relaxed
    table, that is judged by a second measurement that the noise is split into.
    """
    keys = _Keys(places, sizes, measured)
    noise = [generator.normal(0, np.sqrt(table.variance), len(table.counts)) for table in measured]
    pairs = list(zip(measured, noise, strict=True))
    training = [(table.counts + SPLIT * other) / total for table, other in pairs]
    judging = [(table.counts - other / SPLIT) / total for table, other in pairs]
    counted = [table.counts / total for table in measured]
    best, far = np.inf, 0
    for steps, weights in _ways(keys, prior, measured, training, total):
        if steps % CHUNK:
            continue
        judged = _loss(keys, weights, measured, judging, total)
        if judged < best:
            best, far = judged, steps
        elif steps >= far + PATIENCE * CHUNK:
            break
    weights = next(weights for steps, weights in _ways(keys, prior, measured, counted, total) if steps == far)
    cells = sum(len(table.counts) for table in measured)
    left = _loss(keys, weights, measured, counted, total) / max(1, cells)
    return WeightedRows(sizes, places, weights.astype(np.float32)), left


def _ways(
    keys: "_Keys",
    prior: NDArray[np.float64],
    measured: Sequence[MeasuredMarginal],
    wanted: Sequence[NDArray[np.float64]],
    total: float,
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The number of steps, and the weights after so many. Steps are small at first and grow: where few are enough, a
    large one would already be too far.
    """
    precisions = [total**2 / table.variance for table in measured]
    rate = 1 / sum(precisions)
    logarithms, velocity = np.log(prior / prior.sum()), np.zeros(len(prior))
    for step in range(MOST_STEPS + 1):
        weights = np.exp(logarithms - logarithms.max())
        weights /= weights.sum()
        yield step, weights
        slope = np.zeros(len(weights))
        for place, key in keys:
            have = np.bincount(key, weights, len(wanted[place]))
            slope += ((have - wanted[place]) * precisions[place])[key]
        velocity = MOMENTUM * velocity + rate * (slope - weights @ slope)
        logarithms = logarithms - velocity * min(LARGEST_STEP, GROWTH**step)


def _loss(
    keys: "_Keys",
    weights: NDArray[np.float64],
    measured: Sequence[MeasuredMarginal],
    wanted: Sequence[NDArray[np.float64]],
    total: float,
) -> float:
    loss = 0.0
    for place, key in keys:
        have = np.bincount(key, weights, len(wanted[place]))
        loss += float(((have - wanted[place]) ** 2).sum()) * total**2 / measured[place].variance
    return loss


class _Keys:
    """For each table the cell of each row; kept if they are not too many."""

    def __init__(
        self, places: NDArray[np.uint16], sizes: tuple[int, ...], measured: Sequence[MeasuredMarginal]
    ) -> None:
        self._places, self._sizes, self._measured = places, sizes, measured
        few = len(places) * len(measured) <= _MOST_KEYS
        self._kept = [self._key(table.columns) for table in measured] if few else None

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        for place, table in enumerate(self._measured):
            yield place, self._key(table.columns) if self._kept is None else self._kept[place]

    def _key(self, columns: tuple[int, ...]) -> NDArray[np.int64]:
        parts = tuple(self._places[:, column].astype(np.int64) for column in columns)
        key: NDArray[np.int64] = np.ravel_multi_index(parts, [self._sizes[column] for column in columns])
        return key

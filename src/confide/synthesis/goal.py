"""What a relaxed table shall explain, as arrays of fixed shapes: the form in which a projection is compiled."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from confide.synthesis.curator import Measured, MeasuredMarginal, MeasuredQueries

Array = Any


class Tiles(NamedTuple):
    """Two-way marginals as square tiles of the table of all pairs of places; tiles of no measurement are left out."""

    first: Array
    second: Array
    targets: Array
    weights: Array


class WholeTable(NamedTuple):
    """A marginal of three columns or more."""

    targets: Array
    weight: Array


class Queries(NamedTuple):
    places: Array
    need: Array
    targets: Array
    weights: Array


class Goal(NamedTuple):
    """What the table shall explain, as shares of all rows, and the weight of each."""

    ones: Array
    one_weights: Array
    tiles: Tiles
    wholes: tuple[WholeTable, ...]
    queries: Queries


@dataclass(frozen=True, slots=True)
class Layout:
    """The fixed shapes of a problem: columns, the size of tiles, which wholes there are."""

    sizes: tuple[int, ...]
    tile: int
    wholes: tuple[tuple[int, ...], ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(int(end) for end in np.cumsum((0, *self.sizes)))

    @property
    def width(self) -> int:
        """Places, padded to whole tiles, with at least one that is always empty."""
        return (sum(self.sizes) // self.tile + 1) * self.tile


def layout_of(sizes: tuple[int, ...], measured: Iterable[Measured]) -> Layout:
    wholes = [part.columns for part in measured if isinstance(part, MeasuredMarginal) and len(part.columns) > 2]
    return Layout(sizes, 128 if sum(sizes) <= 1024 else 512, tuple(wholes))


def members_of(layout: Layout) -> Array:
    owners = np.repeat(np.arange(len(layout.sizes)), layout.sizes)
    members = np.zeros((layout.width, len(layout.sizes)), dtype=np.float32)
    members[np.arange(len(owners)), owners] = 1
    return jnp.asarray(members)


def goal_of(layout: Layout, measured: Iterable[Measured], total: float, scale: float, room: int) -> Goal:
    """Counts as shares, weighted by their precision: `scale` makes the largest weight 1."""
    offsets, width = layout.offsets, layout.width
    ones, one_weights = np.zeros((2, width), dtype=np.float32)
    tiles: dict[tuple[int, int], tuple[NDArray[np.float32], NDArray[np.float32]]] = {}
    wholes = []
    asked: list[MeasuredQueries] = []
    for part in measured:
        if isinstance(part, MeasuredQueries):
            asked.append(part)
            continue
        weight, shares = scale * total**2 / part.variance, part.counts / total
        if len(part.columns) == 1:
            own = slice(offsets[part.columns[0]], offsets[part.columns[0] + 1])
            # Measured more than once: the precise average, as least squares would have it.
            before = one_weights[own]
            ones[own] = (before * ones[own] + weight * shares) / (before + weight)
            one_weights[own] += weight
        elif len(part.columns) == 2:
            _fill(tiles, layout, part.columns, shares, weight)
        else:
            shape = (-1, layout.sizes[part.columns[-1]])
            wholes.append(WholeTable(jnp.asarray(shares.reshape(shape), jnp.float32), jnp.float32(weight)))
    return Goal(jnp.asarray(ones), jnp.asarray(one_weights), _stacked(tiles, layout), tuple(wholes),
                _queries(asked, total, scale, room, width))  # fmt: skip


def _fill(
    tiles: dict[tuple[int, int], tuple[NDArray[np.float32], NDArray[np.float32]]],
    layout: Layout,
    columns: tuple[int, ...],
    shares: NDArray[np.float64],
    weight: float,
) -> None:
    offsets, size = layout.offsets, layout.tile
    first, second = columns
    cells = shares.reshape(layout.sizes[first], layout.sizes[second])
    for top in range(offsets[first] // size, (offsets[first + 1] - 1) // size + 1):
        for left in range(offsets[second] // size, (offsets[second + 1] - 1) // size + 1):
            if (top, left) not in tiles:
                tiles[top, left] = (np.zeros((size, size), np.float32), np.zeros((size, size), np.float32))
            targets, weights = tiles[top, left]
            low, high = max(offsets[first], top * size), min(offsets[first + 1], (top + 1) * size)
            near, far = max(offsets[second], left * size), min(offsets[second + 1], (left + 1) * size)
            inside = np.s_[low - top * size : high - top * size, near - left * size : far - left * size]
            part = cells[low - offsets[first] : high - offsets[first], near - offsets[second] : far - offsets[second]]
            before = weights[inside]
            targets[inside] = (before * targets[inside] + weight * part) / (before + weight)
            weights[inside] += weight


def _stacked(tiles: dict[tuple[int, int], tuple[NDArray[np.float32], NDArray[np.float32]]], layout: Layout) -> Tiles:
    size = layout.tile
    if not tiles:
        empty = jnp.zeros((0, size, size), jnp.float32)
        return Tiles(jnp.zeros(0, jnp.int32), jnp.zeros(0, jnp.int32), empty, empty)
    places = np.array(sorted(tiles), dtype=np.int32) * size
    parts = [tiles[key] for key in sorted(tiles)]
    return Tiles(
        jnp.asarray(places[:, 0]),
        jnp.asarray(places[:, 1]),
        jnp.asarray(np.stack([part[0] for part in parts])),
        jnp.asarray(np.stack([part[1] for part in parts])),
    )


def _queries(asked: list[MeasuredQueries], total: float, scale: float, room: int, width: int) -> Queries:
    """All single queries side by side, padded to `room`: a query of no weight, a place that is always empty."""
    events = max((part.places.shape[1] for part in asked), default=1)
    places = np.full((room, events), width - 1, dtype=np.int32)
    need, targets, weights = np.ones(room, np.int32), np.zeros(room, np.float32), np.zeros(room, np.float32)
    at = 0
    for part in asked:
        own = slice(at, at + len(part.counts))
        places[own, : part.places.shape[1]] = np.where(part.places >= 0, part.places, width - 1)
        need[own], targets[own] = part.need, part.counts / total
        weights[own] = scale * total**2 / part.variance
        at += len(part.counts)
    return Queries(*map(jnp.asarray, (places, need, targets, weights)))


def padded(layout: Layout, weights: NDArray[np.float32]) -> Array:
    return jnp.pad(jnp.asarray(weights), ((0, 0), (0, layout.width - weights.shape[1])))

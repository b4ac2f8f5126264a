"""The projection: the relaxed table that explains noisy counts best, found by gradients and not followed too far.

Each step moves every row along the averaged gradient of the squared errors, weighted by the precision of each count,
and projects each column of each row back onto the simplex (sparsemax). The step is scaled per row: scaled per entry, as
Adam has it, a step followed by a Euclidean projection is no descent (see docs/errata/rap.md).

When to stop is the whole regularisation: a table that reproduces the noise is a worse table. Noise splits itself: with
fresh noise z of the same variance, y + αz and y − z/α are independent measurements of the same counts. A fit to the
first is judged by the second, and the fit to y itself stops after as many steps as served best there. Everything here
is arithmetic on released numbers, so it costs nothing and its own randomness protects nobody.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from confide.synthesis.measured import Measured, MeasuredMarginal, MeasuredQueries
from confide.synthesis.relaxed import RelaxedTable

SPLIT: Final = 0.5
"""α: the larger it is, the better the judge and the worse the fit that is judged."""
CHUNK: Final = 10
"""Steps between two looks at the stop rules."""
PATIENCE: Final = 5
BLOCK: Final = 2**24
"""At most so many products of rows and cells are held at once for one marginal."""
MOST_STEPS: Final = 1_000
MOMENTUM: Final = 0.9
SCALE_MEMORY: Final = 0.99

Array = Any
Watch = Callable[[int, float], None]


class Tiles(NamedTuple):
    """Two-way marginals as square tiles of the table of all pairs of places; tiles of no measurement are left out."""

    first: Array
    second: Array
    targets: Array
    weights: Array


class Whole(NamedTuple):
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
    wholes: tuple[Whole, ...]
    queries: Queries


class State(NamedTuple):
    weights: Array
    velocity: Array
    scale: Array
    step: Array


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


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted table, and how it came about."""

    table: RelaxedTable
    steps: int
    loss: float
    """Mean squared error in units of the noise: about 1 when the table explains what was measured."""


def project(
    sizes: tuple[int, ...],
    measured: tuple[Measured, ...],
    total: float,
    rows: int,
    seed: int,
    start: RelaxedTable | None = None,
    watch: Watch | None = None,
    most_queries: int = 0,
) -> Fit:
    """Fit a relaxed table of `rows` rows to what was measured of `total` rows.

    `start` is the table to begin with; otherwise rows scatter around the one-way marginals. `most_queries` keeps room
    for single queries, so that rounds of different sizes share one compiled program.
    """
    layout = _layout(sizes, measured)
    generator = np.random.default_rng(seed)
    first = _beginning(layout, measured, total, rows, generator) if start is None else _padded(layout, start.weights)
    halves = _split(measured, generator)
    scale = min(part.variance for part in measured) / total**2
    room = max(most_queries, sum(len(part.counts) for part in measured if isinstance(part, MeasuredQueries)))
    training, judging, goal = (
        _goal(layout, parts, total, scale, room)
        for parts in ([half[0] for half in halves], [half[1] for half in halves], measured)
    )
    rate = 0.025 * math.sqrt(len(sizes))
    best, best_steps, steps = math.inf, CHUNK, 0
    state = _start(first)
    while steps < MOST_STEPS:
        state, loss, judged = _advance(state, training, judging, layout, rate, CHUNK)
        steps += CHUNK
        if watch is not None:
            watch(steps, float(loss))
        if float(judged) < best:
            best, best_steps = float(judged), steps
        elif steps >= best_steps + PATIENCE * CHUNK:
            break
    state, loss = _start(first), jnp.inf
    for step in range(0, best_steps, CHUNK):
        state, loss, _ = _advance(state, goal, goal, layout, rate, CHUNK)
        if watch is not None:
            watch(steps + step + CHUNK, float(loss))
    weights = np.asarray(state.weights)[:, : sum(sizes)]
    cells = sum(len(part.counts) for part in measured)
    return Fit(RelaxedTable(sizes, np.ascontiguousarray(weights)), best_steps, float(loss) / scale / cells)


# --- one step -----------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnames=("layout", "steps"))
def _advance(
    state: State, goal: Goal, judge: Goal, layout: Layout, rate: float, steps: int
) -> tuple[State, Array, Array]:
    """Some steps towards a goal; the loss at the last of them, and what another goal says of the result."""
    members = _members(layout)

    def step(state: State, _: None) -> tuple[State, Array]:
        loss, gradient = _loss_and_gradient(state.weights, goal, layout)
        count = state.step + 1
        velocity = MOMENTUM * state.velocity + (1 - MOMENTUM) * gradient
        norm = jnp.sum(gradient * gradient, axis=1, keepdims=True)
        scale = SCALE_MEMORY * state.scale + (1 - SCALE_MEMORY) * norm
        ahead = velocity / (1 - MOMENTUM**count)
        length = jnp.sqrt(scale / (1 - SCALE_MEMORY**count)) + 1e-20
        weights = sparsemax(state.weights - rate * ahead / length, members)
        return State(weights, velocity, scale, count), loss

    state, losses = jax.lax.scan(step, state, None, length=steps)
    return state, losses[-1], _loss_and_gradient(state.weights, judge, layout)[0]


def sparsemax(points: Array, members: Array) -> Array:
    """Each row, column by column, projected onto the simplex; `members` says which places are of which column.

    Michelot's algorithm: subtract the excess from the places that are above it until none falls below. It ends after as
    many rounds as places are dropped; places of no column become 0.
    """
    inside = jnp.sum(members, axis=1)

    def excess(active: Array) -> Array:
        return (((points * active) @ members - 1) / jnp.maximum(active @ members, 1)) @ members.T

    def falling(state: tuple[Array, Array]) -> Array:
        active, cut = state
        return jnp.any((active > 0) & (points <= cut))

    def drop(state: tuple[Array, Array]) -> tuple[Array, Array]:
        active = jnp.where(points > state[1], state[0], 0)
        return active, excess(active)

    active = jnp.broadcast_to(inside, points.shape)
    _, cut = jax.lax.while_loop(falling, drop, (active, excess(active)))
    return jnp.maximum(points - cut, 0) * inside


def _loss_and_gradient(weights: Array, goal: Goal, layout: Layout) -> tuple[Array, Array]:
    rows = weights.shape[0]
    away = weights.mean(axis=0) - goal.ones
    loss = jnp.sum(goal.one_weights * away * away)
    gradient = jnp.broadcast_to(2 * goal.one_weights * away / rows, weights.shape)
    more, slope = _tiles(weights, goal.tiles, layout.tile)
    loss, gradient = loss + more, gradient + slope
    if layout.wholes or goal.queries.places.shape[0]:
        more, slope = jax.value_and_grad(_others)(weights, goal, layout)
        loss, gradient = loss + more, gradient + slope
    return loss, gradient


def _tiles(weights: Array, tiles: Tiles, size: int) -> tuple[Array, Array]:
    """Squared errors of pairs of places, one tile after another, and their gradient."""
    rows = weights.shape[0]

    def one(carry: tuple[Array, Array], tile: tuple[Array, Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        loss, gradient = carry
        first, second, targets, weight = tile
        left = jax.lax.dynamic_slice_in_dim(weights, first, size, axis=1)
        right = jax.lax.dynamic_slice_in_dim(weights, second, size, axis=1)
        away = left.T @ right / rows - targets
        pull = weight * away
        loss = loss + jnp.sum(pull * away)
        gradient = _added(gradient, right @ pull.T * (2 / rows), first, size)
        gradient = _added(gradient, left @ pull * (2 / rows), second, size)
        return (loss, gradient), None

    carry, _ = jax.lax.scan(one, (jnp.zeros(()), jnp.zeros_like(weights)), tuple(tiles))
    return carry


def _added(whole: Array, part: Array, start: Array, size: int) -> Array:
    own = jax.lax.dynamic_slice_in_dim(whole, start, size, axis=1)
    return jax.lax.dynamic_update_slice_in_dim(whole, own + part, start, axis=1)


def _others(weights: Array, goal: Goal, layout: Layout) -> Array:
    rows, offsets, loss = weights.shape[0], layout.offsets, jnp.zeros(())
    for columns, whole in zip(layout.wholes, goal.wholes, strict=True):
        parts = [weights[:, offsets[column] : offsets[column + 1]] for column in columns]

        def away(first: Array, targets: Array, parts: list[Array] = parts) -> Array:
            left = first
            for part in parts[1:-1]:
                left = (left[:, :, None] * part[:, None, :]).reshape(rows, -1)
            return jnp.sum((left.T @ parts[-1] / rows - targets) ** 2)

        rest = math.prod(layout.sizes[column] for column in columns[1:-1])
        step = max(1, BLOCK // (rows * rest))
        for start in range(0, layout.sizes[columns[0]], step):
            block = whole.targets[start * rest : (start + step) * rest]
            loss = loss + whole.weight * jax.checkpoint(away)(parts[0][:, start : start + step], block)
    queries = goal.queries
    if queries.places.shape[0]:
        chances = weights[:, queries.places]
        events = chances.shape[2]
        mass = [jnp.ones(chances.shape[:2])] + [jnp.zeros(chances.shape[:2])] * events
        for event in range(events):
            chance = chances[:, :, event]
            for number in range(event + 1, 0, -1):
                mass[number] = mass[number] + chance * (mass[number - 1] - mass[number])
            mass[0] = mass[0] * (1 - chance)
        answers = sum(jnp.where(number >= queries.need, part.mean(axis=0), 0) for number, part in enumerate(mass))
        loss = loss + jnp.sum(queries.weights * (answers - queries.targets) ** 2)
    return loss


# --- the problem as arrays ----------------------------------------------------------------------------------------


def _layout(sizes: tuple[int, ...], measured: Iterable[Measured]) -> Layout:
    wholes = [part.columns for part in measured if isinstance(part, MeasuredMarginal) and len(part.columns) > 2]
    return Layout(sizes, 128 if sum(sizes) <= 1024 else 512, tuple(wholes))


def _members(layout: Layout) -> Array:
    owners = np.repeat(np.arange(len(layout.sizes)), layout.sizes)
    members = np.zeros((layout.width, len(layout.sizes)), dtype=np.float32)
    members[np.arange(len(owners)), owners] = 1
    return jnp.asarray(members)


def _goal(layout: Layout, measured: Iterable[Measured], total: float, scale: float, room: int) -> Goal:
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
            wholes.append(Whole(jnp.asarray(shares.reshape(shape), jnp.float32), jnp.float32(weight)))
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


def _split(measured: tuple[Measured, ...], generator: np.random.Generator) -> list[tuple[Measured, Measured]]:
    """Two independent measurements in place of each: y + αz and y − z/α, with z of the noise's own variance."""
    halves: list[tuple[Measured, Measured]] = []
    for part in measured:
        noise = generator.normal(0, math.sqrt(part.variance), part.counts.shape)
        changes = ((SPLIT * noise, 1 + SPLIT**2), (-noise / SPLIT, 1 + SPLIT**-2))
        first, second = (
            MeasuredMarginal(part.columns, part.counts + change, part.variance * factor)
            if isinstance(part, MeasuredMarginal)
            else MeasuredQueries(part.places, part.need, part.counts + change, part.variance * factor)
            for change, factor in changes
        )
        halves.append((first, second))
    return halves


def _beginning(
    layout: Layout, measured: Iterable[Measured], total: float, rows: int, generator: np.random.Generator
) -> Array:
    """Rows that scatter around the one-way marginals, or around even shares where none was measured."""
    centre = np.concatenate([np.full(size, 1 / size) for size in layout.sizes])
    for part in measured:
        if isinstance(part, MeasuredMarginal) and len(part.columns) == 1:
            own = slice(layout.offsets[part.columns[0]], layout.offsets[part.columns[0] + 1])
            centre[own] = part.counts / total
    members = _members(layout)
    smooth = np.asarray(sparsemax(_padded(layout, centre[None].astype(np.float32)), members))
    scatter = 0.3 * np.sqrt(np.maximum(smooth, 1e-3)) * generator.normal(size=(rows, layout.width))
    return sparsemax(jnp.asarray((smooth + scatter).astype(np.float32)), members)


def _padded(layout: Layout, weights: NDArray[np.float32]) -> Array:
    return jnp.pad(jnp.asarray(weights), ((0, 0), (0, layout.width - weights.shape[1])))


def _start(weights: Array) -> State:
    return State(weights, jnp.zeros_like(weights), jnp.zeros((weights.shape[0], 1)), jnp.zeros(()))

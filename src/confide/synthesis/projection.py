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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confide.host.apart import apart
from confide.privacy.public_randomness import public_generator
from confide.synthesis.curator import Measured, MeasuredMarginal, MeasuredQueries
from confide.synthesis.goal import Array, Goal, Layout, Tiles, goal_of, layout_of, members_of, padded
from confide.synthesis.relaxed import RelaxedTable

SPLIT: Final = 0.5
"""α: the larger it is, the better the judge and the worse the fit that is judged."""
CHUNK: Final = 10
"""Steps between two looks at the stop rules."""
PATIENCE: Final = 5
MOST_SPLITS: Final = 8
ENOUGH_CELLS: Final = 20_000
"""Of so many cells one split of the noise is judge enough."""
BLOCK: Final = 2**24
"""At most so many products of rows and cells are held at once for one marginal."""
MOST_STEPS: Final = 1_000
MOST_PROGRAMS: Final = 100
"""Compiled programs that are kept: each holds about a hundred of the 65,530 mappings that a process has on Linux."""
MOMENTUM: Final = 0.9
SCALE_MEMORY: Final = 0.99

Watch = Callable[[int, float], None]


class State(NamedTuple):
    weights: Array
    velocity: Array
    scale: Array
    step: Array


@dataclass(frozen=True, slots=True, eq=False)
class TableFit:
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
    most_steps: int = MOST_STEPS,
) -> TableFit:
    """Fit a relaxed table of `rows` rows to what was measured of `total` rows.

    `start` is the table to begin with; otherwise rows scatter around the one-way marginals. `most_queries` keeps room
    for single queries, so that rounds of different sizes share one compiled program. `watch` is told after each chunk
    of steps how many were made, and the loss; a Ctrl-C is answered between two chunks.
    """
    chunks = _chunks(sizes, measured, total, rows, seed, start, most_queries, most_steps)
    while not isinstance(told := apart(lambda: next(chunks)), TableFit):
        if watch is not None:
            watch(*told)
    return told


def _chunks(
    sizes: tuple[int, ...],
    measured: tuple[Measured, ...],
    total: float,
    rows: int,
    seed: int,
    start: RelaxedTable | None,
    most_queries: int,
    most_steps: int,
) -> Iterator[tuple[int, float] | TableFit]:
    """The steps and the loss after each chunk, and in the end what was fitted. All that JAX does is done in here."""
    layout = layout_of(sizes, measured)
    _keep_few_programs((layout, rows))
    generator = public_generator(seed)
    first = _beginning(layout, measured, total, rows, generator) if start is None else padded(layout, start.weights)
    cells = sum(len(part.counts) for part in measured)
    scale = min(part.variance for part in measured) / total**2
    room = max(most_queries, sum(len(part.counts) for part in measured if isinstance(part, MeasuredQueries)))
    # A judge of few cells is a poor one: then several judge together.
    pairs = [_split(measured, generator) for _ in range(max(1, min(MOST_SPLITS, ENOUGH_CELLS // cells)))]
    goals = [[goal_of(layout, half, total, scale, room) for half in pair] for pair in pairs]
    goal = goal_of(layout, measured, total, scale, room)
    rate = 0.025 * math.sqrt(len(sizes))
    best, best_steps, steps = math.inf, CHUNK, 0
    states = [_start(first) for _ in goals]
    while steps < min(most_steps, MOST_STEPS):
        judged = 0.0
        for place, (training, judging) in enumerate(goals):
            states[place], loss, said = _advance(states[place], training, judging, layout, rate, CHUNK)
            judged += float(said)
        steps += CHUNK
        yield steps, float(loss) / scale / cells
        if judged < best:
            best, best_steps = judged, steps
        elif steps >= best_steps + PATIENCE * CHUNK:
            break
    state, loss = _start(first), jnp.inf
    for step in range(0, best_steps, CHUNK):
        state, loss, _ = _advance(state, goal, goal, layout, rate, CHUNK)
        yield steps + step + CHUNK, float(loss) / scale / cells
    weights = np.asarray(state.weights)[:, : sum(sizes)]
    yield TableFit(RelaxedTable(sizes, np.ascontiguousarray(weights)), best_steps, float(loss) / scale / cells)


_programs: set[object] = set()


def _keep_few_programs(shape: object) -> None:
    """Forget all compiled programs once there are many: a process that fits ever new shapes would run out of memory
    mappings, and end.
    """
    _programs.add(shape)
    if len(_programs) > MOST_PROGRAMS:
        jax.clear_caches()  # type: ignore[no-untyped-call]
        _programs.clear()
        _programs.add(shape)


# --- one step -----------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnames=("layout", "steps"))
def _advance(
    state: State, goal: Goal, judge: Goal, layout: Layout, rate: float, steps: int
) -> tuple[State, Array, Array]:
    """Some steps towards a goal; the loss at the last of them, and what another goal says of the result."""
    members = members_of(layout)

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

    Michelot's algorithm ([Michelot1986]): subtract the excess from the places that are above it until none falls below.
    It ends after as many rounds as places are dropped; places of no column become 0.
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


_sparsemax = jax.jit(sparsemax)
"""Outside of a program a loop is compiled anew each time that it is met."""


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


# --- before the first step ----------------------------------------------------------------------------------------


def _split(measured: tuple[Measured, ...], generator: np.random.Generator) -> tuple[list[Measured], list[Measured]]:
    """Two independent measurements in place of each: y + αz and y − z/α, with z of the noise's own variance."""
    halves: tuple[list[Measured], list[Measured]] = ([], [])
    for part in measured:
        noise = generator.normal(0, math.sqrt(part.variance), part.counts.shape)
        for half, change, factor in zip(
            halves, (SPLIT * noise, -noise / SPLIT), (1 + SPLIT**2, 1 + SPLIT**-2), strict=True
        ):
            half.append(replace(part, counts=part.counts + change, variance=part.variance * factor))
    return halves


def _beginning(
    layout: Layout, measured: Iterable[Measured], total: float, rows: int, generator: np.random.Generator
) -> Array:
    """Rows that scatter around the one-way marginals, or around even shares where none was measured."""
    centre = np.concatenate([np.full(size, 1 / size) for size in layout.sizes])
    for part in measured:
        if isinstance(part, MeasuredMarginal) and len(part.columns) == 1:
            own = slice(layout.offsets[part.columns[0]], layout.offsets[part.columns[0] + 1])
            # A projection onto the simplex sees differences alone, and none of more than 1. Shares that are all noise
            # are so large that single precision would not see them either.
            centre[own] = np.maximum((part.counts - part.counts.max()) / total, -1.0)
    members = members_of(layout)
    smooth = np.asarray(_sparsemax(padded(layout, centre[None].astype(np.float32)), members))
    scatter = 0.3 * np.sqrt(np.maximum(smooth, 1e-3)) * generator.normal(size=(rows, layout.width))
    return _sparsemax(jnp.asarray((smooth + scatter).astype(np.float32)), members)


def _start(weights: Array) -> State:
    return State(weights, jnp.zeros_like(weights), jnp.zeros((weights.shape[0], 1)), jnp.zeros(()))

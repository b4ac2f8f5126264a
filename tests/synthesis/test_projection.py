"""The projection: sparsemax, descent, and a stop that does not follow the noise."""

import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from confide.synthesis import projection
from confide.synthesis.curator import Measured, MeasuredMarginal, MeasuredQueries, total_of
from confide.synthesis.goal import goal_of, layout_of, members_of, padded
from confide.synthesis.projection import _advance, _beginning, _loss_and_gradient, _start, project, sparsemax
from confide.synthesis.relaxed import RelaxedTable
from confide.workload import tables_of
from tests.workload.samples import rows

SIZES = (3, 4, 5)
SETS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


def simplex(point: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Euclidean projection by sorting: the textbook form."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    return np.maximum(point - excess[np.flatnonzero(ordered > excess)[-1]], 0)


def codes() -> NDArray[np.int64]:
    """Rows whose columns depend on each other."""
    drawn = rows(SIZES, 4_000)
    drawn[:, 1] = np.where(drawn[:, 1] % 2 == 0, drawn[:, 0], drawn[:, 1])
    drawn[:, 2] = np.where(drawn[:, 2] < 2, (drawn[:, 0] + drawn[:, 1]) % 5, drawn[:, 2])
    return drawn


def measured(deviation: float, seed: int = 1, sets: tuple[tuple[int, ...], ...] = SETS) -> tuple[Measured, ...]:
    exact = tables_of(codes(), SIZES, ((0, 1, 2),))
    generator = np.random.default_rng(seed)
    parts = []
    for columns in sets:
        counts = exact.marginal(columns, 0, SIZES[columns[0]]).reshape(-1)
        parts.append(MeasuredMarginal(columns, counts + generator.normal(0, deviation, len(counts)), deviation**2))
    return tuple(parts)


def distance(table: RelaxedTable, columns: tuple[int, ...]) -> float:
    exact = tables_of(codes(), SIZES, (columns,)).marginal(columns, 0, SIZES[columns[0]])
    return float(np.abs(table.marginal(columns, 0, SIZES[columns[0]]) - exact / 4_000).sum() / 2)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_sparsemax_is_the_euclidean_projection(scale: float) -> None:
    layout = layout_of(SIZES, ())
    points = scale * np.random.default_rng(2).normal(size=(20, sum(SIZES)))
    found = np.asarray(sparsemax(padded(layout, points.astype(np.float32)), members_of(layout)))
    assert not found[:, sum(SIZES) :].any()
    start = 0
    for size in SIZES:
        expected = [simplex(row[start : start + size]) for row in points]
        np.testing.assert_allclose(found[:, start : start + size], expected, atol=2e-5)
        start += size


def test_the_gradient_is_that_of_the_loss() -> None:
    """Against finite differences, with pairs, a whole of three columns and single queries."""
    queries = MeasuredQueries(np.array([[0, 4, -1], [1, 5, 9]]), np.array([1, 2]), np.array([900.0, 1_200.0]), 50.0)
    parts = (*measured(20), *measured(30, sets=((0, 1, 2),)), queries)
    layout = layout_of(SIZES, parts)
    goal = goal_of(layout, parts, 4_000, 1.0, 4)
    generator = np.random.default_rng(3)
    point = np.zeros((5, layout.width), dtype=np.float32)
    point[:, : sum(SIZES)] = generator.random((5, sum(SIZES)))
    loss, gradient = _loss_and_gradient(jnp.asarray(point), goal, layout)
    direction = np.zeros_like(point)
    direction[:, : sum(SIZES)] = generator.normal(size=(5, sum(SIZES)))
    step = 1e-2
    ahead, behind = (
        float(_loss_and_gradient(jnp.asarray(point + sign * step * direction), goal, layout)[0]) for sign in (1, -1)
    )
    slope = (ahead - behind) / (2 * step)
    assert float((np.asarray(gradient) * direction).sum()) == pytest.approx(slope, rel=2e-2)
    assert float(loss) > 0


def test_pairs_in_tiles_weigh_what_they_should() -> None:
    parts = measured(10)
    layout = layout_of(SIZES, parts)
    goal = goal_of(layout, parts, 4_000, 100 / 4_000**2, 0)
    point = RelaxedTable(SIZES, np.concatenate([np.full(s, 1 / s, np.float32) for s in SIZES])[None])
    loss = float(_loss_and_gradient(padded(layout, point.weights), goal, layout)[0])
    expected = sum(
        ((point.marginal(part.columns, 0, SIZES[part.columns[0]]).reshape(-1) - part.counts / 4_000) ** 2).sum()
        for part in parts
        if isinstance(part, MeasuredMarginal)
    )
    assert loss == pytest.approx(expected, rel=1e-4)


def test_a_fit_explains_what_was_measured_and_what_follows_from_it() -> None:
    parts = measured(8)
    fit = project(SIZES, parts, total_of(parts, None), 40, seed=1)
    assert fit.table.weights.min() >= 0
    np.testing.assert_allclose(fit.table.column(2).sum(axis=1), 1, atol=1e-5)
    assert 0.3 < fit.loss < 2
    for columns in SETS:
        assert distance(fit.table, columns) < 0.02
    assert distance(fit.table, (0, 1, 2)) < 0.2


WIDE = (30, 30)
TRUTH = np.outer(*(np.arange(1, 31) ** -1.5 / (np.arange(1, 31) ** -1.5).sum() for _ in range(2)))
NOISE = 0.01


def noisy(seed: int) -> tuple[MeasuredMarginal, ...]:
    """Two independent columns of thirty places, most of them rarer than the noise is large."""
    generator = np.random.default_rng(seed)
    shares = {(0, 1): TRUTH, (0,): TRUTH.sum(axis=1), (1,): TRUTH.sum(axis=0)}
    return tuple(
        MeasuredMarginal(columns, (exact + generator.normal(0, NOISE, exact.shape)).reshape(-1), NOISE**2)
        for columns, exact in shares.items()
    )


def test_a_fit_does_not_follow_the_noise() -> None:
    """Where most cells are noise, stopping by the split beats going on until nothing changes."""
    parts = noisy(7)
    fit = project(WIDE, parts, 1.0, 30, seed=1)
    layout = layout_of(WIDE, parts)
    goal = goal_of(layout, parts, 1.0, NOISE**2, 0)
    state, _, _ = _advance(_start(padded(layout, fit.table.weights)), goal, goal, layout, 0.025 * 2**0.5, 600)
    further = RelaxedTable(WIDE, np.asarray(state.weights)[:, : sum(WIDE)])
    stopped, followed = (np.abs(table.marginal((0, 1), 0, 30) - TRUTH).sum() / 2 for table in (fit.table, further))
    assert stopped < 0.9 * followed


def test_scaling_every_entry_by_itself_is_no_descent() -> None:
    """The published step is Adam's, then sparsemax. Its loss rises where ours falls (docs/errata/rap.md)."""
    parts = noisy(5)
    layout = layout_of(WIDE, parts)
    goal, members = goal_of(layout, parts, 1.0, NOISE**2, 0), members_of(layout)
    first = _beginning(layout, parts, 1.0, 30, np.random.default_rng(1))

    @partial(jax.jit, static_argnames="per_row")
    def run(weights: Any, per_row: bool) -> Any:
        def step(state: Any, count: Any) -> Any:
            weights, velocity, scale = state
            loss, gradient = _loss_and_gradient(weights, goal, layout)
            square = jnp.sum(gradient**2, axis=1, keepdims=True) if per_row else gradient**2
            velocity, scale = 0.9 * velocity + 0.1 * gradient, 0.99 * scale + 0.01 * square
            moved = (velocity / (1 - 0.9**count)) / (jnp.sqrt(scale / (1 - 0.99**count)) + 1e-12)
            return (sparsemax(weights - 0.05 * moved, members), velocity, scale), loss

        state = (weights, jnp.zeros_like(weights), jnp.zeros((len(weights), 1 if per_row else weights.shape[1])))
        return jax.lax.scan(step, state, jnp.arange(1, 401, dtype=jnp.float32))[1]

    ours, theirs = np.asarray(run(first, True)), np.asarray(run(first, False))
    assert ours[0] == theirs[0]
    # Ours ends about where it is lowest; theirs turns round and climbs, and ends far above.
    assert ours[-1] < ours.min() + 0.01 * (ours[0] - ours.min()), (ours[0], ours.min(), ours[-1])
    assert theirs[-1] > theirs.min() + 0.1 * (theirs[0] - theirs.min()), (theirs[0], theirs.min(), theirs[-1])
    assert theirs[-1] - ours[-1] > 0.1 * (ours[0] - ours[-1])


def test_the_number_of_rows_is_the_precise_average_of_all_marginals() -> None:
    assert total_of(measured(0.001), None) == pytest.approx(4_000, abs=0.1)
    assert total_of(measured(0.001), 17) == 17
    assert total_of((), None) == 1


@pytest.mark.parametrize("deviation", [10.0, 1e9, 1e12])
def test_tables_are_on_the_simplex_however_large_the_noise_is(deviation: float) -> None:
    """A total is at least 1 row, and a noisy count may be any number of them."""
    generator = np.random.default_rng(2)
    parts = [
        MeasuredMarginal((place,), generator.normal(0, deviation, size), deviation**2)
        for place, size in enumerate((4, 3))
    ]
    fit = project((4, 3), tuple(parts), 1.0, 5, 0, most_steps=20)
    for place in range(2):
        np.testing.assert_allclose(fit.table.column(place).sum(axis=1), 1, atol=1e-5)
        assert fit.table.column(place).min() >= 0


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="counts the memory mappings of Linux")
def test_many_fits_leave_few_programs_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.synthesis.projection.MOST_PROGRAMS", 4)

    def fitted(size: int) -> int:
        parts = tuple(MeasuredMarginal((place,), np.full(own, 5.0), 4.0) for place, own in enumerate((3, size)))
        project((3, size), parts, 100.0, 10, 1, most_steps=10)
        return mappings()

    seen = [fitted(4) for _ in range(5)]
    assert seen[-1] == seen[1]
    seen = [fitted(size) for size in range(5, 17)]
    assert max(seen[6:]) <= max(seen[:6])


def test_a_ctrl_c_never_comes_into_the_middle_of_the_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is interrupted inside may crash the interpreter when it ends: it works in a thread of its own."""
    real, threads, seen = projection._advance, [], []

    def advance(*given: Any) -> Any:
        threads.append(threading.current_thread())
        if len(threads) == 3:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return real(*given)

    monkeypatch.setattr(projection, "_advance", advance)
    parts = (MeasuredMarginal((0,), np.array([30.0, 40.0, 30.0]), 1.0),)
    with pytest.raises(KeyboardInterrupt):
        project((3, 2), parts, 100.0, 10, 1, watch=lambda steps, loss: seen.append(threading.current_thread()))
    assert threads
    assert threading.main_thread() not in threads
    assert set(seen) <= {threading.main_thread()}, "who watches is told in the thread that asked"

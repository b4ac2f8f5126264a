"""Fits of Markov tables: against the least squares they stand for, and against another engine."""

import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.synthesis import markov_fit
from confide.synthesis.curator import MeasuredMarginal
from confide.synthesis.markov_fit import Evidence, fit_markov
from tests.synthesis.whole import joint_of, marginal_of, random_table

SIZES = (2, 3, 2, 4)
SETS = [(0, 1), (1, 2), (2, 3), (0, 3)]
TOTAL = 1_000.0


def evidence(deviation: float, seed: int = 0) -> list[Evidence]:
    joint = joint_of(random_table(SIZES, SETS, seed))
    generator = np.random.default_rng(seed)
    found = []
    for columns in [(0,), *SETS]:
        counts = TOTAL * marginal_of(joint, columns).reshape(-1)
        found.append(Evidence(columns, counts + generator.normal(0, deviation, counts.shape), deviation**2))
    return found


def loss_of(joint: np.ndarray, parts: list[Evidence]) -> float:
    away = [(TOTAL * marginal_of(joint, part.columns).reshape(-1) - part.counts) ** 2 for part in parts]
    return sum(float((own / part.variance).sum()) for own, part in zip(away, parts, strict=True))


@pytest.mark.parametrize("deviation", [3.0, 30.0, 300.0])
def test_no_law_of_all_columns_explains_the_counts_better(deviation: float) -> None:
    """The least weighted squares over all joint laws, by a solver of its own."""
    parts = evidence(deviation)
    fit = fit_markov(SIZES, parts, TOTAL)

    def logits(values: np.ndarray) -> float:
        joint = np.exp(values - values.max()).reshape(SIZES)
        return loss_of(joint / joint.sum(), parts)

    least = minimize(logits, np.zeros(int(np.prod(SIZES))), method="L-BFGS-B", options={"maxiter": 5_000}).fun
    own = loss_of(joint_of(fit.table), parts)
    assert own <= least * 1.01 + 1e-3
    cells = sum(len(part.counts) for part in parts)
    assert fit.loss == pytest.approx(own / cells, rel=1e-3, abs=1e-4)


def test_it_is_the_table_that_another_engine_fits() -> None:
    """mbi 2, in doubles: not only what was measured, also what follows by the largest entropy."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("mbi")
    kept = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        from mbi import Domain, LinearMeasurement, estimation  # noqa: PLC0415

        parts = evidence(20.0)
        measured = [LinearMeasurement(part.counts, part.columns, stddev=float(part.variance) ** 0.5) for part in parts]
        domain = Domain(tuple(range(4)), SIZES)
        other = estimation.MirrorDescent().estimate(domain, measured, known_total=TOTAL, iters=3_000)
        fit = fit_markov(SIZES, parts, TOTAL)
        for columns in [*SETS, (0, 2), (1, 3), (0, 1, 2, 3)]:
            theirs = np.asarray(other.project(columns).values) / TOTAL
            np.testing.assert_allclose(fit.table.marginal(columns, 0, SIZES[columns[0]]), theirs, atol=2e-4)
    finally:
        jax.config.update("jax_enable_x64", kept)
        for name in [name for name in sys.modules if name == "mbi" or name.startswith("mbi.")]:
            del sys.modules[name]


def test_a_fit_goes_on_from_another_and_is_the_same_every_time() -> None:
    parts = evidence(10.0)
    rough = fit_markov(SIZES, parts[:3], TOTAL, most_steps=50)
    assert rough.steps == 50
    told: list[tuple[int, float]] = []
    on = fit_markov(SIZES, parts, TOTAL, rough.table, watch=lambda steps, loss: told.append((steps, loss)))
    anew = fit_markov(SIZES, parts, TOTAL)
    np.testing.assert_allclose(on.table.marginal((0, 2), 0, 2), anew.table.marginal((0, 2), 0, 2), atol=1e-3)
    assert [steps for steps, _ in told] == sorted(steps for steps, _ in told)
    assert fit_markov(SIZES, parts, TOTAL).table.to_bytes() == anew.table.to_bytes()


def test_counts_that_are_all_noise_or_precise_to_the_last_digit_leave_shares() -> None:
    for counts, variance in (([-5e6, -4e6], 1e12), ([700.0, 300.0], 1 / 12), ([0.0, 0.0], 1 / 12)):
        part = Evidence.of(MeasuredMarginal((0,), np.array(counts), variance))
        fit = fit_markov((2, 3), [part], TOTAL)
        shares = fit.table.marginal((0, 1), 0, 2)
        assert np.isfinite(shares).all()
        assert shares.sum() == pytest.approx(1, abs=1e-6)
    assert fit_markov((2, 3), [Evidence((0,), np.array([700.0, 300.0]), 1 / 12)], TOTAL).table.marginal(
        (0,), 0, 2
    ) == pytest.approx([0.7, 0.3], abs=1e-4)


def test_counts_may_be_of_different_precision() -> None:
    """Two measurements of one column are averaged by their precision."""
    parts = [
        Evidence((0,), np.array([600.0, 400.0]), np.array([4.0, 4.0])),
        Evidence((0,), np.array([500.0, 500.0]), np.array([12.0, 12.0])),
    ]
    fit = fit_markov((2,), parts, TOTAL)
    assert fit.table.marginal((0,), 0, 2)[0] == pytest.approx(0.575, abs=1e-4)


def test_sums_by_matrix_and_by_axes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [*evidence(5.0), Evidence((0, 2, 3), np.full(16, 60.0), np.arange(1.0, 17.0))]
    fits = []
    for most in (2**22, 0):
        monkeypatch.setattr(markov_fit, "_ADDED", most)
        fits.append(fit_markov(SIZES, parts, TOTAL, most_steps=200))
    for columns in [*SETS, (0, 1, 2, 3)]:
        one, two = (fit.table.marginal(columns, 0, SIZES[columns[0]]) for fit in fits)
        np.testing.assert_allclose(one, two, atol=1e-6)
    assert fits[0].loss == pytest.approx(fits[1].loss, rel=1e-6)

"""The table of maximum entropy: it is the one of its definition, and finds what is there."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.synthesis import entropy
from confide.synthesis.contrasts import Contrasts, KnownContrasts
from confide.synthesis.curator import MeasuredMarginal
from confide.synthesis.entropy import fit_entropy

SIZES = (2, 3, 2)


def world(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(12, 0.6)).reshape(SIZES)


def measured(shares: np.ndarray, total: float, deviation: float, k: int = 2) -> tuple[MeasuredMarginal, ...]:
    generator = np.random.default_rng(5)
    found = []
    for columns in combinations(range(3), k):
        cells = shares.sum(axis=tuple(axis for axis in range(3) if axis not in columns)).reshape(-1) * total
        found.append(MeasuredMarginal(columns, cells + generator.normal(0, deviation, cells.shape), deviation**2))
    return tuple(found)


@pytest.mark.parametrize("slack", [0.5, 30.0])
def test_it_is_the_table_of_its_definition(slack: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a general solver on λ·KL(p‖even) + Σ (c − y)²/2σ² with p ≥ 0 and Σp = 1."""
    monkeypatch.setattr(entropy, "NEAR", 1e-6)
    change = Contrasts(SIZES)
    known = change.pooled(measured(world(), 500, 20), 500)

    def primal(cells: np.ndarray) -> float:
        away = (change.of(cells)[known.places] - known.values) / known.deviations
        return slack * float(np.sum(cells * np.log(np.maximum(cells, 1e-300) * 12))) + float(away @ away) / 2

    _, found = entropy._fitted(change, known, slack, np.zeros(len(known)))
    start = np.full(12, 1 / 12)
    sums = {"type": "eq", "fun": lambda cells: cells.sum() - 1}
    best = minimize(
        primal, start, bounds=[(1e-12, 1)] * 12, constraints=[sums], method="SLSQP", options={"ftol": 1e-12}
    )
    assert found.sum() == pytest.approx(1)
    assert primal(found) <= best.fun + 1e-6
    assert found == pytest.approx(best.x, abs=0.01)


def test_what_is_measured_exactly_is_kept_and_nothing_is_negative() -> None:
    shares = world()
    fit = fit_entropy(SIZES, measured(shares, 10**6, 0.3), 10**6, 7)
    for columns in combinations(range(3), 2):
        own = fit.table.marginal(columns, 0, SIZES[columns[0]])
        truth = shares.sum(axis=tuple(axis for axis in range(3) if axis not in columns))
        assert own == pytest.approx(truth, abs=1e-4)
    assert (fit.table.shares >= 0).all()
    assert fit.loss < 2


def test_noise_is_not_followed() -> None:
    """Where noise is all there is, the table stays even: the judge sees that what was fitted is not there."""
    even = np.full(SIZES, 1 / 12)
    errors = []
    for deviation in (50.0, 500.0):
        fit = fit_entropy(SIZES, measured(even, 1_000, deviation), 1_000, 3)
        errors.append(float(np.abs(fit.table.shares - 1 / 12).sum()))
    raw = [
        float(np.abs(own.counts / 1_000 - own.counts.sum() / 1_000 / len(own.counts)).sum())
        for own in measured(even, 1_000, 500.0)
    ]
    assert errors[0] < 0.2
    assert errors[1] < 0.4 * np.mean(raw)


def test_halves_of_noise_are_independent_and_have_their_variances() -> None:
    known = KnownContrasts(np.arange(40_000), np.zeros(40_000), np.full(40_000, 2.0))
    known = KnownContrasts(known.places, np.random.default_rng(2).normal(0, 2, 40_000), known.deviations)
    one, other = entropy._split(known, np.random.default_rng(3))
    assert np.std(one.values) == pytest.approx(one.deviations[0], rel=0.02)
    assert np.std(other.values) == pytest.approx(other.deviations[0], rel=0.02)
    assert abs(np.corrcoef(one.values, other.values)[0, 1]) < 0.02


def test_it_says_how_far_it_is() -> None:
    seen: list[tuple[int, int]] = []
    fit_entropy(SIZES, measured(world(), 500, 20), 500, 1, lambda done, most: seen.append((done, most)))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] <= seen[-1][1]

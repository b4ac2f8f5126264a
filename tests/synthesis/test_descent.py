"""The minimiser finds what a library finds."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from confide.synthesis.descent import least


def test_a_skewed_parabola_has_its_least_where_it_is() -> None:
    scales = np.logspace(-3, 3, 40)
    middle = np.linspace(-2, 5, 40)

    def parabola(point: np.ndarray) -> tuple[float, np.ndarray]:
        away = point - middle
        return float((scales * away * away).sum()) / 2, scales * away

    found = least(parabola, np.zeros(40), 1e-9, 2_000)
    assert found == pytest.approx(middle, abs=1e-5)


def test_it_agrees_with_a_library_on_what_fits_are_made_of() -> None:
    generator = np.random.default_rng(1)
    features, target = generator.normal(size=(30, 12)), generator.normal(size=12) * 0.1

    def dual(point: np.ndarray) -> tuple[float, np.ndarray]:
        energy = features @ point
        value = float(logsumexp(energy) - point @ target + 0.05 * point @ point)
        return value, features.T @ softmax(energy) - target + 0.1 * point

    known = minimize(dual, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    assert least(dual, np.zeros(12), 1e-9, 500) == pytest.approx(known, abs=1e-6)


def test_it_ends_after_so_many_steps_and_where_nothing_falls() -> None:
    calls = []

    def slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(1)
        return float(point.sum()), np.ones(3)

    least(slope, np.zeros(3), 0.1, 5)
    assert len(calls) == 6
    assert (least(lambda point: (0.0, np.ones(3)), np.ones(3), 0.1, 5) == 1).all()

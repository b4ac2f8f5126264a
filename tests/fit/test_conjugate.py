"""Conjugate gradients against a factored system, and on systems that have no solution."""

import numpy as np
import pytest

from confide.fit.conjugate import conjugate_gradients


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_solution_is_that_of_a_factored_system(size: float, scaled: bool) -> None:
    generator = np.random.default_rng(3)
    half = generator.normal(size=(30, 30))
    system = size * (half @ half.T + np.diag(np.arange(1.0, 31.0)))
    right = generator.normal(size=30)
    scaling = 1 / system.diagonal() if scaled else 1.0
    found, rest = conjugate_gradients(lambda each: system @ each, right, left=1e-12, most=500, scaling=scaling)
    assert found == pytest.approx(np.linalg.solve(system, right), rel=1e-8)
    assert rest == pytest.approx(right - system @ found, abs=1e-9)


def test_what_no_direction_reaches_is_left() -> None:
    system = np.diag([4.0, 1.0, 0.0])
    _, rest = conjugate_gradients(lambda each: system @ each, np.array([4.0, 2.0, 3.0]), left=1e-9, most=50)
    assert rest[2] == 3
    nothing, _ = conjugate_gradients(lambda each: system @ each, np.zeros(3), left=1e-9, most=50)
    assert (nothing == 0).all()

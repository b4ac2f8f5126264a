"""Conjugate gradients against a factored system, and on systems that have no solution.

The normal matrix of implicit rows is that of the matrix itself, and hard systems are solved by it.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from confide.fit import CellDomain, Marginal, Subtotal, fit
from confide.fit import minimise as newton_module
from confide.fit import rows as rows_module
from confide.fit.linear_systems import can_factor, conjugate_gradients, factored, normal_matrix
from confide.fit.problem import FitProblem, MeasuredGroup
from confide.fit.rows import Rows
from confide.mechanism.noise.law import DiscreteLaplace


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


DOMAIN = CellDomain(("a", "b", "c"), (3, 4, 5))
MARGINALS = tuple(Marginal(names) for names in ((), ("a",), ("c", "a"), ("b", "c"), ("a", "b", "c")))


def _rows(generator: np.random.Generator) -> Rows:
    members = [generator.random(size) < 0.5 for size in (15, 20, 15)]
    subtotals = zip((MARGINALS[2], MARGINALS[3], MARGINALS[2]), members, strict=True)
    return Rows(DOMAIN, (*MARGINALS, *(Subtotal(group, chosen) for group, chosen in subtotals)))


def _many_zeros() -> FitProblem:
    """A table of which one cell in ten is filled, and all its one- and two-way marginals."""
    generator, domain, law = (
        np.random.default_rng(4),
        CellDomain(("a", "b", "c"), (6, 7, 8)),
        DiscreteLaplace(Fraction(3)),
    )
    truth = np.where(generator.random(domain.cells) < 0.1, generator.integers(1, 200, domain.cells), 0).astype(float)
    groups = [Marginal(names) for count in (1, 2) for names in combinations(domain.attributes, count)]
    answers = [group.answer(domain, truth) for group in groups]
    noisy = [own + np.rint(generator.laplace(0, 3, len(own))) for own in answers]
    return FitProblem(domain, tuple(MeasuredGroup(group, own, law) for group, own in zip(groups, noisy, strict=True)))


def test_blocks_are_marginals_of_the_weights() -> None:
    generator = np.random.default_rng(1)
    rows, weights = _rows(generator), generator.random(DOMAIN.cells)
    assert can_factor(rows)
    assert rows.dense is not None
    expected = (rows.dense * weights) @ rows.dense.T
    assert np.allclose(normal_matrix(rows, weights), expected, atol=1e-12)


def test_a_factor_solves_the_system() -> None:
    generator = np.random.default_rng(2)
    rows, weights = _rows(generator), generator.random(DOMAIN.cells)
    diagonal, right = generator.random(rows.count) + 0.1, generator.normal(size=rows.count)
    factor = factored(rows, weights, diagonal)
    assert factor is not None
    solution = factor(right)
    assert np.allclose(normal_matrix(rows, weights) @ solution + diagonal * solution, right, atol=1e-9)


def test_rows_that_are_no_marginals_are_not_factored() -> None:
    alone = Subtotal(MARGINALS[1], np.array([True, False, True]))
    assert not can_factor(Rows(DOMAIN, (alone,)))
    assert not can_factor(Rows(DOMAIN, (MARGINALS[1], MARGINALS[1])))
    assert not can_factor(Rows(CellDomain(("a", "b"), (200, 200)), (Marginal(("a", "b")),)))


def test_an_indefinite_system_has_no_factor() -> None:
    rows = _rows(np.random.default_rng(3))
    assert factored(rows, np.ones(DOMAIN.cells), np.full(rows.count, -1.0)) is None


def test_hard_systems_are_factored_and_give_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows implicit and no patience, every system is factored; the fit is that of the small, direct path."""
    problem = _many_zeros()
    direct = fit(problem, "reweighted")
    calls: list[int] = []
    monkeypatch.setattr(rows_module, "MOST_DENSE", 0)
    monkeypatch.setattr(newton_module, "PATIENCE", 2)
    real = newton_module.factored
    monkeypatch.setattr(newton_module, "factored", lambda *given: (calls.append(1), real(*given))[1])
    implicit = fit(problem, "reweighted")
    assert calls
    assert implicit.certificate.distance <= 1e-4
    for item in problem.measured:
        apart = np.abs(implicit.answer(item.group) - direct.answer(item.group))
        assert apart.max() <= 1e-3 * np.sqrt(item.variance)

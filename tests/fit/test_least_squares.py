"""Least squares: the closed form and the general way agree with dense algebra.

Non-negative least squares is optimal on every small problem: by another solver and by the optimality conditions.
"""

import numpy as np
import pytest
from hypothesis import given, settings

from confide.fit import FitProblem, Marginal, estimates, nnls, ols
from confide.fit.effects import fitted, precisions
from tests.fit import oracle
from tests.fit.strategies import problems


def dense(problem: FitProblem) -> np.ndarray:
    """Least squares with equalities, by the null space of these."""
    rows, answers, weights = oracle.stacked(problem)
    equal, right = oracle.equalities(problem)
    particular = np.linalg.lstsq(equal, right, rcond=None)[0] if len(right) else np.zeros(rows.shape[1])
    _, values, basis = np.linalg.svd(equal) if len(right) else (None, np.zeros(0), np.eye(rows.shape[1]))
    free = basis[(values > 1e-9).sum() :].T
    root = np.sqrt(weights)[:, None]
    left = rows @ free
    left[np.abs(left) < 1e-9] = 0.0
    moved = np.linalg.lstsq(root * left, root[:, 0] * (answers - rows @ particular), rcond=1e-10)[0]
    return np.asarray(particular + free @ moved)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_fitted_answers_are_those_of_dense_algebra(problem: FitProblem) -> None:
    rows, answers, _ = oracle.stacked(problem)
    scale = 1 + np.abs(answers).max()
    assert rows @ ols(problem).cells == pytest.approx(rows @ dense(problem), abs=1e-6 * scale)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems(only_marginals=True, public=False))
def test_the_closed_form_is_the_least_table(problem: FitProblem) -> None:
    assert ols(problem).cells == pytest.approx(dense(problem), abs=1e-8 * (1 + np.abs(dense(problem)).max()))
    precision = precisions(problem)
    assert precision is not None
    parts = fitted(problem, precision)
    for item in problem.measured:
        assert isinstance(item.group, Marginal)
        assert parts.answer(item.group) == pytest.approx(item.group.answer(problem.domain, parts.cells()), abs=1e-6)
        assert estimates(problem, item.group) == pytest.approx(
            item.group.answer(problem.domain, dense(problem)), abs=1e-6
        )


def test_the_total_of_the_benchmark_has_the_variance_of_theory(table_problem: FitProblem) -> None:
    """Four groups with one variance v: the total has v / (1 + 1/9 + 1/24 + 1/216)."""
    precision = precisions(table_problem)
    assert precision is not None
    each = table_problem.measured[0].variance
    assert 216**2 / (precision[()] * 216) == pytest.approx(each / (1 + 1 / 9 + 1 / 24 + 1 / 216))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_no_table_fits_better(problem: FitProblem) -> None:
    fit = nnls(problem)
    rows, answers, weights = oracle.stacked(problem)
    equal = oracle.equalities(problem)
    best = oracle.value(problem, np.maximum(oracle.quadratic(rows, answers, weights, equal), 0))
    assert (fit.cells >= 0).all()
    assert np.abs(equal[0] @ fit.cells - equal[1]).max(initial=0) <= 1e-6
    assert oracle.value(problem, fit.cells) <= best + 1e-6 * max(1.0, best)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems(public=False))
def test_optimality_conditions_hold(problem: FitProblem) -> None:
    """The gradient is not negative anywhere, and zero wherever a cell is positive.

    Both as far as the certified distance d says: moving one cell with curvature h gains at most d²/2, so no slope is
    below -d√h, and none where there is a count x to take away is above max(d√h, d²/x).
    """
    fit = nnls(problem)
    rows, answers, weights = oracle.stacked(problem)
    gradient = rows.T @ (weights * (rows @ fit.cells - answers))
    distance = min(fit.certificate.distance, 1e-3)  # no certificate is found where queries subtract
    rounding = 1e-9 * (np.abs(rows).T @ (weights * (np.abs(answers) + 1))).max(initial=0)
    slope = distance * np.sqrt(weights @ rows**2) + rounding
    filled = fit.cells > 0
    assert (gradient >= -slope).all()
    assert (gradient[filled] <= np.maximum(slope[filled], distance**2 / fit.cells[filled])).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems(only_marginals=True))
def test_the_certificate_is_small(problem: FitProblem) -> None:
    fit = nnls(problem)
    assert fit.certificate.distance <= 1e-3
    assert fit.certificate.violation <= 1e-6


def test_a_warm_start_ends_at_the_same_table(table_problem: FitProblem) -> None:
    cold = nnls(table_problem)
    moved = table_problem.again([item.answers + 1 for item in table_problem.measured])
    warm = nnls(moved, cold)
    assert np.abs(warm.cells - nnls(moved).cells).max() < 1e-6
    assert nnls(table_problem, cold).certificate.steps == 0


def test_sums_of_small_counts_come_out_too_large(table_problem: FitProblem) -> None:
    """What the other methods are for: with many empty cells the fitted total is above the unbiased one."""
    total = float(table_problem.measured[0].answers[0])
    assert nnls(table_problem).cells.sum() > total + 5

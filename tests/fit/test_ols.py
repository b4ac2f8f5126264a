"""Least squares: the closed form and the general way agree with dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings

from confide.fit import FitProblem, Marginal, estimates, ols
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

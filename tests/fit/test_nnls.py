"""Non-negative least squares is optimal on every small problem: by another solver and by the optimality conditions."""

import numpy as np
from hypothesis import given, settings

from confide.fit import Problem, nnls
from tests.fit import oracle
from tests.fit.strategies import problems


@settings(max_examples=150, deadline=None)
@given(problems())
def test_no_table_fits_better(problem: Problem) -> None:
    fit = nnls(problem)
    rows, answers, weights = oracle.stacked(problem)
    equal = oracle.equalities(problem)
    best = oracle.value(problem, np.maximum(oracle.quadratic(rows, answers, weights, equal), 0))
    assert (fit.cells >= 0).all()
    assert np.abs(equal[0] @ fit.cells - equal[1]).max(initial=0) <= 1e-6
    assert oracle.value(problem, fit.cells) <= best + 1e-6 * max(1.0, best)


@settings(max_examples=100, deadline=None)
@given(problems(public=False))
def test_optimality_conditions_hold(problem: Problem) -> None:
    """The gradient is not negative anywhere, and zero wherever a cell is positive."""
    fit = nnls(problem)
    rows, answers, weights = oracle.stacked(problem)
    gradient = rows.T @ (weights * (rows @ fit.cells - answers))
    size = (np.abs(rows).T @ (weights * (np.abs(answers) + 1))).max()
    assert gradient.min() >= -1e-4 * size
    assert np.abs(gradient[fit.cells > 1e-3]).max(initial=0) <= 1e-4 * size


@settings(max_examples=100, deadline=None)
@given(problems(only_marginals=True))
def test_the_certificate_is_small(problem: Problem) -> None:
    fit = nnls(problem)
    assert fit.certificate.distance <= 1e-3
    assert fit.certificate.violation <= 1e-6


def test_a_warm_start_ends_at_the_same_table(table_problem: Problem) -> None:
    cold = nnls(table_problem)
    moved = table_problem.again([item.answers + 1 for item in table_problem.measured])
    warm = nnls(moved, cold)
    assert np.abs(warm.cells - nnls(moved).cells).max() < 1e-6
    assert nnls(table_problem, cold).certificate.steps == 0


def test_sums_of_small_counts_come_out_too_large(table_problem: Problem) -> None:
    """What the other methods are for: with many empty cells the fitted total is above the unbiased one."""
    total = float(table_problem.measured[0].answers[0])
    assert nnls(table_problem).cells.sum() > total + 5

"""Non-negative least squares is optimal on every small problem: by another solver and by the optimality conditions."""

import numpy as np
from hypothesis import given, settings

from confide.fit import FitProblem, nnls
from tests.fit import oracle
from tests.fit.strategies import problems


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

"""Max fitting: the least largest residual, and least squares among the tables that have it."""

import numpy as np
import pytest
from hypothesis import given, settings

from confide.fit import FitProblem, maxfit, nnls
from confide.fit.maxfit import attained, smallest_reach
from tests.fit import oracle
from tests.fit.strategies import problems


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_the_largest_residual_is_the_least_and_the_squares_are_next(problem: FitProblem) -> None:
    fit = maxfit(problem)
    rows, answers, weights = oracle.stacked(problem)
    deviations = weights**-0.5
    reach = oracle.least_reach(problem)
    assert (fit.cells >= 0).all()
    assert attained(problem, fit) == pytest.approx(reach, abs=1e-5 * (1 + reach))
    equal = oracle.equalities(problem)
    assert np.abs(equal[0] @ fit.cells - equal[1]).max(initial=0) <= 1e-5
    wide = (reach + 1e-5 * (1 + reach)) * deviations
    best = oracle.quadratic(rows, answers, weights, equal, (rows, (answers - wide, answers + wide)))
    value = oracle.value(problem, np.maximum(best, 0))
    assert oracle.value(problem, fit.cells) <= value + 1e-3 * max(1.0, value)


def test_bisection_comes_within_a_hundredth(table_problem: FitProblem) -> None:
    reach, fit = smallest_reach(table_problem)
    assert reach == pytest.approx(attained(table_problem, fit))
    assert reach <= 1.011 * oracle.least_reach(table_problem)


def test_a_warm_start_changes_nothing(table_problem: FitProblem) -> None:
    assert maxfit(table_problem, nnls(table_problem)).cells == pytest.approx(maxfit(table_problem).cells, abs=1e-5)

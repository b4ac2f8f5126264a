"""Fits by priority: each stage is the best one that keeps the stages before."""

import numpy as np
import pytest
from hypothesis import given, settings

from confide.errors import ParameterError
from confide.fit import (
    TOTAL,
    CellDomain,
    Fit,
    FitProblem,
    Marginal,
    MeasuredGroup,
    estimates,
    nnls,
    ols,
    pinned,
    sequential,
)
from confide.fit.sequential import coarse_first
from tests.fit import oracle
from tests.fit.strategies import problems


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems())
def test_every_stage_is_the_best_that_keeps_the_earlier_ones(problem: FitProblem) -> None:
    priority = [[place] for place in range(len(problem.measured))]
    fit = sequential(problem, priority)
    equal_rows, equal = oracle.equalities(problem)
    assert np.abs(equal_rows @ fit.cells - equal).max(initial=0) <= 1e-5
    for item in problem.measured:
        rows = item.group.matrix(problem.domain).toarray()
        weights = np.full(len(rows), 1 / item.variance)
        best = np.maximum(oracle.quadratic(rows, item.answers, weights, (equal_rows, equal)), 0)
        squares = [float(weights @ (rows @ cells - item.answers) ** 2) for cells in (fit.cells, best)]
        assert squares[0] <= squares[1] + 1e-4 * max(1.0, squares[1])
        equal_rows = np.concatenate([equal_rows, rows])  # later stages keep what this one reached
        equal = np.concatenate([equal, rows @ fit.cells])


def test_the_total_comes_first_and_is_kept(table_problem: FitProblem) -> None:
    fit = sequential(table_problem)
    assert fit.cells.sum() == pytest.approx(float(table_problem.measured[0].answers[0]), abs=1e-6)
    assert coarse_first(table_problem) == [[0], [1, 2], [3]]


@pytest.mark.parametrize("priority", [[[0], [1]], [[0, 1, 2, 3], [3]], [[0, 1], [2, 4]], [[0, 1, 2, 3], []], []])
def test_priorities_that_are_no_partition_are_refused(table_problem: FitProblem, priority: list[list[int]]) -> None:
    with pytest.raises(ParameterError, match="must name each of the measurements 0 to 3 once"):
        sequential(table_problem, priority)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems(only_marginals=True, public=False))
def test_pinned_is_the_best_table_with_the_estimated_total(problem: FitProblem) -> None:
    fit = pinned(problem)
    total = np.maximum(estimates(problem, TOTAL), 0)
    assert fit.cells.sum() == pytest.approx(total[0], abs=1e-6 * max(1.0, total[0]))
    rows, answers, weights = oracle.stacked(problem)
    best = oracle.quadratic(rows, answers, weights, (np.ones((1, problem.domain.cells)), total))
    assert oracle.value(problem, fit.cells) <= oracle.value(problem, best) + 1e-5 * max(
        1.0, oracle.value(problem, best)
    )


def test_several_pins_are_kept_as_far_as_counts_allow(table_problem: FitProblem) -> None:
    races = Marginal(("race",))
    fit = pinned(table_problem, [TOTAL, races])
    estimate = estimates(table_problem, races)
    total = float(estimates(table_problem, TOTAL)[0])
    kept = fit.answer(races)
    assert kept.sum() == pytest.approx(total, abs=1e-6)
    assert (kept >= 0).all()
    shift = (estimate - kept)[kept > 1e-9]  # the projection onto a simplex moves all that stay positive alike
    assert np.ptp(shift) < 1e-5
    assert (estimate[kept <= 1e-9] <= shift.mean() + 1e-5).all()


def test_a_pin_outside_the_measured_span_is_refused(table_problem: FitProblem) -> None:
    problem = FitProblem(table_problem.domain, table_problem.measured[:2])
    with pytest.raises(ParameterError, match="do not determine"):
        pinned(problem, [Marginal(("origin",))])
    with pytest.raises(ParameterError, match="at least one"):
        pinned(problem, [])


def test_a_negative_total_gives_an_empty_table(table_problem: FitProblem) -> None:
    problem = table_problem.again([np.full(len(item.answers), -5.0) for item in table_problem.measured])
    for fit in (pinned(problem), sequential(problem), nnls(problem)):
        assert np.abs(fit.cells).max() < 1e-9


def test_pinned_has_the_total_of_least_squares(table_problem: FitProblem) -> None:
    assert pinned(table_problem).cells.sum() == pytest.approx(ols(table_problem).cells.sum(), abs=1e-6)


def test_one_cell(table_problem: FitProblem) -> None:
    law = table_problem.measured[0].law
    problem = FitProblem(CellDomain(("a",), (1,)), (MeasuredGroup(Marginal(("a",)), np.array([4.0]), law),))
    fits: list[Fit] = [sequential(problem), pinned(problem), nnls(problem)]
    assert [float(fit.cells[0]) for fit in fits] == pytest.approx([4.0, 4.0, 4.0])

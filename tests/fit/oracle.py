"""Slow and plain solutions to compare with: dense matrices, an interior-point solver, a linear program."""

import clarabel
import numpy as np
from hypothesis import assume
from scipy import sparse
from scipy.linalg import qr
from scipy.optimize import linprog

from confide.fit.group import Floats
from confide.fit.problem import FitProblem

Box = tuple[Floats, Floats]


def stacked(problem: FitProblem) -> tuple[Floats, Floats, Floats]:
    """All queries as rows, the noisy answers, and the inverse variances."""
    rows = np.concatenate([item.group.matrix(problem.domain).toarray() for item in problem.measured])
    answers = np.concatenate([item.answers for item in problem.measured])
    weights = np.concatenate([np.full(len(item.answers), 1 / item.variance) for item in problem.measured])
    return rows, answers, weights


def equalities(problem: FitProblem) -> tuple[Floats, Floats]:
    cells = problem.domain.cells
    rows = [group.matrix(problem.domain).toarray() for group, _ in problem.public.totals]
    right = [values for _, values in problem.public.totals]
    if problem.public.zeros is not None:
        rows.append(np.eye(cells)[problem.public.zeros])
        right.append(np.zeros(int(problem.public.zeros.sum())))
    if not rows:
        return np.zeros((0, cells)), np.zeros(0)
    return np.concatenate(rows), np.concatenate(right)


def quadratic(
    rows: Floats, answers: Floats, weights: Floats, equal: tuple[Floats, Floats], box: tuple[Floats, Box] | None = None
) -> Floats:
    """min ½ Σ weight (row·x − answer)² with x >= 0, equalities, and rows within a box, by Clarabel."""
    cells = rows.shape[1]
    equal = _independent(*equal)
    scale = weights.max()
    hessian = (rows.T * (weights / scale)) @ rows
    gradient = -rows.T @ (weights / scale * answers)
    constraints, bounds = [equal[0], -np.eye(cells)], [equal[1], np.zeros(cells)]
    if box is not None:
        matrix, (low, high) = box
        constraints += [matrix, -matrix]
        bounds += [high, -low]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    below = cells + (0 if box is None else 2 * len(box[0]))
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian)),
        gradient,
        sparse.csc_matrix(np.concatenate(constraints)),
        np.concatenate(bounds),
        [clarabel.ZeroConeT(len(equal[1])), clarabel.NonnegativeConeT(below)],
        settings,
    )
    solution = solver.solve()
    assume(solution.status == clarabel.SolverStatus.Solved)  # a reference that fails says nothing
    return np.array(solution.x)


def _independent(rows: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The equalities without those that follow from the others: an interior-point solver goes astray on them."""
    if not len(rows):
        return rows, right
    _, triangle, order = qr(rows.T, pivoting=True, mode="economic")
    kept = np.sort(order[: int((np.abs(triangle.diagonal()) > 1e-9).sum())])
    return rows[kept], right[kept]


def least_reach(problem: FitProblem) -> float:
    """The least largest residual in standard deviations, by a linear program of scipy."""
    rows, answers, weights = stacked(problem)
    deviations = weights**-0.5
    both = np.block([[rows, -deviations[:, None]], [-rows, -deviations[:, None]]])
    equal, right = equalities(problem)
    solution = linprog(
        np.append(np.zeros(rows.shape[1]), 1.0),
        A_ub=both,
        b_ub=np.concatenate([answers, -answers]),
        A_eq=np.column_stack([equal, np.zeros(len(equal))]) if len(right) else None,
        b_eq=right if len(right) else None,
    )
    return float(solution.fun)


def value(problem: FitProblem, cells: Floats) -> float:
    rows, answers, weights = stacked(problem)
    return 0.5 * float(weights @ (rows @ cells - answers) ** 2)

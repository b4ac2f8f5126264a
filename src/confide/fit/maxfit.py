"""Max fitting: the largest residual as small as can be, and least squares among the tables that have it.

The least largest residual, in standard deviations, comes from a linear program, or by halving for tables too large for
one.
"""

import math
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import sparse

from confide.fit.fitted import Fit, require_consistent, solve
from confide.fit.group import CellDomain, Floats, Group
from confide.fit.linear_systems import linear_program
from confide.fit.problem import FitProblem
from confide.fit.program import Term, measured_terms

MOST_ENTRIES: Final = 500_000
"""A linear program with more nonzeros is left to bisection, which finds the largest residual to one part in a
hundred.
"""

PRECISION: Final = 0.01
MOST_TRIALS: Final = 8
STEPS: Final = 60  # of Newton's method; a trial that needs more counts as out of reach


def maxfit(problem: FitProblem, start: Fit | None = None) -> Fit:
    """Max fitting (the second baseline of [Abowd2021]): first the least possible largest |answer − noisy answer| /
    deviation, then least squares among the non-negative tables that attain it.
    """
    require_consistent(problem)
    groups = tuple(item.group for item in problem.measured)
    if sum(group.count(problem.domain) for group in groups) + problem.domain.cells * len(groups) > MOST_ENTRIES:
        reach, near = smallest_reach(problem, start)
        return solve(problem, within(problem, reach), "maxfit", near)
    reach = _least_reach(problem, groups)
    return solve(problem, within(problem, reach), "maxfit", start)


def _least_reach(problem: FitProblem, groups: tuple[Group, ...]) -> float:
    """By a linear program. The result is what its table attains, not what the solver says, so it can be attained."""
    domain, cells = problem.domain, problem.domain.cells
    answers = np.concatenate([item.answers for item in problem.measured])
    deviations = np.concatenate([np.full(len(item.answers), math.sqrt(item.variance)) for item in problem.measured])
    matrix = _two_sided(domain, groups, tuple(math.sqrt(item.variance) for item in problem.measured))
    totals = [(group.matrix(domain), values) for group, values in problem.public.totals]
    equal = np.concatenate([values for _, values in totals]) if totals else np.zeros(0)
    if totals:
        extra = sparse.vstack([rows for rows, _ in totals])
        matrix = sparse.csc_array(sparse.vstack([matrix, sparse.hstack([extra, sparse.csr_array((len(equal), 1))])]))
    upper = np.full(cells + 1, np.inf)
    if problem.public.zeros is not None:
        upper[:cells][problem.public.zeros] = 0.0
    solution, _ = linear_program(
        np.append(np.zeros(cells), 1.0),
        (np.zeros(cells + 1), upper),
        matrix,
        (
            np.concatenate([np.full(2 * len(answers), -np.inf), equal]),
            np.concatenate([answers, -answers, equal]),
        ),
    )
    table = np.clip(solution[:cells], 0, upper[:cells])
    fitted = np.concatenate([group.answer(domain, table) for group in groups])
    return float((np.abs(fitted - answers) / deviations).max())


@lru_cache(maxsize=16)
def _two_sided(domain: CellDomain, groups: tuple[Group, ...], deviations: tuple[float, ...]) -> sparse.csc_array:
    """Rows [q, −σ] and [−q, −σ] for every query q: both at most the noisy answer and its negative."""
    rows = sparse.vstack([group.matrix(domain) for group in groups])
    column: Floats = np.concatenate(
        [np.full(group.count(domain), -each) for group, each in zip(groups, deviations, strict=True)]
    )
    side = sparse.csr_array(column[:, None])
    return sparse.csc_array(sparse.vstack([sparse.hstack([rows, side]), sparse.hstack([-rows, side])]))


def smallest_reach(problem: FitProblem, start: Fit | None = None) -> tuple[float, Fit]:
    """A reach that some table attains, close to the least one, and the fit with that table.

    By bisection between what no table can do better than (no count is negative, so a negative answer is missed by
    itself) and the least that a table found so far attains. Every trial gives a table, so also a failed one can
    improve the upper end.
    """
    fit = start if start is not None else solve(problem, measured_terms(problem), "maxfit")
    best, high = fit, attained(problem, fit)
    low = max(0.0, *(float((-item.answers).max() / math.sqrt(item.variance)) for item in problem.measured))
    trial = low * (1 + PRECISION / 4)
    for _ in range(MOST_TRIALS):
        if high <= (1 + PRECISION) * low:
            break
        fit = solve(problem, within(problem, trial), "maxfit", best, most_steps=STEPS)
        reached = attained(problem, fit)
        if reached < high:
            best, high = fit, reached
        if reached > (1 + PRECISION / 2) * trial:
            low = max(low, trial)
        trial = (low + high) / 2
    return high, best


def attained(problem: FitProblem, fit: Fit) -> float:
    """The largest |answer − noisy answer| / deviation of a table."""
    return max(
        float(np.abs(fit.answer(item.group) - item.answers).max() / math.sqrt(item.variance))
        for item in problem.measured
    )


def within(problem: FitProblem, reach: float) -> list[Term]:
    """Least-squares terms whose residuals are also bounded by `reach` standard deviations."""
    bounded = []
    for term, item in zip(measured_terms(problem), problem.measured, strict=True):
        width = reach * math.sqrt(item.variance)
        bounded.append(Term(term.group, term.target, term.weight, term.target - width, term.target + width))
    return bounded

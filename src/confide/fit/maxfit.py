"""Max fitting: the largest residual as small as can be, and least squares among the tables that have it."""

import math
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import sparse

from confide.fit.cells import CellDomain, Floats
from confide.fit.fitted import Fit, require_consistent, solve
from confide.fit.group import Group
from confide.fit.linear_fit import linear_program
from confide.fit.problem import FitProblem
from confide.fit.reach import smallest_reach, within

MOST_ENTRIES: Final = 500_000
"""A linear program with more nonzeros is left to bisection, which finds the largest residual to one part in a
hundred.
"""


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

"""The least largest residual, in standard deviations, for tables too large for a linear program."""

import math
from typing import Final

import numpy as np

from confide.fit.build import Term, measured_terms
from confide.fit.fitted import Fit, solve
from confide.fit.problem import FitProblem

PRECISION: Final = 0.01
MOST_TRIALS: Final = 8
STEPS: Final = 60  # of Newton's method; a trial that needs more counts as out of reach


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

"""Non-negative least squares: the usual baseline."""

from confide.fit.build import measured_terms
from confide.fit.fitted import Fit, require_consistent, solve
from confide.fit.problem import FitProblem


def nnls(problem: FitProblem, start: Fit | None = None) -> Fit:
    """The non-negative table that minimises Σ (answer − noisy answer)² / variance (the first baseline of [Abowd2021]).

    Sums of many small counts come out too large: each count below zero is lifted, and nothing gives way above.
    """
    require_consistent(problem)
    return solve(problem, measured_terms(problem), "nnls", start)

"""Least squares: ordinary, the unbiased fit, which may be negative; and non-negative, the usual baseline."""

from dataclasses import replace
from typing import Final

import numpy as np

from confide.fit import effects
from confide.fit.fitted import Fit, require_consistent, solve
from confide.fit.minimise import TOLERANCE, curvature, newton
from confide.fit.problem import FitProblem
from confide.fit.program import Certificate, Program, build, measured_terms

FIRST_PULL: Final = 1e-2  # of the mean curvature
PULL: Final = 1e-5  # a round shrinks the error by about this over the smallest curvature
NARROWING: Final = 0.1
STRENGTHENING: Final = 3.0
MOST_ROUNDS: Final = 30
MOST_STEPS: Final = 60
NEAR: Final = 1e-8  # of the largest answer: how far answers and cells may be apart after a round
SMALL_GAIN: Final = 1e-13  # of the objective, in a round


def ols(problem: FitProblem) -> Fit:
    """The table that minimises Σ (answer − noisy answer)² / variance, negative cells allowed; of many, the least one.

    Of marginals alone it is known in closed form. Each answer of the measured span is unbiased and has the least
    variance of all that are linear in the measurements; the intervals of `error` are for these answers.
    """
    precision = effects.precisions(problem)
    if precision is not None:
        cells = effects.fitted(problem, precision).cells()
        return Fit("ols", problem.domain, cells, Certificate(0.0, 0.0, 0), np.zeros(0))
    require_consistent(problem)
    program = build(problem, measured_terms(problem), nonnegative=False)
    cells, certificate = _least_squares(program)
    return Fit("ols", problem.domain, cells, certificate, np.zeros(0))


def nnls(problem: FitProblem, start: Fit | None = None) -> Fit:
    """The non-negative table that minimises Σ (answer − noisy answer)² / variance (the first baseline of [Abowd2021]).

    Sums of many small counts come out too large: each count below zero is lifted, and nothing gives way above.
    """
    require_consistent(problem)
    return solve(problem, measured_terms(problem), "nnls", start)


def _least_squares(program: Program) -> tuple[np.ndarray, Certificate]:
    """Proximal steps on a quadratic, each one linear system; the gap is what the last round still gained, at least."""
    scale = max(1.0, float(np.abs(program.target).max(initial=0)))
    tolerance = TOLERANCE * scale
    pull = FIRST_PULL * curvature(program)
    loose = program.pull == 0
    cells, multipliers, steps, value = np.clip(np.zeros(len(loose)), program.floor, program.ceiling), None, 0, np.inf
    certificate = Certificate(np.inf, np.inf, 0)
    for _ in range(MOST_ROUNDS):
        nearby = replace(
            program, pull=np.where(loose, pull, program.pull), centre=np.where(loose, cells, program.centre)
        )
        point = newton(nearby, multipliers, tolerance, MOST_STEPS)
        steps += point.steps
        if point.residual > NEAR * scale:  # its systems are too hard at so weak a pull
            pull *= STRENGTHENING
            continue
        cells, multipliers = point.cells, point.multipliers
        answers = program.rows.answer(cells)
        off = float(np.maximum(program.low - answers, answers - program.high).max(initial=0))
        before, value = value, _value(program, cells, answers)
        certificate = Certificate(abs(before - value), max(off, 0.0), steps)
        if not loose.any() or (pull <= PULL * curvature(program) and certificate.gap <= SMALL_GAIN * max(1.0, value)):
            break
        pull = max(pull * NARROWING, PULL * curvature(program))
    return cells, certificate


def _value(program: Program, cells: np.ndarray, answers: np.ndarray) -> float:
    pulled = float(program.pull @ (cells - program.centre) ** 2)
    return (pulled + float(program.weight @ (answers - program.target) ** 2)) / 2

"""Ordinary least squares: the unbiased fit, which may be negative."""

from dataclasses import replace
from typing import Final

import numpy as np

from confide.fit import effects
from confide.fit.build import build, measured_terms
from confide.fit.fitted import Fit, require_consistent
from confide.fit.newton import newton
from confide.fit.problem import Problem
from confide.fit.program import Certificate, Program
from confide.fit.proximal import TOLERANCE, curvature

PULL: Final = 1e-5  # of the mean curvature: a round shrinks the error by about this over the smallest curvature
MOST_ROUNDS: Final = 30


def ols(problem: Problem) -> Fit:
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


def _least_squares(program: Program) -> tuple[np.ndarray, Certificate]:
    """Proximal steps on a quadratic, each one linear system; the gap is what the last round still gained, at least."""
    tolerance = TOLERANCE * max(1.0, float(np.abs(program.target).max(initial=0)))
    pull = PULL * curvature(program)
    loose = program.pull == 0
    cells, multipliers, steps, value = np.clip(np.zeros(len(loose)), program.floor, program.ceiling), None, 0, np.inf
    certificate = Certificate(np.inf, np.inf, 0)
    for _ in range(MOST_ROUNDS):
        nearby = replace(
            program, pull=np.where(loose, pull, program.pull), centre=np.where(loose, cells, program.centre)
        )
        point = newton(nearby, multipliers, tolerance)
        cells, multipliers, steps = point.cells, point.multipliers, steps + point.steps
        answers = program.rows.answer(cells)
        off = float(np.maximum(program.low - answers, answers - program.high).max(initial=0))
        before, value = value, _value(program, cells, answers)
        certificate = Certificate(abs(before - value), max(off, 0.0), steps)
        if not loose.any() or certificate.gap <= 1e-13 * max(1.0, value):
            break
    return cells, certificate


def _value(program: Program, cells: np.ndarray, answers: np.ndarray) -> float:
    pulled = float(program.pull @ (cells - program.centre) ** 2)
    return (pulled + float(program.weight @ (answers - program.target) ** 2)) / 2

"""Minimises any program: at once where every cell is pulled somewhere, else by proximal steps.

A proximal step pulls every unpulled cell to where it was ([Rockafellar1976]). The minimum is reached by ever weaker
pulls; on a piecewise quadratic problem the steps converge at least linearly, and the faster the weaker the pull.
"""

import math
from dataclasses import replace
from typing import Final

import numpy as np

from confide.fit.cells import Floats
from confide.fit.newton import MOST_STEPS, newton
from confide.fit.program import Certificate, Program, certify

TOLERANCE: Final = 1e-11  # of the answers, relative to the largest of them
MOST_ROUNDS: Final = 60
FIRST_PULL: Final = 1e-2  # of the mean curvature of the objective along a cell
NARROWING: Final = 0.1
STRENGTHENING: Final = 3.0  # where Newton's method did not arrive
WEAKEST_PULL: Final = 1e-9
STILL: Final = 1e-13  # a round that moves no cell by more than this, relative to the largest, ends the search
VIOLATION: Final = 1e-7  # of the largest answer: how far constrained answers may be from where they must be
FINEST: Final = 1e-2  # of the first round's slack
ROUGH: Final = 1e-2  # how far answers and cells may be apart in the first round, in standard deviations


def minimise(
    program: Program,
    start: Floats | None = None,
    cells: Floats | None = None,
    *,
    distance: float = 1e-6,
    most_steps: int = MOST_STEPS,
) -> tuple[Floats, Floats, Certificate]:
    """Cells, multipliers and their certificate, stopping once the certified distance is at most `distance`.

    `start` are multipliers and `cells` a table to begin at; of many minima, the one reached is near to `cells`.
    """
    tolerance = TOLERANCE * max(1.0, float(np.abs(program.target).max(initial=0)))
    loose = program.pull == 0
    if not loose.any():
        point = newton(program, start, tolerance, most_steps)
        return point.cells, point.multipliers, certify(program, point.cells, point.multipliers, point.steps)
    where = np.clip(np.zeros(len(loose)) if cells is None else cells, program.floor, program.ceiling)
    pull = FIRST_PULL * curvature(program)
    multipliers, steps = start, 0
    slack = 0.0 if program.rows.dense is not None else ROUGH / math.sqrt(float(program.weight.max(initial=1.0)))
    finest = slack * FINEST
    best: tuple[Floats, Floats, Certificate] | None = None
    scale = max(1.0, float(np.abs(program.target).max(initial=0)))
    for _ in range(MOST_ROUNDS):
        nearby = replace(
            program, pull=np.where(loose, pull, program.pull), centre=np.where(loose, where, program.centre)
        )
        point = newton(nearby, multipliers, max(tolerance, slack), most_steps)
        moved = float(np.abs(point.cells - where).max(initial=0))
        where, multipliers = point.cells, point.multipliers
        steps += point.steps
        certificate = certify(program, where, multipliers, steps)
        allowed = max(VIOLATION * scale, slack)
        if best is None or _rank(certificate, allowed) <= _rank(best[2], allowed):
            best = (where, multipliers, certificate)
        arrived = point.residual <= max(tolerance, slack)
        # A round that did not arrive may have a small gap only because it is outside of its constraints.
        kept = certificate.violation <= allowed
        still = arrived and moved <= STILL * max(1.0, float(where.max()))
        if (kept and certificate.distance <= distance) or steps >= most_steps or still:
            break
        if arrived:
            slack = max(slack * NARROWING, finest)
            pull = max(pull * NARROWING, WEAKEST_PULL * curvature(program))
        else:
            pull *= STRENGTHENING
    return best if best is not None else (where, np.zeros(0), Certificate(math.inf, 0.0, steps))


def _rank(certificate: Certificate, allowed: float) -> tuple[float, float]:
    """Solutions that keep the constraints first, then those with the smaller gap."""
    return max(certificate.violation - allowed, 0.0), certificate.gap


def curvature(program: Program) -> float:
    """The mean over the cells of the second derivative of the weighted squares; 1 where there are none."""
    diagonal = program.rows.squares(np.ones(program.rows.domain.cells))
    return float(program.weight @ diagonal) / program.rows.domain.cells or 1.0

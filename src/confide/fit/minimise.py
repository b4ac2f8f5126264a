"""Minimises any program: at once, by Newton's method, where every cell is pulled somewhere, else by proximal steps.

Newton's method goes up the dual, which is concave and piecewise quadratic, with one variable for each query that does
not count a single cell. So there are few variables however many cells there are, and the steps end after finitely many
pieces ([QiSun1993]). The cells of every iterate are within their bounds exactly; what converges is that the answers fit
the cells.

A proximal step pulls every unpulled cell to where it was ([Rockafellar1976]). The minimum is reached by ever weaker
pulls; on a piecewise quadratic problem the steps converge at least linearly, and the faster the weaker the pull.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.linalg import lapack

from confide.fit.group import Floats, Mask
from confide.fit.linear_systems import Factor, can_factor, conjugate_gradients, factored
from confide.fit.program import Certificate, Program, certify
from confide.host.progress import tell

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

MOST_STEPS: Final = 300
MOST_PRODUCTS: Final = 400  # of conjugate gradients, for one Newton step
PATIENCE: Final = 150  # products before a system is factored: about what a factor costs
LEFT: Final = 0.2  # of the right-hand side: a system with more than that left was not solved
FORCING: Final = 0.05  # what is left of the right-hand side of a linear system
FEW: Final = 0.4  # of the cells: if fewer are free, their columns are gathered into a sparse matrix
RIDGE: Final = (1e-12, 1e-4)


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


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Cells, the multipliers they come from, how far answers and cells are apart, and what it took."""

    cells: Floats
    multipliers: Floats
    residual: float
    steps: int


def newton(program: Program, start: Floats | None, tolerance: float, most_steps: int = MOST_STEPS) -> Point:
    """Minimises a program all of whose pulls are positive, until answers and cells are `tolerance` apart at most."""
    rows, give, slack = program.rows, program.give(), 1 / program.pull
    scale = max(1.0, float(np.abs(program.target).max(initial=0)))
    whole = rows.squares(slack)
    whole[whole == 0] = 1.0  # queries that count nothing
    multipliers = np.zeros(rows.count) if start is None else start
    spread = rows.spread(multipliers)
    best = Point(program.cells(spread), multipliers, np.inf, 0)
    systems = _Systems(program)
    for step in range(most_steps + 1):
        tell(f"step {step + 1} of at most {most_steps + 1}", 0, 1)
        cells = program.cells(spread)
        answers = program.answers(multipliers, give)
        gradient = answers - rows.answer(cells)
        residual = float(np.abs(gradient).max(initial=0))
        if residual < best.residual:
            best = Point(cells, multipliers, residual, step)
        if residual <= tolerance or step == most_steps or step > best.steps + 30:
            break
        free = (cells > program.floor) & (cells < program.ceiling)
        inside = (answers > program.low) & (answers < program.high)
        ridge = float(np.clip(1e-2 * residual / scale, *RIDGE)) * whole
        # A query that gives needs no more than that: where cells are pulled far less than answers are drawn, a ridge of
        # the whole would be all of the system, and steps would be short.
        diagonal = np.where(inside & (give > 0), give + np.minimum(ridge, give), ridge)
        direction = (
            _factored(program, gradient, free, diagonal)
            if rows.dense is not None
            else systems.direction(gradient, free, diagonal)
        )
        change = rows.spread(direction)
        length = _length(program, give, multipliers, spread, direction, change)
        multipliers = multipliers + length * direction
        spread = spread + length * change
    return best


def _factored(program: Program, gradient: Floats, free: Mask, diagonal: Floats) -> Floats:
    """Solves (diagonal + rows · free/pull · rowsᵀ) direction = −gradient, where rows are a matrix."""
    dense = program.rows.dense
    assert dense is not None
    part = dense[:, free]
    system = (part / program.pull[free]) @ part.T
    system.flat[:: len(system) + 1] += diagonal
    factor, failed = lapack.dpotrf(system, lower=1, clean=0, overwrite_a=1)
    if failed == 0:
        return np.asarray(lapack.dpotrs(factor, -gradient, lower=1)[0])
    return -gradient / (system.diagonal() + diagonal)  # unreachable but for rounding: a step along the gradient


class _Systems:
    """The same where rows are implicit: by conjugate gradients, to a part of the right-hand side only, since the next
    Newton step sees the rest.

    Sums over many small cells make some systems hard. What is not solved within PATIENCE products is factored once,
    if rows are few enough for that; the factor is near to the systems of the steps that follow, and scales these.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._factor: Factor | None = None
        self._most = PATIENCE if can_factor(program.rows) else MOST_PRODUCTS

    def direction(self, gradient: Floats, free: Mask, diagonal: Floats) -> Floats:
        rows = self._program.rows
        loose = np.where(free, 1 / self._program.pull, 0.0)
        multiply = _product(self._program, free, loose)
        near = 1 / (diagonal + rows.squares(loose))
        scaling = self._factor or (lambda values: near * values)
        found, rest = conjugate_gradients(
            lambda values: diagonal * values + multiply(values),
            -gradient,
            left=FORCING,
            most=self._most,
            scaling=scaling,
        )
        left = float(rest @ scaling(rest)) / max(float(gradient @ scaling(gradient)), 1e-300)
        if self._most == MOST_PRODUCTS or left <= LEFT**2:
            return found
        self._factor = None  # its memory is needed for the next
        self._factor = factored(rows, loose, diagonal)
        return found if self._factor is None else self._factor(-gradient)


def _product(program: Program, free: Mask, loose: Floats) -> Callable[[Floats], Floats]:
    """Multiplies by rows · free/pull · rowsᵀ, on the free cells alone where these are few."""
    rows = program.rows
    some = np.flatnonzero(free)
    columns = rows.columns(some) if len(some) < FEW * len(free) else None
    if columns is None:
        return lambda values: rows.answer(loose * rows.spread(values))
    across, scale = columns.T, loose[some]
    return lambda values: np.asarray(columns @ (scale * (across @ values)))


def _length(
    program: Program, give: Floats, multipliers: Floats, spread: Floats, direction: Floats, change: Floats
) -> float:
    """How far to go: 1, or less where the dual's slope along the direction would change sign before."""

    def slope(length: float) -> float:
        answers = program.answers(multipliers + length * direction, give)
        return float(direction @ answers - change @ program.cells(spread + length * change))

    first, last = slope(0.0), slope(1.0)
    if last <= 0.3 * abs(first):
        return 1.0
    near, far, slope_near, slope_far = 0.0, 1.0, first, last
    length = 1.0
    for _ in range(40):
        if slope_far <= slope_near:  # only rounding is left
            break
        length = (near * slope_far - far * slope_near) / (slope_far - slope_near)
        length = min(max(length, near + 0.05 * (far - near)), far - 0.05 * (far - near))
        here = slope(length)
        if abs(here) <= 0.1 * abs(first):
            break
        if here < 0:
            near, slope_near = length, here
        else:
            far, slope_far = length, here
    return length

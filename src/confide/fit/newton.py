"""Newton's method on the dual of a program whose cells are all pulled somewhere.

The dual is concave and piecewise quadratic, with one variable for each query that does not count a single cell; so
there are few variables however many cells there are, and Newton's steps end after finitely many pieces (Qi and Sun
1993). The cells of every iterate are within their bounds exactly; what converges is that the answers fit the cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import lapack

from confide.fit.conjugate import conjugate_gradients
from confide.fit.domain import Floats, Mask
from confide.fit.program import Program

MOST_STEPS: Final = 300
MOST_PRODUCTS: Final = 400  # of conjugate gradients, for one Newton step
FORCING: Final = 0.05  # what is left of the right-hand side of a linear system
FEW: Final = 0.4  # of the cells: if fewer are free, their columns are gathered into a sparse matrix
RIDGE: Final = (1e-12, 1e-4)


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
    for step in range(most_steps + 1):
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
        diagonal = np.where(inside, give, 0.0) + ridge
        direction = _direction(program, gradient, free, diagonal)
        change = rows.spread(direction)
        length = _length(program, give, multipliers, spread, direction, change)
        multipliers = multipliers + length * direction
        spread = spread + length * change
    return best


def _direction(program: Program, gradient: Floats, free: Mask, diagonal: Floats) -> Floats:
    """Solves (diagonal + rows · free/pull · rowsᵀ) direction = −gradient."""
    if (dense := program.rows.dense) is not None:
        part = dense[:, free]
        system = (part / program.pull[free]) @ part.T
        system.flat[:: len(system) + 1] += diagonal
        factor, failed = lapack.dpotrf(system, lower=1, clean=0, overwrite_a=1)
        if failed == 0:
            return np.asarray(lapack.dpotrs(factor, -gradient, lower=1)[0])
        return -gradient / (system.diagonal() + diagonal)  # unreachable but for rounding: a step along the gradient
    loose = np.where(free, 1 / program.pull, 0.0)
    scaling = 1 / (diagonal + program.rows.squares(loose))
    multiply = _product(program, free, loose)
    # To a part of the right-hand side only: the next Newton step sees the rest.
    return conjugate_gradients(
        lambda values: diagonal * values + multiply(values),
        -gradient,
        left=FORCING,
        most=MOST_PRODUCTS,
        scaling=scaling,
    )[0]


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

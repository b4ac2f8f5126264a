"""Conjugate gradients: linear systems that are only ever multiplied by."""

from collections.abc import Callable
from typing import Final

import numpy as np

from confide.fit.cells import Floats

FLAT: Final = 1e-14  # of the curvature first met: a direction with less is one that nothing measured depends on


def conjugate_gradients(
    multiply: Callable[[Floats], Floats],
    right: Floats,
    *,
    left: float,
    most: int,
    scaling: Floats | float | Callable[[Floats], Floats] = 1.0,
) -> tuple[Floats, Floats]:
    """A solution, and what it leaves of the right-hand side: no more than `left` of it, in the norm of the scaling.

    `scaling` is the inverse of a diagonal near the system's own, or solves a system near it. At most `most` products
    are taken.
    """
    scaled_by: Callable[[Floats], Floats] = scaling if callable(scaling) else lambda values: scaling * values
    solution = np.zeros(len(right))
    rest = right.copy()
    scaled = scaled_by(rest)
    direction = scaled.copy()
    size = start = float(rest @ scaled)
    first = 0.0
    for _ in range(most):
        if size <= left**2 * start:
            break
        product = multiply(direction)
        curve = float(direction @ product)
        steepness = curve / float(direction @ direction)
        first = first or steepness
        if steepness <= FLAT * first:
            break
        length = size / curve
        solution += length * direction
        rest -= length * product
        scaled = scaled_by(rest)
        before, size = size, float(rest @ scaled)
        direction = scaled + (size / before) * direction
    return solution, rest

"""The least of a smooth convex function, by the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno
([LiuNocedal1989]).

What is remembered is used vector by vector: shared out among threads, as a library has it, so short sums take longer,
and far longer on a busy machine.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Slope = Callable[[Floats], tuple[float, Floats]]

MEMORY: Final = 100
"""Steps that are remembered, of few numbers; of very many numbers fewer are."""
MOST_REMEMBERED: Final = 2**23
_ENOUGH: Final = 1e-4
_HALVINGS: Final = 60
_CURVED: Final = 1e-9
_ROUNDING: Final = 1e-13
_STEEP: Final = 0.9
_LEVEL: Final = 0.9


def least(function: Slope, start: Floats, near: float, most: int) -> Floats:
    """Where no entry of the gradient is beyond `near`, or after `most` steps. `function` gives value and gradient."""
    point, (value, slope) = start, function(start)
    remembered: deque[tuple[Floats, Floats, float]] = deque(
        maxlen=max(5, min(MEMORY, MOST_REMEMBERED // max(1, len(start))))
    )
    for _ in range(most):
        if float(np.abs(slope).max(initial=0.0)) <= near:
            break
        way = _way(slope, remembered)
        fall = float(way @ slope)
        # The first step has no scale yet: it is no longer than 1.
        length = 1.0 if remembered else min(1.0, 1 / float(np.abs(slope).sum()))
        for _ in range(_HALVINGS):
            ahead = point + length * way
            found, steep = function(ahead)
            if found <= value + _ENOUGH * length * fall:
                break
            # Where values differ by less than doubles tell, slopes do: lower than before, and not beyond the least.
            if found <= value + _ROUNDING * abs(value) and _STEEP * fall <= float(way @ steep) <= -_LEVEL * fall:
                break
            length /= 2
        else:
            break  # doubles tell no lower value
        change, bend = ahead - point, steep - slope
        curve = float(change @ bend)
        if curve > _CURVED * math.sqrt(float(change @ change) * float(bend @ bend)):
            remembered.append((change, bend, curve))
        point, value, slope = ahead, found, steep
    return point


def _way(slope: Floats, remembered: "deque[tuple[Floats, Floats, float]]") -> Floats:
    """The direction of a step: the gradient, turned and scaled by what the last steps have seen."""
    way, shares = -slope, []
    for change, bend, curve in reversed(remembered):
        shares.append(float(change @ way) / curve)
        way = way - shares[-1] * bend
    if remembered:
        _, bend, curve = remembered[-1]
        way = way * (curve / float(bend @ bend))
    for (change, bend, curve), share in zip(remembered, reversed(shares), strict=True):
        way = way + (share - float(bend @ way) / curve) * change
    return way

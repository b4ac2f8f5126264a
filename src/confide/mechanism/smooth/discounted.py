"""The largest of a growing bound, discounted by how many changes it is for: what makes a bound smooth."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def log_largest(local: Callable[[Floats], Floats], farthest: int, alpha: float) -> float:
    """ln of the largest exp(-αk) local(k) over k = 0, 1, ..., `farthest`, for a bound that never falls as k grows.

    Between two steps the bound is at most that of the later one and the discount at least that of the earlier one. So
    stretches are halved only while something larger could lie inside: about the root of `farthest` steps are looked at,
    where all of them may be more than memory holds.
    """
    begins, ends = np.zeros(1), np.full(1, float(farthest))
    largest = -math.inf
    while len(begins):
        with np.errstate(divide="ignore"):
            first, last = np.log(local(begins)), np.log(local(ends))
        largest = max(largest, float((first - alpha * begins).max()), float((last - alpha * ends).max()))
        kept = (ends - begins > 1) & (last - alpha * (begins + 1) > largest)
        begins, ends = begins[kept], ends[kept]
        middles = np.floor((begins + ends) / 2)
        begins, ends = np.concatenate([begins, middles]), np.concatenate([middles, ends])
    return largest

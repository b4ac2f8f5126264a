"""A column of numbers with their intervals, as everything that is computed of released numbers gives it."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import Assumes
from confide.mechanism.interval.interval import nearest_double

Array = NDArray[Any]

LARGEST: Final = float_info.max


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A column of numbers, each inside its interval. `whole`: integers. `empty`: where the group may be empty.
    `possible`: where more is known than the ends, which numbers there may be.
    """

    values: Array
    low: Array
    high: Array
    whole: bool = False
    empty: Array | None = None
    assumes: Assumes = "always"
    possible: Array | None = None


def inside(values: Array, low: Array, high: Array) -> Estimate:
    """The estimate, moved into its interval if arithmetic left it outside; the middle, or 0, where it is undefined.

    An end that is undefined is infinite. The inner end of what lies beyond all doubles is the largest of them.
    """
    low = np.minimum(np.where(np.isnan(low), -inf, low), LARGEST)
    high = np.maximum(np.where(np.isnan(high), inf, high), -LARGEST)
    bounded = np.isfinite(low) & np.isfinite(high)
    defined = np.where(np.isfinite(values), values, np.where(bounded, low / 2 + high / 2, 0.0))
    return Estimate(np.minimum(np.maximum(defined, low), high), low, high)


def doubles(numbers: Array) -> Array:
    """Numbers as doubles; integers beyond them are infinite."""
    if numbers.dtype != object:
        return numbers.astype(float)
    try:
        return numbers.astype(float)
    except OverflowError:
        return np.array([nearest_double(Fraction(number)) for number in numbers])

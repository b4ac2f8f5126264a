"""How much one unit changes what is left of rows that units share, when none keeps more than τ."""

import math
from fractions import Fraction
from typing import Final

PAIR: Final = 2
BEND: Final = Fraction(1, 4)
"""By how much the sum of `curved`, for three units and more, may be above a plain one."""


def slack(most: int) -> int:
    """How much more than in theory an optimum may change because it is known to within something, and rounded.

    For an optimum F known to less than s from below and rounded to nearest, F - s - ½ < value <= F + ½: two of them
    differ by less than their F do, and 1 + s. They are whole numbers, so they differ by at most s more, for a whole s.
    """
    return max(1, most >> 10)


def sensitivity(most: int, owners: int) -> int:
    """How much one unit changes a total in which none keeps more than `most`, where rows have so many owners."""
    if owners == 1:
        return most
    return (most if owners == PAIR else math.ceil((1 + BEND) * most)) + slack(most)

"""What a mechanism leaves behind: released numbers and the law of their noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Intervals
from confide.mechanism.noise.law import Law

AnyIntegers = NDArray[Any]  # int64, or Python integers where those do not hold the numbers


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Released integers, and the law of the noise in each. `least`: only those were shown that reached it with their
    noise, and `mechanism.selection.threshold` knows their intervals.
    """

    values: AnyIntegers
    law: Law
    least: int | None = None

    def intervals(self, confidence: float) -> Intervals:
        """For each exact number, from the exact quantile of the noise. Valid whatever the data are."""
        half_width = self.law.half_width(confidence)
        return Intervals(added(self.values, -half_width), added(self.values, half_width), confidence, "always")


def added(values: AnyIntegers, shift: AnyIntegers | int) -> AnyIntegers:
    """values + shift without overflow: int64 if every sum fits, otherwise Python integers.

    The kind of array depends on the sums alone: were it chosen by the exact numbers, it would tell something about
    them.
    """
    if values.dtype.kind not in "iuO":
        raise TypeError(f"only integers are measured, not {values.dtype}")
    other = np.asarray(shift)
    if values.dtype == np.int64 and other.dtype == np.int64:
        total: AnyIntegers = values + other
        if not np.any(((values ^ total) & (other ^ total)) < 0):
            return total
    wide: AnyIntegers = values.astype(object) + other.astype(object)
    try:
        return wide.astype(np.int64)
    except OverflowError:
        return wide

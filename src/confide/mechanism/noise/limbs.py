"""Sums of integers that may pass 64 bits, exactly: numpy alone wraps in silence.

A number is cut into a high part and the 31 bits below, each part is summed in 64 bits, and the sums are put together:
in 64 bits if they fit, else as Python's integers. Fewer than 2³¹ numbers are summed at a time, since no memory holds
more, and each is from 0 to 2⁶² - 1; so no partial sum reaches 2⁶².
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
AnyIntegers = NDArray[Any]  # int64, or Python integers where those do not hold the numbers
BITS: Final = 31
MASK: Final = (1 << BITS) - 1
MOST: Final = (1 << 62) - 1


def total(values: AnyIntegers) -> int:
    """Σ of all."""
    if values.dtype == object:
        return int(sum(values.tolist()))
    return (int((values >> BITS).sum()) << BITS) + int((values & MASK).sum())


def totals_at(places: Integers, values: AnyIntegers, size: int) -> AnyIntegers:
    """Of every place from 0 to size - 1 the sum of the values that have it."""
    high, low = (np.zeros(size, dtype=part.dtype) for part in _parts(values))
    for sums, part in zip((high, low), _parts(values), strict=True):
        np.add.at(sums, places, part)
    return _joined(high, low)


def totals_of_runs(values: AnyIntegers, begins: Integers) -> AnyIntegers:
    """The sum of every run of values; runs begin at `begins` and go on to the next."""
    high, low = (np.add.reduceat(part, begins) for part in _parts(values))
    return _joined(high, low)


def plus(first: AnyIntegers, second: AnyIntegers) -> AnyIntegers:
    """Two arrays of numbers that are not negative, number by number."""
    (high, low), (more_high, more_low) = _parts(first), _parts(second)
    return _joined(high + more_high, low + more_low)


def _parts(values: AnyIntegers) -> tuple[AnyIntegers, AnyIntegers]:
    return values >> BITS, values & MASK


def _joined(high: AnyIntegers, low: AnyIntegers) -> AnyIntegers:
    high = high + (low >> BITS)
    fit = high.dtype != object and int(high.max(initial=0)) <= MOST >> BITS
    joined = (high if fit else high.astype(object)) << BITS
    return joined | (low & MASK)

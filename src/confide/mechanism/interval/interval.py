"""Confidence intervals, one or an array of them, with what they assume."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Assumes = Literal["always", "density"]
"""`always`: at least the nominal coverage whatever the data are. `density`: only if enough of the data lie where it
matters.
"""

Ends = NDArray[Any]  # int64, Python integers, or float64


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both ends included."""

    low: float
    high: float
    confidence: float
    assumes: Assumes = "always"

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """One interval per cell; each holds with the confidence on its own, not all of them together."""

    low: Ends
    high: Ends
    confidence: float
    assumes: Assumes = "always"

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape:
            raise ValueError(f"low and high differ in shape: {self.low.shape} and {self.high.shape}")

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, place: int | tuple[int, ...]) -> Interval:
        low, high = self.low[place], self.high[place]
        return Interval(_plain(low), _plain(high), self.confidence, self.assumes)

    def __iter__(self) -> Iterator[Interval]:
        return (self[place] for place in range(len(self)))

    def contains(self, values: Ends) -> NDArray[np.bool_]:
        return np.asarray((self.low <= values) & (values <= self.high), dtype=bool)

    def scaled(self, unit: Fraction, offset: Fraction = Fraction(0)) -> "Intervals":
        """unit·x + offset as doubles: nearest to the exact value for integer ends, outward for ends in doubles."""
        if unit <= 0:
            raise ValueError("the unit must be positive")
        return Intervals(
            _affine(self.low, unit, offset, -math.inf),
            _affine(self.high, unit, offset, math.inf),
            self.confidence,
            self.assumes,
        )


def nearest_double(exact: Fraction | int) -> float:
    """The double next to an exact number; infinite where there is none so large."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _affine(ends: Ends, unit: Fraction, offset: Fraction, outward: float) -> Ends:
    if ends.dtype.kind == "f":
        scaled = ends * float(unit) + float(offset)
        error = (np.abs(ends) * float(unit) + abs(float(offset))) * 2.0**-51
        return np.where(np.isfinite(ends), scaled + math.copysign(1, outward) * error, ends)
    products = max(abs(int(ends.min(initial=0))), abs(int(ends.max(initial=0)))) * unit.numerator
    if offset == 0 and max(products, unit.numerator, unit.denominator) < 2**53:
        return (ends * unit.numerator).astype(np.float64) / unit.denominator  # one division of exact doubles
    exact = [nearest_double(unit * int(end) + offset) for end in ends.ravel()]
    return np.array(exact, dtype=np.float64).reshape(ends.shape)


def _plain(end: Any) -> float:
    """A Python number, so that no numpy scalar leaks into print or JSON."""
    number: float = end.item() if isinstance(end, np.generic) else end
    return number

"""Confidence intervals, one or an array of them, with what they assume; and those of numbers between two known ends.

The latter (`bounded_ends`) are never empty, and as often right as they say. What follows is about them.

Released is T = θ + X, with a ≤ θ ≤ b known (either end may be infinite). Cutting T ± h at a and b is valid, but where
noise took T beyond an end, nothing or a single point is left, which looks certain. Instead t = T moved into [a, b], and
the interval is the hull of all θ that accept t. Which t a θ accepts goes by the likelihood ratio of
[FeldmanCousins1998], with a measurement beyond an end counting as one at that end: the law falls with |X|, so t nearer
to θ come first, and all that lies beyond an end comes at once, at the distance of that end. For Laplace noise this is
their order itself, since there the ratio is the same everywhere beyond an end. For Gaussian noise theirs goes on
falling, and the interval of a measurement far beyond an end shrinks towards a point; ours is that of the end.

Coverage. Let P(|X| ≤ h) ≥ 1 - α, and P(X ≤ g) ≥ 1 - α ≤ P(X ≥ -g), with g ≤ h. Let d = θ - a be no more than b - θ;
else all of this from the other side.
    d > h   θ accepts |t - θ| ≤ h. Moving T into [a, b] brings it no further from θ, so that |X| ≤ h is enough.
    d ≤ h   θ accepts t ≤ θ + min(max(d, g), h), however low: X ≤ g is enough.
Both happen with probability 1 - α or more, whatever the law: symmetry and shape only make the order the likelihood's.
So g and h may be bounds of quantiles, and X a sum of noises. What θ accept t, for s = t - a:
    θ - a ≥ L(s) = max(0, s - min(max(s/2, g), h)) if θ is in the lower half, and θ ≥ t - h in the upper one;
so the lower end is max(t - h, min(a + L(s), (a + b)/2)), and the upper one its mirror image. θ = t accepts t. With
g > 0 the interval is a point only if a = b.
"""

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

Numbers = NDArray[Any]  # int64, Python's integers or fractions, or doubles
_HELD = 1 << 60


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


def bounded_ends(
    values: Numbers, half: Any, one_sided: Any, low: Any | None, high: Any | None = None
) -> tuple[Numbers, Numbers, Numbers]:
    """The noised numbers moved to where they can be, and both ends of their intervals.

    The noise is within `half` of zero, and at most `one_sided` on either side, each with the confidence that is meant.
    None is an end that is not known. Integers, with bounds that are integers, have ends that are.
    """
    whole = values.dtype.kind == "i" or (
        values.dtype == object and all(isinstance(value, int) for value in values.flat)
    )
    if values.dtype == np.int64:
        reach = max(abs(int(values.min(initial=0))), abs(int(values.max(initial=0))))
        if max(reach, *(abs(bound) for bound in (half, low, high) if bound is not None)) >= _HELD:
            values = values.astype(object)
    if whole:
        one_sided = max(one_sided, min(half, 1))  # a point is for numbers without noise
    moved = values if low is None else np.maximum(values, low)
    moved = moved if high is None else np.minimum(moved, high)
    least, most = moved - half, moved + half
    if low is not None:
        lowest = low + _lowest(moved - low, half, one_sided, whole)
        if high is not None:
            lowest = np.minimum(lowest, -(-(low + high) // 2) if whole else (low + high) / 2)
        least = np.maximum(least, lowest)
    if high is not None:
        highest = high - _lowest(high - moved, half, one_sided, whole)
        if low is not None:
            highest = np.maximum(highest, (low + high) // 2 if whole else (low + high) / 2)
        most = np.minimum(most, highest)
    return moved, least, most


def _lowest(distances: Numbers, half: Any, one_sided: Any, whole: bool) -> Numbers:
    """L(s): the least distance from its end at which a θ accepts a measurement at distance s from it."""
    halves = distances // 2 if whole else distances / 2
    lowest: Numbers = np.maximum(distances - np.minimum(np.maximum(halves, one_sided), half), 0)
    return lowest

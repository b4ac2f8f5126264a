"""How two numbers go together, and whether a condition ever holds: columns from measured sums and counts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from confide.mechanism import Intervals, Measurement
from confide.mechanism.interval.association import (
    NoisedSums,
    Sums,
    correlation_intervals,
    covariance_intervals,
    intercept_intervals,
    slope_intervals,
)
from confide.mechanism.noise.law import Confidence
from confide.query.question import Association
from confide.release.answer.estimate import Array, Estimate, doubles, inside


def associated(value: Association, measurements: Sequence[Measurement], confidence: Confidence) -> Estimate:
    """Correlation, covariance, slope or intercept of the groups, in the units of the columns."""
    places: dict[Sums, int | None] = {
        "n": value.count,
        "u": value.x.total,
        "v": value.y.total,
        "uu": value.x.squares,
        "vv": value.y.squares,
        "uv": value.products,
    }
    measured = {name: measurements[place] for name, place in places.items() if place is not None}
    sums = NoisedSums(
        {name: part.values for name, part in measured.items()},
        {name: part.law for name, part in measured.items()},
        (value.x.radius, value.y.radius),
    )
    x, y = (float(axis.radius * axis.grain) for axis in (value.x, value.y))
    match value.kind:
        case "corr":
            return _scaled(correlation_intervals(sums, confidence), 1.0, 0.0, 1.0)
        case "r2":
            return _scaled(_squared(*correlation_intervals(sums, confidence)), 1.0, 0.0, 1.0)
        case "covariance":
            found = covariance_intervals(sums, confidence, sample=value.sample)
            return _scaled(found, x * y, 0.0, 2.0 if value.sample else 1.0)
        case "slope":
            return _scaled(slope_intervals(sums, confidence), y / x, 0.0, np.inf)
        case "intercept":
            zero = -float(value.x.centre / value.x.radius)  # where x is 0, in radii from the centre
            found = intercept_intervals(sums, confidence, zero)
            return _scaled(found, y, float(value.y.centre * value.y.grain), np.inf)
    assert_never(value.kind)


def _squared(estimates: Array, intervals: Intervals) -> tuple[Array, Intervals]:
    low, high = intervals.low, intervals.high
    least = np.where(low * high <= 0, 0.0, np.minimum(np.abs(low), np.abs(high)) ** 2)
    most = np.maximum(np.abs(low), np.abs(high)) ** 2
    return estimates**2, Intervals(least, most, intervals.confidence)


def _scaled(found: tuple[Array, Intervals], factor: float, shift: float, widest: float) -> Estimate:
    """In other units, with the groups marked of which nothing is known."""
    estimates, intervals = found
    low, high = intervals.low, intervals.high
    empty = (high >= widest) & ((low <= -widest) | (low == 0.0))
    return replace(inside(estimates * factor + shift, low * factor + shift, high * factor + shift), empty=empty)


def occurs(count: Estimate, never: bool) -> Estimate:
    """1 or 0 for whether a count is above 0; both are possible where the interval of the count begins at 0."""
    values, low = doubles(count.values), doubles(count.low)
    some, surely = (values > 0.5).astype(np.int64), (low > 0).astype(np.int64)
    ones = np.ones(some.shape, dtype=np.int64)
    if never:
        return Estimate(1 - some, np.zeros(some.shape, dtype=np.int64), ones - surely, whole=True)
    return Estimate(some, surely, ones, whole=True)

"""From measurements to columns: estimates and intervals by arithmetic on released numbers alone.

Every interval holds with the stated confidence for its own cell. A value made of several measures uses the joint law of
their noise where there is one (linear combinations, ratios, means, spreads), and otherwise interval arithmetic on parts
whose confidences add up to it (Bonferroni).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import Assumes, Intervals, Measurement
from confide.mechanism.linear import combined_half_width
from confide.mechanism.moments import deviation_intervals, variance_estimates, variance_intervals
from confide.mechanism.ratio import ratio_estimates, ratio_intervals
from confide.query.question import (
    Arithmetic,
    Estimated,
    Magnitude,
    Mean,
    Measure,
    Measured,
    Number,
    Rounded,
    Spread,
    Value,
    Within,
)

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A column of numbers, each inside its interval. `whole`: integers. `empty`: where the group may be empty."""

    values: Array
    low: Array
    high: Array
    whole: bool = False
    empty: Array | None = None
    assumes: Assumes = "always"


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates values over one set of measurements, all groups at once."""

    measures: Sequence[Measure]
    measurements: Sequence[Measurement]
    statistics: Sequence[Estimate] = ()
    """Measured at the confidence that `needed_confidences` asks for."""

    def estimate(self, value: Value, confidence: float) -> Estimate:
        linear = self._linear(value)
        if linear is not None:
            return self._combination(*linear, confidence)
        match value:
            case Estimated(statistic):
                return self.statistics[statistic]
            case Mean():
                return self._mean(value, confidence)
            case Spread():
                return self._spread(value, confidence)
            case Rounded(inner, digits):
                return _rounded(self.estimate(inner, confidence), digits)
            case Within(inner, low, high):
                return _within(self.estimate(inner, confidence), float(low), float(high))
            case Magnitude(inner):
                return _magnitude(self.estimate(inner, confidence))
            case Arithmetic():
                ratio = self._ratio(value, confidence) if value.operation == "/" else None
                return ratio or self._arithmetic(value, confidence)
        raise TypeError(f"{type(value).__name__} is not a value")

    # --- linear combinations ------------------------------------------------------------------------------------------

    def _linear(self, value: Value) -> tuple[dict[int, Fraction], Fraction] | None:
        """Coefficients of measures (per index) and a constant, if the value is linear in the measures."""
        match value:
            case Measured(measure):
                return {measure: self.measures[measure].grain}, Fraction(0)
            case Number(constant):
                return {}, constant
            case Arithmetic(operation, left, right):
                first, second = self._linear(left), self._linear(right)
                if first is None or second is None:
                    return None
                return _linear_arithmetic(operation, first, second)
        return None

    def _combination(self, coefficients: dict[int, Fraction], constant: Fraction, confidence: float) -> Estimate:
        terms = [(self.measurements[m], c, self.measures[m]) for m, c in coefficients.items() if c]
        if len(terms) == 1 and constant == 0:
            return self._single(*terms[0], confidence)
        scale = Fraction(1, lcm(*(coefficient.denominator for _, coefficient, _ in terms)))
        whole = [int(coefficient / scale) for _, coefficient, _ in terms]
        half = combined_half_width([(f, m.law) for (m, _, _), f in zip(terms, whole, strict=True)], confidence)
        columns = [part.values for part in self.measurements] + [part.values for part in self.statistics]
        groups = len(columns[0]) if columns else 1
        total: Array = np.zeros(groups, dtype=object)
        for (measurement, _, _), factor in zip(terms, whole, strict=True):
            total = total + measurement.values.astype(object) * factor
        floor = self._floor(coefficients, constant)
        if scale == 1 and constant.denominator == 1 and half.denominator == 1:
            return _whole(total + int(constant), int(half), floor)
        values = np.array([float(index * scale + constant) for index in total])
        low = np.array([float((index - half) * scale + constant) for index in total])
        high = np.array([float((index + half) * scale + constant) for index in total])
        return _inside(values, np.maximum(low, floor), np.maximum(high, floor))

    def _single(self, measurement: Measurement, coefficient: Fraction, measure: Measure, confidence: float) -> Estimate:
        intervals = measurement.intervals(confidence)
        values = measurement.values
        if measure.floor is not None:
            # What is impossible is cut off; an estimate below it moves to the nearest possible value.
            intervals = intervals.clip(measure.floor, inf)
            values = np.maximum(values, measure.floor)
        if coefficient == 1:
            return Estimate(values, intervals.low, intervals.high, whole=True)
        middle = Intervals(values, values, confidence).scaled(abs(coefficient)).low
        scaled = intervals.scaled(abs(coefficient))
        if coefficient < 0:
            return Estimate(-middle, -scaled.high, -scaled.low)
        return Estimate(middle, scaled.low, scaled.high)

    def _floor(self, coefficients: dict[int, Fraction], constant: Fraction) -> float:
        floors = [self.measures[m].floor for m, c in coefficients.items()]
        if any(floor is None for floor in floors) or any(c < 0 for c in coefficients.values()):
            return -inf
        return float(sum((c * (self.measures[m].floor or 0) for m, c in coefficients.items()), constant))

    # --- means, spreads, ratios ---------------------------------------------------------------------------------------

    def _mean(self, value: Mean, confidence: float) -> Estimate:
        total, count = self.measurements[value.total], self.measurements[value.count]
        low, high = value.low - value.centre, value.high - value.centre
        intervals = ratio_intervals(
            total.values,
            count.values,
            total.law,
            count.law,
            confidence,
            low=low,
            high=high,
            denominator_nonnegative=True,
        )
        estimates = ratio_estimates(total.values, count.values, intervals, denominator_nonnegative=True)
        grain, shift = float(value.grain), float(value.centre * value.grain)
        ends = float(value.low * value.grain), float(value.high * value.grain)
        parts = (estimates, intervals.low, intervals.high)
        middle, least, most = (np.clip(part * grain + shift, *ends) for part in parts)
        # A group that may be empty may have any mean.
        empty = np.asarray(count.values <= count.law.upper(confidence), dtype=bool)
        whole = _inside(middle, np.where(empty, ends[0], least), np.where(empty, ends[1], most))
        return replace(whole, empty=empty)

    def _spread(self, value: Spread, confidence: float) -> Estimate:
        count, total, squares = (self.measurements[place] for place in (value.count, value.total, value.squares))
        noised = count.values, total.values, squares.values
        laws = count.law, total.law, squares.law
        intervals = variance_intervals(*noised, laws, value.radius, confidence, sample=value.sample)
        estimates = variance_estimates(*noised, intervals, sample=value.sample)
        if value.root:
            intervals, estimates = deviation_intervals(intervals), np.sqrt(estimates)
        grain = float(value.grain if value.root else value.grain**2)
        empty = np.asarray(count.values <= int(value.sample) + count.law.upper(confidence), dtype=bool)
        return replace(_inside(estimates * grain, intervals.low * grain, intervals.high * grain), empty=empty)

    def _ratio(self, value: Arithmetic, confidence: float) -> Estimate | None:
        """scale × A / B for two different measures, by the joint law of their noise."""
        top, bottom = self._linear(value.left), self._linear(value.right)
        if top is None or bottom is None or top[1] or bottom[1] or len(top[0]) != 1 or len(bottom[0]) != 1:
            return None
        (above, over), (below, under) = *top[0].items(), *bottom[0].items()
        if above == below or not over or not under:
            return None
        top_measurement, bottom_measurement = self.measurements[above], self.measurements[below]
        nonnegative = self.measures[below].floor == 0
        intervals = ratio_intervals(
            top_measurement.values,
            bottom_measurement.values,
            top_measurement.law,
            bottom_measurement.law,
            confidence,
            low=0.0 if nonnegative and self.measures[above].floor == 0 else -inf,
            denominator_nonnegative=nonnegative,
        )
        estimates = ratio_estimates(
            top_measurement.values, bottom_measurement.values, intervals, denominator_nonnegative=nonnegative
        )
        scale = float(over / under)
        first, second = intervals.low * scale, intervals.high * scale
        return _inside(estimates * scale, np.minimum(first, second), np.maximum(first, second))

    # --- interval arithmetic ------------------------------------------------------------------------------------------

    def _arithmetic(self, value: Arithmetic, confidence: float) -> Estimate:
        """Both sides at half the miss rate each, so both hold together."""
        shared = _shared(value, confidence)
        left, right = self.estimate(value.left, shared), self.estimate(value.right, shared)
        with np.errstate(all="ignore"):
            a, b = (_floats(part) for part in (left, right))
            middle, ends = _OPERATIONS[value.operation](a, b)
        low = np.where(np.isnan(ends[0]), -inf, ends[0])
        high = np.where(np.isnan(ends[1]), inf, ends[1])
        assumes: Assumes = "density" if "density" in (left.assumes, right.assumes) else "always"
        return replace(_inside(middle, low, high), assumes=assumes)


def needed_confidences(values: Iterable[Value], confidence: float) -> dict[int, float]:
    """At which confidence each statistic is measured, so that every value made of it holds with `confidence`."""
    needed: dict[int, float] = {}
    pending = [(value, confidence) for value in values]
    while pending:
        value, level = pending.pop()
        match value:
            case Estimated(statistic):
                needed[statistic] = max(needed.get(statistic, 0.0), level)
            case Arithmetic(_, left, right):
                shared = _shared(value, level)
                pending += [(left, shared), (right, shared)]
            case Within(inner) | Magnitude(inner) | Rounded(inner):
                pending.append((inner, level))
    return needed


def _shared(value: Arithmetic, confidence: float) -> float:
    """The confidence of both sides: half of the miss rate each, unless one of them is a constant."""
    return confidence if isinstance(value.left, Number) or isinstance(value.right, Number) else (1 + confidence) / 2


Parts = tuple[Array, Array, Array]


def _add(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    return a[0] + b[0], (a[1] + b[1], a[2] + b[2])


def _subtract(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    return a[0] - b[0], (a[1] - b[2], a[2] - b[1])


def _multiply(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    corners = np.stack([_product(x, y) for x in a[1:] for y in b[1:]])
    return a[0] * b[0], (corners.min(axis=0), corners.max(axis=0))


def _divide(a: Parts, b: Parts) -> tuple[Array, tuple[Array, Array]]:
    away = (b[1] > 0) | (b[2] < 0)
    inverse = (1 / b[0], np.where(away, 1 / b[2], -inf), np.where(away, 1 / b[1], inf))
    middle, (low, high) = _multiply(a, inverse)
    return middle, (np.where(away, low, -inf), np.where(away, high, inf))


def _product(x: Array, y: Array) -> Array:
    """0 × ∞ is 0 at the end of an interval: the exact zero is reached, the infinity is not."""
    result: Array = x * y
    return np.where(np.isnan(result), 0.0, result)


_OPERATIONS = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide}


def _floats(part: Estimate) -> Parts:
    return part.values.astype(float), part.low.astype(float), part.high.astype(float)


def _inside(values: Array, low: Array, high: Array) -> Estimate:
    """The estimate, moved into its interval if arithmetic left it outside; the middle, or 0, where it is undefined."""
    with np.errstate(all="ignore"):
        defined = np.where(
            np.isfinite(values), values, np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, 0.0)
        )
        return Estimate(np.minimum(np.maximum(defined, low), high), low, high)


def _whole(values: Array, half: int, floor: float) -> Estimate:
    """Integers stay integers; what is below what is possible moves up to it."""
    least = None if floor == -inf else int(floor)
    parts = (values, values - half, values + half)
    middle, low, high = (part if least is None else np.maximum(part, least) for part in parts)
    return Estimate(middle, low, high, whole=True)


def _rounded(inner: Estimate, digits: int) -> Estimate:
    scale = 10.0**digits
    values, low, high = _floats(inner)
    ends = np.floor(low * scale) / scale, np.ceil(high * scale) / scale
    return Estimate(np.round(values, digits), *ends, empty=inner.empty, assumes=inner.assumes)


def _within(inner: Estimate, least: float, most: float) -> Estimate:
    """Cut to where it can be; what may be anywhere is reported as everywhere."""
    values, low, high = (
        np.clip(np.nan_to_num(part, nan=unknown), least, most)
        for part, unknown in zip(_floats(inner), ((least + most) / 2, least, most), strict=True)
    )
    whole = (low == least) & (high == most)
    return Estimate(
        values, low, high, empty=whole if inner.empty is None else whole | inner.empty, assumes=inner.assumes
    )


def _magnitude(inner: Estimate) -> Estimate:
    values, low, high = _floats(inner)
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return Estimate(np.abs(values), least, np.maximum(np.abs(low), np.abs(high)), assumes=inner.assumes)


def _linear_arithmetic(
    operation: str, first: tuple[dict[int, Fraction], Fraction], second: tuple[dict[int, Fraction], Fraction]
) -> tuple[dict[int, Fraction], Fraction] | None:
    (a, x), (b, y) = first, second
    match operation:
        case "+" | "-":
            sign = 1 if operation == "+" else -1
            return {m: a.get(m, Fraction(0)) + sign * b.get(m, Fraction(0)) for m in sorted({*a, *b})}, x + sign * y
        case "*" if not b:
            return {m: c * y for m, c in a.items()}, x * y
        case "*" if not a:
            return {m: c * x for m, c in b.items()}, x * y
        case "/" if not b and y:
            return {m: c / y for m, c in a.items()}, x / y
    return None

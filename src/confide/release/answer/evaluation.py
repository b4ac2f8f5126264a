"""From measurements to columns: estimates and intervals by arithmetic on released numbers alone.

Every interval holds with the stated confidence for its own cell. A value made of several measures uses the joint law of
their noise where there is one (linear combinations, ratios, means, spreads), and otherwise interval arithmetic on parts
whose miss rates add up to its own (Bonferroni), in proportion to how many noisy numbers each is made of.

Noise has no bound, and all of this runs after a charge; so every step is total. Measured integers are cut at a size
that none has, an end that passes the doubles is infinite, an estimate stays finite, and nothing raises.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, lcm
from typing import Any, Final, assert_never

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import Assumes, Intervals, Measurement
from confide.mechanism.interval.interval import bounded_ends, nearest_double
from confide.mechanism.interval.linear import combined_half_width
from confide.mechanism.interval.moments import deviation_intervals, variance_estimates, variance_intervals
from confide.mechanism.interval.ratio import ratio_estimates, ratio_intervals
from confide.mechanism.noise.law import Confidence, NoNoise
from confide.mechanism.selection.threshold import shown_intervals
from confide.query.question import (
    Arithmetic,
    Association,
    Between,
    Commonest,
    Dated,
    Estimated,
    FixedNumber,
    Magnitude,
    Mean,
    Measure,
    Measured,
    Occurs,
    Rounded,
    Spread,
    Value,
)
from confide.release.answer.associated_values import associated, occurs
from confide.release.answer.estimate import LARGEST, Estimate, doubles, inside
from confide.release.answer.interval_arithmetic import (
    OPERATIONS,
    column_within,
    floats,
    magnitude_column,
    rounded_column,
)
from confide.release.answer.miss_rate import MissShares

Array = NDArray[Any]
Linear = tuple[dict[int, Fraction], Fraction]
"""Coefficients of measures, per index, and a constant."""

HELD: Final = 1 << 400
"""Measured integers are cut here. Totals are below 2¹²⁶ and their noise scales below 2²⁵⁰, so none is this large: a cut
changes no interval, and squares of what is left are doubles.
"""


@dataclass(frozen=True, slots=True)
class ToldMeasures:
    """Measures that are told by numbers measured in their place, exactly: as sums of these, with coefficients."""

    numbers: tuple[Measure, ...] = ()
    """What is measured in their place, after the measures of the question."""
    terms: Mapping[int, tuple[tuple[int, Fraction], ...]] = field(default_factory=dict)
    agree: frozenset[int] = frozenset()
    """Those whose estimates stay where noise took them, so that parts add up to totals."""


NOT_TOLD: Final = ToldMeasures()


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates values over one set of measurements, all groups at once."""

    measures: Sequence[Measure]
    measurements: Sequence[Measurement]
    statistics: Sequence[Estimate] = ()
    """Measured at the confidence that `needed_confidences` asks for."""
    told: ToldMeasures = NOT_TOLD
    """Of these measures the measurements are not looked at."""
    _linears: dict[int, Linear | None] = field(default_factory=dict, init=False, repr=False)
    _shares: MissShares = field(default_factory=MissShares, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measurements", [_held(part) for part in self.measurements])

    def estimate(self, value: Value, confidence: Confidence) -> Estimate:
        """One column, with intervals that hold with the confidence. Total: it never raises, whatever was measured."""
        with np.errstate(all="ignore"):
            return self._estimate(value, confidence)

    def _estimate(self, value: Value, confidence: Confidence) -> Estimate:
        linear = self._linear(value)
        if linear is not None:
            return self._combination(*linear, confidence)
        match value:
            case Estimated(statistic) | Dated(Estimated(statistic)) | Commonest(statistic):
                return self.statistics[statistic]
            case Mean():
                return self._mean(value, confidence)
            case Spread():
                return self._spread(value, confidence)
            case Association():
                return associated(value, self.measurements, confidence)
            case Occurs(count, never):
                return occurs(self._combination({count: Fraction(1)}, Fraction(0), confidence), never)
            case Rounded(inner, digits):
                return rounded_column(self._estimate(inner, confidence), digits)
            case Between(inner, low, high):
                return column_within(self._estimate(inner, confidence), nearest_double(low), nearest_double(high))
            case Magnitude(inner):
                return magnitude_column(self._estimate(inner, confidence))
            case Arithmetic():
                ratio = self._ratio(value, confidence) if value.operation == "/" else None
                return ratio or self._arithmetic(value, confidence)
        raise TypeError(f"{type(value).__name__} is not a value")

    # --- linear combinations ------------------------------------------------------------------------------------------

    def half_width(self, value: Value, confidence: Confidence) -> Fraction | None:
        """Of a linear combination of measures, whose laws alone say it; None for anything else.

        The interval of an estimate may be cut where nothing can lie, and its ends are doubles: beside a large estimate
        they may be one number.
        """
        linear = self._linear(value)
        if linear is None:
            return None
        terms = self._noised(linear[0])
        return combined_half_width([(c, self.measurements[m].law) for m, c in terms.items()], confidence)

    def _noised(self, coefficients: Mapping[int, Fraction]) -> Mapping[int, Fraction]:
        """The same combination, of numbers that were measured."""
        if not any(place in self.told.terms for place in coefficients):
            return coefficients
        found: dict[int, Fraction] = {}
        for place, factor in coefficients.items():
            for number, share in self.told.terms.get(place, ((place, Fraction(1)),)):
                found[number] = found.get(number, Fraction(0)) + factor * share
        return {number: factor for number, factor in found.items() if factor}

    def _linear(self, value: Value) -> Linear | None:
        """The value as a linear combination of measures, if it is one."""
        if id(value) not in self._linears:
            self._linears[id(value)] = self._found_linear(value)
        return self._linears[id(value)]

    def _found_linear(self, value: Value) -> Linear | None:
        match value:
            case Measured(measure):
                return {measure: self.measures[measure].grain}, Fraction(0)
            case FixedNumber(constant):
                return {}, constant
            case Arithmetic(operation, left, right):
                first, second = self._linear(left), self._linear(right)
                if first is None or second is None:
                    return None
                return _linear_arithmetic(operation, first, second)
            case Estimated() | Dated() | Commonest() | Mean() | Spread() | Association() | Occurs():
                return None
            case Between() | Magnitude() | Rounded():
                return None
        assert_never(value)

    def _combination(self, coefficients: dict[int, Fraction], constant: Fraction, confidence: Confidence) -> Estimate:
        measures = (*self.measures, *self.told.numbers)
        noised = self._noised(coefficients)
        terms = [(self.measurements[m], c, measures[m]) for m, c in noised.items() if c]
        apart = not self.told.agree.isdisjoint(coefficients)
        if len(terms) == 1 and constant == 0 and not apart:
            return self._single(*terms[0], confidence)
        scale = Fraction(1, lcm(*(coefficient.denominator for _, coefficient, _ in terms)))
        whole = [int(coefficient / scale) for _, coefficient, _ in terms]
        half = combined_half_width([(f, m.law) for (m, _, _), f in zip(terms, whole, strict=True)], confidence)
        columns = [part.values for part in self.measurements] + [part.values for part in self.statistics]
        groups = len(columns[0]) if columns else 1
        total: Array = np.zeros(groups, dtype=object)
        for (measurement, _, _), factor in zip(terms, whole, strict=True):
            total = total + measurement.values.astype(object) * factor
        low, high = self._bounds(coefficients, constant)
        if scale == 1 and constant.denominator == 1:
            moved = total + int(constant)
            one = self._one_sided(terms, whole, confidence, half) if _near(moved, half, low, high) else half
            ends = bounded_ends(moved, math.ceil(half), math.ceil(one), _lowered(low), _raised(high))
            return _whole(moved, *ends[1:]) if apart else _whole(*ends)
        exact = np.array([Fraction(index) * scale + constant for index in total], dtype=object)
        one = self._one_sided(terms, whole, confidence, half) if _near(exact, half * scale, low, high) else half
        parts = bounded_ends(exact, half * scale, one * scale, low, high)
        parts = (exact, *parts[1:]) if apart else parts
        values, least, most = (np.array([nearest_double(number) for number in part]) for part in parts)
        return Estimate(values, least, most) if apart else inside(values, least, most)

    def _one_sided(
        self, terms: Sequence[Any], factors: Sequence[int], confidence: Confidence, half: Fraction
    ) -> Fraction:
        """What a sum of symmetric noises exceeds on one side as rarely as it is further than `half` from zero."""
        twice = 2 * Fraction(confidence) - 1
        if twice <= 0:
            return half
        laws = [(factor, part.law) for (part, _, _), factor in zip(terms, factors, strict=True)]
        return min(half, combined_half_width(laws, twice))

    def _single(
        self, measurement: Measurement, coefficient: Fraction, measure: Measure, confidence: Confidence
    ) -> Estimate:
        law = measurement.law
        if measurement.least is not None and not isinstance(law, NoNoise):
            shown = shown_intervals(measurement.values, law, measurement.least, confidence)
            return Estimate(measurement.values, shown.low, shown.high, whole=True)
        half, one = law.half_width(confidence), law.upper(confidence)
        values, low, high = bounded_ends(measurement.values, half, one, measure.floor, measure.ceiling)
        if coefficient == 1:
            return Estimate(values, low, high, whole=True)
        middle = Intervals(values, values, 0.0).scaled(abs(coefficient)).low
        scaled = Intervals(low, high, 0.0).scaled(abs(coefficient))
        if coefficient < 0:
            return inside(-middle, -scaled.high, -scaled.low)
        return inside(middle, scaled.low, scaled.high)

    def _bounds(self, coefficients: dict[int, Fraction], constant: Fraction) -> tuple[Fraction | None, Fraction | None]:
        """Between which a combination lies, as far as that is known."""
        low: Fraction | None = constant
        high: Fraction | None = constant
        for place, coefficient in coefficients.items():
            ends = self.measures[place].floor, self.measures[place].ceiling
            least, most = ends if coefficient >= 0 else ends[::-1]
            low = None if low is None or least is None else low + coefficient * least
            high = None if high is None or most is None else high + coefficient * most
        return low, high

    # --- means, spreads, ratios ---------------------------------------------------------------------------------------

    def _mean(self, value: Mean, confidence: Confidence) -> Estimate:
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
        whole = inside(middle, np.where(empty, ends[0], least), np.where(empty, ends[1], most))
        return replace(whole, empty=empty)

    def _spread(self, value: Spread, confidence: Confidence) -> Estimate:
        count, total, squares = (self.measurements[place] for place in (value.count, value.total, value.squares))
        noised = count.values, total.values, squares.values
        laws = count.law, total.law, squares.law
        intervals = variance_intervals(*noised, laws, value.radius, confidence, sample=value.sample)
        estimates = variance_estimates(*noised, intervals, sample=value.sample)
        if value.root:
            intervals, estimates = deviation_intervals(intervals), np.sqrt(estimates)
        grain = float(value.grain if value.root else value.grain**2)
        empty = np.asarray(count.values <= int(value.sample) + count.law.upper(confidence), dtype=bool)
        return replace(inside(estimates * grain, intervals.low * grain, intervals.high * grain), empty=empty)

    def _ratio(self, value: Arithmetic, confidence: Confidence) -> Estimate | None:
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
        return inside(estimates * scale, np.minimum(first, second), np.maximum(first, second))

    # --- interval arithmetic ------------------------------------------------------------------------------------------

    def _arithmetic(self, value: Arithmetic, confidence: Confidence) -> Estimate:
        """Both sides with a part of the miss rate each, so both hold together."""
        first, second = self._shares.of(value, confidence)
        left, right = self._estimate(value.left, first), self._estimate(value.right, second)
        a, b = (floats(part) for part in (left, right))
        middle, (low, high) = OPERATIONS[value.operation](a, b)
        assumes: Assumes = "density" if "density" in (left.assumes, right.assumes) else "always"
        return replace(inside(middle, low, high), assumes=assumes)


def _held(measurement: Measurement) -> Measurement:
    values = measurement.values
    if values.dtype != object or not any(abs(value) > HELD for value in values.ravel()):
        return measurement
    return replace(measurement, values=np.minimum(np.maximum(values, -HELD), HELD))


def _whole(values: Array, low: Array, high: Array) -> Estimate:
    """Integers stay integers, where doubles hold them."""
    if any(abs(end) > LARGEST for end in (*low, *high)):
        return inside(doubles(values), doubles(low), doubles(high))
    return Estimate(values, low, high, whole=True)


def _near(values: Array, half: Fraction, low: Fraction | None, high: Fraction | None) -> bool:
    """Whether any number is so near to a bound that its interval depends on it."""
    return (low is not None and bool(np.any(values < low + 2 * half))) or (
        high is not None and bool(np.any(values > high - 2 * half))
    )


def _lowered(bound: Fraction | None) -> int | None:
    """A bound of integers from below, as one of them."""
    return None if bound is None else math.ceil(bound)


def _raised(bound: Fraction | None) -> int | None:
    return None if bound is None else math.floor(bound)


def is_linear(value: Value, measures: Sequence[Measure]) -> bool:
    """Whether the laws of what is measured say alone how wide an interval is."""
    return linear_terms(value, measures) is not None


def linear_terms(value: Value, measures: Sequence[Measure]) -> dict[int, Fraction] | None:
    """The coefficients of a linear combination of measures, per index; None if a value is none."""
    linear = linear_form(value, measures)
    return None if linear is None else linear[0]


def linear_form(value: Value, measures: Sequence[Measure]) -> Linear | None:
    """The same with the constant that is added to it."""
    return Evaluator(measures, ())._linear(value)


def _linear_arithmetic(operation: str, first: Linear, second: Linear) -> Linear | None:
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

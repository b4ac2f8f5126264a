"""Integer noise added to exact integers, and what that leaves behind: released numbers and the law of their noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.interval.interval import Intervals
from confide.mechanism.noise.law import (
    LARGEST_SCALE,
    Confidence,
    DiscreteGaussian,
    DiscreteLaplace,
    Law,
    NoNoise,
    keep_scale,
)
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.amount import root
from confide.privacy.loss import ZCDP, PrivacyLoss, PureDP

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


@dataclass(frozen=True, slots=True)
class Additive:
    """Exact integers plus independent noise of one law. Made by `laplace`, `gaussian` and `exact`, which state the
    theorem.
    """

    name: str
    law: Law
    loss: PrivacyLoss

    def measure(self, exact: AnyIntegers, randomness: Randomness) -> Measurement:
        noise = draw(self.law, exact.shape, randomness)
        return Measurement(added(exact, noise), self.law)

    def noised(self, exact: int, randomness: Randomness) -> int:
        """One integer, of any size."""
        return int(self.measure(np.array([exact], dtype=object), randomness).values[0])


def laplace(sensitivity: int, epsilon: Fraction) -> Additive:
    """Releases integers plus discrete Laplace noise of scale at least sensitivity / ε.

    Neighbours: those for which `sensitivity` bounds the L1 distance of the exact vectors.
    Loss: ε-DP, since P(x) / P(x + d) <= exp(|d| / scale) in each coordinate ([Ghosh2012]).
    The scale is rounded up to a double, which is then the exact law. Interval: exact quantile, always valid.
    """
    _require("sensitivity", sensitivity, least=0)
    _require("epsilon", epsilon)
    if sensitivity == 0:
        return exact()
    scale = keep_scale(Fraction(sensitivity) / Fraction(epsilon), LARGEST_SCALE, "its noise")
    return Additive("discrete laplace", DiscreteLaplace(_double_above(scale, 1)), PureDP(Fraction(epsilon)))


def gaussian(sensitivity_squared: int | Fraction, rho: Fraction) -> Additive:
    """Releases integers plus discrete Gaussian noise with σ² at least (squared sensitivity) / 2ρ.

    Neighbours: those for which `sensitivity_squared` bounds the squared L2 distance of the exact vectors.
    Loss: ρ-zCDP ([Canonne2020], Theorem 4 and its product form).
    σ is rounded up to a double, which is then the exact law. Interval: exact quantile, always valid.
    """
    _require("squared sensitivity", sensitivity_squared, least=0)
    _require("rho", rho)
    if sensitivity_squared == 0:
        return exact()
    variance = Fraction(sensitivity_squared) / (2 * Fraction(rho))
    keep_scale(variance, LARGEST_SCALE**2, "the variance of its noise")
    deviation = _double_above(variance, 2)
    return Additive("discrete gaussian", DiscreteGaussian(deviation**2), ZCDP(Fraction(rho)))


def exact() -> Additive:
    """Releases integers as they are, for numbers that no unit can change. Neighbours: any. Loss: 0."""
    return Additive("exact", NoNoise(), PureDP(Fraction(0)))


def _double_above(value: Fraction, power: int) -> Fraction:
    """The smallest double x, or the one after it, with x^power >= value, as a Fraction."""
    double = float(value) if power == 1 else math.sqrt(value)
    while Fraction(double) ** power < value:
        double = math.nextafter(double, math.inf)
    return Fraction(double)


def _require(name: str, value: int | Fraction, least: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise ParameterError(f"{name} must be an exact number, not {type(value).__name__}")
    if value < least if least is not None else value <= 0:
        raise ParameterError(f"{name} must {'not be negative' if least is not None else 'be positive'}; got {value}")


def narrower(l1: int, l2_squared: int, rho: Fraction, confidence: Confidence) -> Additive:
    """The narrower of Laplace and Gaussian noise. Both cost ρ at most: Laplace at ε = √(2ρ) is (ε²/2)-zCDP."""
    normal = gaussian(l2_squared, rho)
    double = laplace(l1, root(2 * rho))
    return double if double.law.half_width(confidence) < normal.law.half_width(confidence) else normal

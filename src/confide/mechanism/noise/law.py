"""Laws of integer noise, as data: what their tails and quantiles are, never how they are drawn; and how large they get.

Every probability here is rounded up and every quantile outward, so an interval built on them covers at least as often
as it says. The rounding is explicit: each formula is evaluated in double precision with a relative error below 10⁻¹¹
(the arguments of exp and erfc stay under 750 and are off by a few units in the last place), and `SLACK` is larger than
that.

What passes the limits here is refused before anything is charged, so after a read nothing wraps and nothing overflows.
Whether it does follows from public facts: the policy, the text of a question, ε and the confidence. Scales grow as ε
falls, so a refusal is one of ε.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall, ParameterError

SLACK: Final = 1e-10
SMALLEST: Final = 5e-324  # a tail is never quite zero
SUMMED_VARIANCE: Final = 256**2  # up to here a Gaussian tail is summed term by term
MIDPOINT_ERROR: Final = 1e-6  # beyond, the normal tail is this close: the midpoint rule is off by less than 0.05/σ²
NORMAL_STEP: Final = 1 / 256
NORMAL_END: Final = 39  # the normal tail there is below the smallest double
CHORD_ERROR: Final = 5e-7  # a chord of the normal tail is this close to it: step²/8 times the largest second derivative

Floats = NDArray[np.float64]
Confidence = float | Fraction

MOST_ROWS: Final = 2**44
"""No table has more rows, nor has a join: what `query.number.WIDEST` counts on too."""
LARGEST_SCALE: Final = 2**190
"""Of noise that is added: sums are below 2^126, and noise far beyond that says that the budget is a mistake."""
LARGEST_WALK: Final = 2**48
"""Of noise that is compared in 64 bits. A draw is beyond 2^12 scales with a chance below exp(-2^12), and margins are
kept within 2^7 scales, so no difference of the two reaches 2^62.
"""
LARGEST_SHIFT: Final = 2**58
"""Of a rank, or an exponent, by which an end of an interval is moved: sums of a few of them stay below 2^62."""
LARGEST_SMOOTH: Final = 2.0**150
"""Of a smooth bound: sums stay below 2^126, and so does what a unit changes; the lesser of the two is smooth too."""
LARGEST_USED: Final = 300
"""Of ε, where e^ε is worked with: more than that is charged as asked, and not used."""


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The law of a number that is released as it is, because no unit can change it."""

    @property
    def variance(self) -> float:
        return 0.0

    def tail(self, threshold: int) -> float:
        return 1.0 if threshold < 0 else 0.0

    def tails(self, thresholds: Floats) -> Floats:
        return (thresholds < 0).astype(np.float64)

    def half_width(self, confidence: Confidence) -> int:
        miss_rate(confidence)
        return 0

    def upper(self, confidence: Confidence) -> int:
        miss_rate(confidence)
        return 0


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """P(x) proportional to exp(-|x| / scale) on the integers ([Ghosh2012])."""

    scale: Fraction

    def __post_init__(self) -> None:
        _require_positive("scale", self.scale)

    @property
    def variance(self) -> float:
        rate = self._rate()
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    def tail(self, threshold: int) -> float:
        """P(X > threshold), rounded up."""
        steps = threshold + 1 if threshold >= 0 else -threshold
        rate = self._rate()
        beyond = math.exp(max(-steps * rate, -745.0)) / (1 + math.exp(-rate))
        return max(beyond * (1 + SLACK), SMALLEST) if threshold >= 0 else 1 - beyond * (1 - SLACK)

    def tails(self, thresholds: Floats) -> Floats:
        """P(X > threshold) for real thresholds, rounded up: with q = exp(-1/scale), P(X > k) = q^(k+1) / (1 + q) for k
        >= 0.
        """
        rate = self._rate()
        below = np.floor(thresholds)
        beyond: Floats = np.asarray(
            np.maximum(below + 1, -below)
        )  # steps from the middle; all of it in place, since widths are many
        beyond *= -rate
        np.maximum(beyond, -700.0, out=beyond)  # rounded up at 10^-304, since numbers below the normal ones are slow
        np.exp(beyond, out=beyond)
        beyond /= 1 + math.exp(-rate)
        inner = below < 0
        if not inner.any():
            beyond *= 1 + SLACK
            return beyond
        return np.where(inner, 1 - beyond * (1 - SLACK), beyond * (1 + SLACK))

    def least_tails(self, thresholds: Floats) -> Floats:
        """P(X > threshold) for thresholds from 0 on, rounded down."""
        return _lowered(self.tails(thresholds))

    def half_width(self, confidence: Confidence) -> int:
        """The smallest h for which P(|X| <= h) >= confidence is proven."""
        return _half_width(self, confidence)

    def upper(self, confidence: Confidence) -> int:
        """The smallest h >= 0 for which P(X <= h) >= confidence is proven."""
        return _upper(self, confidence)

    def near(self, rate: float) -> int:
        """About the k with P(X > k) = rate, for a rate up to ½: where to look, and no more."""
        beyond = -math.log(rate * (1 + math.exp(-self._rate())))
        return max(0, math.floor(float(self.scale) * beyond))

    def _rate(self) -> float:
        numerator, denominator = self.scale.numerator, self.scale.denominator
        return denominator / numerator if denominator < 745 * numerator else 745.0  # exp(-745) is the smallest double


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """P(x) proportional to exp(-x² / (2 variance)) on the integers ([Canonne2020]).

    `variance` is the parameter, usually written σ²; the variance of the law itself is never above it.
    """

    variance: Fraction

    def __post_init__(self) -> None:
        _require_positive("variance", self.variance)

    def tail(self, threshold: int) -> float:
        """P(X > threshold), rounded up."""
        steps = threshold if threshold >= 0 else -threshold - 1
        if self.variance <= SUMMED_VARIANCE:
            table = _summed_tails(self.variance)
            beyond = float(table[min(steps, len(table) - 1)])
            complement = 1 - beyond * (1 - SLACK)
        else:
            beyond = _normal_tail((steps + 0.5) / math.sqrt(self.variance))
            complement = 1 - beyond + MIDPOINT_ERROR
        return max(beyond * (1 + SLACK), SMALLEST) if threshold >= 0 else complement

    def tails(self, thresholds: Floats) -> Floats:
        """P(X > threshold) for real thresholds, rounded up.

        For a large σ, P(X > k) <= Q((k + ½)/σ) with Q the normal tail. Write f(x) = exp(-x²/2σ²) and Z for its sum
        over the integers; Poisson summation gives σ√(2π) <= Z <= σ√(2π)(1 + 3 exp(-2π²σ²)). Beyond σ, f is convex, so
        each f(x) is at most its mean over the unit cell around x: add the cells beyond k. Within σ, f is concave, so
        each f(x) is at least its mean: add the cells up to k and take the complement.
        """
        below = np.floor(thresholds)
        steps = np.where(below >= 0, below, -below - 1)
        if self.variance <= SUMMED_VARIANCE:
            table = _summed_tails(self.variance)
            beyond = table[np.minimum(steps, len(table) - 1).astype(np.int64)]
            complement = 1 - beyond * (1 - SLACK)
        else:
            grid, values = _normal_table()
            beyond = np.interp((steps + 0.5) / math.sqrt(self.variance), grid, values)
            complement = 1 - beyond + (MIDPOINT_ERROR + CHORD_ERROR)
        return np.where(below >= 0, np.maximum(beyond * (1 + SLACK), SMALLEST), complement)

    def least_tails(self, thresholds: Floats) -> Floats:
        """P(X > threshold) for thresholds from 0 on, rounded down.

        For a large σ, P(X > k) >= Q((k + 1)/σ) (1 - 10⁻⁹): f falls, so f(x) is at least its mean from x to x + 1, and Z
        is at most σ√(2π)(1 + 3 exp(-2π²σ²)). Q is taken at the next point of its table.
        """
        if self.variance <= SUMMED_VARIANCE:
            return _lowered(self.tails(thresholds))
        grid, values = _normal_table()
        places = np.ceil((np.floor(thresholds) + 1) / math.sqrt(self.variance) / NORMAL_STEP)
        beyond = values[np.minimum(places, len(grid) - 1).astype(np.int64)]
        return np.where(places < len(grid), _lowered(beyond), 0.0)

    def half_width(self, confidence: Confidence) -> int:
        """The smallest h for which P(|X| <= h) >= confidence is proven."""
        return _half_width(self, confidence)

    def upper(self, confidence: Confidence) -> int:
        """The smallest h >= 0 for which P(X <= h) >= confidence is proven."""
        return _upper(self, confidence)

    def near(self, rate: float) -> int:
        """About the k with P(X > k) = rate: where to look, and no more."""
        return max(0, math.floor(-NormalDist().inv_cdf(rate) * math.sqrt(self.variance)))


Law = DiscreteLaplace | DiscreteGaussian | NoNoise


def miss_rate(confidence: Confidence) -> float:
    """1 - confidence, rounded down; refuses what is not a confidence."""
    if not isinstance(confidence, float | Fraction) or not 0 < confidence < 1:  # no whole number lies between them
        raise ParameterError(f"confidence must lie strictly between 0 and 1, such as 0.95; got {confidence!r}")
    # The double next to 1 - confidence, whichever it is: a subtraction, or a division of whole numbers, rounds once.
    if isinstance(confidence, Fraction):
        missed = (confidence.denominator - confidence.numerator) / confidence.denominator
    else:
        missed = 1.0 - confidence
    rate = math.nextafter(missed, 0)
    if rate < 1e-300:
        raise ParameterError("confidence is too close to 1")
    return rate


def keep_scale(scale: Fraction, largest: int, what: str) -> Fraction:
    """The scale, or a refusal if it is too large to draw with."""
    if scale > largest:
        raise EpsilonTooSmall(f"epsilon is too small: {what} would pass 2^{largest.bit_length() - 1}")
    return scale


def keep_shift(shift: float, what: str) -> None:
    """Refuse a shift that 64 bits might not hold."""
    if not shift <= LARGEST_SHIFT:
        raise EpsilonTooSmall(f"epsilon is too small: {what} would pass 2^{LARGEST_SHIFT.bit_length() - 1}")


@lru_cache(maxsize=4096)
def _half_width(law: DiscreteLaplace | DiscreteGaussian, confidence: Confidence) -> int:
    rate = miss_rate(confidence) / 2
    return _smallest(lambda width: law.tail(width) <= rate, law.near(rate))


@lru_cache(maxsize=4096)
def _upper(law: DiscreteLaplace | DiscreteGaussian, confidence: Confidence) -> int:
    rate = miss_rate(confidence)
    return _smallest(lambda width: law.tail(width) <= rate, law.near(rate))


def _smallest(holds: Callable[[int], bool], near: int) -> int:
    """The smallest non-negative integer at which a monotone predicate holds, looked for around `near`."""
    low, high, step = -1, max(near, 0), 1
    if holds(high):
        while (lower := high - step) >= 0 and holds(lower):
            high, step = lower, 2 * step
        low = max(lower, -1)
    else:
        while not holds(high):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def _summed_tails(variance: Fraction) -> Floats:
    """P(X > k) for k = 0, 1, ... to where it vanishes; the sums run from the small terms to the large."""
    end = math.isqrt(math.ceil(1490 * variance)) + 2  # exp(-745) is the smallest double
    steps = np.arange(end + 1, dtype=np.float64)
    weights = np.exp(np.maximum(-(steps**2) * float(1 / (2 * max(variance, Fraction(1, 10**6)))), -746.0))
    beyond: Floats = np.cumsum(weights[:0:-1])[::-1]  # beyond[k] is the sum of the weights after k
    tails: Floats = np.append(beyond, 0.0) / (1 + 2 * beyond[0])
    tails.flags.writeable = False
    return tails


def _lowered(tails: Floats) -> Floats:
    """Lower bounds from tails that were rounded up: 0 where a tail is so small that all of it may be rounding."""
    return np.where(tails > 1e-290, tails * (1 - 1e-9), 0.0)


def _normal_tail(point: float) -> float:
    return math.erfc(point / math.sqrt(2)) / 2


@lru_cache(maxsize=1)
def _normal_table() -> tuple[Floats, Floats]:
    """The normal tail on a grid. It is convex right of zero, so its chords lie above it."""
    grid = np.arange(0, NORMAL_END + NORMAL_STEP, NORMAL_STEP)
    return grid, np.array([_normal_tail(point) for point in grid])


def _require_positive(name: str, value: Fraction) -> None:
    if not isinstance(value, Fraction):
        raise TypeError(f"{name} must be a Fraction, not {type(value).__name__}: laws are exact")
    if not 0 < value < 2**400:
        raise ValueError(f"{name} must be positive and below 2^400")

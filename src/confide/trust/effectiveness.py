"""How often a decider errs at a gap, from which τ on it is effective, and what ε a gap takes. Public facts only."""

from collections.abc import Callable
from fractions import Fraction
from math import inf, isqrt
from typing import Final

from confide.errors import ParameterError
from confide.trust.decider import Decider
from confide.trust.seen import Imagined
from confide.trust.target import DELTA, Facts, Target

LARGEST_TAU: Final = 2**100
LARGEST_EPSILON: Final = Fraction(1_000)
SMALLEST_EPSILON: Final = Fraction(1, 10**6)
STRIDE: Final = 4
PRECISION: Final = 8  # thresholds are exact up to 2⁸ steps, and to one part in 2⁸ beyond
MEAN_UNIT: Final = Fraction(1, 2**20)
"""Means lie between the steps of their grid."""

AtTau = Callable[[Fraction], Decider]
AtEpsilon = Callable[[Fraction], Decider]


def error_at(decider: Decider, target: Target, imagine: Imagined, gap: Fraction) -> float:
    """The probability of the wrong bit if the private answer is the synthetic one plus `gap`."""
    chance = decider.chance(imagine(decider.reading, gap))
    return 1 - chance if abs(gap) < target.tau else chance


def sides(facts: Facts, answer: Fraction, gap: Fraction) -> list[Fraction]:
    """The gap to either side of the synthetic answer, where a private answer can be: no count is negative."""
    return [side for side in dict.fromkeys((gap, -gap)) if facts.possible(answer + side)]


def worst_error(decider: Decider, facts: Facts, target: Target, imagine: Imagined, gap: Fraction) -> float | None:
    """The larger of the errors at a gap to either side; None if no private answer is that far away."""
    errors = [error_at(decider, target, imagine, side) for side in sides(facts, target.answer, gap)]
    return max(errors, default=None)


def threshold(make: AtTau, facts: Facts, answer: Fraction, imagine: Imagined) -> float:
    """The least τ, in steps of the grid, at which a decider is effective at DELTA ([Patwa2023], Definition 3.4).

    Effective: it says yes with probability 1 - DELTA if the answers are equal, and no if they are 2τ apart, to either
    side on which there are such answers. What a decider is blind to is added. Infinite if there is none.
    """
    unit = MEAN_UNIT if facts.kind == "mean" else Fraction(1)

    def effective(steps: int) -> bool:
        tau = steps * unit
        decider = make(tau)
        if 1 - decider.chance(imagine(decider.reading, Fraction(0))) > DELTA:
            return False
        apart = sides(facts, answer, 2 * tau)
        return all(decider.chance(imagine(decider.reading, side)) <= DELTA for side in apart)

    low, high = 0, 1
    while not effective(high):
        low, high = high, high * STRIDE
        if high > LARGEST_TAU:
            return inf
    while high - low > max(1, low >> PRECISION):
        middle = max(low + 1, isqrt(low * high)) if high > 2 * low > 0 else (low + high) // 2
        low, high = (low, middle) if effective(middle) else (middle, high)
    return float(high * unit + make(high * unit).blind)


def needed_epsilon(
    make: AtEpsilon, facts: Facts, target: Target, imagine: Imagined, gap: Fraction, error: float
) -> Fraction:
    """The least ε, to three digits, at which a decider errs at a gap with at most this probability."""
    if not sides(facts, target.answer, gap):
        raise ParameterError("no private answer is as far from the synthetic one as this gap; take a smaller gap")

    def holds(epsilon: Fraction) -> bool:
        worst = worst_error(make(epsilon), facts, target, imagine, gap)
        return worst is not None and worst <= error

    if not holds(LARGEST_EPSILON):
        raise ParameterError(
            f"no ε up to {LARGEST_EPSILON} makes the error {error:g} at this gap; "
            "take a gap farther from the end of the interval, or another decider"
        )
    low, high = SMALLEST_EPSILON, LARGEST_EPSILON
    while high / low > Fraction(1001, 1000):
        middle = Fraction(float(low * high) ** 0.5).limit_denominator(10**9)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return _short(high)


def _short(value: Fraction) -> Fraction:
    """Rounded up to three significant digits."""
    scale = Fraction(1)
    while value * scale < 100:
        scale *= 10
    while value * scale >= 1000:
        scale /= 10
    return -(-value * scale // 1) / scale

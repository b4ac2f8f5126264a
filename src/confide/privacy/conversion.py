"""From one kind of loss to another, exactly or rounded against us.

ρ-zCDP implies (ε, δ)-DP when, for any one α > 1,

    ε ≥ ρα + ln(1 − 1/α) + (ln(1/δ) − ln α)/(α − 1)            ([Canonne2020], section 2.3)

Write α = 1 + t. The best t is found in floating point, then cut to a short decimal; the bound is evaluated at that
decimal in 60-digit arithmetic. So floating point can cost tightness, never soundness: the bound holds at every t.

Error of the evaluation. Let M be 1 plus the sum of the absolute values of the terms, where (ln(1/δ) − ln(1+t))/t
counts as two terms. Each of the fewer than 16 operations, `Decimal.ln` included (it rounds correctly), has a relative
error of at most 10⁻⁵⁹ on a value of at most M. The logarithms turn the relative error of their argument into an
absolute one, at most 2·10⁻⁵⁹ each, covered by the 1 in M (t ≥ 10⁻¹², so a division by t enlarges that by 10¹² at most).
So the result is within 10⁻⁴⁵·M of the truth; that margin is taken off, or added, before rounding to whole quanta.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from confide.privacy.amount import from_quanta, to_quanta_down, to_quanta_up

_PRECISION = Context(prec=60)
_MARGIN = Decimal("1e-45")


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """ε-DP is ε²/2-zCDP ([BunSteinke2016], Proposition 1.4); (ε, δ)-DP is δ-approximate ε²/2-zCDP (section 8)."""
    return epsilon * epsilon / 2


def rho_of_exponential(epsilon: Fraction) -> Fraction:
    """The exponential mechanism at ε (Gumbel noise) is ε²/8-zCDP: its range is bounded ([CesarRogers2021])."""
    return epsilon * epsilon / 8


@lru_cache(maxsize=4096)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, rounded down to a quantum, whose zCDP implies (ε, δ)-DP."""
    _require(epsilon, delta)
    logarithm = _log_inverse(delta)
    floor = float(epsilon)

    # The derivative of the bound ρ(t) = (ε + ln((1+t)/t) − (ln(1/δ) − ln(1+t))/t)/(1+t) has the sign of this.
    def rising(t: float) -> bool:
        return (logarithm - math.log1p(t)) * (2 * t + 1) > t * t * (floor + math.log1p(1 / t))

    t = _turning_point(rising, math.expm1(logarithm))
    with localcontext(_PRECISION):
        exact = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        log_ratio, tail, size = _terms(t, delta)
        margin = _MARGIN * (exact + size)
        rho = Fraction((exact + log_ratio - tail - margin) / (1 + t))
    return from_quanta(max(0, to_quanta_down(rho * (1 - Fraction(1, 10**50)))))


@lru_cache(maxsize=4096)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest ε, rounded up to a quantum, for which ρ-zCDP implies (ε, δ)-DP."""
    _require(rho, delta)
    if rho == 0:
        return Fraction(0)
    logarithm = _log_inverse(delta)
    slope = float(rho)

    def falling(t: float) -> bool:
        return slope * t * t < logarithm - math.log1p(t)

    t = _turning_point(falling, math.expm1(logarithm))
    with localcontext(_PRECISION):
        linear = Decimal(rho.numerator) / Decimal(rho.denominator) * (1 + t)
        log_ratio, tail, size = _terms(t, delta)
        margin = _MARGIN * (linear + size)
        epsilon = Fraction(linear - log_ratio + tail + margin)
    return from_quanta(max(0, to_quanta_up(epsilon)))


def _terms(t: Decimal, delta: Fraction) -> tuple[Decimal, Decimal, Decimal]:
    """ln((1+t)/t), (ln(1/δ) − ln(1+t))/t, and what the two count for in M."""
    log_inverse, log_order = (Decimal(delta.denominator) / Decimal(delta.numerator)).ln(), (1 + t).ln()
    log_ratio = ((1 + t) / t).ln()
    return log_ratio, (log_inverse - log_order) / t, 1 + log_ratio + (log_inverse + log_order) / t


def _turning_point(before: Callable[[float], bool], highest: float) -> Decimal:
    """The t at which `before` turns false, by bisection of ln t, cut to six digits (the optimum is flat)."""
    low, high = math.log(1e-12), math.log(highest) if highest > 1e-11 else math.log(1e-11)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if before(math.exp(middle)) else (low, middle)
    return Decimal(f"{math.exp(low):.5e}")


def _log_inverse(delta: Fraction) -> float:
    return math.log(delta.denominator) - math.log(delta.numerator)


def _require(amount: Fraction, delta: Fraction) -> None:
    if amount < 0 or not 0 < delta < 1:
        raise ValueError("a conversion needs an amount of at least 0 and a δ between 0 and 1")

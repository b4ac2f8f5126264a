"""The price of microdata: how exact a sum and its parts can be at once, if nothing may be negative.

Let d disjoint counts and their sum be read from any non-negative table that was made with differential privacy (one
record added or removed), with root mean square errors of at most C for each count and D for the sum, whatever the
data. Take any whole t > C. On t equal records the count they belong to is about t, so with E over the mechanism
there, X the count read:

    E min(X, t) >= t − E(t − X)⁺ >= t − C.

The empty data set is t steps away. Privacy carries the expectation there; all d counts carry theirs; they add up to
no more than the sum, whose expectation on no data is at most D (and so do the squares, with D²):

    ε-DP        D >= d (t − C) e^(−εt)
                D² >= d (t − C)² e^(−εt)
    (ε, δ)-DP   D >= d (t − C − δ(t) t) e^(−εt),  with δ(t) = δ (e^(εt) − 1)/(e^ε − 1)
                D² >= d ((t − C)² − δ(t) t²) e^(−εt)
    ρ-zCDP      D >= d t (1 − C/t)^(α/(α−1)) e^(−αρt²)  for every α > 1
                D² >= d t² (1 − C/t)^(2α/(α−1)) e^(−αρt²)

The last is Hölder's inequality with the Rényi divergence αρt² of t steps. This is Theorem 3 of
[Abowd2021] with better constants: there the argument goes from one such data set to another, 2t steps, and
through Chebyshev's inequality. It gives C >= (ln(d/(εD)) − 1)/ε, for large d sixteen times the squared error of the
theorem, and it meets what `maxfit` and `sequential` guarantee up to a small factor. The theorem itself is here
too, as `stated`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq

from confide.errors import ParameterError
from confide.fit.group import Floats
from confide.fit.price_view import price_chart, price_text
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from confide.privacy.conversion import rho_for

POINTS: Final = 60
MOST_COUNTS: Final = 10**12
MOST_PLACES: Final = 100_000
ORDERS: Final = 1 + np.logspace(-3, 3, 91)  # Rényi orders α; every one gives a bound


@dataclass(frozen=True, slots=True)
class PriceBudget:
    """A privacy loss as floats: pure, approximate or concentrated."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a method promises whatever the data are: root mean square errors of each count and of the sum, or None."""

    method: str
    point: float | None
    total: float | None
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Price:
    """The trade-off for d counts: the least D for each C of `points`, and what methods guarantee.

    `least` is the bound above, `stated` the bound of Theorem 3 (for zCDP the paper does not state it: all zero).
    """

    d: int
    budget: PriceBudget
    points: Floats
    least: Floats
    stated: Floats
    guarantees: tuple[Guarantee, ...]

    def least_sum_error(self, point: float) -> float:
        """The least D of any mechanism whose counts have errors of at most C = `point`."""
        return _least_sum(self.d, self.budget, _error("the error of a count", point))

    def least_point_error(self, total: float) -> float:
        """The least C of any mechanism whose sum has an error of at most D = `total`."""
        wanted = _error("the error of the sum", total)
        if wanted == 0:
            raise ParameterError("the sum of microdata cannot be exact under differential privacy")
        if _least_sum(self.d, self.budget, 0.0) <= wanted:
            return 0.0
        high = 1.0
        while _least_sum(self.d, self.budget, high) > wanted:
            high *= 2
        return float(brentq(lambda point: _least_sum(self.d, self.budget, point) - wanted, 0.0, high, xtol=1e-9))

    def plot(self) -> Any:
        """An Altair chart of the curve with what methods guarantee."""
        return price_chart(self)

    def __str__(self) -> str:
        return price_text(self)


def price(
    d: int,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float | None = None,
    share: float = 0.5,
) -> Price:
    """The trade-off between a sum and its d disjoint parts under ε-DP, (ε, δ)-DP or ρ-zCDP.

    The guarantees are for mechanisms that spend `share` of the budget on the sum and the rest on the parts.
    """
    if isinstance(d, bool) or not isinstance(d, int) or not 2 <= d <= MOST_COUNTS:
        raise ParameterError(f"a sum has from 2 to 10¹² parts; got {d!r}")
    if not 0 < share < 1:
        raise ParameterError(f"share is the part of the budget for the sum, between 0 and 1; got {share!r}")
    budget = _budget(epsilon, rho, delta)
    unit = 1 / budget.epsilon if budget.epsilon is not None else 1 / math.sqrt(2 * (budget.rho or 1.0))
    points = unit * np.geomspace(0.05, 2 + 2 * math.log(d), POINTS)
    least = np.array([_least_sum(d, budget, point) for point in points])
    stated = np.array([_stated_sum(d, budget, point) for point in points])
    return Price(d, budget, points, least, stated, _guarantees(d, budget, share))


def _budget(epsilon: float | None, rho: float | None, delta: float | None) -> PriceBudget:
    if (epsilon is None) == (rho is None):
        raise ParameterError("give one of epsilon and rho")
    if rho is not None:
        if delta is not None:
            raise ParameterError("a delta goes with epsilon, not with rho")
        return PriceBudget(rho=_positive("rho", rho))
    assert epsilon is not None
    if delta is not None and not 0 < delta < 1:
        raise ParameterError(f"delta must lie strictly between 0 and 1; got {delta!r}")
    return PriceBudget(epsilon=_positive("epsilon", epsilon), delta=delta)


def _positive(name: str, value: float) -> float:
    good = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not good or not 1e-6 <= value <= 1e3:
        raise ParameterError(f"{name} must be a number from 10⁻⁶ to 1,000; got {value!r}")
    return float(value)


def _error(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not 0 <= value < 1e15:
        raise ParameterError(f"{name} must be a number from 0 to 10¹⁵; got {value!r}")
    return float(value)


def _steps(budget: PriceBudget, point: float) -> Floats:
    """Whole t worth trying: the best real one is near C plus a unit of noise, and the bounds fall off slowly around
    it.
    """
    unit = 1 / budget.epsilon if budget.epsilon is not None else 1 / math.sqrt(budget.rho or 1.0)
    first = math.floor(point) + 1
    near = np.arange(first, first + 400, dtype=np.float64)
    far = np.rint(first + unit * np.geomspace(0.01, 200, 400))
    return np.unique(np.concatenate([near, far]))


def _least_sum(d: int, budget: PriceBudget, point: float) -> float:
    """The largest of all the lower bounds of D, in logarithms; 0 where there is none."""
    steps = _steps(budget, point)
    share = point / steps  # below 1
    if budget.rho is not None:
        first, second = _concentrated(budget.rho, steps, share)
    else:
        epsilon = budget.epsilon or 0.0
        lost = np.zeros(len(steps))
        if budget.delta is not None:
            with np.errstate(over="ignore"):
                lost = budget.delta * np.expm1(epsilon * steps) / math.expm1(epsilon)
        first = _log_max(1 - share - lost, np.log(steps) - epsilon * steps)
        second = _log_max((1 - share) ** 2 - lost, 2 * np.log(steps) - epsilon * steps)
    best = max(math.log(d) + first, (math.log(d) + second) / 2)
    return math.exp(best) if best > -700 else 0.0


def _concentrated(rho: float, steps: Floats, share: Floats) -> tuple[float, float]:
    """ln of the largest bounds of D/d and of D²/d."""
    logarithm = (ORDERS / (ORDERS - 1))[:, None] * np.log1p(-share)
    lost = ORDERS[:, None] * rho * steps**2
    first = np.log(steps) + logarithm - lost
    return float(first.max()), float((first + np.log(steps) + logarithm).max())


def _log_max(factor: Floats, logarithm: Floats) -> float:
    good = factor > 0
    return float((np.log(factor[good]) + logarithm[good]).max()) if good.any() else -math.inf


def _stated_sum(d: int, budget: PriceBudget, point: float) -> float:
    """Theorem 3 solved for D. Its data sets hold 2C + k records, so k is such that this is whole (see the errata)."""
    if budget.epsilon is None:
        return 0.0
    steps = _steps(budget, 2 * point)
    k = steps - 2 * point
    with np.errstate(over="ignore", under="ignore"):
        if budget.delta is None:
            bounds = (k * (d - 1) * np.exp(-2 * budget.epsilon * steps) - 16 * point - 4 * k) / 8
        else:
            room = np.exp(-2 * budget.epsilon * steps) / 4 - budget.delta / budget.epsilon
            bounds = (k * (d - 1) * room - 4 * point - k) / 2
    return max(float(bounds.max()), 0.0)


def _guarantees(d: int, budget: PriceBudget, share: float) -> tuple[Guarantee, ...]:
    total, part, whole = _laws(budget, share), _laws(budget, 1 - share), _laws(budget, 1.0)
    sum_error, part_error = math.sqrt(total.variance), math.sqrt(part.variance)
    whole_error, lift = math.sqrt(whole.variance), _mean_above_zero(whole)
    largest = _norm_of_largest(part, d, both=False)
    either = math.hypot(_norm_of_largest(part, d, both=True) / part_error, 1.0)  # of all d + 1, in deviations
    return (
        Guarantee("noisy answers", part_error, sum_error, "no microdata: each with its own noise, negative at times"),
        Guarantee(
            "cells cut at zero",
            whole_error,
            math.sqrt(d * whole.variance + (d * lift) ** 2),
            "the sum is not measured; cutting adds at most its mean to each (Theorem 4, items 1 and 2)",
        ),
        Guarantee(
            "sequential, pinned",
            part_error * (1 + 1 / math.sqrt(d)) + largest + sum_error * (math.sqrt(0.5) + 1 / d),
            sum_error,
            "the sum is kept; all parts move by one shift, at most the largest noise (Theorem 4, items 3 to 5)",
        ),
        Guarantee(
            "maxfit",
            2 * part_error * either,
            2 * sum_error * either,
            "the truth fits within the largest noise, so the fit is within twice that",
        ),
        Guarantee(
            "nnls",
            part_error * math.sqrt(d + 1),
            sum_error * math.sqrt(d + 1),
            "a projection onto the non-negative tables comes no further from the truth than the noise was",
        ),
        Guarantee("reweighted, adaptive", None, None, "chosen by the noisy numbers; nothing is proven"),
    )


def _laws(budget: PriceBudget, share: float) -> DiscreteLaplace | DiscreteGaussian:
    """The noise of one count at a share of the budget. An (ε, δ) budget is spent as the ρ that it allows."""
    if budget.epsilon is not None and budget.delta is None:
        return DiscreteLaplace(1 / (Fraction(budget.epsilon) * Fraction(share)))
    rho = Fraction(budget.rho or 0) or rho_for(Fraction(budget.epsilon or 0), Fraction(budget.delta or 0))
    return DiscreteGaussian(1 / (2 * rho * Fraction(share)))


def _mean_above_zero(law: DiscreteLaplace | DiscreteGaussian) -> float:
    """E max(0, noise) = Σ P(noise > k), from above."""
    places, tails = _tails(law)
    return float(np.diff(places) @ tails[:-1])


@lru_cache(maxsize=256)
def _norm_of_largest(law: DiscreteLaplace | DiscreteGaussian, count: int, *, both: bool) -> float:
    """The root of E max(0, M)² for the largest M of some noises, or of their sizes, by Σ (2k + 1) P(M > k), from
    above.
    """
    places, tails = _tails(law)
    exceed = -np.expm1(count * np.log1p(-np.minimum(tails * (2 if both else 1), 1 - 1e-16)))
    return math.sqrt(float(np.diff(places**2) @ exceed[:-1]))


def _tails(law: DiscreteLaplace | DiscreteGaussian) -> tuple[Floats, Floats]:
    """Places k = 0, 1, ... to where P(noise > k) vanishes, every so many of them if they are very many, and these
    tails.
    """
    end = law.half_width(1 - Fraction(1, 10**30))
    stride = max(1, end // MOST_PLACES)
    places = np.arange(0, end + 2 * stride, stride, dtype=np.float64)
    return places, law.tails(places)

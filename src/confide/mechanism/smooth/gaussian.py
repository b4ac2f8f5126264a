"""Gaussian noise from a smooth bound S, for budgets with a δ: first an upper bound of ln S, then noise of that scale.

A. T = ln S in steps, with discrete Gaussian noise, raised by what that noise exceeds with probability δ: ρ₁-zCDP,
   because the steps change by at most `LOG_STEPS` + 1.
B. The integers with discrete Gaussian noise of σ² = (growth·e^T)²/2ρ₂. The scale is public by now. Between neighbours D
   and D' the integers move by at most growth·min(S, S'), which is ρ₂-zCDP wherever e^T >= min(S, S') ([Canonne2020],
   Theorem 4).

Let F be the outputs with e^T >= min(S, S'), and M* the mechanism whose second scale is the larger of e^T and
min(S, S'). M* is (ρ₁ + ρ₂)-zCDP on D and D', by adaptive composition; M and M* have the same law on F, on D as on D';
and M is outside of F with probability at most δ on either, since T is below its own ln S with at most that.

Whatever is asked before and after: a transcript lies in all F but for the sum of the δ; there its law is that of a
transcript with M* in the place of M, and of those a filter on Σρ makes an (ε, δ₀)-DP pair P*, Q*. So P(A) <=
P*(A ∩ F) + Σδ <= e^ε Q*(A ∩ F) + δ₀ + Σδ <= e^ε Q(A) + δ₀ + Σδ: what a budget adds up for δ-approximate ρ-zCDP,
though truncated noise need not be that to the letter ([BunSteinke2016], Definition 8.1, conditions on F).

[Karwa2011] release a count after a bound of its sensitivity in this way, with Laplace noise for both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism.noise.additive import Additive, gaussian
from confide.mechanism.noise.law import LARGEST_SMOOTH
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.mechanism.smooth.smooth import LARGEST_ALPHA, LOG_STEPS, SMALLEST_SCALE
from confide.privacy.amount import root
from confide.privacy.loss import ZCDP

SMALLEST_EPSILON: Final = Fraction(1, 10**5)  # √(2ρ) per change, so that a step of ln S is far larger than its rounding
SMALLEST_DELTA: Final = 1e-290
BOUND_MISS: Final = 0.05  # of the miss rate, for the bound of S that comes with an answer
RAISED: Final = 1e-9  # more than arithmetic in doubles takes off a logarithm


@dataclass(frozen=True, slots=True)
class Tuning:
    """`share` of ρ for ln S, which is raised by `raised` = zα/√(2ρ·share), z the normal quantile of δ: that sets α."""

    share: Fraction
    raised: Fraction


def tuned(degree: int) -> Tuning:
    """For an S that grows at most like α^-degree as α falls, and at best not at all: near the narrowest for both."""
    return Tuning(Fraction(2, 5) if degree <= 1 else Fraction(1, 2), max(Fraction(3, 4), Fraction(degree, 2)))


STEADY: Final = tuned(0)


@dataclass(frozen=True, slots=True)
class SmoothRelease:
    """Noised integers, a half-width for each by itself, and an upper bound on S: for one miss rate in all."""

    values: list[int]
    half_width: int
    bound: float


@dataclass(frozen=True, slots=True)
class SmoothGaussian:
    """Releases integers plus discrete Gaussian noise scaled to a noised upper bound of S, and that bound.

    Neighbours: `changes` steps from each other, in each of which the integers move by at most S in L2 (or L1), on
    either side, and ln S by at most `alpha` + 10^-9; so in all by at most growth·min(S, S').
    Loss: ρ-zCDP but for δ, as shown above. Interval: always valid, from the exact law, whose scale is public.
    """

    rho: Fraction
    delta: Fraction
    changes: int = 1
    tuning: Tuning = STEADY

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta must lie strictly between 0 and 1; got {self.delta}")
        if root(2 * self.rho) < SMALLEST_EPSILON * self.changes or self.delta < SMALLEST_DELTA:
            raise EpsilonTooSmall(
                "noise from a smooth bound needs an epsilon, at this delta, that leaves 0.00001 for each row of a unit"
            )

    @property
    def loss(self) -> ZCDP:
        return ZCDP(self.rho, self.delta)

    @property
    def alpha(self) -> Fraction:
        """By how much ln S may change in one step between neighbours."""
        most = float(self.tuning.raised) * math.sqrt(2 * self._log_rho) / self._quantile
        return min(Fraction(most), LARGEST_ALPHA) / self.changes

    @property
    def growth(self) -> Fraction:
        """Σ over `changes` of S, S·e^α, S·e^2α, ..., in units of S, rounded up."""
        alpha = float(self.alpha)
        terms = math.expm1(self.changes * alpha) / math.expm1(alpha) if self.changes > 1 else 1.0
        return Fraction(terms * (1 + RAISED)) if self.changes > 1 else Fraction(1)

    def measure(
        self, answers: Sequence[int], bound: float, miss: float, randomness: Randomness
    ) -> tuple[list[int], int]:
        """The noised integers, and a half-width that holds for each with probability 1 - miss."""
        released = self.release(answers, bound, miss, randomness)
        return released.values, released.half_width

    def release(self, answers: Sequence[int], bound: float, miss: float, randomness: Randomness) -> SmoothRelease:
        scale = min(max(bound, SMALLEST_SCALE), LARGEST_SMOOTH)
        steps = math.ceil(math.log(scale) / self._step) + int(draw(self._log_noise.law, 1, randomness)[0])
        noise = self.noise(self._above(steps, self.delta))
        drawn = draw(noise.law, len(answers), randomness)
        values = [int(answer) + int(own) for answer, own in zip(answers, drawn, strict=True)]
        return SmoothRelease(values, self._half_width(noise, miss), self._above(steps, Fraction(miss * BOUND_MISS)))

    def expected_half_width(self, bound: float, miss: float) -> float:
        """About what `measure` gives for S, before anything is read."""
        return float(self._half_width(self.noise(self.expected_scale(bound, self.delta)), miss))

    def expected_scale(self, bound: float, miss: Fraction | float) -> float:
        """About the number that S is taken for, if that may be too small at most so often."""
        scale = min(max(bound, SMALLEST_SCALE), LARGEST_SMOOTH)
        return self._above(math.ceil(math.log(scale) / self._step), Fraction(miss))

    def noise(self, scale: float) -> Additive:
        """For integers that move by growth·`scale` at most."""
        return gaussian((self.growth * Fraction(scale)) ** 2, self.rho - self._log_rho)

    @property
    def _log_rho(self) -> Fraction:
        return self.rho * self.tuning.share

    @property
    def _log_noise(self) -> Additive:
        """Of ln S in steps of changes·α/64, rounded up: it moves by at most 64 steps, and by one more for rounding."""
        return gaussian((LOG_STEPS + 1) ** 2, self._log_rho)

    @property
    def _quantile(self) -> float:
        return -NormalDist().inv_cdf(float(self.delta)) if self.delta < Fraction(1, 10) else 1.0

    @property
    def _step(self) -> float:
        return float(self.alpha) * self.changes / LOG_STEPS

    def _above(self, steps: int, miss: Fraction) -> float:
        """A number that S, measured as so many steps, exceeds at most so often; S itself is never more than the cap."""
        logarithm = (steps + self._log_noise.law.upper(1 - miss)) * self._step
        return min(math.exp(min(logarithm + RAISED * (1 + abs(logarithm)), 600.0)), LARGEST_SMOOTH)

    def _half_width(self, noise: Additive, miss: float) -> int:
        return noise.law.half_width(1 - Fraction(miss * (1 - BOUND_MISS)))

"""Several integers that one unit changes together, with noise from one smooth bound on their joint change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from confide.errors import EpsilonTooSmall
from confide.mechanism.noise.law import LARGEST_SMOOTH, SLACK
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.smooth.smooth import (
    ANSWER_SHARE,
    DILATE,
    LARGEST_ALPHA,
    ROUNDING,
    SCALE_MISS,
    SLIDE,
    SMALLEST_EPSILON,
    SMALLEST_SCALE,
    SMOOTHNESS,
    SmoothLog,
    cauchy_quantile,
    rounded_cauchy,
)
from confide.privacy.loss import PureDP


@dataclass(frozen=True, slots=True)
class SmoothVector:
    """Releases `size` integers plus generalised Cauchy noise scaled to a smooth bound S, and an upper bound on S.

    Neighbours: those for which S is at least the L1 distance of the integers and ln S changes by at most `alpha` +
    10^-9.
    Loss: ε-DP: the log-densities slide by 3^¾/κ × (L1 distance)/S in all, and each dilates by 3α (see `smooth`); the
    rest is for ln S. For one integer it is `Smooth`. Interval: always valid, for each integer by itself.
    """

    epsilon: Fraction
    size: int

    def __post_init__(self) -> None:
        if self.epsilon < SMALLEST_EPSILON * self.size:
            raise EpsilonTooSmall(
                f"the mechanism residual needs an epsilon of at least {float(SMALLEST_EPSILON * self.size):g} "
                f"for {self.size} groups"
            )

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def alpha(self) -> Fraction:
        return min(self.epsilon * SMOOTHNESS / self.size, LARGEST_ALPHA)

    @property
    def factor(self) -> Fraction:
        """κ, from 3^¾/κ + 3α·size = the answers' share of ε."""
        return SLIDE / (self.epsilon * ANSWER_SHARE - DILATE * self.size * (self.alpha + ROUNDING))

    def measure(
        self, answers: Sequence[int], bound: float, miss: float, randomness: Randomness
    ) -> tuple[list[int], int]:
        """The noised integers, and a half-width that holds for each with probability 1 - miss."""
        if len(answers) != self.size:
            raise ValueError(f"{self.size} integers are measured, not {len(answers)}")
        scale = min(max(bound, SMALLEST_SCALE), LARGEST_SMOOTH)
        noised = [rounded_cauchy(answer, self.factor * Fraction(scale), randomness) for answer in answers]
        shown = math.exp(min(self._log.measure(math.log(scale), SCALE_MISS * miss, randomness), 600.0))
        width = float(self.factor) * shown * cauchy_quantile((1 - SCALE_MISS) * miss) * (1 + SLACK)
        return noised, math.ceil(width) + 1

    def expected_half_width(self, bound: float, miss: float) -> float:
        """About what `measure` gives for S, before anything is read."""
        margin = self._log.margin(SCALE_MISS * miss)
        quantile = cauchy_quantile((1 - SCALE_MISS) * miss)
        return float(self.factor) * max(bound, SMALLEST_SCALE) * math.exp(margin) * quantile

    @property
    def _log(self) -> SmoothLog:
        return SmoothLog(self.alpha, self.epsilon * (1 - ANSWER_SHARE))

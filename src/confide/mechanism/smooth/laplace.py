"""Several integers that one unit changes together, with Laplace noise from one smooth bound: FLEX's (ε, δ) mechanism.

Laplace noise of a scale that depends on the data. From D to a neighbour D' let the scale be κS, then κS', ln S' - ln S
= λ, |λ| <= α, and z the noise of d integers in units of its scale:

    dilate: the log-ratio of densities at z is at most (e^|λ| - 1)Σ|z| or d|λ|; Σ|z| has the law Gamma(d), so it is at
            most ε/2 but for δ if α = ln(1 + ε/2Q) and Gamma(d) exceeds Q with probability δ (Q >= d for the second);
    slide:  the answers move by at most S' in all, which is 1/κ = ε/2 in units of the scale κS', for every z.

Dilating first, the chance δ is not multiplied by anything ([Nissim2007], Lemma 2.6;
[Johnson2018] have α = ε/2ln(2/δ) for d = 1). No double is added to an answer: the noise is the exact rounding of
the ideal one. ⌊2|X|⌋ is geometric, and |X| to the nearest integer is half of that, rounded up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism.noise.largest import LARGEST_SMOOTH
from confide.mechanism.noise.law import SLACK
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.selection.sparse_vector import geometric
from confide.mechanism.smooth.log_bound import SmoothLog
from confide.mechanism.smooth.smooth import ANSWER_SHARE, ROUNDING, SCALE_MISS, SMALLEST_SCALE
from confide.privacy.loss import ApproxDP

SMALLEST_EPSILON: Final = Fraction(1, 10**4)  # so that a step of ln S is far larger than its rounding


@dataclass(frozen=True, slots=True)
class SmoothLaplace:
    """Releases `size` integers plus Laplace noise scaled to a smooth bound S, and an upper bound on S.

    Neighbours: those for which S is at least the L1 distance of the integers and ln S changes by at most `alpha` +
    10^-9.
    Loss: (ε, δ)-DP: see above for the integers, with a share of ε; the rest is for ln S, and pure.
    Interval: always valid, for each integer by itself.
    """

    epsilon: Fraction
    delta: Fraction
    size: int

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta must lie strictly between 0 and 1; got {self.delta}")
        if self.epsilon < SMALLEST_EPSILON * self.size:
            raise EpsilonTooSmall(
                f"the mechanism elastic needs an epsilon of at least {float(SMALLEST_EPSILON * self.size):g} "
                f"for {self.size} groups under a budget with delta"
            )

    @property
    def loss(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def alpha(self) -> Fraction:
        most = float(self.epsilon * ANSWER_SHARE / 2) / gamma_quantile(self.size, float(self.delta))
        return Fraction(math.log1p(most) * (1 - SLACK)) - ROUNDING

    @property
    def factor(self) -> Fraction:
        """κ."""
        return 2 / (self.epsilon * ANSWER_SHARE)

    def measure(
        self, answers: Sequence[int], bound: float, miss: float, randomness: Randomness
    ) -> tuple[list[int], int]:
        """The noised integers, and a half-width that holds for each with probability 1 - miss."""
        if len(answers) != self.size:
            raise ValueError(f"{self.size} integers are measured, not {len(answers)}")
        scale = min(max(bound, SMALLEST_SCALE), LARGEST_SMOOTH)
        noised = [rounded_laplace(answer, self.factor * Fraction(scale), randomness) for answer in answers]
        shown = math.exp(min(self._log.measure(math.log(scale), SCALE_MISS * miss, randomness), 600.0))
        return noised, math.ceil(float(self.factor) * shown * self._quantile(miss)) + 1

    def expected_half_width(self, bound: float, miss: float) -> float:
        """About what `measure` gives for S, before anything is read."""
        margin = self._log.margin(SCALE_MISS * miss)
        return float(self.factor) * max(bound, SMALLEST_SCALE) * math.exp(margin) * self._quantile(miss)

    def _quantile(self, miss: float) -> float:
        """|Z| exceeds it with the part of the miss rate that S leaves."""
        return -math.log((1 - SCALE_MISS) * miss) * (1 + SLACK)

    @property
    def _log(self) -> SmoothLog:
        return SmoothLog(self.alpha, self.epsilon * (1 - ANSWER_SHARE))


def rounded_laplace(answer: int, scale: Fraction, randomness: Randomness) -> int:
    """answer + scale·Z rounded to an integer (half away from the answer), exactly."""
    halves = int(geometric(2 * scale, 1, randomness)[0])
    magnitude = (halves + 1) // 2
    return answer - magnitude if randomness.bytes(1)[0] & 1 else answer + magnitude


@lru_cache(maxsize=256)
def gamma_quantile(size: int, delta: float) -> float:
    """A number, at least `size`, that a sum of so many exponential variables exceeds with probability at most δ."""
    low, high = float(size), 2.0 * size + 1.0
    while _log_gamma_tail(size, high) > math.log(delta):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_gamma_tail(size, middle) > math.log(delta) - SLACK else (low, middle)
    return high * (1 + SLACK)


def _log_gamma_tail(size: int, distance: float) -> float:
    """ln Σ over k < size of exp(-x) x^k / k!."""
    terms = [k * math.log(distance) - math.lgamma(k + 1) for k in range(size)]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms)) - distance

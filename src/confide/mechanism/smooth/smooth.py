"""Noise and intervals from any smooth upper bound on local sensitivity, drawn exactly.

The noise is generalised Cauchy with γ = 4, density f(z) = √2 / (π(1 + z⁴)). Two suprema make it private:

    slide:  |d ln f(z) / dz| = 4|z|³/(1 + z⁴) <= 3^¾, reached at z⁴ = 3;
    dilate: |d ln(e^λ f(e^λ z)) / dλ| = |1 - 4u⁴/(1 + u⁴)| <= 3, u = e^λ z.

Let S be an α-smooth upper bound and the noise κS·Z. From D to a neighbour the answer moves by at most S, which is 1/κ
in units of the noise, and ln S by at most α; so the log-ratio of densities is at most 3^¾/κ + 3α.

No double is ever added to an answer. Z is drawn by rejection from rational proposals, with bits drawn as needed, and
what comes out is the exact real number answer + κS·Z, rounded to an integer: post-processing of the ideal mechanism.

A bound becomes smooth as the largest of what it is at each distance, discounted by how many changes that is away
(`log_largest`). Its logarithm is released so that it is rarely below what it is (`SmoothLog`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall
from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.noise.law import LARGEST_SMOOTH, SLACK
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.loss import PureDP

SLIDE: Final = Fraction(22796, 10**4)  # above 3^¾ = 2.27950...
DILATE: Final = 3
SMALLEST_SCALE: Final = 2.0**-10  # the larger of a smooth bound and a constant is a smooth bound
ROUNDING: Final = Fraction(1, 10**9)  # how much the logarithm of an S computed in double precision may be off
SMALLEST_EPSILON: Final = Fraction(1, 10**5)  # so that a step of ln S is far larger than that
# Shares of ε, α/ε, and a share of the miss rate that make the interval narrow where values lie evenly.
ANSWER_SHARE: Final = Fraction(13, 20)
SMOOTHNESS: Final = Fraction(11, 200)
SCALE_MISS: Final = 0.35
LARGEST_ALPHA: Final = Fraction(4)  # beyond, a step of ln S would be coarse, and S little smaller
ROOT2: Final = math.sqrt(2)

LOG_STEPS: Final = 64  # ln S is measured in steps of α/64

Floats = NDArray[np.float64]


def log_largest(local: Callable[[Floats], Floats], farthest: int, alpha: float) -> float:
    """ln of the largest exp(-αk) local(k) over k = 0, 1, ..., `farthest`, for a bound that never falls as k grows.

    Between two steps the bound is at most that of the later one and the discount at least that of the earlier one. So
    stretches are halved only while something larger could lie inside: about the root of `farthest` steps are looked at,
    where all of them may be more than memory holds.
    """
    begins, ends = np.zeros(1), np.full(1, float(farthest))
    largest = -math.inf
    while len(begins):
        with np.errstate(divide="ignore"):
            first, last = np.log(local(begins)), np.log(local(ends))
        largest = max(largest, float((first - alpha * begins).max()), float((last - alpha * ends).max()))
        kept = (ends - begins > 1) & (last - alpha * (begins + 1) > largest)
        begins, ends = begins[kept], ends[kept]
        middles = np.floor((begins + ends) / 2)
        begins, ends = np.concatenate([begins, middles]), np.concatenate([middles, ends])
    return largest


@dataclass(frozen=True, slots=True)
class SmoothLog:
    """Releases ln S in steps of α/64, rounded up, plus discrete Laplace noise and a margin.

    Neighbours: those between which ln S changes by at most α, and by what arithmetic in doubles adds to that. Rounding
    up to whole steps adds at most one step to the difference: `rounding` is what both add, in steps.
    Loss: ε-DP, Laplace mechanism. Interval: always valid, below ln S with probability at most `miss`.
    """

    alpha: Fraction
    epsilon: Fraction
    rounding: int = 1

    @property
    def noise(self) -> Additive:
        return laplace(LOG_STEPS + self.rounding, self.epsilon)

    def measure(self, logarithm: float, miss: float, randomness: Randomness) -> float:
        steps = math.ceil(logarithm / self._step) + int(draw(self.noise.law, 1, randomness)[0])
        return (steps + self._steps(miss)) * self._step * (1 + SLACK)

    def margin(self, miss: float) -> float:
        """About how far above ln S the released number is on average."""
        return self._steps(miss) * self._step

    @property
    def _step(self) -> float:
        return float(self.alpha) / LOG_STEPS

    def _steps(self, miss: float) -> int:
        return self.noise.law.upper(1 - Fraction(miss))


@dataclass(frozen=True, slots=True)
class Smooth:
    """Releases an integer answer plus noise scaled to a smooth bound S on its sensitivity, and an upper bound on S.

    Neighbours: those for which S is at least the local sensitivity and ln S changes by at most `alpha` + 10^-9.
    Loss: ε-DP: 3^¾/κ + 3α for the answer (see above; [Nissim2007] have 2(1+γ)/κ + 2(1+γ)α), the
    rest for ln S, whose sensitivity is α.
    Interval: always valid, Z and the noise of ln S each within their quantiles ([Sun2023], Algorithm 7).
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon < SMALLEST_EPSILON:
            raise EpsilonTooSmall("the mechanism smooth needs an epsilon of at least 0.00001 for each row of a unit")

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def alpha(self) -> Fraction:
        return min(self.epsilon * SMOOTHNESS, LARGEST_ALPHA)

    @property
    def factor(self) -> Fraction:
        """κ, from 3^¾/κ + 3α = the answer's share of ε."""
        return SLIDE / (self.epsilon * ANSWER_SHARE - DILATE * (self.alpha + ROUNDING))

    def measure(self, answer: int, bound: float, miss: float, randomness: Randomness) -> tuple[int, float]:
        """The noised answer, and a number that is at least S with probability 1 - SCALE_MISS × miss."""
        scale = min(max(bound, SMALLEST_SCALE), LARGEST_SMOOTH)
        noised = rounded_cauchy(answer, self.factor * Fraction(scale), randomness)
        return noised, math.exp(min(self._log.measure(math.log(scale), SCALE_MISS * miss, randomness), 600.0))

    def half_width(self, scale: float, miss: float) -> float:
        """|answer + noise - answer| exceeds it with probability at most (1 - SCALE_MISS) × miss if `scale` is at
        least S.
        """
        return float(self.factor) * scale * cauchy_quantile((1 - SCALE_MISS) * miss) * (1 + SLACK)

    def expected_scale(self, bound: float, miss: float) -> float:
        """What `measure` gives on average for S."""
        return max(bound, SMALLEST_SCALE) * math.exp(self._log.margin(SCALE_MISS * miss))

    @property
    def _log(self) -> SmoothLog:
        return SmoothLog(self.alpha, self.epsilon * (1 - ANSWER_SHARE))


def rounded_cauchy(answer: int, scale: Fraction, randomness: Randomness) -> int:
    """answer + scale·Z rounded to an integer (half away from the answer), exactly.

    |Z| is proposed as U or 1/U with a fair coin and accepted with probability 1/(1 + U⁴) or U²/(1 + U⁴): up to a
    constant the density 1/(1 + z⁴) on [0, 1] and beyond. U and the coin's V are known to some bits; where those do
    not tell, both get more.
    """
    while True:
        choice = randomness.bytes(1)[0]
        negative, beyond = choice & 1, choice >> 1 & 1
        u, v, bits = 0, 0, 0
        accepted = None
        while accepted is None:
            u, v = u << 64 | int.from_bytes(randomness.bytes(8)), v << 64 | int.from_bytes(randomness.bytes(8))
            bits += 64
            accepted = _accepted(u, v, bits, bool(beyond))
        if accepted:
            break
    magnitude = _rounded(u, bits, scale, bool(beyond))
    while magnitude is None:
        u, bits = u << 64 | int.from_bytes(randomness.bytes(8)), bits + 64
        magnitude = _rounded(u, bits, scale, bool(beyond))
    return answer - magnitude if negative else answer + magnitude


def _accepted(u: int, v: int, bits: int, beyond: bool) -> bool | None:
    """Whether V·(1 + U⁴) < 1, or < U² beyond 1, for U and V with these first bits; None if they do not tell."""
    unit = 1 << 4 * bits
    least, most = v * (unit + u**4), (v + 1) * (unit + (u + 1) ** 4)
    limit_low = u**2 << 3 * bits if beyond else unit << bits
    limit_high = (u + 1) ** 2 << 3 * bits if beyond else unit << bits
    if most <= limit_low:
        return True
    return False if least >= limit_high else None


def _rounded(u: int, bits: int, scale: Fraction, beyond: bool) -> int | None:
    """scale·U or scale/U, U in [u, u+1)/2^bits, to the nearest integer, if that is the same for all of these."""
    numerator, denominator = scale.numerator, scale.denominator
    if beyond and u == 0:
        return None
    if beyond:
        low = (2 * numerator << bits) + denominator * (u + 1), 2 * denominator * (u + 1)
        high = (2 * numerator << bits) + denominator * u, 2 * denominator * u
    else:
        low = 2 * numerator * u + (denominator << bits), 2 * denominator << bits
        high = 2 * numerator * (u + 1) + (denominator << bits), 2 * denominator << bits
    least, most = low[0] // low[1], high[0] // high[1]
    return least if least == most else None


def cauchy_tail(distance: float) -> float:
    """P(|Z| > distance) from the closed form of the integral of 1/(1 + z⁴)."""
    if distance > 100:
        return 2 * ROOT2 / (3 * math.pi * distance**3)  # 1/(1 + z⁴) is below 1/z⁴
    square = distance * distance
    logarithm = math.log((square + ROOT2 * distance + 1) / (square - ROOT2 * distance + 1))
    angles = math.atan(ROOT2 * distance + 1) + math.atan(ROOT2 * distance - 1)
    return 1 - (logarithm / 2 + angles) / math.pi


def cauchy_quantile(miss: float) -> float:
    """A distance that |Z| exceeds with probability at most `miss`."""
    low, high = 0.0, 1.0
    while cauchy_tail(high) > miss:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if cauchy_tail(middle) <= miss * (1 - 1e-6) else (middle, high)
    return high

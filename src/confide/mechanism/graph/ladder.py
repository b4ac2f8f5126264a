"""The ladder: a count drawn rung by rung, and an interval whose width is paid for.

A ladder of a count Q is a sequence r_0 <= r_1 <= ... with r_0 at least the local sensitivity and r_t(D') <= r_(t+1)(D)
for neighbours; local sensitivities at distance t are one. With c_t = r_0 + ... + r_(t-1) + ⌊5r_t/8⌋, a number y that is
between c_(t-1) and c_t away from Q is on rung t, on either side, and one up to c_0 away on rung 0. Neighbours move a
number by at most one rung: c_t(D) + r_0(D') <= c_(t+1)(D'), term by term. So a draw with weight exp(-rate × rung) is
private. [Zhang2015] (Theorem 4.2) leave the last term out; as of a staircase beside Laplace noise, errors are
smaller with it, by 2 % at ε = 1.

How far Q can be from the draw is W = r_0 + ... + r_(s-1), but for the share of j >= s in Σ r_j exp(-rate × j): with
h_j = 5r_j/8 a side weighs Σ exp(-rate × j)(h_j + (r_j - h_j) exp(-rate)), and what is beyond W the same sum from s
on. Rounding h_j down takes less than 7/8 from the whole, to which Q itself adds 1/2 a side, and nothing is added to
the tail; `width_rungs` allows for the 3/8. The share depends on how fast rungs grow, which is public: `Growth` bounds
it for every ladder of its kind. W is private; V = max over k of exp(-αk)(r_k + ... + r_(k+s-1)) is at least W, and ln
V moves by at most α, so V is released with a little of ε.

Nothing fails for the size of Q or of a rung: both are cut at MOST. A cut count moves by no more than the count and by
at most MOST, so cut rungs bound it; and min(r_t(D'), MOST) <= min(r_(t+1)(D), MOST). Fewer than 2^63 rows have fewer
than MOST patterns of up to three edges, so that what is cut is still the count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol

import numpy as np

from confide.errors import ParameterError
from confide.mechanism.noise.law import SLACK
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.selection.exponential import AnyIntegers, Exponential
from confide.mechanism.smooth.smooth import SmoothLog
from confide.privacy.loss import PureDP

SMALLEST_EPSILON: Final = Fraction(1, 1000)
SCALE_SHARE: Final = Fraction(1, 64)  # of ε, for V
SMOOTHNESS: Final = Fraction(1, 8)  # α as a share of the ε of V
SCALE_MISS: Final = 0.4  # of the miss rate, for V; the rest is for the draw
MOST: Final = 2**192  # of a count and of a rung
REACH: Final = 2**256  # candidates lie within it of zero: a cut count and all cut rungs together are far below it
FEWEST: Final = 4
FIRST: Final = (5, 8)  # the part of a rung that rung 0 reaches
NEGLIGIBLE: Final = 40.0  # what is beyond the last rung has a chance below exp(-40)


class Growth(Protocol):
    """How fast the rungs of some kind of ladder may grow: a public fact."""

    def __hash__(self) -> int: ...

    @property
    def degree(self) -> int:
        """exp(-αk) r_k decreases from k = degree / α + 2 on, for every ladder of the kind."""

    @property
    def floor(self) -> int:
        """The least that a rung is; smaller ones are raised to it, which keeps a ladder a ladder."""

    def tail(self, rate: float, rungs: int) -> float:
        """The largest share that rungs from `rungs` on can have of Σ r_j exp(-rate × j)."""


@dataclass(frozen=True, slots=True)
class SteadyGrowth:
    """Rungs grow by at most `step` each, by at least that in two, and are at least `floor`: triangles.

    The floor is some steps: small ladders would else grow fast, and every ladder's interval would pay for them.
    """

    step: int

    @property
    def floor(self) -> int:
        return FEWEST * self.step

    @property
    def degree(self) -> int:
        return 2

    def tail(self, rate: float, rungs: int) -> float:
        """For r_s = L·step the later rungs are at most L + i steps, the earlier at least max(floor, L - s + j).

        Both sums are linear in L between whole numbers, and from L = s + floor on, so their ratio is largest at one of
        those or in the limit.
        """
        q = math.exp(-rate)
        places = np.arange(rungs, dtype=np.float64)
        worst = q**rungs
        for level in range(FEWEST, FEWEST + rungs + 1):
            above = q**rungs * (level / (1 - q) + q / (1 - q) ** 2)
            below = float((np.maximum(FEWEST, level - rungs + places) * q**places).sum())
            worst = max(worst, above / (above + below))
        return worst


@dataclass(frozen=True, slots=True)
class PowerGrowth:
    """Rungs are f(d + j) + c, f(n) a multiple of n(n-1)...(n-power+1), d at least `first`, c not negative: stars.

    The tail is largest for c = 0, or for constant rungs, because f + c mixes the two; and for the smallest d, because
    f is log-concave, which makes the tail decrease in d.
    """

    power: int

    @property
    def first(self) -> int:
        return FEWEST * max(1, self.power)

    @property
    def floor(self) -> int:
        return math.comb(self.first, self.power)

    @property
    def degree(self) -> int:
        return max(1, self.power)

    def tail(self, rate: float, rungs: int) -> float:
        length = rungs + math.ceil((NEGLIGIBLE + self.power * math.log(rungs + 2)) / rate * 2)
        places = np.arange(length, dtype=np.float64)
        weights = np.exp(-rate * places)
        for step in range(self.power):
            weights *= self.first + places - step
        return max(math.exp(-rate * rungs), float(weights[rungs:].sum() / weights.sum())) + math.exp(-NEGLIGIBLE)


@dataclass(frozen=True, slots=True)
class Ladder:
    """Releases a count near the exact one, and a width that the two are rarely further apart than.

    Neighbours: those for which the rungs are a ladder (see above), whatever one unit is.
    Loss: ε-DP: an exponential mechanism over rungs, Δ = 1 ([Sun2023] 3.3; [Zhang2015]), and discrete
    Laplace noise on ln V, whose sensitivity is α.
    Interval: always valid for ladders of the stated growth; no union over candidates, whose number plays no role.
    """

    epsilon: Fraction
    miss: float
    growth: Growth

    def __post_init__(self) -> None:
        if self.epsilon < SMALLEST_EPSILON:
            raise ParameterError("the mechanism ladder needs an epsilon of at least 0.001; smooth takes less")

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def draw_epsilon(self) -> Fraction:
        return self.epsilon * (1 - SCALE_SHARE)

    @property
    def alpha(self) -> Fraction:
        return self.epsilon * SCALE_SHARE * SMOOTHNESS

    @property
    def width_rungs(self) -> int:
        """s: how many rungs hold the draw, but for (1 - SCALE_MISS) of the miss rate."""
        rate = float(self.draw_epsilon / 2)
        q, part = math.exp(-rate), FIRST[0] / FIRST[1]
        rounded = 3 / 8 * (1 - q) / (self.growth.floor * (part + (1 - part) * q))
        return _width_rungs(self.growth, rate, (1 - SCALE_MISS) * self.miss * (1 - rounded) * (1 - SLACK))

    @property
    def last_rung(self) -> int:
        """From here on all candidates share a score; they weigh next to nothing."""
        return math.ceil((math.log(2 * REACH) + NEGLIGIBLE) / float(self.draw_epsilon / 2))

    @property
    def length(self) -> int:
        """How many rungs `measure` wants to see."""
        return max(self.last_rung, math.ceil(self.growth.degree / self.alpha) + 3 + self.width_rungs)

    def measure(self, count: int, rungs: Sequence[int] | AnyIntegers, randomness: Randomness) -> tuple[int, int]:
        """The drawn count, and a half-width that holds with probability 1 - miss. `length` rungs, which increase."""
        cut = cut_rungs(rungs, self.growth.floor)
        return self.select(count, cut, randomness), self._width(cut, randomness)

    def select(self, count: int, rungs: AnyIntegers, randomness: Randomness) -> int:
        """The draw alone, at `draw_epsilon`."""
        last = self.last_rung
        if len(rungs) < last or count < 0:
            raise ValueError(f"a ladder takes a count that is not negative, and {last} rungs")
        count = min(count, MOST)
        ends = rung_ends(rungs[:last])
        reached = int(ends[-1])
        far = [REACH + count - reached, REACH - count - reached]
        steps, side = np.arange(last, dtype=np.int64), np.diff(ends, prepend=0)
        exponents = np.concatenate([[0], steps, steps, [last, last]])
        sizes = np.array([1, *side.tolist(), *side.tolist(), *far], dtype=object)
        mechanism = Exponential(self.draw_epsilon, 2)
        segments, places = mechanism.select(exponents, sizes, randomness)
        segment, place = int(segments[0]), int(places[0])
        if segment == 0:
            return count
        if segment <= last:
            return count - int(ends[segment - 1]) + place
        if segment <= 2 * last:
            return count + int(ends[segment - 1 - last]) - place
        return count - reached - 1 - place if segment == 2 * last + 1 else count + reached + 1 + place

    def _width(self, rungs: AnyIntegers, randomness: Randomness) -> int:
        logarithm = log_width(rungs, self.width_rungs, float(self.alpha))
        # The arithmetic in doubles adds at most one step to the difference too.
        shown = SmoothLog(self.alpha, self.epsilon * SCALE_SHARE, rounding=2)
        return math.ceil(math.exp(min(shown.measure(logarithm, SCALE_MISS * self.miss, randomness), 700.0)))


def cut_rungs(rungs: Sequence[int] | AnyIntegers, least: int) -> AnyIntegers:
    """Rungs of at least so much and at most MOST; Python integers where their sum may pass 64 bits."""
    largest = max(least, int(rungs[-1]))
    if largest * len(rungs) < 2**62:
        return np.maximum(np.asarray(rungs, dtype=np.int64), least)
    return np.array([min(max(least, int(rung)), MOST) for rung in rungs], dtype=object)


def rung_ends(rungs: AnyIntegers) -> AnyIntegers:
    """c_t: how far rung t reaches on either side."""
    ends: AnyIntegers = np.cumsum(rungs) - rungs + rungs * FIRST[0] // FIRST[1]
    return ends


@lru_cache(maxsize=256)
def _width_rungs(growth: Growth, rate: float, miss: float) -> int:
    high = 1
    while growth.tail(rate, high) > miss:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if growth.tail(rate, middle) <= miss else (middle, high)
    return high


def log_width(rungs: AnyIntegers, width: int, alpha: float) -> float:
    """ln V: an α-smooth upper bound of r_0 + ... + r_(width-1), to 10^-9. Sums are exact."""
    sums = np.concatenate([[0], np.cumsum(rungs)])
    windows = (sums[width:] - sums[:-width]).astype(np.float64)
    return float((np.log(np.maximum(windows, 1.0)) - alpha * np.arange(len(windows))).max()) + 1e-9

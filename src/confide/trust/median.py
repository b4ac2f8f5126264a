"""Quantiles as deciders, estimated by the exponential mechanism ([Patwa2023], section 6.1), or from a histogram."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import Law, Randomness, draw, laplace
from confide.mechanism.noise.law import LARGEST_SHIFT, LARGEST_WALK, keep_scale
from confide.mechanism.quantile.pair import tie_segments
from confide.mechanism.selection.exponential import Exponential
from confide.mechanism.tally import Domain, Integers, Tally
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, shared_noise
from confide.trust.margin import sides_of
from confide.trust.seen import Reading, Seen, Sides, Values
from confide.trust.target import CAUTION, Facts, Prefer, Target

_SPAN: Final = 40  # scales; noise beyond has probability e^-40


@dataclass(frozen=True, slots=True)
class Selected:
    """Releases whether a value drawn by the exponential mechanism lies in the interval (EM_med).

    Neighbours: add-remove, `rows` rows per unit. Loss: ε-DP, [McSherryTalwar2007], drawn exactly, in log space.
    `exponential` scores a value by |#{x<y} - qn| with sensitivity 1, as published: biased upward by a step on ties.
    `tie-aware` scores it by the distance of qn from [#{x<y}, #{x<=y}], whose sensitivity is max(q, 1 - q).
    """

    target: Target
    q: Fraction
    domain: Domain
    rows: int
    epsilon: Fraction
    ties: bool
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""
    wrong_yes: ClassVar[None] = None

    @classmethod
    def published(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Selected":
        return cls._make(facts, target, epsilon, prefer, False)

    @classmethod
    def tie_aware(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Selected":
        return cls._make(facts, target, epsilon, prefer, True)

    @classmethod
    def _make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer, ties: bool) -> "Selected":
        name = "tie-aware" if ties else "exponential"
        domain = facts.bounded(name)
        if prefer == "cautious":
            raise ParameterError(f"{name} has no bound on a wrong yes; for prefer='cautious' use optimal or histogram")
        assert facts.q is not None
        return cls(target, facts.q, domain, facts.rows, epsilon, ties)

    @property
    def name(self) -> str:
        return "tie-aware" if self.ties else "exponential"

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return Values()

    @property
    def mechanism(self) -> Exponential:
        """Scores are in units of 1/d rows."""
        p, d = self.q.numerator, self.q.denominator
        return Exponential(self.epsilon / self.rows, 2 * (max(p, d - p) if self.ties else d))

    def chance(self, seen: Seen) -> float:
        starts, sizes, exponents = self._segments(seen)
        low, high = max(self.target.first, self.domain[0]), min(self.target.last, self.domain[1])
        first, last = np.maximum(starts, low), np.minimum(starts + sizes - 1, high)
        inside = np.where(sizes > 0, np.maximum(last - first + 1, 0), 0)
        least = int(exponents[sizes > 0].min())
        # Of segments that hold nothing the exponents may be below all others.
        beyond = np.maximum(exponents - least, 0).astype(np.float64)
        weights = np.exp(np.maximum(-float(self.mechanism.rate) * beyond, -745.0))
        return float((weights * inside).sum() / (weights * sizes).sum())

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        starts, sizes, exponents = self._segments(seen)
        segments, places = self.mechanism.select(exponents, sizes, randomness, count)
        drawn = starts[segments] + places
        bits: Bits = (drawn >= self.target.first) & (drawn <= self.target.last)
        return bits

    def _segments(self, seen: Seen) -> tuple[Integers, Integers, Integers]:
        assert isinstance(seen, Tally)
        tally = seen.clipped(*self.domain)
        starts, sizes, below, upto = tie_segments(tally, self.domain)
        p, d = self.q.numerator, self.q.denominator
        place = p * tally.rows
        if d * tally.rows >= LARGEST_SHIFT:
            below, upto = below.astype(object), upto.astype(object)
        if not self.ties:
            exponents = np.abs(d * below - place)
        else:
            exponents = np.maximum(np.maximum(d * below - place, place - d * upto), 0)
        # A cut from above lets no exponent change by more than it did.
        return starts, sizes, np.minimum(exponents, LARGEST_SHIFT).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Releases whether neither side of the interval seems to hold the quantile (Hist_med).

    Neighbours: add-remove, `rows` rows per unit; the two sides are disjoint. Loss: ε-DP, Laplace mechanisms: ε/2 for
    the number of rows, ε/2 for the two sides in parallel. [Patwa2023], Algorithm 3, with line 10 put right: with m =
    ⌈qn⌉ the quantile is at or above r exactly if #{x >= r} > n - m, not if it is at least m.
    """

    q: Fraction
    sides: Sides
    rows: int
    epsilon: Fraction
    prefer: Prefer = "balanced"
    name: ClassVar[str] = "histogram"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""

    def __post_init__(self) -> None:
        keep_scale(2 * self.rows / self.epsilon, LARGEST_WALK, "the noise of a number of rows")

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Histogram":
        assert facts.q is not None
        return cls(facts.q, sides_of(facts, target), facts.rows, epsilon, prefer)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return self.sides

    @property
    def law(self) -> Law:
        return laplace(self.rows, self.epsilon / 2).law

    @property
    def shift(self) -> int:
        """Cautious: all three noises stay within it but for CAUTION; the number of rows counts at most once more."""
        return 2 * self.law.half_width(1 - CAUTION / 3) + 1 if self.prefer == "cautious" else 0

    @property
    def wrong_yes(self) -> float | None:
        return float(CAUTION) if self.prefer == "cautious" else None

    def chance(self, seen: Seen) -> float:
        assert isinstance(seen, tuple)
        rows, below, above = seen
        law = self.law
        noises, weights = shared_noise(law, math.ceil(_SPAN * self.rows * 2 / self.epsilon))
        noised = rows + noises.astype(np.int64)
        place = self._place(noised)
        left = 1 - law.tails((place - below - self.shift - 1).astype(float))
        right = 1 - law.tails((noised - place - above - self.shift).astype(float))
        return float((weights * left * right).sum())

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        assert isinstance(seen, tuple)
        rows, below, above = seen
        noised = rows + draw(self.law, count, randomness)
        left, right = (side + draw(self.law, count, randomness) for side in (below, above))
        place = self._place(noised)
        bits: Bits = (left + self.shift < place) & (right + self.shift <= noised - place)
        return bits.astype(bool)

    def _place(self, rows: Integers) -> Integers:
        """⌈qn⌉, the first for the smallest value."""
        p, d = self.q.numerator, self.q.denominator
        if p == 0:
            return np.ones_like(rows)
        wide = rows.astype(object) if p * int(np.abs(rows).max(initial=1)) >= 2**62 else rows
        place: Integers = -(-p * wide // d)
        return place

"""Deciders that compare a noised answer with the interval ([Patwa2023], Algorithm 1)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import Law, Randomness, draw, laplace
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, between, shared_noise
from confide.trust.seen import Reading, Seen, Totals, WholeCell
from confide.trust.target import CAUTION, Facts, Prefer, Target

_SPAN = 40  # scales; noise beyond has probability e^-40


@dataclass(frozen=True, slots=True)
class PlugIn:
    """Releases whether a count or a sum, with discrete Laplace noise, lies in the interval (LM_count, LM_sum).

    Neighbours: those between which all groups together change by at most `sensitivity`. Loss: ε-DP, Laplace mechanism.
    [Patwa2023], sections 4.1 and 5.1, for add-remove, where the sensitivity of a sum is max|a|, not max a - min a.
    Where the interval is narrow beside the noise it says no nearly always.
    """

    target: Target
    sensitivity: int
    epsilon: Fraction
    prefer: Prefer = "balanced"
    name: ClassVar[str] = "laplace"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "PlugIn":
        if facts.whole is None:
            facts.bounded(cls.name)
            raise ParameterError("the decider laplace takes counts, sums and means; quantiles have others")
        return cls(target, facts.whole, epsilon, prefer)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return WholeCell()

    @property
    def law(self) -> Law:
        return laplace(self.sensitivity, self.epsilon).law

    @property
    def ends(self) -> tuple[int, int]:
        """The noised answers that mean yes; a cautious interval is narrower at both ends, and may be empty."""
        shift = self.law.upper(1 - CAUTION) if self.prefer == "cautious" else 0
        return self.target.first + shift, self.target.last - shift

    @property
    def wrong_yes(self) -> float:
        return max(self.chance(self.target.first - 1), self.chance(self.target.last + 1))

    def chance(self, seen: Seen) -> float:
        assert isinstance(seen, int)
        first, last = self.ends
        return between(self.law, first - seen, last - seen)

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        assert isinstance(seen, int)
        first, last = self.ends
        noise = draw(self.law, count, randomness)
        bits: Bits = (noise >= first - seen) & (noise <= last - seen)
        return bits.astype(bool)


@dataclass(frozen=True, slots=True)
class PlugInMean:
    """Releases whether a noised sum divided by a noised count lies in the interval.

    Neighbours: add-remove, `rows` rows per unit. Loss: ε-DP, two Laplace mechanisms at ε/2 ([Patwa2023], section 6.2).
    The sum is taken about the middle of the range, so that one row changes it by half of that. A count below 1 is a no.
    """

    target: Target
    centre: int
    reach: int
    rows: int
    epsilon: Fraction
    name: ClassVar[str] = "laplace"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""
    wrong_yes: ClassVar[None] = None

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "PlugInMean":
        low, high = facts.bounded(cls.name)
        if prefer == "cautious":
            raise ParameterError("a mean by laplace has no bound on a wrong yes; for prefer='cautious' use optimal")
        centre = (low + high) // 2
        return cls(target, centre, max(centre - low, high - centre, 1), facts.rows, epsilon)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return Totals()

    @property
    def laws(self) -> tuple[Law, Law]:
        """Of the sum and of the count."""
        return laplace(self.rows * self.reach, self.epsilon / 2).law, laplace(self.rows, self.epsilon / 2).law

    def chance(self, seen: Seen) -> float:
        total, rows = self._about_centre(seen)
        sum_law, count_law = self.laws
        noises, weights = shared_noise(count_law, math.ceil(_SPAN * self.rows * 2 / self.epsilon))
        counts = rows + noises[rows + noises > 0]
        low, high = (float(end - self.centre) for end in (self.target.low, self.target.high))
        inside = sum_law.tails(np.floor(low * counts) - total) - sum_law.tails(np.ceil(high * counts) - 1 - total)
        return float((weights[rows + noises > 0] * np.maximum(inside, 0)).sum())

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        total, rows = self._about_centre(seen)
        sum_law, count_law = self.laws
        totals = total + draw(sum_law, count, randomness).astype(object)
        counts = rows + draw(count_law, count, randomness).astype(object)
        low, high = self.target.low - self.centre, self.target.high - self.centre
        above = totals * low.denominator > counts * low.numerator
        under = totals * high.denominator < counts * high.numerator
        return np.asarray(above & under & (counts > 0), dtype=bool)

    def _about_centre(self, seen: Seen) -> tuple[int, int]:
        assert isinstance(seen, tuple)
        return seen[0] - self.centre * seen[1], seen[1]

"""The decider that errs least: its acceptance grows as fast as privacy allows, from ½ at the edge of the interval.

Let p(D) be the probability of yes. Privacy lets it change between neighbours by p' <= min(e^ε p, 1 - e^-ε (1 - p)). A
decider that errs as often on both sides of an edge errs there with probability at least 1/(1 + e^ε). Growing from
there as fast as allowed, p at a margin of M steps is 1 - e^(-(M-1)ε)/(1 + e^ε) inside and e^(Mε)/(1 + e^ε) outside.
That is P(M + Z >= 1) for discrete Laplace noise Z of scale 1/ε: one exact draw. No decider that is as good at the edge
is better anywhere, if the margin is the number of steps to the edge.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from confide.mechanism import Law, Randomness, draw, laplace
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, reaches
from confide.trust.margin import Margin, margin_of
from confide.trust.seen import Reading, Seen
from confide.trust.target import CAUTION, DELTA, Facts, Prefer, Steps, Target


@dataclass(frozen=True, slots=True)
class Optimal:
    """Releases whether the least margin, with discrete Laplace noise, is at least 1 (plus a shift if cautious).

    Neighbours: those between which every margin changes by at most one step. Loss: ε-DP, one Laplace noise on the least
    margin, which changes by at most one step as well; so an interval costs as much as one edge, not twice.
    Theorem: [Ghosh2012]; for tests [AwanSlavkovic2018]. [Patwa2023], section 4, has no
    such decider: beside its two the error at the centre is half of the Laplace one and there is no floor outside.
    """

    margin: Margin
    epsilon: Fraction
    prefer: Prefer = "balanced"
    name: ClassVar[str] = "optimal"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Optimal":
        return cls(margin_of(facts, target, epsilon), epsilon, prefer)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return self.margin.reading

    @property
    def law(self) -> Law:
        return laplace(1, self.margin.epsilon).law

    @property
    def shift(self) -> int:
        """At the edge, noise exceeds it with a probability of at most CAUTION."""
        return self.law.upper(1 - CAUTION) if self.prefer == "cautious" else 0

    @property
    def wrong_yes(self) -> float:
        return reaches(self.law, 1 + self.shift)

    def chance(self, seen: Seen) -> float:
        return reaches(self.law, 1 + self.shift - self.margin.of(seen))

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        # Compared and not added: a margin may be far beyond 64 bits, and nothing may fail after the charge.
        bits: Bits = draw(self.law, count, randomness) >= 1 + self.shift - self.margin.of(seen)
        return bits.astype(bool)


def effective_margin(steps: Steps) -> int:
    """The least margin at which a balanced decider errs with a probability of at most DELTA."""
    return steps.law.upper(1 - DELTA) * steps.size + 1

"""Deciders by the exponential mechanism on the two outcomes yes and no ([Patwa2023], section 4.2)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from confide.errors import ParameterError
from confide.mechanism import Randomness
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, logistic, logistic_coin
from confide.trust.margin import Margin, margin_of
from confide.trust.seen import Reading, Seen, WholeCell
from confide.trust.target import Facts, Prefer, Target

CAUTIOUS_ODDS: Final = Fraction(29_445, 10_000)  # just above ln 19: one wrong yes in twenty


@dataclass(frozen=True, slots=True)
class Graded:
    """Releases yes with log-odds (ε/Δ)·(τ - gap), cut at ±ετ/Δ: the score u' of the paper (EM_count).

    Neighbours: those between which all groups together change by at most `sensitivity` = Δ. Loss: ε-DP: the log-odds
    change by at most ε, and log p and log(1 - p) change by no more than them.
    [Patwa2023], Proposition 4.5, for counts; for sums by the same proof. The cut leaves an error of 1/(1 + e^(ετ/Δ))
    however far apart the answers are.
    """

    target: Target
    sensitivity: int
    epsilon: Fraction
    prefer: Prefer = "balanced"
    name: ClassVar[str] = "exponential"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Graded":
        if facts.whole is None:
            facts.bounded(cls.name)
            raise ParameterError("the decider exponential with graded scores takes counts and sums")
        return cls(target, max(1, facts.whole), epsilon, prefer)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return WholeCell()

    @property
    def wrong_yes(self) -> float:
        return max(self.chance(self.target.first - 1), self.chance(self.target.last + 1))

    def log_odds(self, seen: Seen) -> Fraction:
        assert isinstance(seen, int)
        tau = self.target.tau
        depth = min(max(tau - abs(seen - self.target.answer), -tau), tau)
        return self.epsilon * depth / self.sensitivity - (CAUTIOUS_ODDS if self.prefer == "cautious" else 0)

    def chance(self, seen: Seen) -> float:
        return logistic(float(self.log_odds(seen)))

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        return logistic_coin(self.log_odds(seen), randomness, count)


@dataclass(frozen=True, slots=True)
class Naive:
    """Releases the right bit with log-odds ε/2, the wrong one otherwise: EM_count^naive, kept for comparison.

    Neighbours: any. Loss: ε-DP, exponential mechanism with a score of sensitivity 1 ([Patwa2023], Proposition 4.4). Its
    error is 1/(1 + e^(ε/2)) whatever τ is.
    """

    margin: Margin
    epsilon: Fraction
    prefer: Prefer = "balanced"
    name: ClassVar[str] = "exponential-naive"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Naive":
        if not facts.single:
            raise ParameterError(
                "the decider exponential-naive takes groups only where one unit is in one of them; use optimal"
            )
        return cls(margin_of(facts, target, epsilon), epsilon, prefer)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return self.margin.reading

    @property
    def wrong_yes(self) -> float:
        return logistic(float(self._log_odds(False)))

    def chance(self, seen: Seen) -> float:
        return logistic(float(self._log_odds(self.margin.of(seen) > 0)))

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        return logistic_coin(self._log_odds(self.margin.of(seen) > 0), randomness, count)

    def _log_odds(self, inside: bool) -> Fraction:
        shift = max(Fraction(0), CAUTIOUS_ODDS - self.epsilon / 2) if self.prefer == "cautious" else 0
        return (self.epsilon if inside else -self.epsilon) / 2 - shift

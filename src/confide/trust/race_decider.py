"""Sums by racing truncations to the top, as a decider ([Patwa2023], section 5.2)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import DiscreteLaplace, Randomness, draw
from confide.mechanism.noise.law import Floats
from confide.mechanism.race import best, powers_of_two
from confide.mechanism.tally import Buckets, signs_between
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, laplace_law
from confide.trust.seen import Powers, Reading, Seen
from confide.trust.target import Facts, Prefer, Target

MISS: Final = 0.05  # β of the paper
PARTS: Final = 31
RESOLUTION: Final = 1 << 12  # a sum divided by its truncation is a multiple of this part of one
HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class Raced:
    """Releases whether the largest of L lowered, noised, truncated sums lies in the interval (R2T_sum).

    Neighbours: add-remove, `rows` rows per unit; a row changes the sum of the values up to 2^j by at most 2^j, so by 1
    in parts of 2^j, and has one sign, so the parts of both signs get all of ε each. Loss: ε-DP, L Laplace mechanisms at
    ε/L ([Dong2022]; see `mechanism.race`).
    [Patwa2023], equations 11 and 12, with L = ⌈log₂ GS⌉ rounded up, and with their penalty, ln(L/β) scales. It
    underestimates, so it says no where it is unsure.
    """

    target: Target
    edges: tuple[int, ...]
    signs: tuple[int, ...]
    rows: int
    epsilon: Fraction
    name: ClassVar[str] = "r2t"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""
    wrong_yes: ClassVar[None] = None

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "Raced":
        low, high = facts.bounded(cls.name)
        if prefer == "cautious":
            raise ParameterError("r2t has no bound on a wrong yes; for prefer='cautious' use optimal, laplace or clip")
        return cls(target, powers_of_two(max(abs(low), abs(high))), signs_between(low, high), facts.rows, epsilon)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return Powers(self.edges)

    @property
    def law(self) -> DiscreteLaplace:
        """Of every truncated sum, in parts of its truncation: one law for all, so that one call draws them."""
        return laplace_law(self.rows * RESOLUTION, self.epsilon / len(self.edges))

    def chance(self, seen: Seen) -> float:
        assert isinstance(seen, Buckets)
        first, last = (float(end) for end in self._ends)
        if self.signs == (0,):
            first, last = -last, -first
        # Where both signs occur, the average over the estimate of the negative part.
        negative = self._quantiles(seen) if len(self.signs) > 1 else np.zeros(1)
        chances = self._upto(seen, negative + last, self.signs[-1]) - self._upto(
            seen, negative + first - 1, self.signs[-1]
        )
        return float(np.maximum(chances, 0).mean())

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        assert isinstance(seen, Buckets)
        estimate = np.zeros(count, dtype=object)
        noises = draw(self.law, (len(self.signs), len(self.edges), count), randomness).astype(object)
        for sign, noise in zip(self.signs, noises, strict=True):
            lanes = zip(self._lowered(seen, sign), self.edges, noise, strict=True)
            raced = best((own + lowered) * edge for lowered, edge, own in lanes)
            estimate = estimate + raced if sign else estimate - raced
        first, last = self._ends
        bits: Bits = np.asarray((estimate >= first) & (estimate <= last), dtype=bool)
        return bits

    @property
    def _ends(self) -> tuple[int, int]:
        """The least and the largest estimate inside the interval, in parts of one."""
        low, high = RESOLUTION * self.target.low, RESOLUTION * self.target.high
        return math.floor(low) + 1, math.ceil(high) - 1

    def _lowered(self, seen: Buckets, sign: int) -> list[int]:
        """The truncated sums in parts of their truncations, rounded down, and lowered by what noise rarely exceeds."""
        penalty = math.ceil(float(self.law.scale) * math.log(len(self.edges) / MISS))
        sums = zip(seen.sums_upto(sign), self.edges, strict=True)
        return [RESOLUTION * total // edge - penalty for total, edge in sums]

    def _upto(self, seen: Buckets, most: Floats, sign: int) -> Floats:
        """P(estimate <= most), in parts of one, for one sign: that every lowered sum is at most that, and so is 0."""
        chance: Floats = np.where(most < 0, 0.0, 1.0)
        law = self.law
        for lowered, edge in zip(self._lowered(seen, sign), self.edges, strict=True):
            chance *= 1 - law.tails(np.floor(most / edge) - float(lowered))
        return chance

    def _quantiles(self, seen: Buckets) -> Floats:
        """Of the estimate of the negative part, at the middles of equal parts of probability."""
        shares = (np.arange(PARTS) + 0.5) / PARTS
        low, high = np.full(PARTS, -1.0), np.ones(PARTS)
        while np.any(short := self._upto(seen, high, 0) < shares):
            high[short] *= 4
        for _ in range(HALVINGS):
            middle = np.floor((low + high) / 2)
            short = self._upto(seen, middle, 0) < shares
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high

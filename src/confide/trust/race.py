"""Sums by racing truncations to the top, as a decider (deciders, section 5.2)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import DiscreteLaplace, Randomness, draw
from confide.mechanism.law import Floats
from confide.mechanism.tally import Buckets
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, laplace_law
from confide.trust.facts import Facts, Prefer
from confide.trust.reading import Powers, Reading, Seen
from confide.trust.target import Target

MISS: Final = 0.05  # β of the paper
PARTS: Final = 31
HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class Raced:
    """Releases whether the largest of L lowered, noised, truncated sums lies in the interval (R2T_sum).

    Neighbours: add-remove, `rows` rows per unit; a row changes the sum of the values up to 2^j by at most 2^j, and has
    one sign, so the parts of both signs get all of ε each. Loss: ε-DP, L Laplace mechanisms at ε/L (Dong et al. 2022).
    Deciders, equations 11 and 12, with L = ⌈log₂ GS⌉ rounded up. It underestimates, so it says no where it is unsure.
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
        signs = tuple(sign for sign, possible in enumerate((low < 0, high > 0)) if possible)
        return cls(target, powers_of_two(max(abs(low), abs(high))), signs or (1,), facts.rows, epsilon)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return Powers(self.edges)

    @property
    def laws(self) -> tuple[DiscreteLaplace, ...]:
        share = self.epsilon / len(self.edges)
        return tuple(laplace_law(self.rows * edge, share) for edge in self.edges)

    @property
    def levels(self) -> list[tuple[DiscreteLaplace, int]]:
        """The noise of each truncated sum, and by how much it is lowered."""
        level = math.log(len(self.edges) / MISS)
        return [(law, math.ceil(float(law.scale) * level)) for law in self.laws]

    def chance(self, seen: Seen) -> float:
        assert isinstance(seen, Buckets)
        first, last = float(self.target.first), float(self.target.last)
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
        estimate, levels = np.zeros(count, dtype=object), self.levels
        for sign in self.signs:
            raced = np.zeros(count, dtype=object)
            for total, (law, penalty) in zip(self._sums(seen, sign), levels, strict=True):
                raced = np.maximum(raced, draw(law, count, randomness).astype(object) + (total - penalty))
            estimate = estimate + raced if sign else estimate - raced
        bits: Bits = np.asarray((estimate >= self.target.first) & (estimate <= self.target.last), dtype=bool)
        return bits

    def _sums(self, seen: Buckets, sign: int) -> list[int]:
        return [int(total) for total in np.cumsum(seen.sums[sign].astype(object))]

    def _upto(self, seen: Buckets, most: Floats, sign: int) -> Floats:
        """P(estimate <= most) for the part of one sign: every lowered sum is, and 0 is."""
        chance: Floats = np.where(most < 0, 0.0, 1.0)
        for total, (law, penalty) in zip(self._sums(seen, sign), self.levels, strict=True):
            chance *= 1 - law.tails(most - float(total - penalty))
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


def powers_of_two(largest: int) -> tuple[int, ...]:
    """2, 4, 8, ... up to the first that is not below the largest value: rounding down would drop that for good."""
    return tuple(2**step for step in range(1, max(1, (largest - 1).bit_length()) + 1))

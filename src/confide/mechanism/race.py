"""The race to the top (R2T): a total without a good bound on what one unit adds to it, truncated at many levels.

F(τ), what is left of a total at level τ, is never above the total, and is the total where no unit has more than τ. One
unit changes it by no more than τ allows: a low level has little noise, a high one loses little. Each level runs in a
lane of its own. F(τ) with noise, lowered by a penalty that the noise rarely exceeds, is rarely above the total; so is
the best of the lanes, and no level has to be chosen ([Dong2022]; deciders, equations 11 to 13).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.noise.randomness import Randomness

FIRST_HEAT: Final = Fraction(1, 2)  # of ε, for all lanes but the last together


@dataclass(frozen=True, slots=True)
class Lanes:
    """Releases F at several levels with noise, one a lane, and from them a lower and an upper end of the total.

    Neighbours: those between which what runs in each lane changes by at most its one of the `sensitivities`.
    Loss: ε-DP, Laplace mechanisms: half of ε for the first lanes in equal parts, half for the last; all if it is alone.
    Lower end: above the total at most `below` often, `below`/L in each of L lanes. Upper end: below what F is in the
    last lane at most `above` often.
    """

    sensitivities: tuple[int, ...]
    epsilon: Fraction
    below: float
    above: float

    @property
    def noises(self) -> tuple[Additive, ...]:
        *first, last = self.sensitivities
        if not first:
            return (laplace(last, self.epsilon),)
        each = self.epsilon * FIRST_HEAT / len(first)
        return (*(laplace(one, each) for one in first), laplace(last, self.epsilon * (1 - FIRST_HEAT)))

    @property
    def penalties(self) -> tuple[int, ...]:
        """By how much each lane is lowered."""
        each = 1 - Fraction(self.below / len(self.sensitivities))
        return tuple(noise.law.upper(each) for noise in self.noises)

    @property
    def margin(self) -> int:
        """By how much the last lane is raised."""
        return self.noises[-1].law.upper(1 - Fraction(self.above))

    def run(self, totals: Sequence[int], randomness: Randomness) -> tuple[int, int, int]:
        """The lower end, the last lane with its noise, and the upper end; `totals` are what F is in each lane."""
        noised = self.noised(totals, randomness)
        low, high = self.low(noised), noised[-1] + self.margin
        return low, noised[-1], high if high > low else low + self.margin

    def noised(self, totals: Sequence[int], randomness: Randomness) -> list[int]:
        """What F is in each lane, with noise."""
        return [noise.noised(total, randomness) for noise, total in zip(self.noises, totals, strict=True)]

    def low(self, noised: Sequence[int]) -> int:
        return int(best(value - penalty for value, penalty in zip(noised, self.penalties, strict=True)))

    def high(self, lane: int, noised: Sequence[int]) -> int:
        """An upper end for F in that lane. It is too low at most `above` often."""
        return noised[lane] + self.noises[lane].law.upper(1 - Fraction(self.above))


def best(lowered: Iterable[Any]) -> Any:
    """The largest of the lanes' lower bounds, or 0, which is a lower bound too; in one run or in many."""
    return np.array(list(lowered), dtype=object).max(axis=0, initial=0)


def powers_of_two(largest: int) -> tuple[int, ...]:
    """2, 4, 8, ... up to the first that is not below the largest value: rounding down would drop that for good."""
    return tuple(2**step for step in range(1, max(1, (largest - 1).bit_length()) + 1))

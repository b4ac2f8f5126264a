"""The commonest of some declared values, and which of them may be it: a histogram with noise, and its largest count.

Which values are possible. Let n_v be the noise of value v, all of one law, and M the largest of the k noised counts.
A value is possible if its noised count is at least M - t. The commonest value m is left out only if some other w has
c_w + n_w > c_m + n_m + t, where c_w <= c_m: so only if n_w - n_m > t for one of the k - 1 others. By the union bound
that happens with a probability of at most (k - 1) P(X - Y > t), for independent X and Y of the law; t is the least
whole number for which this is no more than the miss rate. Of several equally common values each is so covered.

Whether there is one. In a group without rows nothing is commonest. If all counts are zero, M passes u with a
probability of at most k P(X > u); so where M does not pass such a u, every value is possible, and so is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Assumes, Interval
from confide.mechanism.interval.linear import combined_half_width
from confide.mechanism.noise.additive import Additive, gaussian, laplace
from confide.mechanism.noise.law import Confidence, Law
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.statistic import Setting, StatisticEstimate, StatisticForecast, StatisticPlan, choose
from confide.mechanism.tally import Tally
from confide.privacy.loss import ZCDP, PureDP

MOST_AT_ONCE: Final = 1 << 20
"""Counts that are noised in one go."""
_WIDE: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class CommonestPlan:
    """Releases the place with the largest of the noised counts of some values, and all places within t of it.

    Neighbours: those for which the L1 or L2 distance of all counts of all groups is what the noise was made for.
    Loss: ε-DP, or ρ-zCDP with ρ = ε²/2: that of the noised counts, of which all else is a function.
    Source: [Ghosh2012] and [Canonne2020] for the noise; what is made of it is post-processing.
    Interval: always valid, by the union bound at the head of the module, from the exact law of the difference.
    """

    setting: Setting
    places: tuple[int, ...]
    additive: Additive
    assumes: ClassVar[Assumes] = "always"
    condition: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return self.additive.name

    @property
    def loss(self) -> PureDP | ZCDP:
        loss = self.additive.loss
        assert isinstance(loss, PureDP | ZCDP)
        return loss

    @property
    def zcdp(self) -> ZCDP:
        return ZCDP(self.setting.epsilon**2 / 2)

    @property
    def forecast(self) -> StatisticForecast:
        return StatisticForecast(float(self.apart), "the noise alone says how many rows tell two values apart")

    @property
    def apart(self) -> int:
        """How many rows a noised count may be behind the largest one, and its value still be possible."""
        return rows_apart(self.additive.law, len(self.places), self.setting.confidence)

    @property
    def nothing(self) -> int:
        """What the largest of the noised counts of no rows exceeds within the miss rate."""
        return largest_of_nothing(self.additive.law, len(self.places), self.setting.confidence)

    def window(self) -> None:
        """It looks at all values."""

    def measure(self, tally: Tally, randomness: Randomness) -> StatisticEstimate:
        return self.measure_each([tally], randomness)[0]

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        step = max(1, MOST_AT_ONCE // len(self.places))
        parts = (tallies[first : first + step] for first in range(0, len(tallies), step))
        return [own for part in parts for own in self._measured(counts_at(part, self.places), randomness)]

    def _measured(self, counts: NDArray[np.int64], randomness: Randomness) -> list[StatisticEstimate]:
        noised: Any = self.additive.measure(counts, randomness).values
        apart, nothing = self.apart, self.nothing
        if max(apart, nothing) >= _WIDE:
            noised = noised.astype(object)
        largest = noised.max(axis=1)
        near = np.asarray(noised >= (largest - apart)[:, None], dtype=bool)
        unknown = np.asarray(largest <= nothing, dtype=bool) | (near.all(axis=1) & (len(self.places) > 1))
        near[unknown] = True
        found = []
        for row, whole, first in zip(near, unknown, noised.argmax(axis=1), strict=True):
            possible = tuple(self.places[at] for at in np.flatnonzero(row))
            ends = Interval(possible[0], possible[-1], self.setting.confidence)
            found.append(StatisticEstimate(self.places[int(first)], ends, bool(whole), possible))
        return found


def rows_apart(law: Law, values: int, confidence: Confidence) -> int:
    """The least t for which (k - 1) P(X - Y > t) is proven to be within the miss rate."""
    if values < 2:
        return 0
    # P(X - Y > t) is half of P(|X - Y| > t).
    miss = 2 * (1 - Fraction(confidence)) / (values - 1)
    return ceil(combined_half_width([(1, law), (-1, law)], 1 - miss)) if miss < 1 else 0


def largest_of_nothing(law: Law, values: int, confidence: Confidence) -> int:
    """The least u for which k P(X > u) is proven to be within the miss rate."""
    return law.upper(1 - (1 - Fraction(confidence)) / values)


def counts_at(tallies: Sequence[Tally], places: Sequence[int]) -> NDArray[np.int64]:
    """Of each tally how many rows have the values at some places, in increasing order; others are not counted."""
    wanted = np.array(places, dtype=np.int64)
    table = np.zeros((len(tallies), len(wanted)), dtype=np.int64)
    for row, tally in enumerate(tallies):
        columns = np.minimum(np.searchsorted(wanted, tally.values), len(wanted) - 1)
        known = wanted[columns] == tally.values
        table[row, columns[known]] = tally.counts[known]
    return table


def commonest_plan(
    setting: Setting, places: tuple[int, ...], l1: int, l2_squared: int, mechanism: str = "auto"
) -> StatisticPlan:
    """The plan with a noise by its name; `auto` takes the one that tells values apart best.

    `l1` and `l2_squared` are what one unit changes of all counts of all groups. With a δ, ε stands for ρ = ε²/2.
    """
    makers = {"laplace": partial(CommonestPlan, setting, places, laplace(l1, setting.epsilon))}
    if setting.delta:
        makers["gaussian"] = partial(CommonestPlan, setting, places, gaussian(l2_squared, setting.epsilon**2 / 2))
    return choose(makers, mechanism.removeprefix("discrete "))

"""Sums by racing truncations to the top (R2T), for one table."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.race import Lanes, powers_of_two
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally, bucketed, signs_between
from confide.mechanism.total.summation import SumSpan, centre_of, shifted


@dataclass(frozen=True, slots=True)
class RacedSum:
    """Releases for each τ = 2, 4, 8, ... the sum of the values up to τ with noise, and the best lower bound of them.

    Neighbours: add-remove or replace-one; a row changes the sum up to τ by at most τ. Negative values are summed
    apart: a row has one sign, so under add-remove each part gets all of ε, under replace-one half.
    Loss: ε-DP, that of `Lanes` ([Patwa2023], equations 11 and 12; [Dong2022]). Interval: always valid. The published
    guarantee is one-sided, the estimate is rarely above the sum; the upper end comes from the largest τ >= GS, which
    drops nothing and gets half of ε instead of 1/L.
    """

    setting: Setting
    name: ClassVar[str] = "r2t"
    assumes: ClassVar[Assumes] = "always"
    count_share: ClassVar[Fraction] = Fraction(1, 6)

    def __post_init__(self) -> None:
        self.setting.bound(self.name, "svt")

    def condition(self, epsilon: Fraction, miss: float, centred: bool) -> str:
        return ""

    def edges(self, centred: bool) -> tuple[int, ...]:
        centre, (low, high) = centre_of(self.setting.ends, centred), self.setting.ends
        return powers_of_two(max(abs(low - centre), abs(high - centre)))

    def prepare(self, epsilon: Fraction, miss: float, centred: bool) -> None:
        _ = self._lanes(epsilon, miss, centred).noises

    def expected(self, epsilon: Fraction, miss: float, centred: bool, expectation: Expectation) -> float:
        lanes = self._lanes(epsilon, miss, centred)
        edges = lanes.sensitivities
        spread = expectation.spread if expectation.spread is not None else edges[-1]
        lane = min(int(np.searchsorted(edges, spread)), len(edges) - 1)
        return float(len(self._signs(centred)) * (lanes.penalties[lane] + lanes.margin))

    def off_centre(self, expectation: Expectation) -> float:
        low, high = self.setting.ends
        return (expectation.spread if expectation.spread is not None else high - low) / 2

    def span(self, tally: Tally, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness) -> SumSpan:
        centre, lanes = centre_of(self.setting.ends, centred), self._lanes(epsilon, miss, centred)
        buckets = bucketed(shifted(tally, centre), lanes.sensitivities)
        estimate = low = high = 0
        for sign in self._signs(centred):
            below, _, above = lanes.run(buckets.sums_upto(sign), randomness)
            estimate += below if sign else -below
            low, high = (low + below, high + above) if sign else (low - above, high - below)
        return SumSpan(centre, estimate, low, high)

    def _lanes(self, epsilon: Fraction, miss: float, centred: bool) -> Lanes:
        """The race of the magnitudes of one sign."""
        parts = len(self._signs(centred))
        share = epsilon / parts if self.setting.neighbours == "replace-one" else epsilon
        return Lanes(self.edges(centred), share, miss / (2 * parts), miss / (2 * parts))

    def _signs(self, centred: bool) -> tuple[int, ...]:
        centre, (low, high) = centre_of(self.setting.ends, centred), self.setting.ends
        return signs_between(low - centre, high - centre)

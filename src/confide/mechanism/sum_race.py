"""Sums by racing truncations to the top (R2T), for one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from confide.mechanism.additive import Additive, laplace
from confide.mechanism.interval import Assumes
from confide.mechanism.randomness import Randomness
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.summation import Span, centre_of, shifted
from confide.mechanism.tally import Buckets, Tally, bucketed


@dataclass(frozen=True, slots=True)
class Race:
    """Releases for each τ = 2, 4, 8, ... the sum of the values up to τ with noise, and the best lower bound of them.

    Neighbours: add-remove or replace-one; a row changes the sum up to τ by at most τ. Negative values are summed
    apart: a row has one sign, so under add-remove each part gets all of ε, under replace-one half.
    Loss: ε-DP (deciders, equations 11 and 12; Dong et al. 2022). Interval: always valid. The published guarantee is
    one-sided, the estimate is rarely above the sum; the upper end comes from the largest τ >= GS, which drops nothing
    and gets half of ε instead of 1/L.
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
        """Powers of two; the last is at least as large as any value (rounding log₂ GS down would drop the largest)."""
        centre, (low, high) = centre_of(self.setting.ends, centred), self.setting.ends
        largest = max(abs(low - centre), abs(high - centre))
        return tuple(2**step for step in range(1, max(1, (largest - 1).bit_length()) + 1))

    def prepare(self, epsilon: Fraction, miss: float, centred: bool) -> None:
        self._levels(self.edges(centred), self._part_epsilon(epsilon, len(self._signs(centred))))

    def expected(self, epsilon: Fraction, miss: float, centred: bool, expectation: Expectation) -> float:
        edges = self.edges(centred)
        spread = expectation.spread if expectation.spread is not None else edges[-1]
        level = min(int(np.searchsorted(edges, spread)), len(edges) - 1)
        parts = len(self._signs(centred))
        laws = self._levels(edges, self._part_epsilon(epsilon, parts))
        each = 1 - Fraction(miss / (2 * parts))
        below = 2 * laws[level].law.upper(1 - Fraction(miss / (2 * parts * len(edges))))
        return parts * (below + 2 * laws[-1].law.upper(each)) / 2

    def off_centre(self, expectation: Expectation) -> float:
        low, high = self.setting.ends
        return (expectation.spread if expectation.spread is not None else high - low) / 2

    def span(self, tally: Tally, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness) -> Span:
        centre = centre_of(self.setting.ends, centred)
        return self.from_buckets(
            bucketed(shifted(tally, centre), self.edges(centred)), centre, epsilon, miss, centred, randomness
        )

    def from_buckets(
        self, buckets: Buckets, centre: int, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness
    ) -> Span:
        """From one summary by buckets about the centre, whose edges are `edges`."""
        signs = self._signs(centred)
        estimate = low = high = 0
        for sign in signs:
            below, above = self._part(
                buckets, sign, self._part_epsilon(epsilon, len(signs)), miss / len(signs), randomness
            )
            estimate += below if sign else -below
            low, high = (low + below, high + above) if sign else (low - above, high - below)
        return Span(centre, estimate, low, high)

    def _part(
        self, buckets: Buckets, sign: int, epsilon: Fraction, miss: float, randomness: Randomness
    ) -> tuple[int, int]:
        """A lower and an upper bound on the sum of the magnitudes of one sign."""
        sums = np.cumsum(buckets.sums[sign].astype(object))
        levels = self._levels(buckets.edges, epsilon)
        each = 1 - Fraction(miss / (2 * len(levels)))
        noised = [
            int(level.measure(np.array([total], dtype=object), randomness).values[0])
            for level, total in zip(levels, sums, strict=True)
        ]
        below = max(0, *(value - level.law.upper(each) for value, level in zip(noised, levels, strict=True)))
        above = noised[-1] + levels[-1].law.upper(1 - Fraction(miss / 2))
        return below, max(below, above)

    def _levels(self, edges: Sequence[int], epsilon: Fraction) -> list[Additive]:
        if len(edges) == 1:
            return [laplace(edges[0], epsilon)]
        lower = epsilon / (2 * (len(edges) - 1))
        return [*(laplace(edge, lower) for edge in edges[:-1]), laplace(edges[-1], epsilon / 2)]

    def _signs(self, centred: bool) -> list[int]:
        """Which signs values can have about the centre: 0 for negative, 1 for positive."""
        centre, (low, high) = centre_of(self.setting.ends, centred), self.setting.ends
        return [sign for sign, possible in enumerate((low < centre, high > centre)) if possible] or [1]

    def _part_epsilon(self, epsilon: Fraction, parts: int) -> Fraction:
        return epsilon / parts if self.setting.neighbours == "replace-one" else epsilon

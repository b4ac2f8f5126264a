"""Sums from a noised geometric histogram: always valid, and narrow below where the tail is thin."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally, bucketed, geometric_edges, signs_between
from confide.mechanism.total.summation import SumSpan, centre_of, shifted

BASE: Final = 4


@dataclass(frozen=True, slots=True)
class Tail:
    """Releases the sum of the values in each geometric bucket with noise in proportion to the bucket's upper edge.

    Neighbours: add-remove or replace-one. A row is in one bucket and changes its sum by at most the edge, so under
    add-remove each bucket gets all of ε (parallel composition); under replace-one a row may change two, and each gets
    half.
    Loss: ε-DP, Laplace mechanism. Interval: always valid, the noise of all buckets within its bounds at once; a
    bucket's sum is not negative. The miss rate goes mostly to the large buckets. By
    Theorem 4.7 of [Sun2023] the upper end cannot be much better than the domain's; the lower end and the estimate are.
    """

    setting: Setting
    name: ClassVar[str] = "tail"
    assumes: ClassVar[Assumes] = "always"
    count_share: ClassVar[Fraction] = Fraction(1, 6)

    def __post_init__(self) -> None:
        self.setting.bound(self.name, "svt")

    def condition(self, epsilon: Fraction, miss: float, centred: bool) -> str:
        return ""

    def edges(self, centred: bool) -> tuple[int, ...]:
        centre, (low, high) = centre_of(self.setting.ends, centred), self.setting.ends
        return geometric_edges(BASE, max(abs(low - centre), abs(high - centre)))

    def prepare(self, epsilon: Fraction, miss: float, centred: bool) -> None:
        self._levels(np.array(self.edges(centred)), epsilon)

    def expected(self, epsilon: Fraction, miss: float, centred: bool, expectation: Expectation) -> float:
        """Buckets up to the spread have both ends, the others only an upper one."""
        edges = np.array(self.edges(centred))
        spread = expectation.spread if expectation.spread is not None else edges[-1]
        margins = self._margins(self._levels(edges, epsilon), miss, len(self._signs(centred)))
        occupied = np.append(0, edges[:-1]) < spread
        widths = [2 * margin if used else margin for margin, used in zip(margins, occupied, strict=True)]
        return len(self._signs(centred)) * sum(widths) / 2

    def off_centre(self, expectation: Expectation) -> float:
        low, high = self.setting.ends
        return (expectation.spread if expectation.spread is not None else high - low) / 2

    def span(self, tally: Tally, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness) -> SumSpan:
        centre, signs = centre_of(self.setting.ends, centred), self._signs(centred)
        buckets = bucketed(shifted(tally, centre), self.edges(centred))
        levels = self._levels(np.array(buckets.edges), epsilon)
        margins = self._margins(levels, miss, len(signs))
        estimate = low = high = 0
        for sign in signs:
            for level, margin, exact in zip(levels, margins, buckets.sums[sign], strict=True):
                noised = level.noised(exact, randomness)
                below, above = max(0, noised - margin), max(0, noised + margin)
                seen = noised if below else 0  # a bucket that cannot be told from an empty one counts as empty
                estimate += seen if sign else -seen
                low, high = (low + below, high + above) if sign else (low - above, high - below)
        return SumSpan(centre, estimate, low, high)

    def _levels(self, edges: np.ndarray, epsilon: Fraction) -> list[Additive]:
        share = epsilon / 2 if self.setting.neighbours == "replace-one" else epsilon
        return [laplace(int(edge), share) for edge in edges]

    def _margins(self, levels: list[Additive], miss: float, parts: int) -> list[int]:
        """|noise| of each bucket, all within these with probability 1 - miss."""
        weights = [Fraction(1, BASE**step) for step in range(len(levels))][::-1]
        whole = sum(weights) * parts
        return [
            level.law.half_width(1 - Fraction(miss) * weight / whole)
            for level, weight in zip(levels, weights, strict=True)
        ]

    def _signs(self, centred: bool) -> tuple[int, ...]:
        centre, (low, high) = centre_of(self.setting.ends, centred), self.setting.ends
        return signs_between(low - centre, high - centre)

"""Sums by the sparse vector technique, as a decider ([Patwa2023], Algorithms 2 and 4)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import DiscreteLaplace, Randomness, draw
from confide.mechanism.noise.law import Floats
from confide.mechanism.race import powers_of_two
from confide.mechanism.tally import Buckets
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits, laplace_law, midpoints
from confide.trust.race_decider import RESOLUTION
from confide.trust.seen import Powers, Reading, Seen
from confide.trust.target import Facts, Prefer, Target

KEPT: Final = Fraction(19, 20)  # θ of the paper: so many of the rows the truncation shall keep
PARTS: Final = 61


@dataclass(frozen=True, slots=True)
class SparseDecider:
    """Releases the outcome of one sparse vector over truncated sums: first against r, then against l + 1 (SVT_sum).

    Neighbours: add-remove, `rows` rows per unit; sums of non-negative values are monotone, and divided by their
    truncation they change by at most 1. Loss: ε-DP: ε/3 for a private bound on the largest value (Algorithm 4: a count,
    a threshold, a query at ε/9 each), ε/3 for the threshold, ε/3 for the one top ([Lyu2017], Theorem 2).
    As published. Its bound drops the top 5 % of the rows, so where those matter it says no at any ε: see `clip`.
    """

    target: Target
    edges: tuple[int, ...]
    rows: int
    epsilon: Fraction
    name: ClassVar[str] = "svt"
    blind: ClassVar[Fraction] = Fraction(0)
    assumes: ClassVar[str] = ""
    wrong_yes: ClassVar[None] = None

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction, prefer: Prefer = "balanced") -> "SparseDecider":
        low, high = facts.bounded(cls.name)
        if low < 0:
            raise ParameterError("the decider svt takes columns without negative values; use clip or r2t")
        if prefer == "cautious":
            raise ParameterError("svt has no bound on a wrong yes; for prefer='cautious' use optimal, laplace or clip")
        return cls(target, powers_of_two(high), facts.rows, epsilon)

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def reading(self) -> Reading:
        return Powers(self.edges)

    @property
    def bound_law(self) -> DiscreteLaplace:
        """Of the count, the threshold and the queries of Algorithm 4."""
        return laplace_law(self.rows, self.epsilon / 9)

    @property
    def law(self) -> DiscreteLaplace:
        """Of the threshold and the queries of Algorithm 2, in parts of one."""
        return laplace_law(self.rows * RESOLUTION, self.epsilon / 3)

    def chance(self, seen: Seen) -> float:
        """By averages over the noise that is shared; given that, queries are independent."""
        counts, above, under = self._queries(seen)
        bound, law = self.bound_law, self.law
        drawn = midpoints(bound, PARTS)
        level = (float(KEPT) * (counts[-1] + drawn))[:, np.newaxis] + drawn[np.newaxis, :]
        tops = np.array([_tail(bound, level.ravel() - count) for count in counts])
        stops = tops * np.vstack([np.ones(tops.shape[1]), np.cumprod(1 - tops, axis=0)[:-1]])
        last = stops.mean(axis=1)
        last[-1] += 1 - last.sum()  # without a top, the largest truncation
        threshold = midpoints(law, PARTS)
        silent_above = np.cumprod([1 - _tail(law, threshold - float(margin)) for margin in above], axis=0)
        silent_under = np.cumprod([1 - _tail(law, threshold - float(margin)) for margin in under], axis=0)
        return float(last @ (silent_above * (1 - silent_under)).mean(axis=1))

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        counts, above, under = self._queries(seen)
        last = self._bounds(counts, randomness, count)
        # One threshold, then as many queries for each end as there are truncations: one call draws them all.
        size = len(self.edges)
        drawn = draw(self.law, (1 + 2 * size, count), randomness)
        threshold, used = drawn[0], np.arange(size)[:, np.newaxis] <= last
        first, second = (
            ((np.array(margins, dtype=object)[:, np.newaxis] + noise >= threshold).astype(bool) & used).any(axis=0)
            for margins, noise in ((above, drawn[1 : size + 1]), (under, drawn[size + 1 :]))
        )
        bits: Bits = ~first & second
        return bits

    def _bounds(self, counts: list[int], randomness: Randomness, runs: int) -> Any:
        """Algorithm 4: the first truncation that seems to keep θ of the rows, the largest if none does."""
        # Python's integers: twenty times a draw may pass 64 bits.
        drawn = draw(self.bound_law, (2 + len(counts), runs), randomness).astype(object)
        noised, threshold = counts[-1] + drawn[0], drawn[1]
        level = KEPT.numerator * noised + KEPT.denominator * threshold
        tops = KEPT.denominator * (np.array(counts, dtype=object)[:, np.newaxis] + drawn[2:]) >= level
        tops = tops.astype(bool)
        return np.where(tops.any(axis=0), tops.argmax(axis=0), len(counts) - 1)

    def _queries(self, seen: Seen) -> tuple[list[int], list[int], list[int]]:
        """Counts up to each truncation, and the margins of the truncated sums, in parts of one, rounded down."""
        assert isinstance(seen, Buckets)
        counts = [int(part) for part in np.cumsum(seen.counts[1].astype(object))]
        sums = seen.sums_upto(1)
        above, under = (
            [_floor(RESOLUTION * (total - end) / edge) for total, edge in zip(sums, self.edges, strict=True)]
            for end in (self.target.high, self.target.low + 1)
        )
        return counts, above, under


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


def _tail(law: DiscreteLaplace, least: Floats) -> Floats:
    """P(Z >= least)."""
    return law.tails(np.ceil(least) - 1)

"""Where to clip: a private radius around a centre that holds all data if they are not too sparse at its rim
(SVTRadius).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.selection.sparse_vector import SparseVector, Stream
from confide.mechanism.tally import Domain, Integers, Tally, geometric_edges

SHELL: Final = 2  # the rim is the outer half of the radius, as in the paper's density requirement
LATE: Final = 0.001  # how often the walk goes past the true radius, which costs width only


@dataclass(frozen=True, slots=True)
class Radius:
    """Releases a radius r about a given centre.

    Neighbours: add-remove or replace-one; the counts of data outside nested intervals all change in one direction, by
    1.
    Loss: ε-DP, one sparse vector ([Sun2023], Algorithm 4, Theorem 4.4).
    Guarantee: if at least `needed` rows are at a distance of at least half the largest, all are within r, but for
    probability `miss`; and r is rarely above 2·base times the largest distance. Deviation: radii are powers of
    `base`, the rim stays the outer half, so a fine base does not ask more of the data; thresholds are lowered by a
    constant.
    """

    epsilon: Fraction
    miss: float
    largest: int
    base: float = math.sqrt(2)

    @property
    def mechanism(self) -> SparseVector:
        return SparseVector(self.epsilon, 1, 1)

    @property
    def radii(self) -> Integers:
        return np.array([0, *geometric_edges(self.base, self.largest)], dtype=np.int64)

    @property
    def shift(self) -> int:
        return self.mechanism.missed_below(LATE)

    @property
    def needed(self) -> int:
        """A walk that stops below half the largest distance has so many rows outside, at one of the radii."""
        return self.shift + self.mechanism.stopped_above(self.miss / len(self.radii))

    def measure(self, tally: Tally, centre: int, randomness: Randomness) -> int:
        place = int(self.mechanism.first(self.stream(tally, centre), randomness)[0])
        # Without a stop nothing is known, and nothing is clipped. A stop at 0 says that few rows lie elsewhere, not
        # that none does: to clip to a point would give an interval without width, which looks certain.
        return self.largest if place < 0 else min(max(1, SHELL * int(self.radii[place])), self.largest)

    def stream(self, tally: Tally, centre: int) -> Stream:
        radii, cumulative = self.radii, tally.cumulative()
        upto = cumulative[np.searchsorted(tally.values, _moved(centre, radii), side="right")]
        before = cumulative[np.searchsorted(tally.values, _moved(centre, -radii), side="left")]
        outside = tally.rows - (upto - before)
        return Stream(self.shift - outside, np.ones(len(radii), dtype=np.int64))


def clip_range(centre: int, radius: int, domain: Domain) -> Domain:
    """What is kept of the domain; its nearest end if the radius does not reach it."""
    low, high = (min(max(end, domain[0]), domain[1]) for end in (centre - radius, centre + radius))
    return low, high


def _moved(centre: int, by: Integers) -> Integers:
    """centre + by, within 64 bits."""
    limit = 2**63 - 1
    return np.array([min(max(centre + int(step), -limit), limit) for step in by], dtype=np.int64)

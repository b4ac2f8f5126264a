"""PrivTree: parts of a domain, split where there are many rows, at a loss that does not grow with the depth.

Counts are whole numbers of 1/2¹⁶ of a row, and so is the noise. Along the way of one row, let x be the lowered count
without it and x + F with it, F = 2¹⁶; at each level x falls by at least δ. What one row can do:

    a part that is not split     at most F/s, s the scale of the noise
    a part that is split         ln P(L > −x−F)/P(L > −x): nothing where both counts are at the floor −δ; at most F/s
                                 anywhere; and at most (F/s)·exp(−(x−1)/s) for x ≥ 0, since P(L > −x) = 1 − q^x/(1+q)
                                 with q = exp(−1/s)

Let the last part above the floor be above it by a ≤ F. The part before it has x ≥ a − F, those before that
x ≥ a − F + δ, a − F + 2δ, …; with δ ≥ s·ln β the sum is at most (a + F + F·e^((F−a+1)/s)/(β−1)·…)/s, which grows with a
where s ≥ 2F and β ≥ 2: at a = F it is (1 + e^(1/s)·β/(β−1))·F/s. With λ = s/F that is the (2β − 1)/((β − 1)λ) of
[Zhang2016], up to e^(1/s) < 1 + 10⁻⁵, for which the scale is raised by 1/4096. Without the floor every level adds to
the loss.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.law import LARGEST_WALK, DiscreteLaplace, keep_scale
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.loss import PureDP

FINE: Final = 2**16
RATIO: Final = 4
"""Halves at the ratio of quarters: less noise, and fewer parts where there is nothing, than at 2."""
LEAST_SCALE: Final = 2
"""Of the noise, in rows: the proof needs it, so a larger ε is charged and not used."""
ROOM: Final = Fraction(4097, 4096)

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PrivTree:
    """Releases which parts of a domain are split, from the top down.

    Neighbours: those that differ in `changes` rows at most, one after the other. Loss: ε-DP, whatever the depth.
    Theorem: [Zhang2016], Theorem 3.1, for whole numbers as above; groups of rows by composition along a chain.
    The noise of splits is never released; what a part holds is measured afresh.
    """

    law: DiscreteLaplace
    step: int
    """By what counts are lowered for each level, in 1/2¹⁶ of a row."""
    loss: PureDP

    def splits(self, counts: Integers, depth: int, randomness: Randomness) -> NDArray[np.bool_]:
        """Which parts of one level are split. Counts are below 2⁴⁴."""
        lowered = np.maximum(counts * FINE - depth * self.step, -self.step)
        found: NDArray[np.bool_] = lowered + draw(self.law, counts.shape, randomness) > 0
        return found


def privtree(epsilon: Fraction, changes: int, ratio: int = RATIO) -> PrivTree:
    """The mechanism of a loss ε, for units that change at most so many rows.

    `ratio` is β: a part at the floor is split with chance 1/2β, whatever number of parts it is split into.
    """
    each = Fraction(epsilon) / changes
    scale = max(Fraction(2 * ratio - 1) / ((ratio - 1) * each) * ROOM, Fraction(LEAST_SCALE))
    fine = keep_scale(scale * FINE, LARGEST_WALK, "the noise of splits")
    whole = Fraction(math.ceil(fine))
    step = math.ceil(float(whole) * math.log(ratio) * (1 + 1e-12))
    return PrivTree(DiscreteLaplace(whole), step, PureDP(Fraction(epsilon)))


def split_line(tree: PrivTree, counts: Integers, randomness: Randomness) -> Integers:
    """The edges of the parts of a line of cells, halved where the tree splits: 0, …, the number of cells."""
    return split_codes(tree, counts, np.arange(len(counts)), 1, randomness)


def split_codes(tree: PrivTree, counts: Integers, codes: Integers, halvings: int, randomness: Randomness) -> Integers:
    """The edges of the parts of cells that have growing codes: a part is split by the next bits of its codes.

    Each split halves a part `halvings` times, so a cell is in one part of each depth. Parts depend on the codes alone,
    which are public; a part of one cell is not split, and one without cells is none.
    """
    size = len(codes)
    sums = np.concatenate([[0], np.cumsum(counts)])
    bits = int(codes[-1]).bit_length()
    begins = np.zeros(1, dtype=np.int64)
    edges = [np.array([0, size], dtype=np.int64)]
    depth = 0
    while bits > 0 and len(begins):
        first, last = (np.searchsorted(codes, ends) for ends in (begins, begins + (1 << bits)))
        split = tree.splits(sums[last] - sums[first], depth, randomness) & (last - first > 1)
        fewer = min(halvings, bits)
        bits -= fewer
        children = begins[split][:, None] + (np.arange(1 << fewer) << bits)
        places = np.searchsorted(codes, children.reshape(-1))
        ends = np.searchsorted(codes, children.reshape(-1) + (1 << bits))
        begins = children.reshape(-1)[places < ends]
        edges.append(places[places < ends])
        depth += 1
    return np.unique(np.concatenate(edges))

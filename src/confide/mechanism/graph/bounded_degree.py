"""Graphs cut so that no node keeps more than θ edges, and how much one node changes what is counted in them.

Edges are gone through in an order that neighbours share, and one is kept if both of its ends still have fewer than θ
(the stable projection of [Day2016], π_θ). A node A that comes with d <= θ kept edges raises the kept degrees
of d others by one; where that makes another edge lose its place, the degree is back where it was, and the other end of
that edge has one less, and so on: each of the d edges starts one chain, and only its last node has one more or one less
in the end. So the kept degrees of all others change by at most d together.

A directed graph is cut as one of departures and arrivals: node v of the source side keeps at most θ arcs, and so does
node v of the target side. A node has both, so at most 2θ chains start at it, and all may end on the source side.

`owned`: the unit is only part of the edges of a node, which keeps the others. Where its part comes, edges of the rest
may lose their place: up to 2θ chains, some from each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb, perm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.join.truncation import Truncation
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.tally import Integers
from confide.privacy.loss import PureDP


def kept_degrees(
    source: Integers, target: Integers, nodes: int, directed: bool, levels: Sequence[int]
) -> Iterator[Integers]:
    """For each level the kept degrees of all nodes; of a directed graph the kept numbers of outgoing arcs.

    Edges come in increasing order of (source, target), in an undirected graph with source < target; the numbers of
    nodes must be in an order that another node does not change. Then the edges of one source are decided together:
    those whose targets have room, up to the room of the source.
    """
    sides = 2 * nodes if directed else nodes
    ends = target + nodes if directed else target
    whole = np.bincount(source, minlength=sides) + np.bincount(ends, minlength=sides)
    # At a level that no node exceeds everything is kept.
    cut = np.array([level for level in levels if level < whole.max(initial=0)], dtype=np.int32).reshape(-1, 1)
    kept = np.zeros((len(cut), sides), dtype=np.int32)
    starts = np.flatnonzero(np.diff(source, prepend=-1, append=-1)) if len(cut) else np.empty(0, dtype=np.int64)
    for start, end in pairwise(starts.tolist()):
        own, others = int(source[start]), ends[start:end]
        before = kept[:, others]
        taken = before < cut
        taken &= np.cumsum(taken, axis=1) <= cut - kept[:, own : own + 1]
        kept[:, others] = before + taken
        kept[:, own] += taken.sum(axis=1, dtype=np.int32)
    places = {int(level): place for place, level in enumerate(cut.ravel())}
    for level in levels:
        row: Any = kept[places[level]] if level in places else whole
        yield row[:nodes].astype(np.int64)


@dataclass(frozen=True, slots=True)
class NodeUnit:
    """Who comes or goes: a node with all its edges, or (`owned`) any part of the edges of a node."""

    directed: bool
    owned: bool

    def kept(self, level: int) -> tuple[int, int]:
        """How far one unit lowers and raises the number of kept edges, by which a level is learnt.

        Twice the number is the sum of all kept degrees, which changes by d for A itself and by at most d more or less
        for the others: together 0 to 2d. Two such changes, one each way, make that of an `owned` part. One edge that
        comes, a neighbour too where rows are the units of the policy, changes the number by at most 1 either way.
        """
        return level if self.owned else 1, 2 * level if self.directed else level


@dataclass(frozen=True, slots=True)
class StarChange:
    """How far one unit changes the number of stars of `leaves` edges in π_θ of a graph.

    Undirected, sets of leaves: A is the centre of C(d, k), and the end of a chain is in at most C(θ-1, k-1) more or
    less: C(θ, k) + θ·C(θ-1, k-1) = (1 + k)·C(θ, k), which graphs of degree θ reach. `owned`: |C(d, k) - C(d', k)| and
    d + d' chains, by convexity at most 2k·C(θ, k). Directed, ordered: (1 + 2k)·θ(θ-1)...(θ-k+1), which 2k is below.
    """

    unit: NodeUnit
    leaves: int
    counted: ClassVar[str] = " in edges"

    def learnt(self, level: int) -> tuple[int, int]:
        return self.unit.kept(level)

    def released(self, level: int) -> int:
        if self.unit.directed:
            return (1 + 2 * self.leaves) * perm(level, self.leaves)
        return (2 * self.leaves if self.unit.owned else 1 + self.leaves) * comb(level, self.leaves)


@dataclass(frozen=True, slots=True)
class HistogramChange:
    """How far one unit changes the counts of nodes with 1, 2, ..., `up_to` or more kept edges, in L1.

    A is in one cell; the end of a chain leaves one and enters another: 1 + 2θ, directed 1 + 4θ. `owned`: A stays and
    may move too, but then d + d' < 2θ: 4θ at most. Nodes without edges are in no cell, so where there is one cell only
    the end of a chain changes it by 1.
    """

    unit: NodeUnit
    up_to: int
    counted: ClassVar[str] = " in edges"

    def learnt(self, level: int) -> tuple[int, int]:
        return self.unit.kept(level)

    def released(self, level: int) -> int:
        cells = min(level, self.up_to, 2)
        if self.unit.directed:
            return 1 + 2 * cells * level
        return 2 * cells * level if self.unit.owned else 1 + cells * level


@dataclass(frozen=True, slots=True)
class CutHistogram:
    """Releases how many nodes have each degree in π_θ of a graph, θ learnt by a sparse vector or declared.

    Neighbours: one node comes or goes with all its edges, or those that the levels of `cut` were made for.
    Loss: ε-DP, as `Truncation`: ⅓ε for θ, nothing if declared, the rest for the counts and their `HistogramChange`.
    Source: [Day2016], who choose θ by what it costs and noise cumulative counts; here the counts themselves.
    Interval: of the counts of π_θ always; of those of the graph under `condition`, both ends. Where too few edges are
    seen to learn θ, it is the largest, and the interval holds whatever the graph is.
    """

    cut: Truncation
    name: ClassVar[str] = "truncate"
    assumes: ClassVar[Assumes] = "density"

    @property
    def loss(self) -> PureDP:
        return self.cut.loss

    @property
    def condition(self) -> str:
        return self.cut.condition

    def measure(
        self, counts: Sequence[Integers], kept: Sequence[int], randomness: Randomness
    ) -> tuple[NDArray[Any], int, bool]:
        """Noised counts, the half-width of each, and whether θ was learnt or declared; `counts` and `kept` edges are
        those at each level.
        """
        learnt = self.cut.learn(kept, randomness)
        level = len(counts) - 1 if learnt is None else learnt
        noise = self.cut.noise(level)
        missed = self.cut.miss * 3 / 4 if self.cut.levels.learnt else self.cut.miss  # the walk has a quarter
        half = int(noise.law.half_width(1 - Fraction(missed)))
        return noise.measure(counts[level], randomness).values, half, learnt is not None

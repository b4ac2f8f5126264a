"""How much one edge can change the number of triangles or stars of a graph, at any distance: ladders of graph patterns.

Nodes are not declared anywhere, so there is always one more: no sensitivity ends at the number of nodes, and a pair of
nodes is any two of endlessly many, most of which have no edge. Over those pairs the rungs are the largest change by one
edge after at most t changes, no more and no less: so they are a ladder. A neighbour D' is one change away from D, so
whatever t changes make of D', t + 1 make of D. Pairs of nodes that have edges alone would not do: an edge to a new node
makes a new pair of such, with no less than the old node had.
"""

import math
from dataclasses import dataclass

import numpy as np

from confide.mechanism.graph.ladder import PowerGrowth, SteadyGrowth
from confide.mechanism.tally import Integers


@dataclass(frozen=True, slots=True)
class TriangleRungs:
    """Triangles, each counted `weight` times for an edge of it.

    For a pair of nodes let `shared` be the number of nodes that close a triangle with it, and `reach` the number of
    other edges that might be part of one. After s changes of other edges min(shared + s, ⌊(s + reach) / 2⌋) do: each
    change completes one if one edge is there, two changes make one anew. ([Nissim2007] write
    reach as 2a + b.) The pairs given are those that no other pair exceeds in both numbers; a node of the largest degree
    and one without edges are among those looked at.
    """

    shared: tuple[int, ...]
    reach: tuple[int, ...]
    weight: int

    @property
    def growth(self) -> SteadyGrowth:
        return SteadyGrowth(self.weight)

    def rungs(self, length: int) -> Integers:
        """The largest change by one edge after 0, 1, 2, ... changes."""
        steps = np.arange(length, dtype=np.int64)
        most = steps // 2  # two new nodes share nothing
        for shared, reach in zip(self.shared, self.reach, strict=True):
            most = np.maximum(most, np.minimum(shared + steps, (steps + reach) // 2))
        return self.weight * most


@dataclass(frozen=True, slots=True)
class StarRungs:
    """Stars of `leaves` edges at one centre. `pairs`: degrees of the ends of an edge, without that edge itself.

    Unordered stars of an undirected graph: an edge between nodes of degrees d and e is in C(d, k-1) + C(e, k-1) of
    them, and this is convex, so s changes do most at the end of larger degree. Ordered stars out of a node of a
    directed graph: a tuple is in k·d(d-1)...(d-k+2), and `pairs` holds (largest out-degree, 0).
    """

    pairs: tuple[tuple[int, int], ...]
    leaves: int
    ordered: bool

    @property
    def growth(self) -> PowerGrowth:
        return PowerGrowth(self.leaves - 1)

    def rungs(self, length: int) -> list[int]:
        """Python's integers: a degree to the power of the number of leaves may pass 64 bits."""
        power, first = self.leaves - 1, self.growth.first
        factor, divisor = (self.leaves, 1) if self.ordered else (1, math.factorial(power))
        ends = {(max(high, first), 0 if self.ordered else low) for high, low in (*self.pairs, (0, 0))}
        result = [0] * length
        for high, low in ends:
            beside = 0 if self.ordered else math.comb(low, power)
            for step in range(length):
                result[step] = max(result[step], factor * math.perm(high + step, power) // divisor + beside)
        return result


def smooth_bound(rungs: Integers | list[int], alpha: float, degree: int) -> float:
    """max over k of exp(-αk) r_k, enlarged by 10^-10: `rungs` must reach beyond degree / α + 2."""
    if len(rungs) < degree / alpha + 2:
        raise ValueError("too few rungs: the maximum may lie beyond")
    logarithms = np.array([math.log(rung) if rung > 0 else -math.inf for rung in rungs])
    largest = float((logarithms - alpha * np.arange(len(logarithms))).max())
    return math.exp(min(largest, 700.0)) * (1 + 1e-10)

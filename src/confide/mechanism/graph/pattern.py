"""How much one edge can change the number of patterns of a graph, at any distance: ladders of graph patterns.

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

    def looked_at(self, alpha: float) -> int:
        return int(self.growth.degree / alpha) + 4

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

    def looked_at(self, alpha: float) -> int:
        return int(self.growth.degree / alpha) + 4

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


@dataclass(frozen=True, slots=True)
class RectangleRungs:
    """Rectangles: cycles of four nodes of an undirected graph, as sets of edges.

    An edge between i and j is in one for each path of three edges from i to j: the edge changes their number by that,
    whether it is there or not. Let P be the most such paths of any pair, and C the most nodes that any pair has in
    common. One other edge xy that comes makes new paths from i to j in one of three places, and of two only where these
    are the same place: as the first edge, x = i, one for each node that y and j have in common, at most C; as the last,
    alike; in the middle, i x y j and i y x j, at most 2. So P grows by at most max(2, C), and C by at most 1, because
    xy gives x one node more in common with each neighbour of y, and reverse. An edge that goes lowers both. Nodes
    without edges have no paths and nothing in common, and the argument holds for them as for others: x may be new.

    So r_t = P + Σ max(2, C + s) over s < t is at least what one edge changes after t changes, and r_t(D') <=
    r_(t+1)(D): P' is at most P + max(2, C), which is the first step of D, and the later steps of D are no less than
    those of D'. With C common nodes u and one of them have C - 1 paths between them, so P >= C - 1; hence r_(t+1) / r_t
    <= 1 + 2 / (t - 1), and exp(-αt) r_t falls from t = 2 / α + 1 on.
    """

    paths: int
    shared: int

    def looked_at(self, alpha: float) -> int:
        return int(2 / alpha) + 4

    def rungs(self, length: int) -> list[int]:
        result, rung = [], self.paths
        for step in range(length):
            result.append(rung)
            rung += max(2, self.shared + step)
        return result


@dataclass(frozen=True, slots=True)
class CliqueRungs:
    """Cliques of `size` nodes of an undirected graph, three or more.

    An edge is in one for each clique of size - 2 nodes among those that both of its ends are joined to: at most
    C(a, size - 2), a the number of these. After t changes a is at most the rung a_t of triangles, and a_t(D') <=
    a_(t+1)(D); what grows with a keeps that. (Where all who are joined to both ends are joined to each other, it is
    what the edge changes; else more.) A rung a_t grows by at most one and is at least ⌊t / 2⌋, and C(a + 1, p) /
    C(a, p) = 1 + p / (a + 1 - p), so exp(-αt) C(a_t, p) falls from t = 2p / α + 2p on.
    """

    triangles: TriangleRungs
    size: int

    def looked_at(self, alpha: float) -> int:
        power = self.size - 2
        return int(2 * power / alpha) + 2 * power + 4

    def rungs(self, length: int) -> list[int]:
        """Python's integers: they may pass 64 bits."""
        return [math.comb(rung, self.size - 2) for rung in self.triangles.rungs(length).tolist()]


Rungs = TriangleRungs | StarRungs | RectangleRungs | CliqueRungs


def smooth_bound(rungs: Rungs, alpha: float) -> float:
    """max over k of exp(-αk) r_k, enlarged by 10^-10: `looked_at` says from where on it falls."""
    numbers = rungs.rungs(rungs.looked_at(alpha))
    logarithms = np.array([math.log(rung) if rung > 0 else -math.inf for rung in numbers])
    largest = float((logarithms - alpha * np.arange(len(logarithms))).max())
    return math.exp(min(largest, 700.0)) * (1 + 1e-10)

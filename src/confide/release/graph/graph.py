"""Patterns of a graph whose edges are the rows of a table: triangles, cliques, rectangles, stars, edges, degrees."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall, ParameterError, QueryError
from confide.mechanism.graph.ladder import SMALLEST_EPSILON, Ladder
from confide.mechanism.graph.pattern import (
    CliqueRungs,
    RectangleRungs,
    Rungs,
    StarRungs,
    TriangleRungs,
    smooth_bound,
)
from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.smooth.gaussian import SmoothGaussian
from confide.mechanism.smooth.smooth import Smooth
from confide.privacy.amount import shown_value, whole_number
from confide.privacy.loss import ZCDP
from confide.release.answer.answer import Answer, KeyColumn
from confide.release.graph.nodes import (
    cliques_by_node,
    edges_by_node,
    histogram_by_node,
    rectangles_by_node,
    stars_by_node,
    triangles_by_node,
)
from confide.release.graph.request import (
    Counted,
    EdgeTable,
    Estimate,
    Pattern,
    PatternCount,
    Protected,
    ask,
    inside,
    named,
)
from confide.release.holdings import Holdings

if TYPE_CHECKING:
    from confide.engine.protocol import Inquiry
    from confide.engine.read.network import GraphInquiry, Network

MOST_LEAVES: Final = 6
LADDER_LEAVES: Final = 3
MOST_DEGREES: Final = 10_000
MOST_MEMBERS: Final = 5  # of a clique

Found = Callable[["Network"], tuple[int, Rungs]]


@dataclass(frozen=True, slots=True)
class Graph:
    """An edge table seen as a graph. Made by `Session.graph`; every call is paid, and the same call again is free.

    Self-loops and edges with an unknown end are no edges; rows that say the same edge are one. In an undirected graph
    (a, b) and (b, a) are the same edge, and patterns are counted as sets; in a directed one as ordered matches.
    """

    _edges: EdgeTable

    @property
    def directed(self) -> bool:
        return self._edges.directed

    @property
    def unit(self) -> Protected:
        """Who is protected: an edge, or a node with all its edges."""
        return self._edges.unit

    def edges(
        self, epsilon: object, confidence: float = 0.95, *, mechanism: str = "auto", at_most: int | None = None
    ) -> Answer:
        """How many edges there are; with nodes as the unit, what is left when none keeps more than a learnt number.

        `at_most`, for nodes as the unit: how many edges a node has at most, as is known without looking.
        """
        if self.unit == "node":
            return ask(self._edges, edges_by_node(self._edges, mechanism, at_most), epsilon, confidence)
        _nothing_cut(at_most)
        name = named(mechanism, ("laplace",))

        def reading(graph: "GraphInquiry") -> "Inquiry[int]":
            from confide.engine.read.network import EdgeCountInquiry  # noqa: PLC0415

            return EdgeCountInquiry(graph)

        def counting(share: Fraction, miss: float) -> PatternCount:
            noise = laplace(1, share)
            return PatternCount(name, lambda count: _noised(np.array([count]), noise, miss, self._edges.holdings))

        return ask(self._edges, Pattern("edges", name, counting, reading=reading), epsilon, confidence)

    def triangles(
        self, epsilon: object, confidence: float = 0.95, *, mechanism: str = "auto", at_most: int | None = None
    ) -> Answer:
        """How many triangles there are; in a directed graph how many ordered matches of (x, y), (y, z), (z, x).

        `at_most`, for nodes as the unit: how many edges a node has at most, as is known without looking.
        """
        if self.unit == "node":
            return ask(self._edges, triangles_by_node(self._edges, mechanism, at_most), epsilon, confidence)
        _nothing_cut(at_most)

        def found(network: "Network") -> tuple[int, TriangleRungs]:
            from confide.engine.read.network import triangle_facts  # noqa: PLC0415  heavy, and loaded when used

            facts = triangle_facts(network)
            # An edge is in one set of three nodes, or in three ordered matches of it.
            return facts.count, TriangleRungs(facts.shared, facts.reach, 3 if self.directed else 1)

        return self._by_edge("triangles", mechanism, found, epsilon, confidence)

    def cliques(
        self,
        size: int,
        epsilon: object,
        confidence: float = 0.95,
        *,
        mechanism: str = "auto",
        at_most: int | None = None,
    ) -> Answer:
        """How many cliques: sets of `size` nodes that are all joined, three to five. Cliques of three are triangles.

        `at_most`, for nodes as the unit: how many edges a node has at most, as is known without looking.
        """
        members = whole_number(size)
        if members is None or not 3 <= members <= MOST_MEMBERS:
            raise ParameterError(
                f"cliques have 3 to {MOST_MEMBERS} nodes, not {shown_value(size)}; two that are joined are an edge: "
                "ask edges()"
            )
        self._undirected("cliques")
        if members == 3:
            return self.triangles(epsilon, confidence, mechanism=mechanism, at_most=at_most)
        if self.unit == "node":
            return ask(self._edges, cliques_by_node(self._edges, members, mechanism, at_most), epsilon, confidence)
        _nothing_cut(at_most)

        def found(network: "Network") -> tuple[int, CliqueRungs]:
            from confide.engine.read.clique import clique_count  # noqa: PLC0415  heavy, and loaded when used
            from confide.engine.read.network import triangle_facts  # noqa: PLC0415

            facts = triangle_facts(network)
            rungs = CliqueRungs(TriangleRungs(facts.shared, facts.reach, 1), members)
            return clique_count(network, members), rungs

        return self._by_edge(f"cliques_{members}", mechanism, found, epsilon, confidence, ("smooth",))

    def rectangles(
        self, epsilon: object, confidence: float = 0.95, *, mechanism: str = "auto", at_most: int | None = None
    ) -> Answer:
        """How many rectangles: cycles of four nodes, whether their diagonals are joined or not.

        `at_most`, for nodes as the unit: how many edges a node has at most, as is known without looking.
        """
        self._undirected("rectangles")
        if self.unit == "node":
            return ask(self._edges, rectangles_by_node(self._edges, mechanism, at_most), epsilon, confidence)
        _nothing_cut(at_most)

        def found(network: "Network") -> tuple[int, RectangleRungs]:
            from confide.engine.read.rectangle import rectangle_facts  # noqa: PLC0415  heavy, and loaded when used

            facts = rectangle_facts(network)
            return facts.count, RectangleRungs(facts.paths, facts.shared)

        return self._by_edge("rectangles", mechanism, found, epsilon, confidence, ("smooth",))

    def _undirected(self, what: str) -> None:
        if self.directed:
            raise QueryError(
                f"{what} are counted in undirected graphs, and this one is directed: leave out directed=True, and "
                "(a, b) and (b, a) are one edge"
            )

    def stars(
        self,
        leaves: int,
        epsilon: object,
        confidence: float = 0.95,
        *,
        mechanism: str = "auto",
        at_most: int | None = None,
    ) -> Answer:
        """How many stars: a node with `leaves` of its neighbours, as a set; ordered, and along edges, if directed.

        `at_most`, for nodes as the unit: how many edges a node has at most, as is known without looking.
        """
        number = whole_number(leaves)
        if number is None or not 2 <= number <= MOST_LEAVES:
            raise ParameterError(
                f"stars have 2 to {MOST_LEAVES} leaves, not {shown_value(leaves)}; a star of one leaf is an edge: "
                "ask edges()"
            )
        leaves = number
        if self.unit == "node":
            return ask(self._edges, stars_by_node(self._edges, leaves, mechanism, at_most), epsilon, confidence)
        _nothing_cut(at_most)

        def found(network: "Network") -> tuple[int, StarRungs]:
            from confide.engine.read.network import star_count, star_pairs  # noqa: PLC0415

            return star_count(network, leaves), StarRungs(star_pairs(network), leaves, self.directed)

        # A ladder holds counts of patterns of three edges, whatever the table.
        known = ("smooth", "ladder") if leaves <= LADDER_LEAVES else ("smooth",)
        return self._by_edge(f"stars_{leaves}", mechanism, found, epsilon, confidence, known)

    def degree_histogram(
        self, epsilon: object, up_to: int, confidence: float = 0.95, *, at_most: int | None = None
    ) -> Answer:
        """How many nodes have 1, 2, ..., `up_to` or more edges (out of them, if directed); the rest is not known.

        `at_most`, for nodes as the unit: how many edges a node has at most, as is known without looking.
        """
        number = whole_number(up_to)
        if number is None or not 1 <= number <= MOST_DEGREES:
            raise ParameterError(f"up_to={shown_value(up_to)} is not a number of degrees from 1 to {MOST_DEGREES:,}")
        up_to = number
        if self.unit == "node":
            return ask(self._edges, histogram_by_node(self._edges, up_to, at_most), epsilon, confidence)
        _nothing_cut(at_most)

        def reading(graph: "GraphInquiry") -> "Inquiry[NDArray[np.int64]]":
            from confide.engine.read.network import DegreeInquiry  # noqa: PLC0415

            return DegreeInquiry(graph, up_to)

        def counting(share: Fraction, miss: float) -> PatternCount:
            # An edge moves each of its ends (one of them, if directed) from one degree to the next.
            sensitivity = 2 if self.directed else 4
            noise = laplace(sensitivity, share)
            return PatternCount("laplace", lambda found: _noised(found, noise, miss, self._edges.holdings))

        degrees = KeyColumn("degree", "integer", tuple(range(1, up_to + 1)))
        pattern = Pattern("nodes", "laplace", counting, f"up to {up_to}", degrees, reading)
        return ask(self._edges, pattern, epsilon, confidence)

    def _by_edge(
        self,
        pattern: str,
        mechanism: str,
        found: Found,
        epsilon: object,
        confidence: float,
        known: tuple[str, ...] = ("smooth", "ladder"),
    ) -> Answer:
        """A pattern that one edge changes by something that the graph decides.

        `auto` is `smooth`: a ladder's errors are smaller, its intervals far wider where degrees are small.
        """
        chosen = named(mechanism, known)

        def counting(share: Fraction, miss: float) -> PatternCount:
            if chosen == "ladder" and share < SMALLEST_EPSILON:
                raise EpsilonTooSmall("the mechanism ladder needs an epsilon of at least 0.001; smooth takes less")
            smooth = Smooth(share) if chosen == "smooth" else None

            def count(network: "Network") -> Counted:
                if smooth is None:
                    exact, rungs = found(network)
                    assert isinstance(rungs, TriangleRungs | StarRungs)  # others have no ladder
                    return Counted((_ladder(exact, rungs, share, miss, self._edges.holdings),))
                return Counted((_smooth(*found(network), smooth, miss, self._edges.holdings),))

            return PatternCount(chosen, count)

        def concentrated(paid: ZCDP, changes: int, miss: float) -> PatternCount:
            smooth = SmoothGaussian(paid.rho, paid.delta, changes)

            def count(network: "Network") -> Counted:
                return Counted((_smooth(*found(network), smooth, miss, self._edges.holdings),))

            return PatternCount(chosen, count)

        both = Pattern(pattern, chosen, counting, concentrated=concentrated if chosen == "smooth" else None)
        return ask(self._edges, both, epsilon, confidence)


def _nothing_cut(at_most: object) -> None:
    if at_most is not None:
        raise ParameterError("at_most is for nodes as the unit; with edges as the unit nothing is cut: leave it out")


def _noised(counts: NDArray[np.int64], noise: Additive, miss: float, holdings: Holdings) -> Counted:
    measurement = noise.measure(counts.astype(np.int64), holdings.randomness)
    half = int(measurement.law.half_width(1 - Fraction(miss)))
    return Counted(tuple(inside(int(value), half) for value in measurement.values))


def _smooth(count: int, rungs: Rungs, smooth: Smooth | SmoothGaussian, miss: float, holdings: Holdings) -> Estimate:
    bound = smooth_bound(rungs, float(smooth.alpha))
    if isinstance(smooth, SmoothGaussian):
        values, half = smooth.measure([count], bound, miss, holdings.randomness)
        return inside(values[0], half)
    noised, scale = smooth.measure(count, bound, miss, holdings.randomness)
    return inside(noised, int(smooth.half_width(scale, miss)) + 1)


def _ladder(
    count: int, rungs: TriangleRungs | StarRungs, epsilon: Fraction, miss: float, holdings: Holdings
) -> Estimate:
    ladder = Ladder(epsilon, miss, rungs.growth)
    drawn, half = ladder.measure(count, rungs.rungs(ladder.length), holdings.randomness)
    return inside(drawn, half)

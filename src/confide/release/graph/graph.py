"""Patterns of a graph whose edges are the rows of a table: triangles, stars, edges, degrees; with intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall, ParameterError, QueryError
from confide.host.progress import Tell
from confide.mechanism.graph.ladder import SMALLEST_EPSILON, Ladder
from confide.mechanism.graph.pattern import StarRungs, TriangleRungs, smooth_bound
from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.smooth.gaussian import SmoothGaussian
from confide.mechanism.smooth.smooth import Smooth
from confide.policy import Category, Column, Identifier, KeyUnit, Policy, Table, Text
from confide.privacy.amount import shown_value, whole_number
from confide.privacy.loss import ZCDP
from confide.query.spelling import nearest
from confide.release.account import AUTO
from confide.release.answer.answer import Answer, KeyColumn
from confide.release.arguments import plain_text
from confide.release.graph.nodes import edges_by_node, histogram_by_node, stars_by_node, triangles_by_node
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
from confide.release.guard import callers
from confide.release.holdings import Holdings

if TYPE_CHECKING:
    from confide.engine.protocol import Inquiry
    from confide.engine.read.network import GraphInquiry, Network

MOST_LEAVES: Final = 6
LADDER_LEAVES: Final = 3
MOST_DEGREES: Final = 10_000

Rungs = TriangleRungs | StarRungs
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
                    return Counted((_ladder(*found(network), share, miss, self._edges.holdings),))
                return Counted((_smooth(*found(network), smooth, miss, self._edges.holdings),))

            return PatternCount(chosen, count)

        def concentrated(paid: ZCDP, changes: int, miss: float) -> PatternCount:
            smooth = SmoothGaussian(paid.rho, paid.delta, changes)

            def count(network: "Network") -> Counted:
                return Counted((_smooth(*found(network), smooth, miss, self._edges.holdings),))

            return PatternCount(chosen, count)

        both = Pattern(pattern, chosen, counting, concentrated=concentrated if chosen == "smooth" else None)
        return ask(self._edges, both, epsilon, confidence)


def open_graph(
    holdings: Holdings,
    table: object,
    source: object,
    target: object,
    directed: object,
    unit: object,
    account: object = AUTO,
    progress: Tell | None = None,
) -> Graph:
    """The graph of an edge table, or a refusal from the policy alone."""
    policy = holdings.policy
    holdings.accounts(account)  # refuses one that there is not
    if not isinstance(directed, bool):
        raise ParameterError(f"directed={shown_value(directed)} is not True or False")
    unit = plain_text(unit)
    if unit is not None and not (isinstance(unit, str) and unit in ("edge", "node")):
        raise ParameterError(f"unit={shown_value(unit)} is not a unit of a graph; there are 'edge' and 'node'")
    found = _table(policy, plain_text(table))
    ends = [_end(found, plain_text(column)) for column in (source, target)]
    if ends[0].name == ends[1].name:
        raise QueryError(f"both ends of an edge would be {ends[0].name}; name the two columns that hold its ends")
    protected: Protected = "node" if unit == "node" else "edge"
    if isinstance(policy.unit, KeyUnit):
        protected = "node"
        own = _own_columns(policy, found)
        if not own & {column.name for column in ends} or unit == "edge":
            raise QueryError(
                f"the policy protects {policy.unit}, with all rows that refer to it, so a graph of {found.name} needs "
                f"its nodes to be that key: name {', '.join(sorted(own)) or 'a column that refers to it'} as one end"
            )
    callers(progress)  # refuses what is no function
    return Graph(EdgeTable(holdings, found.name, ends[0].name, ends[1].name, directed, protected, progress, account))


def _own_columns(policy: Policy, table: Table) -> set[str]:
    """Columns of a table that hold the unit's key itself."""
    assert isinstance(policy.unit, KeyUnit)
    if table.name == policy.unit.table:
        return {policy.unit.column}
    path = policy.unit_path(table.name)
    return {path[0].column} if len(path) == 1 else set()


def _table(policy: Policy, name: object) -> Table:
    known = {own.casefold(): table for own, table in policy.tables.items()}
    if not isinstance(name, str) or name.casefold() not in known:
        said = name if isinstance(name, str) else shown_value(name)
        raise QueryError(f"there is no table {said[:60]}; {nearest(said, policy.tables, 'the policy has')}")
    table = known[name.casefold()]
    if table.public:
        raise QueryError(f"{table.name} is public; it needs no privacy, read it directly")
    return table


def _end(table: Table, name: object) -> Column:
    known = {own.casefold(): column for own, column in table.columns.items()}
    if not isinstance(name, str) or name.casefold() not in known:
        said = name if isinstance(name, str) else shown_value(name)
        raise QueryError(f"there is no column {said[:60]}; {nearest(said, table.columns, 'the policy names')}")
    column = known[name.casefold()]
    if not isinstance(column, Identifier | Text | Category):
        raise QueryError(f"{column.name} does not name nodes; the ends of edges are columns of type id, text or values")
    return column


def _nothing_cut(at_most: object) -> None:
    if at_most is not None:
        raise ParameterError("at_most is for nodes as the unit; with edges as the unit nothing is cut: leave it out")


def _noised(counts: NDArray[np.int64], noise: Additive, miss: float, holdings: Holdings) -> Counted:
    measurement = noise.measure(counts.astype(np.int64), holdings.randomness)
    half = int(measurement.law.half_width(1 - Fraction(miss)))
    return Counted(tuple(inside(int(value), half) for value in measurement.values))


def _smooth(count: int, rungs: Rungs, smooth: Smooth | SmoothGaussian, miss: float, holdings: Holdings) -> Estimate:
    alpha, degree = float(smooth.alpha), rungs.growth.degree
    bound = smooth_bound(rungs.rungs(int(degree / alpha) + 4), alpha, degree)
    if isinstance(smooth, SmoothGaussian):
        values, half = smooth.measure([count], bound, miss, holdings.randomness)
        return inside(values[0], half)
    noised, scale = smooth.measure(count, bound, miss, holdings.randomness)
    return inside(noised, int(smooth.half_width(scale, miss)) + 1)


def _ladder(count: int, rungs: Rungs, epsilon: Fraction, miss: float, holdings: Holdings) -> Estimate:
    ladder = Ladder(epsilon, miss, rungs.growth)
    drawn, half = ladder.measure(count, rungs.rungs(ladder.length), holdings.randomness)
    return inside(drawn, half)

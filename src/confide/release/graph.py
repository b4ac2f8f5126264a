"""Patterns of a graph whose edges are the rows of a table: triangles, stars, edges, degrees; with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import EngineError, ParameterError, QueryError
from confide.mechanism.additive import laplace
from confide.mechanism.ladder import SMALLEST_EPSILON, Ladder
from confide.mechanism.law import miss_rate
from confide.mechanism.pattern import StarRungs, TriangleRungs, smooth_bound
from confide.mechanism.smooth import Smooth
from confide.mechanism.truncation import Levels, Race, Truncation
from confide.policy import Category, Column, Identifier, KeyUnit, Policy, Table, Text
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss
from confide.query.spelling import nearest
from confide.release.answer import Answer, KeyColumn, ValueColumn
from confide.release.arguments import confidence_level, exact_epsilon, pure_share
from confide.release.cost import Cost
from confide.release.holdings import Holdings, Release

if TYPE_CHECKING:
    from confide.engine.network import GraphInquiry, Network
    from confide.engine.protocol import Inquiry

MOST_LEAVES: Final = 6
LADDER_LEAVES: Final = 3
MOST_DEGREES: Final = 10_000
MOST_EDGES: Final = 20_000_000
"""A larger table, by the size that the policy states, is not taken out of the database as a graph."""
MOST_NEIGHBOURS: Final = 2**20
"""How many edges one node may have at most, for node privacy; more are cut."""
MOST_TRIANGLES: Final = 2**24
"""The same for triangles."""

Protected = Literal["edge", "node"]
Estimate = tuple[int, int, int]
Measured = tuple[Estimate, ...]
Counting = Callable[["Network"], Measured]


@dataclass(frozen=True, slots=True)
class Graph:
    """An edge table seen as a graph. Made by `Session.graph`; every call is paid, and the same call again is free.

    Self-loops and edges with an unknown end are no edges; rows that say the same edge are one. In an undirected graph
    (a, b) and (b, a) are the same edge, and patterns are counted as sets; in a directed one as ordered matches.
    """

    _holdings: Holdings
    table: str
    source: str
    target: str
    directed: bool
    unit: Protected

    def edges(self, epsilon: object, confidence: float = 0.95, *, mechanism: str = "auto") -> Answer:
        """How many edges there are; with nodes as the unit, what is left when none keeps more than a learnt number."""
        if self.unit == "node":
            return self._by_node("edges", MOST_NEIGHBOURS, 2, packed_edges, epsilon, confidence, mechanism)
        name = _named(mechanism, ("laplace",))

        def reading(graph: "GraphInquiry") -> "Inquiry[int]":
            from confide.engine.network import EdgeCountInquiry  # noqa: PLC0415

            return EdgeCountInquiry(graph)

        def counting(share: Fraction, miss: float, count: int) -> Measured:
            return _noised(np.array([count]), 1, share, miss, self._holdings)

        return self._ask("edges", name, epsilon, confidence, counting, reading=reading)

    def triangles(self, epsilon: object, confidence: float = 0.95, *, mechanism: str = "auto") -> Answer:
        """How many triangles there are; in a directed graph how many ordered matches of (x, y), (y, z), (z, x)."""
        if self.unit == "node":
            return self._by_node("triangles", MOST_TRIANGLES, 3, packed_triangles, epsilon, confidence, mechanism)
        name = _named(mechanism, ("ladder", "smooth"))

        def counting(share: Fraction, miss: float, network: "Network") -> Measured:
            from confide.engine.network import triangle_facts  # noqa: PLC0415  heavy, and loaded when used

            facts = triangle_facts(network)
            # An edge is in one set of three nodes, or in three ordered matches of it.
            rungs = TriangleRungs(facts.shared, facts.reach, 3 if self.directed else 1)
            return (_pattern(name, facts.count, rungs, share, miss, self._holdings),)

        return self._ask("triangles", name, epsilon, confidence, counting)

    def stars(self, leaves: int, epsilon: object, confidence: float = 0.95, *, mechanism: str = "auto") -> Answer:
        """How many stars: a node with `leaves` of its neighbours, as a set; ordered, and along edges, if directed."""
        if isinstance(leaves, bool) or not isinstance(leaves, int) or not 2 <= leaves <= MOST_LEAVES:
            raise ParameterError(
                f"stars have 2 to {MOST_LEAVES} leaves, not {leaves!r}; a star of one leaf is an edge: ask edges()"
            )
        if self.unit == "node":
            raise QueryError(
                "stars are not answered with nodes as the unit: one node can be in a large part of them all; "
                "ask edges() or triangles(), or protect edges"
            )
        # Beyond three leaves a ladder's rungs might not fit into the integers that are drawn from.
        name = _named(mechanism, ("ladder", "smooth") if leaves <= LADDER_LEAVES else ("smooth",))

        def counting(share: Fraction, miss: float, network: "Network") -> Measured:
            from confide.engine.network import star_count, star_pairs  # noqa: PLC0415

            rungs = StarRungs(star_pairs(network), leaves, self.directed)
            return (_pattern(name, star_count(network, leaves), rungs, share, miss, self._holdings),)

        return self._ask(f"stars_{leaves}", name, epsilon, confidence, counting)

    def degree_histogram(self, epsilon: object, up_to: int, confidence: float = 0.95) -> Answer:
        """How many nodes have 1, 2, ..., `up_to` or more edges (out of them, if directed); the rest is not known."""
        if isinstance(up_to, bool) or not isinstance(up_to, int) or not 1 <= up_to <= MOST_DEGREES:
            raise ParameterError(f"up_to={up_to!r} is not a number of degrees from 1 to {MOST_DEGREES:,}")
        if self.unit == "node":
            raise QueryError(
                "a histogram of degrees is not answered with nodes as the unit: one node changes the degrees of all "
                "its neighbours; protect edges"
            )

        def reading(graph: "GraphInquiry") -> "Inquiry[NDArray[np.int64]]":
            from confide.engine.network import DegreeInquiry  # noqa: PLC0415

            return DegreeInquiry(graph, up_to)

        def counting(share: Fraction, miss: float, counts: NDArray[np.int64]) -> Measured:
            # An edge moves each of its ends (one of them, if directed) from one degree to the next.
            sensitivity = 2 if self.directed else 4
            return _noised(counts, sensitivity, share, miss, self._holdings)

        degrees = KeyColumn("degree", "integer", tuple(range(1, up_to + 1)))
        more = f"up to {up_to}"
        return self._ask("nodes", "laplace", epsilon, confidence, counting, degrees, more, reading=reading)

    # --- asking -------------------------------------------------------------------------------------------------------

    def _by_node(
        self,
        pattern: str,
        most: int,
        ends: int,
        packed: Callable[["Network", Sequence[int]], list[int]],
        epsilon: object,
        confidence: float,
        mechanism: str,
    ) -> Answer:
        """A pattern of so many nodes each, with nodes as the unit; what one has of it is cut at a learnt level."""
        name = _named(mechanism, ("truncate", "r2t"))
        kind = Race if name == "r2t" else Truncation
        levels = Levels(most, ends)

        def counting(share: Fraction, miss: float, network: "Network") -> Measured:
            result = kind(levels, share, miss).measure(packed(network, levels.edges), self._holdings.randomness)
            return ((result.estimate, result.low, result.high),)

        def condition(share: Fraction, miss: float) -> str:
            return kind(levels, share, miss).condition

        chosen = "truncate" if name == "auto" else name
        return self._ask(pattern, chosen, epsilon, confidence, counting, None, "", condition)

    def _ask(
        self,
        pattern: str,
        mechanism: str,
        epsilon: object,
        confidence: float,
        counting: Callable[[Fraction, float, Any], Measured],
        keys: KeyColumn | None = None,
        more: str = "",
        condition: Callable[[Fraction, float], str] | None = None,
        reading: Callable[["GraphInquiry"], "Inquiry[Any]"] | None = None,
    ) -> Answer:
        size = self._holdings.policy.tables[self.table].size
        if reading is None and size is not None and size > MOST_EDGES:
            raise QueryError(
                f"{self.table} has about {size:,} rows, as the policy says, and patterns are counted in graphs of up "
                f"to {MOST_EDGES:,} edges; ask edges() or degree_histogram() with edges as the unit"
            )
        exact, level = exact_epsilon(epsilon), confidence_level(confidence)
        loss, share = pure_share(self._holdings.ledger.budget, exact)
        if self._replaced:
            share /= 2  # a row that is replaced is one that goes and one that comes
        name = ("ladder" if share >= SMALLEST_EPSILON else "smooth") if mechanism == "auto" else mechanism
        if name == "ladder" and share < SMALLEST_EPSILON:
            raise ParameterError("the mechanism ladder needs an epsilon of at least 0.001; smooth takes less")
        what = (pattern, more, self.table, self.source, self.target, str(self.directed), self.unit)
        key = self._holdings.key("graph", *what, name, str(exact), repr(level))

        def prepare() -> tuple[PrivacyLoss, Release]:
            def release(charge: Charge) -> bytes:
                from confide.engine.network import GraphInquiry  # noqa: PLC0415

                columns = self._holdings.policy.tables[self.table].columns
                graph = GraphInquiry(self.table, columns[self.source], columns[self.target], self.directed)
                inquiry: Inquiry[Any] = graph if reading is None else reading(graph)
                results = counting(share, miss_rate(level), self._holdings.engine.inquire(inquiry, charge))
                assumed = "" if condition is None else condition(share, miss_rate(level))
                return self._answer(pattern, name, results, keys, assumed, exact, loss, level).to_bytes()

            return loss, release

        purpose = f"graph: {pattern} of {self.table}({self.source}, {self.target}) {more}".strip()
        return Answer.from_bytes(self._holdings.once(key, purpose, prepare))

    def _answer(
        self,
        pattern: str,
        mechanism: str,
        results: Measured,
        keys: KeyColumn | None,
        assumed: str,
        epsilon: Fraction,
        loss: PrivacyLoss,
        confidence: float,
    ) -> Answer:
        values, low, high = zip(*results, strict=True)
        note = f"the upper end assumes {assumed}" if assumed else ""
        column = ValueColumn(pattern, "integer", values, low, high, mechanism, "density" if assumed else "always", note)
        return Answer(
            columns=(column,) if keys is None else (keys, column),
            confidence=confidence,
            cost=Cost.of(epsilon, loss),  # type: ignore[arg-type]
            unit=self._protected,
            neighbours="replace-one" if self._replaced else "add-remove",
            question=f"{pattern} of {self.table}",
            notes=("self-loops and edges with an unknown end are left out; rows that say the same edge count once",),
            test_noise=not self._holdings.randomness.kernel,
        )

    @property
    def _replaced(self) -> bool:
        policy = self._holdings.policy
        owner = policy.unit.table if isinstance(policy.unit, KeyUnit) else self.table
        return policy.tables[owner].rows == "public"

    @property
    def _protected(self) -> str:
        if self.unit == "node":
            return f"node of {self.table}, with all its edges"
        return f"row of {self.table}: a directed edge" if self.directed else f"row of {self.table}: an undirected edge"


def packed_edges(network: "Network", levels: Sequence[int]) -> list[int]:
    """How many edges are left when no node keeps more than each level: maximum flows."""
    ends = np.column_stack([network.source, network.target])
    return _packed(ends, np.ones(len(ends), dtype=np.int64), None, levels)


def packed_triangles(network: "Network", levels: Sequence[int]) -> list[int]:
    """How many triangles are left when no node keeps more than each level: concave programs, certified."""
    from confide.engine.triangle import alike, triangle_sets  # noqa: PLC0415  loaded when used

    members, weights = triangle_sets(network)
    return _packed(members, weights, alike(network), levels)


def _packed(
    members: NDArray[np.int64], weights: NDArray[np.int64], kinds: NDArray[np.int64] | None, levels: Sequence[int]
) -> list[int]:
    from confide.mechanism.curved import UncertifiedError  # noqa: PLC0415  loaded when used
    from confide.mechanism.packing import Packing  # noqa: PLC0415

    try:
        return Packing(members, weights, kinds).totals(levels)
    except UncertifiedError:
        pass
    raise EngineError


def open_graph(
    holdings: Holdings, table: object, source: object, target: object, directed: object, unit: object
) -> Graph:
    """The graph of an edge table, or a refusal from the policy alone."""
    policy = holdings.policy
    if not isinstance(directed, bool):
        raise ParameterError(f"directed={directed!r} is not True or False")
    if unit not in (None, "edge", "node"):
        raise ParameterError(f"unit={unit!r} is not a unit of a graph; there are 'edge' and 'node'")
    found = _table(policy, table)
    ends = [_end(found, column) for column in (source, target)]
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
    return Graph(holdings, found.name, ends[0].name, ends[1].name, directed, protected)


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
        raise QueryError(f"there is no table {str(name)[:60]}; {nearest(str(name), policy.tables, 'the policy has')}")
    table = known[name.casefold()]
    if table.public:
        raise QueryError(f"{table.name} is public; it needs no privacy, read it directly")
    return table


def _end(table: Table, name: object) -> Column:
    known = {own.casefold(): column for own, column in table.columns.items()}
    if not isinstance(name, str) or name.casefold() not in known:
        raise QueryError(
            f"there is no column {str(name)[:60]}; {nearest(str(name), table.columns, 'the policy names')}"
        )
    column = known[name.casefold()]
    if not isinstance(column, Identifier | Text | Category):
        raise QueryError(f"{column.name} does not name nodes; the ends of edges are columns of type id, text or values")
    return column


def _named(mechanism: object, known: tuple[str, ...]) -> str:
    if mechanism == "auto":
        return "auto" if len(known) > 1 else known[0]
    if mechanism not in known:
        raise ParameterError(f"there is no mechanism {mechanism!r} for this; there are auto, {', '.join(known)}")
    return str(mechanism)


def _noised(
    counts: NDArray[np.int64], sensitivity: int, epsilon: Fraction, miss: float, holdings: Holdings
) -> Measured:
    measurement = laplace(sensitivity, epsilon).measure(counts.astype(np.int64), holdings.randomness)
    half = int(measurement.law.half_width(1 - Fraction(miss)))
    return tuple(_inside(int(value), half) for value in measurement.values)


def _pattern(
    name: str, count: int, rungs: TriangleRungs | StarRungs, epsilon: Fraction, miss: float, holdings: Holdings
) -> Estimate:
    if name == "smooth" or (name == "auto" and epsilon < SMALLEST_EPSILON):
        smooth = Smooth(epsilon)
        alpha, degree = float(smooth.alpha), rungs.growth.degree
        bound = smooth_bound(rungs.rungs(int(degree / alpha) + 4), alpha, degree)
        noised, scale = smooth.measure(count, bound, miss, holdings.randomness)
        return _inside(noised, int(smooth.half_width(scale, miss)) + 1)
    ladder = Ladder(epsilon, miss, rungs.growth)
    steps = rungs.rungs(ladder.length)
    if count >= 2**60 or steps[ladder.last_rung - 1] > ladder.largest_rung:
        raise EngineError  # no data that fit into a computer are so large
    drawn, half = ladder.measure(count, np.array(steps, dtype=np.int64), holdings.randomness)
    return _inside(drawn, half)


def _inside(value: int, half: int) -> Estimate:
    """A count is not negative."""
    return max(value, 0), max(value - half, 0), max(value + half, 0)

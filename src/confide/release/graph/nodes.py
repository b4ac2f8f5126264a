"""Patterns of a graph with nodes as the unit: what one node has of them is cut at a level, learnt or declared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.graph.bounded_degree import CutHistogram, HistogramChange, NodeUnit, StarChange, kept_degrees
from confide.mechanism.join.truncation import Bounded, Change, Levels, Race, Truncation
from confide.privacy.amount import shown_value, whole_number
from confide.release.answer.answer import KeyColumn
from confide.release.graph.request import Counted, EdgeTable, Pattern, PatternCount, inside, named
from confide.release.packed import packed_totals

if TYPE_CHECKING:
    from confide.engine.read.network import Network

MOST_NEIGHBOURS: Final = 2**20
"""How many edges one node may have at most, for node privacy; more are cut."""
MOST_TRIANGLES: Final = 2**24
"""The same for triangles, larger cliques and rectangles."""

Packed = Callable[["Network", Sequence[int]], list[int]]
MECHANISMS: Final = ("truncate", "r2t")


def edges_by_node(edges: EdgeTable, mechanism: object, at_most: object) -> Pattern:
    """What is left of the edges where no node keeps more than a level."""
    ways = 2 if edges.directed else 1  # out of a node, and into it
    shape = _Packed("edges", 2, MOST_NEIGHBOURS, lambda most: ways * most, packed_edges)
    return _packed_pattern(edges, shape, named(mechanism, MECHANISMS), _declared(at_most, 1))


def triangles_by_node(edges: EdgeTable, mechanism: object, at_most: object) -> Pattern:
    """The same of the triangles. A node with so many edges is in no more triangles than it has pairs of them."""
    # Ordered matches: three for each way round, with an edge out of the node and one into it.
    shape = _Packed(
        "triangles", 3, MOST_TRIANGLES, (lambda most: 3 * most * most) if edges.directed else _pairs, packed_triangles
    )
    return _packed_pattern(edges, shape, named(mechanism, MECHANISMS), _declared(at_most, 2))


def cliques_by_node(edges: EdgeTable, size: int, mechanism: object, at_most: object) -> Pattern:
    """The same of the cliques. A node with so many edges is in no more than it has sets of neighbours."""
    shape = _Packed(
        f"cliques_{size}",
        size,
        MOST_TRIANGLES,
        lambda most: comb(most, size - 1),
        lambda network, levels: packed_cliques(network, levels, size),
        f"cliques of {size} nodes",
    )
    return _packed_pattern(edges, shape, named(mechanism, MECHANISMS), _declared(at_most, size - 1))


def rectangles_by_node(edges: EdgeTable, mechanism: object, at_most: object) -> Pattern:
    """The same of the rectangles. Two neighbours of a node, and another one of the first, are the other corners."""
    shape = _Packed("rectangles", 4, MOST_TRIANGLES, lambda most: _pairs(most) * (most - 1), packed_rectangles)
    return _packed_pattern(edges, shape, named(mechanism, MECHANISMS), _declared(at_most, 2))


def _pairs(most: int) -> int:
    return comb(most, 2)


def stars_by_node(edges: EdgeTable, leaves: int, mechanism: object, at_most: object) -> Pattern:
    """Stars of the graph in which no node keeps more edges than a level; that is learnt by how many edges are kept."""
    name = named(mechanism, MECHANISMS)
    change = StarChange(NodeUnit(edges.directed, edges.owned), leaves)
    most = _declared(at_most, leaves)
    levels = _levels(change, most, leaves, declared=name == "truncate")

    def counting(share: Fraction, miss: float) -> PatternCount:
        chosen = _kind(name)(levels, share, miss)

        def count(network: "Network") -> Counted:
            from confide.engine.read.network import stars_of  # noqa: PLC0415  heavy, and loaded when used

            totals, kept = [], []
            for degrees in _cut(network, levels):
                totals.append(stars_of(degrees, leaves, network.directed))
                kept.append(_edges_of(degrees, network))
            result = chosen.measure(totals, edges.holdings.randomness, kept)
            return Counted(((result.estimate, result.low, result.high),), result.informed)

        return PatternCount(name, count, _upper(chosen.condition))

    return Pattern(f"stars_{leaves}", name, counting, _told(most), notes=_cut_note(levels, edges))


def histogram_by_node(edges: EdgeTable, up_to: int, at_most: object) -> Pattern:
    """Degrees in the graph in which no node keeps more edges than a level."""
    change = HistogramChange(NodeUnit(edges.directed, edges.owned), up_to)
    most = _declared(at_most, 1)
    levels = _levels(change, most, 1, declared=True)

    def counting(share: Fraction, miss: float) -> PatternCount:
        chosen = CutHistogram(Truncation(levels, share, miss))

        def count(network: "Network") -> Counted:
            from confide.engine.read.network import histogram_of  # noqa: PLC0415  heavy, and loaded when used

            counts, kept = [], []
            for degrees in _cut(network, levels):
                counts.append(histogram_of(degrees, up_to))
                kept.append(_edges_of(degrees, network))
            values, half, informed = chosen.measure(counts, kept, edges.holdings.randomness)
            return Counted(tuple(inside(int(value), half) for value in values), informed)

        # Degrees that are cut are missing in one cell and too many in another: neither end is safe.
        assumed = f"both ends assume {chosen.condition}" if chosen.condition else ""
        return PatternCount(chosen.name, count, assumed)

    degrees = KeyColumn("degree", "integer", tuple(range(1, up_to + 1)))
    more = f"up to {up_to} {_told(most)}".strip()
    return Pattern("nodes", "truncate", counting, more, degrees, notes=_cut_note(levels, edges))


def packed_edges(network: "Network", levels: Sequence[int]) -> list[int]:
    """How many edges are left when no node keeps more than each level: maximum flows."""
    ends = np.column_stack([network.source, network.target])
    return packed_totals(ends, np.ones(len(ends), dtype=np.int64), levels)


def packed_triangles(network: "Network", levels: Sequence[int]) -> list[int]:
    """How many triangles are left when no node keeps more than each level: concave programs, certified."""
    from confide.engine.read.triangle import alike, triangle_sets  # noqa: PLC0415  loaded when used

    members, weights = triangle_sets(network)
    return packed_totals(members, weights, levels, alike(network))


def packed_cliques(network: "Network", levels: Sequence[int], size: int) -> list[int]:
    """The same for cliques."""
    from confide.engine.read.clique import clique_sets  # noqa: PLC0415  loaded when used
    from confide.engine.read.triangle import alike  # noqa: PLC0415

    members, weights = clique_sets(network, size)
    return packed_totals(members, weights, levels, alike(network))


def packed_rectangles(network: "Network", levels: Sequence[int]) -> list[int]:
    """The same for rectangles, of which the same four nodes may make up to three."""
    from confide.engine.read.rectangle import rectangle_sets  # noqa: PLC0415  loaded when used
    from confide.engine.read.triangle import alike  # noqa: PLC0415

    members, weights = rectangle_sets(network)
    return packed_totals(members, weights, levels, alike(network))


@dataclass(frozen=True, slots=True)
class _Packed:
    """A pattern of so many nodes that a program cuts: how much one node keeps of it at most, also where it is said how
    many edges a node has, and what is left at each level.
    """

    name: str
    owners: int
    most: int
    within: Callable[[int], int]
    totals: Packed
    words: str = ""


def _packed_pattern(edges: EdgeTable, shape: _Packed, name: str, at_most: int | None) -> Pattern:
    largest = shape.most if at_most is None else min(shape.within(at_most), shape.most)
    alone = at_most is not None and name == "truncate"  # nothing is learnt
    words = shape.words or shape.name
    levels = Levels(largest, shape.owners, smallest=largest if alone else 1)

    def counting(share: Fraction, miss: float) -> PatternCount:
        chosen = _kind(name)(levels, share, miss)

        def count(network: "Network") -> Counted:
            totals = shape.totals(network, levels.edges)
            result = chosen.measure(totals, edges.holdings.randomness)
            said = "" if result.beyond is None else _exactly(result, result.beyond, words, chosen.condition)
            return Counted(((result.estimate, result.low, result.high),), result.informed, said)

        return PatternCount(name, count, _upper(chosen.condition), len(levels.edges))

    note = f"no node keeps more than {largest:,} {words}; the interval is for what is left so"
    return Pattern(shape.name, name, counting, _told(at_most), notes=(note,))


def _exactly(result: Bounded, most: int, words: str, condition: str) -> str:
    """What the upper end assumes, once the level is known; and what holds if a node has more."""
    level = f"no node has more than {result.level:,} {words}, which are what is kept"
    assumed = (
        f"the upper end assumes {condition}; then {level}"
        if result.borne_out
        else f"the upper end assumes that {level}, and what is released does not bear that out: too few nodes are seen "
        "that have about as many"
    )
    return f"{assumed}; if some have more, but none more than {2 * result.level:,}, there are at most {most:,}"


def _kind(name: str) -> type[Race] | type[Truncation]:
    return Race if name == "r2t" else Truncation


def _levels(change: Change, at_most: int | None, least: int, declared: bool) -> Levels:
    """Up to what the caller says a node has at most; only that, where nothing is raced.

    With fewer than the `least` edges of a pattern there is none of it: levels begin with the power of two beyond.
    """
    smallest = 1 << (least - 1).bit_length()
    if at_most is None:
        return Levels(MOST_NEIGHBOURS, smallest=smallest, change=change)
    return Levels(at_most, smallest=at_most if declared else min(smallest, at_most), change=change)


def _declared(at_most: object, least: int) -> int | None:
    """What the caller says, a number of Python's own, or a refusal."""
    if at_most is None:
        return None
    most = whole_number(at_most)
    if most is None or not least <= most <= MOST_NEIGHBOURS:
        raise ParameterError(
            f"at_most={shown_value(at_most)} is not a number of edges from {least} to {MOST_NEIGHBOURS:,}: how many a "
            "node has at most, as you know without looking; leave it out, and it is learnt"
        )
    return most


def _cut(network: "Network", levels: Levels) -> list[NDArray[np.int64]]:
    return list(kept_degrees(network.source, network.target, network.nodes, network.directed, levels.edges))


def _edges_of(degrees: NDArray[np.int64], network: "Network") -> int:
    return int(degrees.sum()) // (1 if network.directed else 2)


def _upper(condition: str) -> str:
    return f"the upper end assumes {condition}" if condition else ""


def _told(at_most: int | None) -> str:
    return "" if at_most is None else f"at most {at_most}"


def _cut_note(levels: Levels, edges: EdgeTable) -> tuple[str, ...]:
    each = "edges in either direction" if edges.directed else "edges"
    return (f"no node keeps more than {levels.edges[-1]:,} {each}; the interval is for the graph so cut",)

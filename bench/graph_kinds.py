"""Every pattern by every mechanism on graphs of several kinds: error, half-width, coverage.

Random, preferential attachment, a small world, a star forest, and HepPh, where it is. ε = 1, confidence 0.9, 100 runs
of each. With nodes as units it is told whether what the interval assumes is true of the graph, how often an answer said
that it has no information, and how often the exact count was below what is said of nodes that have up to twice what was
kept. Patterns whose sets are listed one by one are left out where there are too many.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bench._graphs import erdos_renyi, hepph, preferential, small_world, star_forest
from confide.engine.read.clique import clique_count, clique_sets
from confide.engine.read.network import Network, network_of, star_count, star_pairs, stars_of, triangle_facts
from confide.engine.read.rectangle import rectangle_facts, rectangle_sets
from confide.engine.read.triangle import alike, triangle_sets
from confide.mechanism import TestRandomness
from confide.mechanism.graph.bounded_degree import NodeUnit, StarChange, kept_degrees
from confide.mechanism.graph.ladder import Ladder
from confide.mechanism.graph.pattern import CliqueRungs, RectangleRungs, Rungs, StarRungs, TriangleRungs, smooth_bound
from confide.mechanism.join.packing import Packing
from confide.mechanism.join.truncation import Levels, Race, Truncation
from confide.mechanism.smooth.smooth import Smooth
from confide.release.graph.nodes import MOST_NEIGHBOURS, MOST_TRIANGLES

RUNS = 100
MISS = 0.1
ONE = Fraction(1)
MOST_SETS = 5_000_000


def main() -> None:
    for name, edges in _graphs():
        network = network_of({"a": edges[:, 0], "b": edges[:, 1]}, directed=False)
        most = int(np.bincount(edges.ravel()).max())
        print(f"\n{name}: {len(np.unique(edges)):,} nodes, {len(edges):,} edges, at most {most:,} of a node")
        print("| unit | pattern | mechanism | exact | median error | half-width | coverage | assumed | told |")
        print("|---|---|---|---|---|---|---|---|---|")
        _by_edge(network)
        _by_node(network)


def _graphs() -> Iterator[tuple[str, np.ndarray]]:
    yield "random", erdos_renyi(5_000, 50_000, 1)
    yield "preferential attachment", preferential(5_000, 10, 1)
    yield "small world", small_world(5_000, 10, 0.1, 1)
    yield "star forest", star_forest(500, 100)
    found = hepph()
    if found is None:
        print("HepPh: skipped, it is not there (CONFIDE_DATA names the folder of data sets)")
    else:
        yield "HepPh", found


# --- edges as units ---------------------------------------------------------------------------------------------------


def _by_edge(network: Network) -> None:
    facts, corners = triangle_facts(network), rectangle_facts(network)
    triangles = TriangleRungs(facts.shared, facts.reach, 1)
    patterns: list[tuple[str, int, Rungs]] = [("triangles", facts.count, triangles)]
    patterns += [("4-cliques", clique_count(network, 4), CliqueRungs(triangles, 4))]
    patterns += [("rectangles", corners.count, RectangleRungs(corners.paths, corners.shared))]
    pairs = star_pairs(network)
    patterns += [
        (f"{leaves}-stars", star_count(network, leaves), StarRungs(pairs, leaves, ordered=False)) for leaves in (2, 3)
    ]
    for name, exact, rungs in patterns:
        smooth, source = Smooth(ONE), TestRandomness(5)
        bound = smooth_bound(rungs, float(smooth.alpha))
        drawn = [smooth.measure(exact, bound, MISS, source) for _ in range(RUNS)]
        _row("edge", name, "smooth", exact, [_inside(y, smooth.half_width(s, MISS)) for y, s in drawn])
        if isinstance(rungs, TriangleRungs | StarRungs):
            ladder = Ladder(ONE, MISS, rungs.growth)
            steps = rungs.rungs(ladder.length)
            drawn = [ladder.measure(exact, steps, source) for _ in range(RUNS)]
            _row("edge", name, "ladder", exact, [_inside(y, half) for y, half in drawn])


def _inside(value: int, half: float) -> tuple[float, float, float]:
    return max(value, 0), max(value - half, 0), max(value, 0) + half


# --- nodes as units ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    """What is left of a pattern at each level, and of what the level is learnt by."""

    name: str
    levels: Levels
    totals: Sequence[int]
    guide: Sequence[int]
    exact: int


def _by_node(network: Network) -> None:
    for cut in _cuts(network):
        for kind in (Truncation, Race):
            mechanism, source = kind(cut.levels, ONE, MISS), TestRandomness(5)
            results = [mechanism.measure(cut.totals, source, cut.guide) for _ in range(RUNS)]
            told = [(one.estimate, one.low, one.high) for one in results]
            held = "true" if _holds(cut, kind) else "false"
            _row("node", cut.name, kind.name, cut.exact, told, held, _told(cut, results))


def _told(cut: _Cut, results: list) -> str:
    unsure = sum(not one.informed for one in results) / RUNS
    said = [one for one in results if one.beyond is not None]
    if not said:
        return f"no information {unsure:.2f}"
    below, most = np.mean([cut.exact <= one.beyond for one in said]), np.median([one.beyond for one in said])
    doubted = sum(not one.borne_out for one in results) / RUNS
    return (
        f"no information {unsure:.2f}; not borne out {doubted:.2f}; up to {most:,.0f} with twice the level, "
        f"{below:.2f} below it"
    )


def _cuts(network: Network) -> Iterator[_Cut]:
    ends = np.column_stack([network.source, network.target])
    yield _packed("edges", ends, np.ones(len(ends), dtype=np.int64), None, Levels(MOST_NEIGHBOURS, 2))
    kinds = alike(network)
    yield _packed("triangles", *triangle_sets(network), kinds, Levels(MOST_TRIANGLES, 3))
    for name, count, listed in (
        ("4-cliques", clique_count(network, 4), lambda: clique_sets(network, 4)),
        ("rectangles", rectangle_facts(network).count, lambda: rectangle_sets(network)),
    ):
        if count <= MOST_SETS:
            yield _packed(name, *listed(), kinds, Levels(MOST_TRIANGLES, 4))
        else:
            print(f"| node | {name} | | {count:,} | too many to be listed | | | | |")
    for leaves in (2, 3):
        change = StarChange(NodeUnit(directed=False, owned=False), leaves)
        levels = Levels(MOST_NEIGHBOURS, smallest=1 << (leaves - 1).bit_length(), change=change)
        degrees = list(kept_degrees(network.source, network.target, network.nodes, False, levels.edges))
        totals = [stars_of(own, leaves, False) for own in degrees]
        kept = [int(own.sum()) // 2 for own in degrees]
        yield _Cut(f"{leaves}-stars", levels, totals, kept, totals[-1])


def _packed(name: str, members: np.ndarray, weights: np.ndarray, kinds: np.ndarray | None, levels: Levels) -> _Cut:
    begun = time.process_time()
    packing = Packing(members, weights, kinds)
    totals = packing.totals(levels.edges)
    print(f"<!-- {name}: {len(weights):,} sets, {time.process_time() - begun:.1f} s of processors for all levels -->")
    return _Cut(name, levels, totals, totals, packing.total)


def _holds(cut: _Cut, kind: type[Race] | type[Truncation]) -> bool:
    """Whether what is assumed is so: where twice a cut-off still loses anything, doubling it brings back enough."""
    share = cut.levels.walk_share if kind is Truncation else 1 - cut.levels.race_share
    needed = cut.levels.needed(share, MISS / 4)
    places = range(len(cut.guide) - 1)
    gains = cut.levels.gains(cut.guide)
    return all(gains[place] >= needed for place in places if cut.guide[place + 1] < cut.guide[-1])


def _row(unit: str, name: str, mechanism: str, exact: int, told: list, assumed: str = "always", more: str = "") -> None:
    error = float(np.median([abs(value - exact) for value, _, _ in told]))
    half = float(np.median([(high - low) / 2 for _, low, high in told]))
    hits = sum(low <= exact <= high for _, low, high in told) / RUNS
    share = f" ({error / exact:.1%})" if exact else ""
    figures = f"{exact:,} | {error:,.0f}{share} | {half:,.0f} | {hits:.2f} | {assumed} | {more}"
    print(f"| {unit} | {name} | `{mechanism}` | {figures} |", flush=True)


if __name__ == "__main__":
    main()

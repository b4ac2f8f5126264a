"""The declared sensitivities of graph patterns, against every graph within reach, on every small graph.

Neighbours of a graph are those on its own nodes, those with one node more, and those with two.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest

from confide.engine.read.clique import clique_count
from confide.engine.read.network import degrees, histogram_of, network_of, star_count, star_pairs, triangle_facts
from confide.engine.read.rectangle import rectangle_facts
from confide.mechanism.graph.ladder import Ladder, cut_rungs, log_width, rung_ends
from confide.mechanism.graph.pattern import CliqueRungs, RectangleRungs, StarRungs, TriangleRungs, smooth_bound

FAR = 3


def _triangles(edges, nodes):
    return sum(
        all(frozenset(pair) in edges for pair in combinations(three, 2)) for three in combinations(range(nodes), 3)
    )


def _matches(edges, nodes):
    return sum((x, y) in edges and (y, z) in edges and (z, x) in edges for x, y, z in permutations(range(nodes), 3))


def _stars(edges, nodes, leaves):
    degrees = [sum(node in edge for edge in edges) for node in range(nodes)]
    return sum(len(list(combinations(range(degree), leaves))) for degree in degrees)


def _out_stars(edges, nodes, leaves):
    degrees = [sum(edge[0] == node for edge in edges) for node in range(nodes)]
    return sum(len(list(permutations(range(degree), leaves))) for degree in degrees)


def _worlds(slots):
    return [frozenset(slot for place, slot in enumerate(slots) if code >> place & 1) for code in range(1 << len(slots))]


def _within(slots, count):
    """LS at distance 0, 1, ..., FAR of every graph on these slots, by looking at all of them."""
    graphs = _worlds(slots)
    local = {g: max(abs(count(g) - count(g ^ {slot})) for slot in slots) for g in graphs}
    result = {}
    for graph in graphs:
        reach = [max(local[other] for other in graphs if len(graph ^ other) <= far) for far in range(FAR + 1)]
        result[graph] = reach
    return result


def _triangle_rungs(graph, nodes, directed):
    """From the definition, over all pairs."""
    shared, reach = [], []
    for i, j in permutations(range(nodes), 2):
        others = [z for z in range(nodes) if z not in (i, j)]
        if directed:
            ends = [((j, z) in graph, (z, i) in graph) for z in others]
        else:
            ends = [(frozenset((j, z)) in graph, frozenset((z, i)) in graph) for z in others]
        shared.append(sum(one and two for one, two in ends))
        reach.append(sum(one + two for one, two in ends))
    return TriangleRungs(tuple(shared), tuple(reach), 3 if directed else 1)


UNDIRECTED = [frozenset(pair) for pair in combinations(range(4), 2)]
DIRECTED = list(permutations(range(3), 2))


@pytest.mark.parametrize(
    ("slots", "nodes", "directed", "count"),
    [(UNDIRECTED, 4, False, _triangles), (DIRECTED, 3, True, _matches)],
    ids=["undirected", "directed"],
)
def test_triangles_change_by_no_more_than_their_rungs(slots, nodes, directed, count):
    for graph, far in _within(slots, lambda g: count(g, nodes)).items():
        rungs = _triangle_rungs(graph, nodes, directed).rungs(FAR + 1)
        assert all(most <= rung for most, rung in zip(far, rungs, strict=True)), graph
        assert far[0] == min(rungs[0], far[0])


@pytest.mark.parametrize("leaves", [2, 3])
def test_stars_change_by_no_more_than_their_rungs(leaves):
    for graph, far in _within(UNDIRECTED, lambda g: _stars(g, 4, leaves)).items():
        pairs = []
        for a, b in combinations(range(4), 2):
            rest = graph - {frozenset((a, b))}
            pairs.append(tuple(sorted((sum(n in edge for edge in rest) for n in (a, b)), reverse=True)))
        rungs = StarRungs(tuple(pairs), leaves, ordered=False).rungs(FAR + 1)
        assert all(most <= rung for most, rung in zip(far, rungs, strict=True)), graph


def test_ordered_stars_change_by_no_more_than_their_rungs():
    for graph, far in _within(DIRECTED, lambda g: _out_stars(g, 3, 2)).items():
        largest = max(sum(edge[0] == node for edge in graph) for node in range(3))
        rungs = StarRungs(((largest, 0),), 2, ordered=True).rungs(FAR + 1)
        assert all(most <= rung for most, rung in zip(far, rungs, strict=True)), graph


def test_the_sum_of_the_two_largest_degrees_would_not_do():
    """Joining the two nodes of largest degree raises both: a mutant that forgets the edge between them is caught."""

    def mutant(graph):
        degrees = sorted((sum(n in edge for edge in graph) for n in range(4)), reverse=True)
        return StarRungs(((degrees[0], degrees[1]),), 6, ordered=False)

    first = frozenset({frozenset((0, 2)), frozenset((1, 3))})
    found = False
    for graph in _worlds(UNDIRECTED):
        for slot in UNDIRECTED:
            here, there = mutant(graph).pairs[0], mutant(graph ^ {slot}).pairs[0]
            found = found or (there[0] == here[0] + 1 and there[1] == here[1] + 1)
    assert found
    assert first in _worlds(UNDIRECTED)


def test_an_edge_between_hubs_is_in_stars_of_both():
    """Small graphs do not show it: their rungs are raised to a floor."""
    among = StarRungs(((50, 40),), 3, ordered=False).rungs(2)
    assert among == [math.comb(50, 2) + math.comb(40, 2), math.comb(51, 2) + math.comb(40, 2)]
    ordered = StarRungs(((50, 0),), 3, ordered=True).rungs(2)
    assert ordered == [math.perm(degree + 1, 3) - math.perm(degree, 3) for degree in (50, 51)]


@pytest.mark.parametrize("alpha", [4.0, 1.0, 0.2, 0.01])
@pytest.mark.parametrize(
    "rungs",
    [
        TriangleRungs((), (), 1), TriangleRungs((2,), (9,), 3), StarRungs((), 6, ordered=False),
        StarRungs(((5, 3),), 4, ordered=True), RectangleRungs(0, 0), RectangleRungs(0, 1), RectangleRungs(3, 4),
        RectangleRungs(60, 2), *(CliqueRungs(TriangleRungs(*facts, 1), size)
                                 for facts in (((), ()), ((2,), (9,)), ((0,), (30,))) for size in (3, 4, 5)),
    ],
    ids=repr,
)  # fmt: skip
def test_the_smooth_bound_is_never_cut_early(rungs, alpha):
    numbers = np.array([float(rung) for rung in rungs.rungs(6_000)])
    assert smooth_bound(rungs, alpha) == pytest.approx((numbers * np.exp(-alpha * np.arange(6_000))).max(), rel=1e-6)


# --- ladders over every small graph, new nodes included --------------------------------------------------------------

NEW = (90, 91)  # nodes that have no edge in any of the graphs
SMALL = {False: 5, True: 4}
ALPHA = 0.25
LENGTH = 48


def _slots(nodes, directed):
    return list((permutations if directed else combinations)(range(nodes), 2))


def _kinds_of_graphs(directed):
    """One graph of every shape on so many nodes, as a set of edges."""
    slots = _slots(SMALL[directed], directed)
    places = {slot: place for place, slot in enumerate(slots)}
    codes = np.arange(1 << len(slots))
    least = codes.copy()
    for order in permutations(range(SMALL[directed])):
        image = np.zeros_like(codes)
        for place, (a, b) in enumerate(slots):
            ends = (order[a], order[b])
            image |= (codes >> place & 1) << places[ends if directed else tuple(sorted(ends))]
        least = np.minimum(least, image)
    return [_of_code(int(code), slots) for code in codes[least == codes]]


def _of_code(code, slots):
    return frozenset(slot for place, slot in enumerate(slots) if code >> place & 1)


def _neighbours(graph, directed):
    old = SMALL[directed]
    slots = [*_slots(old, directed), *((node, NEW[0]) for node in range(old)), NEW]
    if directed:
        slots += [(NEW[0], node) for node in range(old)]
    return [graph ^ {slot} for slot in slots]


@cache
def _network(graph, directed):
    """As it is read: nodes are those that have an edge."""
    names = {node: place for place, node in enumerate(sorted({node for edge in graph for node in edge}))}
    ends = np.array([[names[a], names[b]] for a, b in graph], dtype=np.int64).reshape(-1, 2)
    return network_of({"a": ends[:, 0], "b": ends[:, 1]}, directed)


@cache
def _triangles_found(graph, directed):
    facts = triangle_facts(_network(graph, directed))
    return facts.count, TriangleRungs(facts.shared, facts.reach, 3 if directed else 1)


def _stars_found(leaves):
    @cache
    def found(graph, directed):
        network = _network(graph, directed)
        return star_count(network, leaves), StarRungs(star_pairs(network), leaves, directed)

    return found


@cache
def _rectangles_found(graph, directed):
    facts = rectangle_facts(_network(graph, directed))
    return facts.count, RectangleRungs(facts.paths, facts.shared)


def _cliques_found(size):
    @cache
    def found(graph, directed):
        facts = triangle_facts(_network(graph, directed))
        rungs = CliqueRungs(TriangleRungs(facts.shared, facts.reach, 1), size)
        return clique_count(_network(graph, directed), size), rungs

    return found


PATTERNS = {"triangles": _triangles_found, **{f"{leaves}-stars": _stars_found(leaves) for leaves in range(2, 7)}}


@cache
def _is_ladder(first, second):
    """What the proofs of the ladder and of the smooth bound ask of two neighbours."""
    (one, rungs), (two, others) = first, second
    for least in (0, rungs.growth.floor) if hasattr(rungs, "growth") else (0,):
        here, there = (cut_rungs(own.rungs(LENGTH), least) for own in (rungs, others))
        assert abs(one - two) <= min(here[0], there[0])
        assert (there[:-1] <= here[1:]).all()
        assert (here[:-1] <= there[1:]).all()
        assert abs(log_width(here, 5, ALPHA) - log_width(there, 5, ALPHA)) <= ALPHA + 1e-9
    smooth = [smooth_bound(own, ALPHA) for own in (rungs, others)]
    assert min(smooth) >= abs(one - two)
    assert abs(math.log(smooth[0] / smooth[1])) <= ALPHA + 1e-9


UNDIRECTED_PATTERNS = {"rectangles": _rectangles_found, "4-cliques": _cliques_found(4), "5-cliques": _cliques_found(5)}
ALL = [
    *((pattern, found, directed) for pattern, found in PATTERNS.items() for directed in (False, True)),
    *((pattern, found, False) for pattern, found in UNDIRECTED_PATTERNS.items()),
]


@pytest.mark.parametrize(("pattern", "found", "directed"), ALL)
def test_rungs_are_a_ladder_and_bounds_are_smooth_with_new_nodes_too(pattern, found, directed):
    for graph in _kinds_of_graphs(directed):
        here = found(graph, directed)
        for other in _neighbours(graph, directed):
            _is_ladder(here, found(other, directed))


@pytest.mark.audit
@pytest.mark.parametrize(("pattern", "found", "directed"), ALL)
def test_they_are_on_all_graphs_whatever_their_nodes_are_called(pattern, found, directed):
    slots = _slots(SMALL[directed], directed)
    for code in range(1 << len(slots)):
        graph = _of_code(code, slots)
        for other in _neighbours(graph, directed):
            _is_ladder(found(graph, directed), found(other, directed))


def _rectangles(edges, nodes):
    return sum(
        all(frozenset(pair) in edges for pair in ((a, b), (b, c), (c, d), (d, a)))
        for w, x, y, z in combinations(range(nodes), 4)
        for a, b, c, d in ((w, x, y, z), (w, y, x, z), (w, x, z, y))
    )


def _cliques(edges, nodes, size):
    return sum(
        all(frozenset(pair) in edges for pair in combinations(some, 2)) for some in combinations(range(nodes), size)
    )


@pytest.mark.parametrize("pattern", UNDIRECTED_PATTERNS)
def test_patterns_of_more_nodes_change_by_no_more_than_their_rungs_after_some_changes(pattern):
    """By looking at all graphs of five nodes within two changes, from every shape of graph."""
    found = UNDIRECTED_PATTERNS[pattern]
    count = _rectangles if pattern == "rectangles" else lambda edges, nodes: _cliques(edges, nodes, int(pattern[0]))
    slots = _slots(5, directed=False)
    counts = {graph: count({frozenset(edge) for edge in graph}, 5) for graph in _worlds(slots)}
    local = {graph: max(abs(counts[graph] - counts[graph ^ {slot}]) for slot in slots) for graph in counts}
    reached = 0
    for graph in _kinds_of_graphs(False):
        exact, rungs = found(graph, False)
        assert exact == counts[graph]
        near, once, twice = rungs.rungs(3)
        assert local[graph] <= near
        reached += local[graph] == near
        assert max(local[graph ^ {slot}] for slot in slots) <= once
        assert max(local[graph ^ {one, two}] for one, two in combinations(slots, 2)) <= twice
    # What one edge changes is known exactly for rectangles; for cliques where all common neighbours are joined.
    assert reached == len(_kinds_of_graphs(False)) if pattern == "rectangles" else reached >= 10


@pytest.mark.parametrize("size", [4, 5])
def test_an_edge_of_a_large_clique_is_in_many_small_ones(size):
    """Graphs of five nodes do not show it: they have no more pairs of common neighbours than common neighbours."""
    whole = frozenset(combinations(range(12), 2))
    found = _cliques_found(size)
    (one, rungs), (two, _) = found(whole, False), found(whole - {(0, 1)}, False)
    assert one - two == rungs.rungs(1)[0] == math.comb(10, size - 2)


def test_paths_that_do_not_grow_with_what_nodes_share_would_not_do():
    """A mutant that takes one edge for two paths more is caught on graphs of eight nodes, and the rungs hold there."""
    random, most = np.random.default_rng(8), 0
    for _ in range(30):
        share = random.uniform(0.2, 0.9)
        graph = frozenset(pair for pair in combinations(range(8), 2) if random.random() < share)
        here = _rectangles_found(graph, False)
        for slot in set(combinations(range(8), 2)) - graph:
            there = _rectangles_found(graph | {slot}, False)
            _is_ladder(here, there)
            most = max(most, there[1].paths - here[1].paths)
    assert most > 2


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_pairs_of_nodes_that_have_edges_would_not_do(directed):
    """The mutant leaves out pairs of an old node and a new one: the edge that makes the new one old finds them."""

    def without_new(graph):
        nodes = {node for edge in graph for node in edge}
        named = {node: place for place, node in enumerate(sorted(nodes))}
        edges = {(named[a], named[b]) for a, b in graph}
        return _triangle_rungs(edges if directed else {frozenset(edge) for edge in edges}, len(nodes), directed)

    found = 0
    for graph in _kinds_of_graphs(directed):
        here = without_new(graph).rungs(LENGTH)
        for other in _neighbours(graph, directed):
            found += bool((without_new(other).rungs(LENGTH)[:-1] > here[1:]).any())
    assert found > 5


def _ends(ladder, rungs):
    return rung_ends(cut_rungs(rungs.rungs(ladder.length), ladder.growth.floor)[: ladder.last_rung])


def _loss(ladder, first, second):
    """The largest |ln P(y) - ln P'(y)| of the draw over all y, from its definition.

    Probabilities change at the ends of rungs alone, so those and the numbers beyond them are looked at.
    """
    laws = [(count, _ends(ladder, rungs)) for count, rungs in (first, second)]
    numbers = np.unique([count + sign * (ends + more) for count, ends in laws for sign in (-1, 1) for more in (0, 1)])
    rate, logarithms = float(ladder.draw_epsilon / 2), []
    for count, ends in laws:
        whole = 1 + 2 * (np.diff(ends, prepend=0) * np.exp(-rate * np.arange(len(ends)))).sum()
        logarithms.append(-rate * np.searchsorted(ends, np.abs(numbers - count)) - math.log(whole))
    return float(np.abs(logarithms[0] - logarithms[1]).max())


@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("pattern", ["triangles", "2-stars", "3-stars"])
def test_the_law_of_a_neighbour_is_within_epsilon(pattern, directed, epsilon):
    """Exact probabilities, on every small graph and on hubs of three to eight edges."""
    found = PATTERNS[pattern]
    ladder = Ladder(Fraction(epsilon), 0.1, found(frozenset(), directed)[1].growth)
    graphs = _kinds_of_graphs(directed)[::7] if directed else _kinds_of_graphs(directed)
    for leaves in range(3, 9):
        hub = frozenset((0, leaf) for leaf in range(10, 10 + leaves))
        graphs += [hub, hub | {(1, leaf) for leaf in range(11, 10 + leaves)}]
        graphs += [frozenset((b, a) for a, b in hub)] if directed else []
    pairs = {
        (found(graph, directed), found(other, directed))
        for graph in graphs
        for other in (*_neighbours(graph, directed), graph ^ {(0, 10)}, graph ^ {(10, 11)})
    }
    assert max(_loss(ladder, *pair) for pair in pairs) <= float(ladder.draw_epsilon) + 1e-9


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_a_histogram_of_degrees_moves_by_what_is_declared_with_new_nodes_too(directed):
    for graph in _kinds_of_graphs(directed):
        for other in _neighbours(graph, directed):
            for up_to in (1, 3):
                one, two = (histogram_of(degrees(_network(own, directed)), up_to) for own in (graph, other))
                assert np.abs(one - two).sum() <= (2 if directed else 4)

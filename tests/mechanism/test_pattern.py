"""The declared sensitivities of graph patterns, against every graph within reach, on every small graph."""

from itertools import combinations, permutations

import numpy as np
import pytest

from confide.mechanism.pattern import StarRungs, TriangleRungs, smooth_bound

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


def test_rungs_of_neighbours_are_one_step_apart():
    """r_t(D') <= r_(t+1)(D), on every pair of neighbours: without it the ladder would not be private."""
    graphs = _worlds(UNDIRECTED)
    rungs = {graph: _triangle_rungs(graph, 4, False).rungs(8) for graph in graphs}
    for graph in graphs:
        for slot in UNDIRECTED:
            assert np.all(rungs[graph ^ {slot}][:-1] <= rungs[graph][1:])


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


def test_the_smooth_bound_is_never_cut_early():
    rungs = TriangleRungs((2,), (9,), 1)
    far = smooth_bound(rungs.rungs(2_000), 0.01, 2)
    steps = np.arange(2_000)
    assert far == pytest.approx(float((rungs.rungs(2_000) * np.exp(-0.01 * steps)).max()), rel=1e-6)
    with pytest.raises(ValueError, match="beyond"):
        smooth_bound(rungs.rungs(100), 0.01, 2)

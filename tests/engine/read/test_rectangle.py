"""Rectangles, against plain counting on every small graph and on some larger ones."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from confide.engine.read.rectangle import RectangleFacts, rectangle_facts, rectangle_sets
from tests.engine.read.test_network import PAIRS, graph, subsets


def plain(edges):
    """Rectangles by their nodes, and what they can change by: from their definition."""
    there = {frozenset(edge) for edge in edges}
    nodes = sorted({node for edge in edges for node in edge})

    def joined(*way):
        return all(frozenset(step) in there for step in pairwise(way))

    rectangles = {}
    for w, x, y, z in combinations(nodes, 4):
        ways = sum(joined(*way) for way in ((w, x, y, z, w), (w, y, x, z, w), (w, x, z, y, w)))
        if ways:
            rectangles[w, x, y, z] = ways
    shared = max((sum(joined(a, b, c) for b in nodes) for a, c in combinations(nodes, 2)), default=0)
    pairs = list(combinations(nodes, 2))
    between = [[joined(a, x, y, b) for x in nodes for y in nodes if not {x, y} & {a, b}] for a, b in pairs]
    paths = max(map(sum, between), default=0)
    return rectangles, RectangleFacts(sum(rectangles.values()), paths, shared)


def agrees(edges):
    rectangles, facts = plain(edges)
    network = graph(edges)
    assert rectangle_facts(network) == facts
    members, weights = rectangle_sets(network)
    assert dict(zip(map(tuple, np.sort(members, axis=1).tolist()), weights.tolist(), strict=True)) == rectangles


@pytest.mark.parametrize("edges", subsets(PAIRS), ids=str)
def test_every_graph_of_four_nodes(edges):
    used = sorted({node for edge in edges for node in edge})
    agrees([(used.index(a), used.index(b)) for a, b in edges])


def _random(seed, nodes=11):
    random = np.random.default_rng(seed)
    edges = [pair for pair in combinations(range(nodes), 2) if random.random() < random.choice([0.3, 0.6])]
    return [*edges, *((node, node + 1) for node in range(nodes - 1) if (node, node + 1) not in edges)]


@pytest.mark.parametrize("seed", range(8))
def test_larger_graphs(seed):
    agrees(_random(seed))


@pytest.mark.parametrize("seed", range(4))
def test_in_small_blocks(monkeypatch, seed):
    monkeypatch.setattr("confide.engine.read.network.WORK", 30)
    monkeypatch.setattr("confide.engine.read.rectangle.FIRST_ROWS", 1)
    agrees(_random(seed))


def test_two_nodes_that_share_most_need_not_have_most_edges(monkeypatch):
    monkeypatch.setattr("confide.engine.read.rectangle.FIRST_ROWS", 1)
    agrees([*((0, leaf) for leaf in range(1, 8)), (7, 8), *((one, other) for one in (8, 9) for other in (10, 11, 12))])


@pytest.mark.parametrize(
    ("hubs", "facts"),
    [(1, RectangleFacts(0, 0, 1)), (3, RectangleFacts(3 * 10**5 * (10**5 - 1) // 2, 2 * (10**5 - 1), 10**5))],
)
def test_hubs_take_no_step_for_every_pair_of_their_neighbours(hubs, facts):
    """There are 5 · 10⁹ pairs of them: that would take minutes, and a million neighbours hours."""
    edges = [(hub, hubs + leaf) for hub in range(hubs) for leaf in range(10**5)]
    assert rectangle_facts(graph(edges)) == facts


def test_a_graph_without_edges():
    network = graph([])
    assert rectangle_facts(network) == RectangleFacts(0, 0, 0)
    assert len(rectangle_sets(network)[0]) == 0

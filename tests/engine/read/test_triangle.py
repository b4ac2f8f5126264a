"""Triangles one by one, and nodes that are alike, against plain counting on every small graph."""

from itertools import combinations

import numpy as np
import pytest

from confide.engine.read.network import triangle_facts
from confide.engine.read.triangle import alike, triangle_sets
from tests.engine.read.test_network import PAIRS, TUPLES, graph, subsets


@pytest.mark.parametrize("edges", subsets(PAIRS), ids=str)
def test_every_triangle_once(edges):
    joined = {frozenset(edge) for edge in edges}
    members, weights = triangle_sets(graph(edges))
    expected = {t for t in combinations(range(4), 3) if all(frozenset(p) in joined for p in combinations(t, 2))}
    assert {tuple(sorted(row)) for row in members.tolist()} == expected
    assert weights.tolist() == [1] * len(expected)


@pytest.mark.parametrize("edges", subsets(TUPLES), ids=str)
def test_every_ordered_match(edges):
    network = graph(edges, directed=True)
    assert int(triangle_sets(network)[1].sum()) == triangle_facts(network).count


def test_a_large_graph_in_blocks(monkeypatch):
    random = np.random.default_rng(3)
    edges = [pair for pair in combinations(range(60), 2) if random.random() < 0.3]
    whole, _ = triangle_sets(graph(edges))
    assert len(whole) == triangle_facts(graph(edges)).count
    monkeypatch.setattr("confide.engine.read.network.WORK", 40)
    assert {tuple(sorted(row)) for row in triangle_sets(graph(edges))[0].tolist()} == {
        tuple(sorted(row)) for row in whole.tolist()
    }


@pytest.mark.parametrize("directed", [False, True])
def test_nodes_that_are_alike_can_be_exchanged(directed):
    """And those with the same neighbours, themselves included, are alike: on all graphs of four nodes or three."""
    nodes = 3 if directed else 4
    for edges in subsets(TUPLES if directed else PAIRS):
        network = graph(edges, directed)
        kinds = alike(network)
        pairs = set(zip(network.source.tolist(), network.target.tolist(), strict=True))
        if not directed:
            pairs |= {(b, a) for a, b in pairs}
        for a, b in combinations(range(network.nodes), 2):
            turned = {a: b, b: a}
            same = {(turned.get(x, x), turned.get(y, y)) for x, y in pairs} == pairs
            assert (kinds[a] == kinds[b]) == (same and (a, b) in pairs and (b, a) in pairs), (edges, nodes)


def test_equal_sums_of_different_neighbours_are_told_apart(monkeypatch):
    monkeypatch.setattr(
        "confide.engine.read.triangle._scrambled", lambda numbers: np.zeros(len(numbers), dtype=np.uint64)
    )
    assert len(set(alike(graph([(0, 1), (1, 2), (2, 3)])).tolist())) == 4


def test_no_edges_at_all():
    assert len(triangle_sets(graph([]))[0]) == 0
    assert len(alike(graph([]))) == 0

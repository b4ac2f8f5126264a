"""Cliques, against plain counting on every small graph and on some larger ones."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from confide.engine.read.clique import clique_count, clique_sets
from confide.engine.read.network import triangle_facts
from tests.engine.read.test_network import PAIRS, graph, subsets


def plain(edges, size):
    there = {frozenset(edge) for edge in edges}
    nodes = sorted({node for edge in edges for node in edge})
    return {
        some for some in combinations(nodes, size) if all(frozenset(pair) in there for pair in combinations(some, 2))
    }


def agrees(edges, size):
    network = graph(edges)
    members, weights = clique_sets(network, size)
    found = [tuple(row) for row in np.sort(members, axis=1).tolist()]
    expected = plain(edges, size)
    assert set(found) == expected
    assert len(found) == len(expected) == clique_count(network, size)
    assert weights.tolist() == [1] * len(found)


@pytest.mark.parametrize("edges", subsets(PAIRS), ids=str)
def test_every_graph_of_four_nodes(edges):
    used = sorted({node for edge in edges for node in edge})
    renamed = [(used.index(a), used.index(b)) for a, b in edges]
    for size in (3, 4, 5):
        agrees(renamed, size)
    assert clique_count(graph(renamed), 3) == triangle_facts(graph(renamed)).count


@pytest.mark.parametrize("many", [2, 5, 48])
@pytest.mark.parametrize("size", [3, 4, 5])
def test_by_lists_and_by_bits(monkeypatch, size, many):
    """From few or many nodes on, in large or small blocks."""
    monkeypatch.setattr("confide.engine.read.clique.MANY", many)
    random = np.random.default_rng(size)
    for share in (0.3, 0.6, 0.9):
        edges = [pair for pair in combinations(range(14), 2) if random.random() < share] + [(0, 14), (13, 14)]
        agrees(edges, size)
        with monkeypatch.context() as small:
            small.setattr("confide.engine.read.network.WORK", 20)
            agrees(edges, size)


def test_a_large_clique_is_counted_exactly():
    edges = list(combinations(range(120), 2))
    for size in (3, 4, 5):
        assert clique_count(graph(edges), size) == comb(120, size)


def test_a_graph_without_edges():
    assert clique_count(graph([]), 4) == 0
    assert clique_sets(graph([]), 4)[0].shape == (0, 4)

"""Graphs of edge tables, against plain counting on every small graph."""

from collections.abc import Mapping
from itertools import combinations, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.engine.read.network import (
    DegreeInquiry,
    EdgeCountInquiry,
    GraphInquiry,
    Network,
    degrees,
    histogram_of,
    network_of,
    star_count,
    star_pairs,
    triangle_facts,
)
from confide.policy import Column, load
from tests.engine.worlds import CHARGE

PAIRS = list(combinations(range(4), 2))
TUPLES = list(permutations(range(3), 2))


def graph(edges, directed=False):
    first, second = np.array([a for a, _ in edges], dtype=np.int64), np.array([b for _, b in edges], dtype=np.int64)
    return network_of({"a": first, "b": second}, directed)


def subsets(items):
    return [[item for place, item in enumerate(items) if code >> place & 1] for code in range(1 << len(items))]


def triangles(edges):
    joined = {frozenset(edge) for edge in edges}
    return sum(all(frozenset(pair) in joined for pair in combinations(three, 2)) for three in combinations(range(6), 3))


def matches(edges):
    joined = set(edges)
    return sum((x, y) in joined and (y, z) in joined and (z, x) in joined for x, y, z in permutations(range(5), 3))


@pytest.mark.parametrize("edges", subsets(PAIRS), ids=str)
def test_undirected_counts(edges):
    network = graph(edges)
    assert triangle_facts(network).count == triangles(edges)
    counted = [sum(node in edge for edge in edges) for node in range(4)]
    for leaves in (2, 3):
        assert star_count(network, leaves) == sum(len(list(combinations(range(degree), leaves))) for degree in counted)
    assert sorted(degree for degree in degrees(network).tolist() if degree) == sorted(
        degree for degree in counted if degree
    )


@pytest.mark.parametrize("edges", subsets(TUPLES), ids=str)
def test_directed_counts(edges):
    network = graph(edges, directed=True)
    assert triangle_facts(network).count == matches(edges)
    out = [sum(a == node for a, _ in edges) for node in range(3)]
    assert star_count(network, 2) == sum(degree * (degree - 1) for degree in out)
    assert star_pairs(network) == ((max(out), 0),)


def test_the_same_edge_twice_or_turned_is_one_edge():
    network = graph([(0, 1), (1, 0), (0, 1), (1, 2)])
    assert len(network.source) == 2
    assert len(graph([(0, 1), (1, 0), (0, 1)], directed=True).source) == 2


def test_no_edges_at_all():
    network = graph([])
    assert network.nodes == 0
    assert triangle_facts(network).count == star_count(network, 3) == 0


def test_blocks_do_not_change_what_is_found(monkeypatch):
    random = np.random.default_rng(3)
    edges = random.integers(0, 40, (300, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    whole = triangle_facts(network_of({"a": edges[:, 0], "b": edges[:, 1]}, False))
    monkeypatch.setattr("confide.engine.read.network.WORK", 50)
    assert triangle_facts(network_of({"a": edges[:, 0], "b": edges[:, 1]}, False)) == whole


def test_the_pairs_of_a_star_are_those_of_all_pairs():
    """Against all pairs of nodes, on random graphs: nothing exceeds the pairs that are kept."""
    random = np.random.default_rng(9)
    for _ in range(60):
        nodes = int(random.integers(2, 9))
        edges = [pair for pair in combinations(range(nodes), 2) if random.random() < random.random()]
        if not edges:
            continue
        network = graph(edges)
        joined = {frozenset(edge) for edge in zip(network.source.tolist(), network.target.tolist(), strict=True)}
        found = degrees(network)
        every = set()
        for a, b in combinations(range(network.nodes), 2):
            inside = frozenset((a, b)) in joined
            high, low = sorted((int(found[a]) - inside, int(found[b]) - inside), reverse=True)
            every.add((high, low))
        kept = star_pairs(network)
        assert all(any(high <= h and low <= l for h, l in kept) for high, low in every), edges  # noqa: E741
        assert all(pair in every or pair[1] == 0 for pair in kept), edges


def test_a_network_is_plain_data():
    assert Network(0, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), False).nodes == 0


def _opened(frame: pl.DataFrame) -> tuple[DuckDBEngine, Mapping[str, Column]]:
    policy = load(
        {
            "confide": 1,
            "budget": {"epsilon": 1},
            "unit": "row",
            "tables": {"t": {"columns": {"a": {"type": "id"}, "b": {"type": "id"}}}},
        }
    )
    return DuckDBEngine(policy, {"t": frame}), policy.tables["t"].columns


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", [pl.Int64, pl.String])
def test_counts_of_edges_and_degrees_come_from_the_database_as_they_are(directed: bool, kind: Any) -> None:
    random = np.random.default_rng(5)
    ends = [[None if end == 9 else int(end) for end in random.integers(0, 30, 200)] for _ in range(2)]
    frame = pl.DataFrame({"a": ends[0], "b": ends[1]}).with_columns(pl.all().cast(kind))
    engine, columns = _opened(frame)
    graph = GraphInquiry("t", columns["a"], columns["b"], directed)
    network = engine.inquire(graph, CHARGE)
    assert engine.inquire(EdgeCountInquiry(graph), CHARGE) == len(network.source)
    found = degrees(network)
    for up_to in (1, 3, 50):
        wanted = np.bincount(np.minimum(found[found > 0], up_to), minlength=up_to + 1)[1:]
        assert engine.inquire(DegreeInquiry(graph, up_to), CHARGE).tolist() == wanted.tolist()
        assert histogram_of(found, up_to).tolist() == wanted.tolist()
    engine.close()


@pytest.mark.parametrize("kind", [pl.Int64, pl.String])
def test_nodes_are_numbered_in_an_order_that_one_node_more_does_not_change(kind: Any) -> None:
    random = np.random.default_rng(6)
    ends = [random.permutation(500)[:300].tolist() for _ in range(2)]
    frame = pl.DataFrame({"a": ends[0], "b": ends[1]}).with_columns(pl.all().cast(kind))
    engine, columns = _opened(frame)
    network = engine.inquire(GraphInquiry("t", columns["a"], columns["b"], True), CHARGE)
    kept = frame.filter(pl.col("a") != pl.col("b"))
    labels = sorted({*kept["a"].to_list(), *kept["b"].to_list()}, key=int)
    found = {(labels[a], labels[b]) for a, b in zip(network.source.tolist(), network.target.tolist(), strict=True)}
    assert found == set(kept.iter_rows())
    engine.close()

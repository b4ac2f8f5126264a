"""Rectangles and cliques from a session: edges or nodes as units, refusals, and what a neighbour can tell."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest

from confide.engine.read.clique import clique_count
from confide.engine.read.network import network_of
from confide.engine.read.rectangle import rectangle_facts
from confide.errors import ParameterError, QueryError
from confide.mechanism.join.sharing import slack
from confide.mechanism.join.truncation import Levels
from confide.release.graph.nodes import packed_cliques, packed_rectangles
from tests.release.graph.test_graph import KEY, ROW, edges, opened


def network(pairs):
    return network_of({"a": np.array([a for a, _ in pairs]), "b": np.array([b for _, b in pairs])}, directed=False)


def rectangles(pairs):
    return rectangle_facts(network(pairs)).count


def test_patterns_are_counted():
    pairs = edges()
    with opened(pairs) as session:
        graph = session.graph("edge", "src", "dst")
        for answer, exact in (
            (graph.rectangles(50), rectangles(pairs)),
            (graph.cliques(4, 50), clique_count(network(pairs), 4)),
            (graph.cliques(5, 50), clique_count(network(pairs), 5)),
        ):
            (column,) = answer.values
            assert column.low[0] <= exact <= column.high[0]
            assert column.low[0] < column.high[0]
            assert answer.mechanism == {column.name: "smooth"}
            assert answer.assumes == {column.name: "always"}
        assert graph.cliques(5, 50).stored


def test_cliques_of_three_are_triangles():
    with opened(edges(20)) as session:
        graph = session.graph("edge", "src", "dst")
        first = graph.triangles(1, mechanism="ladder")
        again = graph.cliques(3, 1, mechanism="ladder")
        assert again.stored
        assert again.to_dicts() == first.to_dicts()
        assert session.budget.spent == 1


@pytest.mark.parametrize("policy", [ROW, KEY], ids=["row", "key"])
@pytest.mark.parametrize("mechanism", ["truncate", "r2t"])
def test_with_nodes_as_units(policy, mechanism):
    pairs = [(a, b) for a, b in edges(60, 0.4)]
    exact = {"rectangles": rectangles(pairs), "cliques_4": clique_count(network(pairs), 4)}
    with opened(pairs, policy) as session:
        nodes = session.graph("edge", "src", "dst", unit="node")
        answers = [nodes.rectangles(2_000, mechanism=mechanism), nodes.cliques(4, 2_000, mechanism=mechanism)]
        answers += [nodes.rectangles(200, at_most=60), nodes.cliques(4, 200, at_most=60)]
        for answer in answers:
            (column,) = answer.values
            assert column.low[0] <= exact[column.name] <= column.high[0]
            assert 0 < column.high[0] - column.low[0] < 3 * exact[column.name]
        assert any("cliques of 4 nodes" in note for note in answers[1].notes)


@pytest.mark.parametrize(
    ("packed", "owners"),
    [(packed_rectangles, 4), (partial(packed_cliques, size=4), 4), (partial(packed_cliques, size=5), 5)],
    ids=["rectangles", "cliques of 4", "cliques of 5"],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_node_that_leaves_takes_at_most_the_declared_number_with_it(packed, owners, seed):
    """Through everything that is between an edge table and the mechanism; nodes that are alike are in it."""
    pairs = [*edges(11, 0.6, seed), *combinations(range(20, 27), 2), (0, 20), (0, 21)]
    levels = Levels(256, owners)
    whole = packed(network(pairs), levels.edges)
    taken = 0
    for node in (*range(11), 20, 23):
        rest = packed(network([pair for pair in pairs if node not in pair]), levels.edges)
        for place in range(len(levels.edges)):
            assert -slack(levels.edges[place]) <= whole[place] - rest[place] <= levels.sensitivity(place)
            taken = max(taken, whole[place] - rest[place])
    assert taken > 8
    exact = rectangles(pairs) if packed is packed_rectangles else clique_count(network(pairs), owners)
    assert packed(network(pairs), (2**20,)) == [exact]


def test_what_is_declared_of_edges_bounds_what_a_node_has():
    """All nodes of a clique, and of a complete graph in two parts, have as many edges: nothing is cut."""
    whole, halves = list(combinations(range(9), 2)), [(a, b) for a in range(7) for b in range(7, 14)]
    for pairs, most in ((whole, 8), (halves, 7)):
        with opened(pairs) as session:
            nodes = session.graph("edge", "src", "dst", unit="node")
            for answer, exact in (
                (nodes.rectangles(100_000, at_most=most), rectangles(pairs)),
                (nodes.cliques(4, 100_000, at_most=most), clique_count(network(pairs), 4)),
            ):
                assert abs(answer.values[0].values[0] - exact) <= 1


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda s: s.graph("edge", "src", "dst", directed=True).rectangles(1), "leave out directed=True"),
        (lambda s: s.graph("edge", "src", "dst", directed=True).cliques(4, 1), "leave out directed=True"),
        (lambda s: s.graph("edge", "src", "dst").cliques(2, 1), "ask edges"),
        (lambda s: s.graph("edge", "src", "dst").cliques(6, 1), "3 to 5 nodes"),
        (lambda s: s.graph("edge", "src", "dst").cliques("four", 1), "3 to 5 nodes"),
        (lambda s: s.graph("edge", "src", "dst").cliques(4, 1, mechanism="ladder"), "there are auto, smooth"),
        (lambda s: s.graph("edge", "src", "dst").rectangles(1, mechanism="r2t"), "there are auto, smooth"),
        (lambda s: s.graph("edge", "src", "dst").rectangles(1, at_most=9), "nodes as the unit"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").rectangles(1, at_most=1), "from 2 to"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").cliques(5, 1, at_most=3), "from 4 to"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").cliques(4, 1, mechanism="smooth"), "auto, truncate, r2t"),
    ],
)
def test_refused_from_public_facts(ask, words):
    with opened([(1, 2)]) as session:
        with pytest.raises((QueryError, ParameterError), match=words):
            ask(session)
        assert session.budget.spent == 0


@pytest.mark.parametrize("extra", [(1, 2), (7, 7), (None, 1), (0, 59)])
def test_neighbours_see_the_same_status_shape_and_charge(extra):
    pairs = edges(20)
    seen = []
    for world in (pairs, [*pairs, extra], []):
        with opened(world) as session:
            graph = session.graph("edge", "src", "dst")
            nodes = session.graph("edge", "src", "dst", unit="node")
            answers = [graph.rectangles(1), graph.cliques(4, 1), nodes.rectangles(1), nodes.cliques(4, 1, at_most=20)]
            told = [(len(a), a.mechanism, a.unit, a.notes, a.values[0].note, str(a.cost)) for a in answers]
            seen.append((told, session.budget.spent))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("epsilon", ["0.01", 1, 50_000])
@pytest.mark.parametrize("unit", ["edge", "node"])
def test_no_interval_is_without_width(unit, epsilon):
    for pairs in ([], [(1, 2)], edges(14, 0.7)):
        with opened(pairs) as session:
            graph = session.graph("edge", "src", "dst", unit=unit)
            more = {"at_most": 13} if unit == "node" else {}
            for answer in (
                graph.edges(epsilon, **more), graph.triangles(epsilon, **more), graph.rectangles(epsilon, **more),
                graph.cliques(4, epsilon, **more), graph.stars(2, epsilon, **more),
                graph.degree_histogram(epsilon, 5, **more),
            ):  # fmt: skip
                (column,) = answer.values
                for value, low, high in zip(column.values, column.low, column.high, strict=True):
                    assert low <= value <= high
                    assert low < high


def test_an_answer_says_what_holds_where_its_assumption_does_not():
    """Three thousand pairs, and a few hubs that share nothing with them."""
    pairs = [(2 * n, 2 * n + 1) for n in range(3000)]
    pairs += [(10_000 + hub, 20_000 + 40 * hub + n) for hub in range(30) for n in range(40)]
    with opened(pairs) as session:
        answer = session.graph("edge", "src", "dst", unit="node").edges(1)
    (column,) = answer.values
    assert "no node has more than" in column.note
    assert "if some have more, but none more than" in column.note

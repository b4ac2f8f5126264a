"""Graphs from a session: units, rules for odd rows, refusals, and what a neighbour can tell."""

from itertools import combinations
from math import comb, perm
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
from confide.engine.read.network import network_of
from confide.errors import ParameterError, QueryError
from confide.mechanism.join.sharing import slack
from confide.mechanism.join.truncation import Levels
from confide.release.graph.nodes import packed_triangles

COLUMNS = {"src": {"type": "id"}, "dst": {"type": "id"}, "weight": {"range": [0, 9]}}
ROW: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 500_000},
    "unit": "row",
    "tables": {"edge": {"columns": COLUMNS}, "word": {"public": True}},
}
KEY: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 500_000},
    "unit": "person.id",
    "tables": {
        "person": {"columns": {"id": {"type": "id"}}},
        "edge": {"references": {"src": "person.id"}, "at_most": {"rows": 50, "groups": 1}, "columns": COLUMNS},
        "visit": {
            "references": {"who": "person.id"},
            "at_most": {"rows": 5, "groups": 1},
            "columns": {"who": {"type": "id"}, "a": {"type": "id"}, "b": {"type": "id"}},
        },
    },
}


def edges(nodes: int = 60, share: float = 0.3, seed: int = 2) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [pair for pair in combinations(range(nodes), 2) if random.random() < share]


def frame(pairs: list[tuple[Any, Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        {"src": [a for a, _ in pairs], "dst": [b for _, b in pairs], "weight": [1] * len(pairs)},
        schema={"src": pl.Int64, "dst": pl.Int64, "weight": pl.Int64},
    )


def opened(pairs: list[tuple[Any, Any]], policy: dict[str, Any] = ROW, seed: int = 1) -> Any:
    data: dict[str, Any] = {"edge": frame(pairs)}
    if policy is KEY:
        data |= {
            "person": pl.DataFrame({"id": list(range(60))}),
            "visit": pl.DataFrame({"who": [1], "a": [1], "b": [2]}),
        }
    else:
        data |= {"word": pl.DataFrame({"a": [1]})}
    return confide.testing.open(policy, data, seed=seed)


def triangles(pairs: list[tuple[int, int]], nodes: int = 60) -> int:
    joined = {frozenset(pair) for pair in pairs}
    return sum(all(frozenset(p) in joined for p in combinations(t, 2)) for t in combinations(range(nodes), 3))


@pytest.mark.parametrize("mechanism", ["auto", "ladder", "smooth"])
def test_patterns_are_counted(mechanism):
    pairs = edges()
    with opened(pairs) as session:
        graph = session.graph("edge", "src", "dst")
        answer = graph.triangles(2_000, mechanism=mechanism)
        (row,) = answer.to_dicts()
        assert abs(row["triangles"] - triangles(pairs)) <= 30
        assert row["triangles_low"] <= triangles(pairs) <= row["triangles_high"]
        degrees = np.bincount(np.array(pairs).ravel())
        stars = int((degrees * (degrees - 1) // 2).sum())
        assert abs(graph.stars(2, 2_000, mechanism=mechanism).to_dicts()[0]["stars_2"] - stars) <= 100
        assert "undirected edge" in answer.unit
        assert answer.assumes == {"triangles": "always"}


def test_odd_rows_follow_the_stated_rule():
    """Self-loops and NULL ends are no edges; the same edge twice, or turned, is one edge."""
    pairs = edges()
    odd = [*pairs, *pairs[:40], *((b, a) for a, b in pairs[:30]), (5, 5), (None, 3), (3, None), (None, None)]
    with opened(pairs) as plain, opened(odd) as other:
        for ask in (
            lambda graph: graph.triangles(1),
            lambda graph: graph.edges(1),
            lambda graph: graph.stars(3, 1),
            lambda graph: graph.degree_histogram(1, 20),
        ):
            first, second = (ask(session.graph("edge", "src", "dst")) for session in (plain, other))
            assert first.to_dicts() == second.to_dicts()
        assert "count once" in str(first)


def test_odd_rows_follow_the_stated_rule_with_nodes_as_units_too():
    pairs = edges(30)
    odd = [*pairs, *pairs[:20], *((b, a) for a, b in pairs[:10]), (5, 5), (None, 3), (3, None)]
    with opened(pairs) as plain, opened(odd) as other:
        for ask in (
            lambda graph: graph.triangles(5),
            lambda graph: graph.edges(5),
            lambda graph: graph.stars(2, 5),
            lambda graph: graph.degree_histogram(5, 10),
        ):
            first, second = (ask(session.graph("edge", "src", "dst", unit="node")) for session in (plain, other))
            assert first.to_dicts() == second.to_dicts()


def test_a_directed_graph_counts_ordered_matches():
    pairs = edges(20)
    both = [*pairs, *((b, a) for a, b in pairs)]
    with opened(both) as session:
        graph = session.graph("edge", "src", "dst", directed=True)
        assert abs(graph.triangles(3_000).to_dicts()[0]["triangles"] - 6 * triangles(pairs, 20)) <= 60
        assert abs(graph.edges(3_000).to_dicts()[0]["edges"] - len(both)) <= 1
        assert "directed edge" in graph.edges(3_000).unit


def test_a_small_epsilon_is_answered():
    with opened(edges()) as session:
        graph = session.graph("edge", "src", "dst")
        assert graph.stars(3, "0.005", mechanism="ladder").mechanism == {"stars_3": "ladder"}
        assert graph.triangles("0.0005").mechanism == {"triangles": "smooth"}


def test_auto_has_the_narrower_interval():
    """Away from graphs of large degree a ladder's interval is many times as wide."""
    with opened(edges(200, 0.1)) as session:
        graph = session.graph("edge", "src", "dst")
        for ask in (graph.triangles, lambda *given, **more: graph.stars(3, *given, **more)):
            chosen, ladder = (ask(1, mechanism=mechanism).values[0] for mechanism in ("auto", "ladder"))
            assert chosen.mechanism == "smooth"
            assert 3 * (chosen.high[0] - chosen.low[0]) < ladder.high[0] - ladder.low[0]


def test_stars_of_many_leaves_do_not_overflow():
    """A hub of 3,000 neighbours is in some 10^20 stars of six."""
    with opened([(0, other) for other in range(1, 3_001)]) as session:
        answer = session.graph("edge", "src", "dst").stars(6, 20)
        assert answer.mechanism == {"stars_6": "smooth"}
        assert answer.values[0].high[0] > 10**17


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["ladder", "smooth"])
def test_no_hub_is_refused_for_its_size(mechanism):
    """Some 10^18 ordered stars: no size of a graph decides whether there is an answer."""
    many = 2**20 + 2
    hub = pl.DataFrame({"src": np.zeros(many, dtype=np.int64), "dst": np.arange(1, many + 1), "weight": np.ones(many)})
    data = {"edge": hub.cast(pl.Int64), "word": pl.DataFrame({"a": [1]})}
    with confide.testing.open(ROW, data, seed=1) as session:
        answer = session.graph("edge", "src", "dst", directed=True).stars(3, 20, mechanism=mechanism)
        assert answer.values[0].low[0] <= perm(many, 3) <= answer.values[0].high[0]


def test_a_histogram_has_all_degrees():
    with opened([(0, 1), (0, 2), (0, 3), (4, 5)]) as session:
        answer = session.graph("edge", "src", "dst").degree_histogram(5_000, 4)
        assert [row["degree"] for row in answer.to_dicts()] == [1, 2, 3, 4]
        assert [row["nodes"] for row in answer.to_dicts()] == [5, 0, 1, 0]


@pytest.mark.parametrize("mechanism", ["auto", "truncate", "r2t"])
def test_nodes_as_units(mechanism):
    pairs = edges()
    with opened(pairs) as session:
        answer = session.graph("edge", "src", "dst", unit="node").edges(800, mechanism=mechanism)
        (row,) = answer.to_dicts()
        assert abs(row["edges"] - len(pairs)) <= 25
        assert row["edges_low"] <= len(pairs)
        assert answer.assumes == {"edges": "density"}
        assert answer.unit == "node of edge, with all its edges"


@pytest.mark.parametrize("mechanism", ["auto", "truncate", "r2t"])
@pytest.mark.parametrize("directed", [False, True])
def test_triangles_with_nodes_as_units(mechanism, directed):
    pairs = edges()
    exact = triangles(pairs) * (6 if directed else 1)
    with opened([*pairs, *((b, a) for a, b in pairs)]) as session:
        answer = session.graph("edge", "src", "dst", directed=directed, unit="node").triangles(
            20_000, mechanism=mechanism
        )
        (row,) = answer.to_dicts()
        assert abs(row["triangles"] - exact) <= exact / 20
        assert row["triangles_low"] <= exact
        assert answer.assumes == {"triangles": "density"}
        assert answer.unit == "node of edge, with all its edges"


@pytest.mark.parametrize("mechanism", ["truncate", "r2t"])
def test_a_small_graph_has_no_information_and_says_so(mechanism):
    """60 nodes at ε = 1: every interval holds, whatever may be learnt; at 0.99 none of 20 misses but once in 500."""
    pairs = edges()
    with opened(pairs) as session:
        graph = session.graph("edge", "src", "dst", unit="node")
        for run in range(20):
            (row,) = (answer := graph.edges(1, 0.99 + run / 10**6, mechanism=mechanism)).to_dicts()
            assert row["edges_low"] <= len(pairs) <= row["edges_high"]
            assert row["edges_low"] < row["edges_high"]
            assert answer.assumes == {"edges": "at_most"}
            assert "no information" in str(answer)
        for declared, exact in ((graph.edges(5, at_most=40), len(pairs)), (graph.triangles(50, at_most=40), None)):
            assert set(declared.assumes.values()) == {"at_most"}
            assert "no information" not in str(declared)
            (row,) = declared.to_dicts()
            if exact is not None:
                assert row["edges_low"] <= exact <= row["edges_high"] <= 2 * exact
        with pytest.raises(ParameterError, match="at_most"):
            graph.triangles(1, at_most=1)


def test_progress_tells_of_levels_and_of_nothing_else():
    """The same calls whatever the graph: how many steps there are is public."""
    told = []
    for pairs in (edges(), [(1, 2)]):
        steps: list[tuple[str, int, int]] = []
        with opened(pairs) as session:
            graph = session.graph(
                "edge", "src", "dst", unit="node", progress=lambda *step, into=steps: into.append(step)
            )
            first = graph.triangles(5)
            assert graph.triangles(5) == first
            graph.edges(5, at_most=60)
        told.append(steps)
    levels = len(Levels(2**24, 3).edges)
    assert told[0] == told[1] == [("reading", 0, levels), *(("counting", done, levels) for done in range(levels + 1)),
                                  ("reading", 0, 1), ("counting", 0, 1), ("counting", 1, 1)]  # fmt: skip
    with opened(edges()) as session, pytest.raises(ParameterError, match="give a function"):
        session.graph("edge", "src", "dst", progress=7)


def test_an_error_of_the_callers_progress_is_the_callers():
    def angry(*step):
        raise KeyError("mine")

    with opened(edges()) as session:
        with pytest.raises(KeyError, match="mine"):
            session.graph("edge", "src", "dst", unit="node", progress=angry).edges(5)
        assert session.graph("edge", "src", "dst", unit="node").edges(5).mechanism == {"edges": "truncate"}


def star_count(pairs: list[tuple[int, int]], leaves: int, directed: bool) -> int:
    found = np.bincount([a for a, _ in pairs] if directed else np.array(pairs).ravel()).tolist()
    return sum((perm if directed else comb)(degree, leaves) for degree in found)


@pytest.mark.parametrize("more", [{}, {"mechanism": "r2t"}, {"at_most": 60}], ids=str)
@pytest.mark.parametrize("directed", [False, True])
def test_stars_with_nodes_as_units(directed, more):
    pairs = edges()
    with opened(pairs) as session:
        graph = session.graph("edge", "src", "dst", directed=directed, unit="node")
        for leaves in (2, 3, 6):
            exact = star_count(pairs, leaves, directed)
            answer = graph.stars(leaves, 50_000, **more)
            (row,) = answer.to_dicts()
            name = f"stars_{leaves}"
            assert abs(row[name] - exact) <= exact / 4
            assert row[f"{name}_low"] <= exact <= row[f"{name}_high"]
            assert answer.unit == "node of edge, with all its edges"
            if "at_most" in more:
                assert answer.assumes == {name: "at_most"}
                assert "no node keeps more than 60 edges" in str(answer)
            else:
                assert answer.assumes == {name: "density"}
                assert "the upper end assumes that where twice a cut-off" in str(answer)
                assert answer.values[0].note.endswith("more in edges")


@pytest.mark.parametrize("directed", [False, True])
def test_a_histogram_with_nodes_as_units(directed):
    pairs = edges()
    found = np.bincount([a for a, _ in pairs] if directed else np.array(pairs).ravel(), minlength=60)
    exact = np.bincount(np.minimum(found[found > 0], 25), minlength=26)[1:]
    with opened(pairs) as session:
        graph = session.graph("edge", "src", "dst", directed=directed, unit="node")
        for more in ({}, {"at_most": 60}):
            answer = graph.degree_histogram(20_000, 25, **more)
            column = answer.values[0]
            assert np.abs(np.array(column.values) - exact).max() <= 2
            assert all(low <= n <= high for low, n, high in zip(column.low, exact, column.high, strict=True))
            assert answer.assumes == {"nodes": "at_most" if more else "density"}
        assert "both ends assume" in graph.degree_histogram(20_000, 25).values[0].note


def test_a_declared_bound_cuts_what_is_beyond():
    """A hub of forty keeps five, and so do its forty neighbours one or none."""
    with opened([(0, other) for other in range(1, 41)]) as session:
        graph = session.graph("edge", "src", "dst", unit="node")
        cells = graph.degree_histogram(100_000, 6, at_most=5).values[0].values
        assert cells == (5, 0, 0, 0, 1, 0)
        assert graph.stars(2, 100_000, at_most=5).values[0].values == (10,)


def test_a_declared_bound_is_another_question_and_narrower():
    with opened(edges()) as session:
        graph = session.graph("edge", "src", "dst", unit="node")
        learnt, declared = graph.stars(2, 1_000), graph.stars(2, 1_000, at_most=64)
        widths = [answer.values[0].high[0] - answer.values[0].low[0] for answer in (learnt, declared)]
        assert widths[1] < widths[0]
        spent = session.budget.spent
        assert graph.stars(2, 1_000, at_most=64).to_dicts() == declared.to_dicts()
        assert session.budget.spent == spent


@pytest.mark.parametrize("directed", [False, True])
def test_a_key_that_owns_part_of_a_nodes_edges_has_the_noise_for_it(directed):
    """A person's own rows go, and the node stays with those of others: some chains more than for a whole node."""
    pairs = edges()
    halves = []
    for policy in (ROW, KEY):
        with opened(pairs, policy) as session:
            graph = session.graph("edge", "src", "dst", directed=directed, unit="node")
            column = graph.degree_histogram(100, 5, at_most=40).values[0]
            halves.append(max(high - value for high, value in zip(column.high, column.values, strict=True)))
    assert halves[1] == halves[0] if directed else halves[1] > 1.8 * halves[0]


def test_stars_of_six_leaves_do_not_overflow_with_nodes_as_units():
    with opened([(0, other) for other in range(1, 3_001)]) as session:
        answer = session.graph("edge", "src", "dst", unit="node").stars(6, 20, 0.999999, at_most=2**20)
        assert answer.values[0].high[0] > 2**100
        assert session.graph("edge", "src", "dst", unit="node", directed=True).stars(6, 20, mechanism="r2t").to_json()


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_leaves_takes_at_most_the_declared_number_of_triangles_with_it(seed):
    """Through everything that is between an edge table and the mechanism; nodes that are alike are in it."""
    pairs = [*edges(16, 0.5, seed), *combinations(range(20, 27), 2), (0, 20), (0, 21)]
    levels = Levels(128, 3)

    def totals(kept):
        both = {"a": np.array([a for a, _ in kept]), "b": np.array([b for _, b in kept])}
        return packed_triangles(network_of(both, directed=False), levels.edges)

    whole = totals(pairs)
    for node in (*range(16), 20, 23):
        rest = totals([pair for pair in pairs if node not in pair])
        for place in range(len(levels.edges)):
            assert -slack(levels.edges[place]) <= whole[place] - rest[place] <= levels.sensitivity(place)


def test_a_key_as_the_unit_is_a_node():
    pairs = edges()
    with opened(pairs, KEY) as session:
        graph = session.graph("edge", "src", "dst")
        assert graph.unit == "node"
        assert abs(graph.edges(800).to_dicts()[0]["edges"] - len(pairs)) <= 25
        with pytest.raises(QueryError, match=r"protects person\.id"):
            session.graph("edge", "src", "dst", unit="edge")
        with pytest.raises(QueryError, match="name who as one end"):
            session.graph("visit", "a", "b")


def test_paid_once():
    with opened(edges()) as session:
        graph = session.graph("edge", "src", "dst")
        first = graph.triangles(1)
        assert session.budget.spent == 1
        assert session.graph("EDGE", "SRC", "DST").triangles(1) == first
        assert session.budget.spent == 1
        assert graph.triangles(1, mechanism="smooth") == first  # what auto takes
        graph.triangles(1, mechanism="ladder")
        assert session.budget.spent == 2


def test_a_delta_narrows_smooth_noise_at_the_same_cost():
    """Beside pure noise of ε = √(2ρ), which costs as much; and rows of a public number cost more."""
    widths = {}
    private = {**ROW, "tables": {"edge": ROW["tables"]["edge"]}}
    public = {**ROW, "tables": {"edge": {**ROW["tables"]["edge"], "rows": "public"}}}
    for rules in (private, public):
        policy = {**rules, "budget": {"epsilon": 1_000, "delta": 1e-9}}
        with confide.testing.open(policy, {"edge": frame(edges())}, seed=3) as session:
            answer = session.graph("edge", "src", "dst").stars(2, 10, mechanism="smooth")
        assert 0 < answer.cost.delta < 1e-9
        with confide.testing.open(rules, {"edge": frame(edges())}, seed=3) as session:
            share = float(2 * answer.cost.rho) ** 0.5
            pure = session.graph("edge", "src", "dst").stars(2, share, mechanism="smooth")
        (narrow,), (wide,) = answer.to_dicts(), pure.to_dicts()
        assert narrow["stars_2_high"] - narrow["stars_2_low"] < 0.5 * (wide["stars_2_high"] - wide["stars_2_low"])
        widths[rules is private] = narrow["stars_2_high"] - narrow["stars_2_low"]
    assert widths[False] > 1.5 * widths[True]


def test_public_numbers_of_rows_cost_twice():
    policy = {**ROW, "tables": {"edge": {"columns": COLUMNS, "rows": "public"}, "word": {"public": True}}}
    with opened(edges(), policy) as counted, opened(edges()) as private:
        first, second = (s.graph("edge", "src", "dst").triangles(1).to_dicts()[0] for s in (counted, private))
        assert first["triangles_high"] - first["triangles"] > second["triangles_high"] - second["triangles"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda s: s.graph("edges", "src", "dst"), "did you mean edge"),
        (lambda s: s.graph("word", "a", "a"), "is public"),
        (lambda s: s.graph("edge", "source", "dst"), "there is no column source"),
        (lambda s: s.graph("edge", "src", "src"), "both ends"),
        (lambda s: s.graph("edge", "src", "weight"), "does not name nodes"),
        (lambda s: s.graph("edge", "src", "dst", unit="path"), "there are 'edge' and 'node'"),
        (lambda s: s.graph("edge", "src", "dst", directed="yes"), "not True or False"),
        (lambda s: s.graph("edge", "src", "dst").triangles(1, mechanism="magic"), "there are auto, smooth, ladder"),
        (lambda s: s.graph("edge", "src", "dst").stars(1, 1), "ask edges"),
        (lambda s: s.graph("edge", "src", "dst").stars(9, 1), "2 to 6 leaves"),
        (lambda s: s.graph("edge", "src", "dst").stars(4, 1, mechanism="ladder"), "there are auto, smooth"),
        (lambda s: s.graph("edge", "src", "dst").degree_histogram(1, 0), "from 1 to"),
        (lambda s: s.graph("edge", "src", "dst").triangles(0), "above 0"),
        (lambda s: s.graph("edge", "src", "dst").triangles(1, confidence=1), "not between 0 and 1"),
        (lambda s: s.graph("edge", "src", "dst").triangles("1e-4", mechanism="ladder"), "at least 0.001"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").triangles(1, mechanism="ladder"), "auto, truncate, r2t"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").stars(1, 1), "ask edges"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").stars(2, 1, mechanism="ladder"), "auto, truncate, r2t"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").stars(3, 1, at_most=2), "from 3 to 1,048,576"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").stars(3, 1, at_most="many"), "as you know without"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").stars(6, "1e-60"), "too small"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").degree_histogram(1, 0), "from 1 to"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").degree_histogram(1, 5, at_most=0), "from 1 to 1,048,576"),
        (lambda s: s.graph("edge", "src", "dst", unit="node").degree_histogram(1, 5, at_most=True), "from 1 to"),
        (lambda s: s.graph("edge", "src", "dst").degree_histogram(1, 5, at_most=9), "nodes as the unit"),
        (lambda s: s.graph("edge", "src", "dst").stars(2, 1, at_most=9), "nodes as the unit"),
    ],
)
def test_refused_from_public_facts(ask, words):
    with opened([(1, 2)]) as session:
        with pytest.raises((QueryError, ParameterError), match=words):
            ask(session)
        assert session.budget.spent == 0


@pytest.mark.parametrize("extra", [(1, 2), (7, 7), (None, 1), (0, 59)])
def test_neighbours_see_the_same_status_shape_and_charge(extra):
    pairs = edges(30)
    seen = []
    for world in (pairs, [*pairs, extra], []):
        with opened(world) as session:
            graph = session.graph("edge", "src", "dst")
            answers = [graph.triangles(1), graph.stars(3, 1), graph.edges(1), graph.degree_histogram(1, 5)]
            told = [(len(a), a.mechanism, a.unit, a.notes, str(a.cost)) for a in answers]
            seen.append((told, session.budget.spent))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("extra", [[(1, 2)], [(60, n) for n in range(30)], [(None, 1)]])
@pytest.mark.parametrize("directed", [False, True])
def test_neighbours_see_the_same_with_nodes_as_units_too(extra, directed):
    pairs = edges(30)
    seen = []
    for world in (pairs, [*pairs, *extra], []):
        with opened(world) as session:
            graph = session.graph("edge", "src", "dst", directed=directed, unit="node")
            answers = [
                graph.stars(2, 1),
                graph.stars(3, 1, mechanism="r2t"),
                graph.stars(3, 1, at_most=8),
                graph.degree_histogram(1, 5),
                graph.degree_histogram(1, 5, at_most=8),
            ]
            told = [(len(a), a.mechanism, a.assumes, a.unit, a.notes, a.values[0].note, str(a.cost)) for a in answers]
            seen.append((told, session.budget.spent))
    assert seen[0] == seen[1] == seen[2]


def test_a_large_graph_is_refused_by_the_size_of_the_policy_and_its_edges_are_counted_all_the_same():
    tables = {"edge": {"columns": COLUMNS, "size": 30_000_000}, "word": {"public": True}}
    with opened(edges(20), {**ROW, "tables": tables}) as session:
        graph = session.graph("edge", "src", "dst")
        for ask in (graph.triangles, lambda epsilon: graph.stars(2, epsilon)):
            with pytest.raises(QueryError, match=r"degree_histogram"):
                ask(1)
        assert session.budget.spent == 0
        assert graph.edges(100).to_dicts()[0]["edges"] == pytest.approx(len(edges(20)), abs=2)
        graph.degree_histogram(1, 5)

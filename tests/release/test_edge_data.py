"""Every product on data at the edges: no rows, one, all NULL, a last node without a pattern. None may fail."""

from typing import Any

import polars as pl
import pytest

import confide.testing
from confide.errors import EpsilonTooSmall
from confide.release.session import Session

GRAPHS: dict[str, tuple[list[int | None], list[int | None]]] = {
    "no rows": ([], []),
    "a loop": ([1], [1]),
    "all unknown": ([None, None], [None, 3]),
    "one edge, twice": ([1, 2, 1], [2, 1, 2]),
    "a triangle, and last nodes in none": ([1, 2, 3, 3, 7], [2, 3, 1, 8, 9]),
    "a star": ([0] * 9, [*range(1, 10)]),
}
EPSILONS = (1e-30, 1e-15, 1e-9, 1e-5, 1e-3, 0.1, 1, 700, 1e5)
BUDGET = {"budget": {"epsilon": 10**6}}


def graph_of(kind: str, by_key: bool, directed: bool, unit: str) -> tuple[Session, Any]:
    ends = [pl.Series(numbers, dtype=pl.Int64) for numbers in GRAPHS[kind]]
    edges: dict[str, Any] = {"columns": {"a": {"type": "id"}, "b": {"type": "id"}}}
    data = {"e": pl.DataFrame({"a": ends[0], "b": ends[1]})}
    tables = {"e": edges}
    if by_key:
        edges |= {"references": {"a": "n.id"}, "at_most": {"rows": 10}}
        tables["n"] = {"columns": {"id": {"type": "id"}}}
        data["n"] = pl.DataFrame({"id": pl.concat(ends).drop_nulls().unique().sort()})
    policy = {**BUDGET, "unit": "n.id" if by_key else "row", "tables": tables}
    session = confide.testing.open(policy, data, seed=3)
    return session, session.graph("e", "a", "b", directed=directed, unit=unit)


def ask_all(graph: Any, epsilon: float, unit: str) -> int:
    """How many calls were refused for their ε."""
    names = ("truncate", "r2t") if unit == "node" else ("auto", "smooth")
    refused = 0
    calls = [
        *(lambda name=name: graph.triangles(epsilon, mechanism=name) for name in names),
        *(lambda name=name, k=k: graph.stars(k, epsilon, mechanism=name) for name in names for k in (2, 6)),
        lambda: graph.edges(epsilon),
        lambda: graph.degree_histogram(epsilon, 3),
    ]
    for call in calls:
        try:
            answer = call()
        except EpsilonTooSmall as refusal:
            refused += "is enough here" in str(refusal)
            continue
        for row in answer.to_dicts():
            name = next(key for key in row if f"{key}_low" in row)
            assert 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    return refused


@pytest.mark.parametrize("unit", ["edge", "node"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
def test_patterns_of_small_graphs(kind: str, directed: bool, unit: str) -> None:
    session, graph = graph_of(kind, False, directed, unit)
    with session:
        assert ask_all(graph, 1, unit) == 0


def test_patterns_at_an_epsilon_that_is_too_small_are_not_charged() -> None:
    for unit in ("edge", "node"):
        session, graph = graph_of("a triangle, and last nodes in none", False, False, unit)
        with session:
            assert ask_all(graph, 1e-30, unit) >= 6
            assert session.budget.spent < 1e-28


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", GRAPHS)
def test_patterns_at_every_epsilon(kind: str, epsilon: float) -> None:
    for by_key in (False, True):
        for directed in (False, True):
            for unit in ("edge", "node")[by_key:]:
                session, graph = graph_of(kind, by_key, directed, unit)
                with session:
                    ask_all(graph, epsilon, unit)


# --- microdata and verdicts -------------------------------------------------------------------------------------------

ROWS = {"no rows": [], "all unknown": [None, None], "out of range": [1e30, float("nan"), -7.0, 3.0]}


def rows_of(kind: str) -> Session:
    columns = {"g": {"values": ["a", "b"]}, "x": {"range": [0, 5], "bins": 1}}
    found = ROWS[kind]
    labels = pl.Series((["a", "z", None, "b"] if kind == "out of range" else [None] * 4)[: len(found)], dtype=pl.String)
    data = {"t": pl.DataFrame({"g": labels, "x": pl.Series(found, dtype=pl.Float64)})}
    return confide.testing.open({**BUDGET, "unit": "row", "tables": {"t": {"columns": columns}}}, data, seed=1)


@pytest.mark.parametrize("kind", ROWS)
def test_microdata_of_next_to_nothing(kind: str) -> None:
    with rows_of(kind) as session:
        made = session.microdata([(), "g", ("g", "x")], epsilon=1)
        assert made.to_polars()["weight"].min() is None or made.to_polars()["weight"].min() >= 0


@pytest.mark.parametrize("kind", ROWS)
def test_verdicts_about_next_to_nothing(kind: str) -> None:
    twin = {"t": pl.DataFrame({"g": ["a", "b", "a"], "x": [0.0, 2.0, 5.0]})}
    with rows_of(kind) as session:
        for aggregate in ("COUNT(*)", "SUM(x)", "AVG(x)", "MEDIAN(x)", "MIN(x)", "QUANTILE(x, 0.123457)"):
            verdict = session.trust(f"SELECT {aggregate} FROM t", twin, within=1, epsilon=1)
            assert verdict.trusted in (True, False)

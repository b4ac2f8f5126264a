"""Groups that no data can fill are neither measured, nor shown, nor counted."""

from datetime import date
from typing import Any

import polars as pl
import pytest

from confide.release.opening import open_for_tests

COLUMNS: dict[str, Any] = {
    "a": {"values": list(range(25))},
    "b": {"values": list(range(25))},
    "z": {"values": ["u", "v"], "nulls": True},
    "age": {"range": [0, 99]},
    "day": {"range": [date(2024, 1, 1), date(2024, 12, 31)]},
    "w": {"type": "text"},
}
ROWS = {"a": [3] * 40, "b": [4] * 40, "z": ["u"] * 20 + [None] * 20, "age": list(range(40)),
        "day": [date(2024, 2, 1)] * 40, "w": ["k"] * 40}  # fmt: skip


def opened(unit: str = "row", budget: dict[str, Any] | None = None) -> Any:
    tables = {"t": {"columns": COLUMNS}, "place": {"public": True}}
    policy = {"confide": 1, "budget": budget or {"epsilon": 1000}, "unit": unit, "tables": tables}
    place = pl.DataFrame({"a": [3, 4, 4], "name": ["three", "four", "vier"]})
    return open_for_tests(policy, {"t": pl.DataFrame(ROWS), "place": place}, seed=1)


def rows(answer: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.values for column in answer.columns if column.name != "n"), strict=True))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a, b, COUNT(*) AS n FROM t WHERE a = 3 AND b IN (4, 5) GROUP BY a, b", [(3, 4), (3, 5)]),
        ("SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b HAVING a = 3 AND b = 4", [(3, 4)]),
        ("SELECT z, COUNT(*) AS n FROM t WHERE z IS NOT NULL GROUP BY z", [("u",), ("v",)]),
        ("SELECT z, COUNT(*) AS n FROM t GROUP BY z HAVING z <> 'u'", [("v",)]),
        ("SELECT z, COUNT(*) AS n FROM t GROUP BY z ORDER BY z DESC", [("v",), ("u",), (None,)]),
        ("SELECT BIN(age, 10) AS g, COUNT(*) AS n FROM t WHERE age BETWEEN 15 AND 29 GROUP BY g", [(10,), (20,)]),
        ("SELECT BIN(age, 10) AS g, MEDIAN(age) AS n FROM t WHERE age BETWEEN 15 AND 29 GROUP BY g", [(10,), (20,)]),
        ("SELECT name, a, COUNT(*) AS n FROM t JOIN place USING (a) WHERE a > 3 GROUP BY name, a",
         [("four", 4), ("vier", 4)]),
    ],
)  # fmt: skip
def test_what_is_shown(sql, expected):
    session = opened()
    assert session.plan(sql, epsilon=1).groups == len(expected)
    assert rows(session.sql(sql, epsilon=1)) == expected


NULLS = {
    "a": {"values": [1, 2], "nulls": True},
    "n": {"range": [0, 9], "nulls": True},
    "m": {"range": [0, 9]},
    "d": {"range": [date(2024, 1, 1), date(2024, 1, 3)], "nulls": True},
    "w": {"type": "text", "nulls": True},
    "v": {"type": "text"},
}


@pytest.mark.parametrize(
    ("keys", "groups", "notes"),
    [
        ("a", [(1,), (2,), (None,)], ["rows without a value of a are the group NULL"]),
        ("BIN(n, 5)", [(0,), (5,), (None,)], ["rows without a value of n_bin are the group NULL"]),
        ("d", [(date(2024, 1, day),) for day in (1, 2, 3)] + [(None,)],
         ["rows without a value of d are the group NULL"]),
        ("BIN(m, 5)", [(0,), (5,)],
         ["rows without a value of m_bin are in no group; `nulls: true` in the policy makes them one"]),
        ("w", [("k",), (None,)],
         ["rows without a value of w are the group NULL, if enough units have such rows"]),
        ("v", [("k",)], ["rows without a value of v are in no group; `nulls: true` in the policy makes them one"]),
    ],
)  # fmt: skip
def test_rows_without_a_value(keys, groups, notes):
    tables = {"t": {"columns": NULLS}}
    policy = {"confide": 1, "budget": {"epsilon": 1000, "delta": 1e-9}, "unit": "row", "tables": tables}
    size = 600
    rows_of = {
        "a": [1] * size + [None] * size,
        "n": [3] * size + [None] * size,
        "m": [3] * size + [None] * size,
        "d": [date(2024, 1, 2)] * size + [None] * size,
        "w": ["k"] * size + [None] * size,
        "v": ["k"] * size + [None] * size,
    }
    session = open_for_tests(policy, {"t": pl.DataFrame(rows_of)}, seed=1)
    sql = f"SELECT {keys}, COUNT(*) AS n FROM t GROUP BY 1"
    answer = session.sql(sql, epsilon=10)
    assert rows(answer) == groups
    assert [note for note in answer.notes if "without a value" in note] == notes
    assert [note for note in session.plan(sql, epsilon=10).notes if "without a value" in note] == notes
    if groups[-1] == (None,):
        assert abs(answer.columns[1].values[-1] - size) < 60
    assert answer.from_bytes(answer.to_bytes()) == answer
    assert answer.to_arrow().num_rows == len(groups)
    filtered = session.sql(
        f"SELECT {keys}, COUNT(*) AS n FROM t WHERE {keys.split('(')[-1][0]} IS NOT NULL GROUP BY 1", epsilon=10
    )
    assert (None,) not in rows(filtered)
    assert not any("without a value" in note for note in filtered.notes)


def test_a_count_by_an_undeclared_key_is_the_number_that_the_key_is_shown_by():
    """Given that a key is shown its interval covers, however small it is: false alarm below 1e-3, and seeded."""
    policy = {
        "confide": 1,
        "budget": {"epsilon": 10, "delta": 1e-6},
        "unit": "row",
        "tables": {"t": {"columns": {"w": {"type": "text"}}}},
    }
    sizes = {90: 400, 30: 400, 16: 5000}
    data = {"w": [f"{size} {number}" for size in sizes for number in range(sizes[size]) for _ in range(size)]}
    sql = "SELECT w, COUNT(*) AS n FROM t GROUP BY w"
    session = open_for_tests(policy, {"t": pl.DataFrame(data)}, seed=1)
    plan = session.plan(sql, epsilon=1)
    assert plan.threshold is not None
    assert 20 < plan.threshold < 32
    assert f"keys held by fewer than about {plan.threshold} units are left out" in plan.notes
    assert plan.to_dict()["threshold"] == plan.threshold
    keys, column = session.sql(sql, epsilon=1).columns
    assert column.mechanism == plan.mechanism["n"] == "discrete gaussian with threshold"
    assert min(column.values) >= plan.threshold
    shown: dict[int, list[bool]] = {size: [] for size in sizes}
    for key, low, high in zip(keys.values, column.low, column.high, strict=True):
        size = int(key.split()[0])
        shown[size].append(low <= size <= high)
    for covered in shown.values():
        assert sum(covered) >= 0.95 * len(covered) - 4 * (0.0475 * len(covered)) ** 0.5
    assert len(shown[90]) == 400
    assert 10 < len(shown[16]) < 200


def test_limit_never_shows_an_impossible_group():
    session = opened()
    for _ in range(5):
        sql = "SELECT a, b, COUNT(*) AS n FROM t WHERE a = 3 AND b < 4 GROUP BY a, b ORDER BY n DESC LIMIT 5"
        answer = session.sql(sql, epsilon=0.01)
        assert {a for a, _ in rows(answer)} == {3}
        assert {b for _, b in rows(answer)} <= {0, 1, 2, 3}


def test_fewer_groups_cost_the_same_and_are_as_narrow():
    session = opened()
    some = session.plan("SELECT a, COUNT(*) AS n FROM t WHERE a < 3 GROUP BY a", epsilon=1)
    every = session.plan("SELECT a, COUNT(*) AS n FROM t WHERE age < 3 GROUP BY a", epsilon=1)
    assert (some.cost, some.half_width) == (every.cost, every.half_width)
    assert (some.groups, every.groups) == (3, 25)


@pytest.mark.parametrize("budget", [{"epsilon": 10}, {"epsilon": 10, "delta": 1e-9}])
@pytest.mark.parametrize("what", ["COUNT(*)", "AVG(age)", "MEDIAN(age)", "SUM(age) / COUNT(*)", "STDDEV(age)"])
def test_no_group_at_all_is_an_empty_table_that_costs_nothing(what, budget):
    session = opened(budget=budget)
    sql = f"SELECT a, {what} AS n FROM t WHERE a = 3 AND a = 4 GROUP BY a"
    assert session.plan(sql, epsilon=1).groups == 0
    answer = session.sql(sql, epsilon=1)
    assert len(answer) == 0
    assert float(answer.cost.epsilon) == 0
    assert session.budget.spent < 1e-20
    assert str(answer)


def test_a_join_without_bounds_shares_its_budget_among_possible_groups():
    session = opened()
    joined = "FROM t AS s JOIN t AS o ON s.w = o.w WHERE s.z IS NOT NULL AND s.a IN (3, 4)"
    answer = session.sql(f"SELECT s.a, s.z, COUNT(*) AS n {joined} GROUP BY s.a, s.z", epsilon=100)
    assert rows(answer) == [(3, "u"), (3, "v"), (4, "u"), (4, "v")]


def test_verdicts_are_about_possible_groups():
    session = opened()
    copy = pl.DataFrame({**ROWS, "a": [3] * 20 + [4] * 20})
    verdicts = session.trust(
        "SELECT a, COUNT(*) AS n FROM t WHERE a BETWEEN 3 AND 5 GROUP BY a", copy, within=10, epsilon=1
    )
    assert [verdict.key["a"] for verdict in verdicts] == [3, 4, 5]

"""Joins of private tables, from SQL to intervals: what is answered, what is refused, and what a neighbour can tell."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import ParameterError, QueryError
from confide.release.join.request import LARGEST_CONTRIBUTION

ROW: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 500_000},
    "unit": "row",
    "tables": {
        "r": {
            "columns": {
                "a": {"type": "id"},
                "b": {"type": "id"},
                "x": {"range": [-5, 10]},
                "g": {"values": ["p", "q"]},
            }
        },
        "t": {"columns": {"b": {"type": "id"}, "c": {"type": "id"}, "y": {"range": [0, 1], "grain": 0.01}}},
        "label": {"public": True},
    },
}
KEY: dict[str, Any] = {
    "confide": 1,
    "budget": {"epsilon": 500_000},
    "unit": "p.id",
    "tables": {
        "p": {"columns": {"id": {"type": "id"}, "g": {"values": ["u", "v"]}}},
        "o": {
            "references": {"pid": "p.id"},
            "at_most": {"rows": 9, "groups": 1},
            "columns": {
                "oid": {"type": "id"},
                "pid": {"type": "id"},
                "item": {"type": "id"},
                "x": {"range": [0, 10]},
                "z": {"range": [-3, 3]},
            },
        },
        "l": {
            "references": {"oid": "o.oid"},
            "at_most": {"rows": 20, "groups": 1},
            "columns": {"oid": {"type": "id"}, "q": {"range": [0, 5]}},
        },
    },
}
JOIN = "r JOIN t ON r.b = t.b"
COPIES = [f"JOIN r AS r{place} ON r{place}.a = r0.a" for place in range(1, 11)]
PAIRS = "o AS one JOIN o AS two ON one.item = two.item"


def row_data(rows: int = 400, seed: int = 0) -> dict[str, pl.DataFrame]:
    random = np.random.default_rng(seed)
    return {
        "r": pl.DataFrame(
            {
                "a": random.integers(0, 40, rows),
                "b": random.integers(0, 90, rows),
                "x": random.integers(-5, 11, rows),
                "g": random.choice(["p", "q"], rows),
            }
        ),
        "t": pl.DataFrame(
            {
                "b": random.integers(0, 90, rows),
                "c": random.integers(0, 50, rows),
                "y": random.random(rows),
            }
        ),
        "label": pl.DataFrame({"a": np.arange(40), "word": ["even", "odd"] * 20}),
    }


def key_data(people: int = 800, seed: int = 0) -> dict[str, pl.DataFrame]:
    random = np.random.default_rng(seed)
    orders, lines = 6 * people, 15 * people
    return {
        "p": pl.DataFrame({"id": np.arange(people), "g": random.choice(["u", "v"], people)}),
        "o": pl.DataFrame(
            {
                "oid": np.arange(orders),
                "pid": random.integers(0, people, orders),
                "item": random.integers(0, orders, orders),
                "x": random.integers(0, 11, orders),
                "z": random.integers(-3, 4, orders),
            }
        ),
        "l": pl.DataFrame({"oid": random.integers(0, orders, lines), "q": random.integers(0, 6, lines)}),
    }


def exact(data: dict[str, pl.DataFrame], sql: str) -> list[tuple[Any, ...]]:
    """The same SQL on the same frames, by DuckDB alone."""
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect()
    for name, frame in data.items():
        connection.register(name, frame)
    return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def rows():
    with confide.testing.open(ROW, row_data(), seed=1) as session:
        yield session


@pytest.fixture(scope="module")
def keys():
    with confide.testing.open(KEY, key_data(), seed=1) as session:
        yield session


# --- rows as units ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["auto", "residual", "elastic"])
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS n FROM {JOIN}",
        f"SELECT COUNT(*) AS n FROM {JOIN} WHERE x > 3 AND g = 'q'",
        f"SELECT SUM(x) AS n FROM {JOIN}",
        f"SELECT COUNT(*) FILTER (WHERE g = 'p') AS n FROM {JOIN}",
        "SELECT COUNT(*) AS n FROM r AS one JOIN r AS two ON one.b = two.b WHERE one.a <> two.a",
        "SELECT COUNT(*) AS n FROM label JOIN r ON label.a = r.a JOIN t ON t.b = r.b WHERE word = 'even'",
        "SELECT COUNT(*) AS n FROM r AS u JOIN r AS v ON u.b = v.a JOIN r AS w ON v.b = w.a AND w.b = u.a",
    ],
)
def test_a_huge_epsilon_gives_the_exact_answer(rows, sql, mechanism):
    answer = rows.sql(sql, epsilon=2_000, mechanism=mechanism)
    (truth,) = exact(row_data(), sql)[0]
    (row,) = answer.to_dicts()
    assert row["n_low"] <= truth <= row["n_high"]
    assert abs(row["n"] - truth) <= 3 + 0.02 * abs(truth)
    assert answer.assumes == {"n": "always"}
    assert answer.unit.startswith("row of r")


LEFT = [
    "SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b LEFT JOIN label ON t.c = label.a",
    "SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b LEFT JOIN label ON t.c = label.a WHERE label.word = 'odd'",
    "SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b LEFT JOIN label ON t.c = label.a WHERE label.word IS NULL",
    "SELECT COUNT(label.a) AS n FROM r LEFT JOIN label ON r.a = label.a JOIN t ON t.b = r.b",
]


@pytest.mark.parametrize("mechanism", ["residual", "elastic"])
@pytest.mark.parametrize("sql", LEFT)
def test_public_tables_may_be_added_by_left_joins(rows, sql, mechanism):
    """Some of t.c have no partner; label names each at most once, so the width is that of the join without it."""
    (truth,) = exact(row_data(), sql)[0]
    (row,) = rows.sql(sql, epsilon=2_000, mechanism=mechanism).to_dicts()
    assert abs(row["n"] - truth) <= 3 + 0.02 * abs(truth)
    assert row["n_low"] <= truth <= row["n_high"]


def test_groups_are_all_there_and_in_order(rows):
    answer = rows.sql(f"SELECT g, COUNT(*) AS n, SUM(y) AS s FROM {JOIN} GROUP BY g", epsilon=3_000)
    truth = dict(exact(row_data(), f"SELECT g, COUNT(*) FROM {JOIN} GROUP BY g"))
    found = {row["g"]: row["n"] for row in answer.to_dicts()}
    assert list(found) == ["p", "q"]
    assert all(abs(found[key] - truth[key]) <= 5 for key in truth)
    assert [column.type for column in answer.values] == ["integer", "number"]


def test_a_key_that_is_null_joins_nothing():
    data = row_data(50)
    many = pl.DataFrame({"a": [1] * 500, "b": [None] * 500, "x": [1] * 500, "g": ["p"] * 500}, schema=data["r"].schema)
    nulls = pl.DataFrame({"b": [None] * 500, "c": [1] * 500, "y": [0.5] * 500}, schema=data["t"].schema)
    wider = {**data, "r": pl.concat([data["r"], many]), "t": pl.concat([data["t"], nulls])}
    with confide.testing.open(ROW, data, seed=3) as plain, confide.testing.open(ROW, wider, seed=3) as null:
        sql = f"SELECT COUNT(*) AS n FROM {JOIN}"
        assert plain.sql(sql, epsilon=1).to_dicts() == null.sql(sql, epsilon=1).to_dicts()


def test_a_filter_on_one_table_makes_the_interval_narrower():
    data = row_data()
    heavy = pl.DataFrame({"a": [1] * 300, "b": [7] * 300, "x": [10] * 300, "g": ["q"] * 300}, schema=data["r"].schema)
    with confide.testing.open(ROW, {**data, "r": pl.concat([data["r"], heavy])}, seed=3) as session:
        every = session.sql(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=1).to_dicts()[0]
        light = session.sql(f"SELECT COUNT(*) AS n FROM {JOIN} WHERE g = 'p'", epsilon=1).to_dicts()[0]
        across = session.sql(f"SELECT COUNT(*) AS n FROM {JOIN} WHERE r.a <> t.c", epsilon=1).to_dicts()[0]
    assert light["n_high"] - light["n"] < (every["n_high"] - every["n"]) / 3
    assert across["n_high"] - across["n"] > (every["n_high"] - every["n"]) / 3


def test_the_interval_covers(rows):
    """60 calls at 0.9, each with its own ε; a false alarm is rarer than one in 10,000 were the seed drawn."""
    sql = f"SELECT COUNT(*) AS n FROM {JOIN}"
    (truth,) = exact(row_data(), sql)[0]
    hits = 0
    for run in range(60):
        (row,) = rows.sql(sql, epsilon=f"0.9{run:02d}1", confidence=0.9).to_dicts()
        hits += row["n_low"] <= truth <= row["n_high"]
    assert hits >= 45


# --- on released numbers ----------------------------------------------------------------------------------------------


def test_arithmetic_on_sums(rows):
    sql = f"SELECT AVG(x) AS mean, SUM(y) / COUNT(*) AS share, ROUND(COUNT(*) / 10.0, 1) AS tens FROM {JOIN}"
    answer = rows.sql(sql, epsilon=8_000)
    truth = exact(row_data(), f"SELECT AVG(x), AVG(round(y, 2)), COUNT(*) / 10.0 FROM {JOIN}")[0]
    (row,) = answer.to_dicts()
    for name, value in zip(("mean", "share", "tens"), truth, strict=True):
        assert row[f"{name}_low"] <= float(value) <= row[f"{name}_high"]
        assert abs(row[name] - float(value)) <= 0.05 + 0.01 * abs(float(value))
    assert answer.assumes == {"mean": "always", "share": "always", "tens": "always"}
    assert answer.mechanism["mean"] == "residual"


def test_having_order_and_limit_act_on_released_numbers(rows):
    sql = f"SELECT g, COUNT(*) AS n FROM {JOIN} GROUP BY g"
    plain = {row["g"]: row["n"] for row in rows.sql(sql, epsilon=40).to_dicts()}
    falling = [row["g"] for row in rows.sql(f"{sql} ORDER BY n DESC", epsilon=4_000).to_dicts()]
    truth = dict(exact(row_data(), sql))
    assert falling == sorted(truth, key=lambda key: -truth[key])
    assert len(rows.sql(f"{sql} ORDER BY n LIMIT 1", epsilon=4_000)) == 1
    assert len(rows.sql(f"{sql} HAVING COUNT(*) > 100000", epsilon=4_000)) == 0
    assert len(rows.sql(f"{sql} HAVING SUM(y) > -1", epsilon=4_000)) == len(plain)
    assert rows.sql(f"{sql} ORDER BY g DESC", epsilon=4_000).to_dicts()[0]["g"] == "q"


def test_a_ratio_covers(rows):
    """60 calls at 0.9; a false alarm is rarer than one in 10,000 were the seed drawn."""
    sql = f"SELECT AVG(x) AS n FROM {JOIN}"
    (truth,) = exact(row_data(), sql)[0]
    hits = 0
    for run in range(60):
        (row,) = rows.sql(sql, epsilon=f"40.9{run:02d}1", confidence=0.9).to_dicts()
        hits += row["n_low"] <= truth <= row["n_high"]
    assert hits >= 45


def test_a_mean_stays_where_the_values_are_and_says_when_it_may_be_anywhere(rows):
    answer = rows.sql(f"SELECT AVG(x) AS n FROM {JOIN} WHERE x > 900", epsilon="0.01")
    (row,) = answer.to_dicts()
    assert (row["n_low"], row["n_high"]) == (-5, 10)
    assert row["n"] is None  # anywhere in its range: there is no estimate to give
    assert "whole range" in str(answer)


def test_a_constant_beside_groups(rows):
    answer = rows.sql(f"SELECT g, COUNT(*) AS n, 7 AS seven FROM {JOIN} GROUP BY g", epsilon=50)
    assert [row["seven"] for row in answer.to_dicts()] == [7, 7]


def test_a_plan_of_computed_columns_shows_what_is_measured(rows):
    plan = rows.plan(f"SELECT AVG(x) AS mean FROM {JOIN}", epsilon=5)
    assert [column.name for column in plan.columns] == ["sum_x", "count_x"]
    assert "follows from their intervals" in str(plan)


# --- a budget with δ --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["residual", "elastic"])
def test_where_there_is_a_delta_a_join_pays_with_it(mechanism):
    """Gaussian noise and a δ from the half of δ that is not for conversion; the same bound as without."""
    sql = f"SELECT COUNT(*) AS n FROM {JOIN}"
    truth = exact(row_data(), sql)[0][0]
    policy = {**ROW, "budget": {"epsilon": 500, "delta": 1e-6}}
    with confide.testing.open(policy, row_data(), seed=1) as session:
        answer = session.sql(sql, epsilon=100, mechanism=mechanism)
        assert answer.cost.delta is not None
        assert 0 < answer.cost.delta < 1e-6
        (row,) = answer.to_dicts()
        assert row["n_low"] <= truth <= row["n_high"]
        assert answer.mechanism == {"n": mechanism}
        grouped = session.sql(f"SELECT g, COUNT(*) AS n FROM {JOIN} GROUP BY g", epsilon=50, mechanism=mechanism)
        assert len(grouped) == 2
    replaced = {**policy, "tables": {**ROW["tables"], "r": {**ROW["tables"]["r"], "rows": "public"}}}
    with confide.testing.open(replaced, row_data(), seed=1) as session:
        (wider,) = session.sql(sql, epsilon=100, mechanism=mechanism).to_dicts()
        assert wider["n_high"] - wider["n_low"] > row["n_high"] - row["n_low"]


@pytest.mark.parametrize("epsilon", [1, 20])
def test_a_delta_narrows_a_join_at_the_same_cost(epsilon):
    """Beside pure noise of ε = √(2ρ), which costs as much."""
    sql = f"SELECT g, COUNT(*) AS n FROM {JOIN} GROUP BY g"
    with confide.testing.open({**ROW, "budget": {"epsilon": 50, "delta": 1e-9}}, row_data(), seed=1) as session:
        plan = session.plan(sql, epsilon=epsilon)
    assert plan.cost.rho is not None
    with confide.testing.open({**ROW, "budget": {"epsilon": 50}}, row_data(), seed=1) as session:
        pure = session.plan(sql, epsilon=float(2 * plan.cost.rho) ** 0.5)
    assert plan.columns[0].half_width < 0.5 * pure.columns[0].half_width


def test_elastic_takes_many_tables_at_a_small_epsilon(rows):
    few = (
        f"SELECT COUNT(*) AS n FROM r AS r0 {' '.join(COPIES)} WHERE {' AND '.join(f'r{p}.x = 99' for p in range(11))}"
    )
    assert rows.sql(few, epsilon=1e-5, mechanism="elastic").to_dicts()[0]["n_low"] == 0


def test_elastic_of_a_pure_budget_is_pure(rows):
    assert rows.sql(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=3, mechanism="elastic").cost.delta is None


# --- keys as units ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["truncate", "r2t"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid JOIN l ON o.oid = l.oid",
        "SELECT SUM(x) AS n FROM p JOIN o ON p.id = o.pid WHERE g = 'u'",
        "SELECT COUNT(*) AS n FROM o JOIN l ON l.oid = o.oid",
        f"SELECT COUNT(*) AS n FROM {PAIRS} WHERE one.pid <> two.pid",
    ],
)
def test_units_are_found_along_references(keys, sql, mechanism):
    answer = keys.sql(sql, epsilon=500, mechanism=mechanism)
    (truth,) = exact(key_data(), sql)[0]
    (row,) = answer.to_dicts()
    assert abs(row["n"] - truth) <= 10 + 0.01 * truth
    assert row["n_low"] <= truth
    assert answer.unit == "p.id"
    assert answer.assumes == {"n": "density"}


@pytest.mark.parametrize("mechanism", ["truncate", "r2t"])
def test_too_few_units_have_no_information_and_say_so(keys, mechanism):
    sql = "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid"
    (truth,) = exact(key_data(), sql)[0]
    answer = keys.sql(sql, epsilon=0.01, mechanism=mechanism)
    (row,) = answer.to_dicts()
    assert row["n_low"] <= truth <= row["n_high"]
    assert answer.assumes == {"n": "at_most"}
    assert any(note.startswith("no information about n: ") for note in answer.notes)


def test_a_table_that_is_not_named_is_joined_on_the_way_to_the_unit(keys):
    answer = keys.sql("SELECT COUNT(*) AS n FROM l", epsilon=500, mechanism="truncate")
    assert abs(answer.to_dicts()[0]["n"] - 12_000) <= 20


def test_public_tables_may_be_added_by_left_joins_of_units():
    data = {**key_data(), "kind": pl.DataFrame({"item": np.arange(0, 3_000, 2), "word": ["a", "b", "c"] * 500})}
    policy = {**KEY, "tables": {**KEY["tables"], "kind": {"public": True}}}
    sql = "SELECT COUNT(*) AS n, COUNT(word) AS m FROM p JOIN o ON p.id = o.pid LEFT JOIN kind ON kind.item = o.item"
    truth = exact(data, sql)[0]
    with confide.testing.open(policy, data, seed=1) as session:
        (row,) = session.sql(sql, epsilon=1_000, mechanism="truncate").to_dicts()
    assert abs(row["n"] - truth[0]) <= 10 + 0.01 * truth[0]
    assert abs(row["m"] - truth[1]) <= 10 + 0.01 * truth[1]


@pytest.mark.parametrize("column", ["x", "z"])
def test_means_over_joins_of_units(keys, column):
    """Of numbers that may be negative too: what is added up are distances from the least."""
    sql = f"SELECT AVG({column}) AS mean FROM p JOIN o ON p.id = o.pid JOIN l ON o.oid = l.oid"
    (truth,) = exact(key_data(), sql)[0]
    answer = keys.sql(sql, epsilon=2_000, mechanism="truncate")
    (row,) = answer.to_dicts()
    assert abs(row["mean"] - truth) <= 0.1
    assert row["mean_low"] <= truth <= row["mean_high"]
    assert answer.assumes == {"mean": "density"}
    bounds = {f"sum_{column}": [0, 500], f"count_{column}": [0, 100]}
    assert keys.sql(sql, epsilon=2_000, mechanism="truncate", bounds=bounds).notes[0].endswith("100")


def test_a_unit_that_is_null_belongs_to_nobody():
    data = key_data(50)
    lost = pl.DataFrame({"oid": [9_000], "pid": [None], "item": [1], "x": [3], "z": [0]}, schema=data["o"].schema)
    with (
        confide.testing.open(KEY, data, seed=3) as plain,
        confide.testing.open(KEY, {**data, "o": pl.concat([data["o"], lost])}, seed=3) as null,
    ):
        for sql in ("SELECT COUNT(*) AS n FROM o", f"SELECT COUNT(*) AS n FROM {PAIRS}"):
            first, second = (session.sql(sql, epsilon=1, mechanism="truncate") for session in (plain, null))
            assert first.to_dicts() == second.to_dicts()


def test_what_one_unit_adds_is_cut_where_the_caller_says(keys):
    sql = "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid"
    cut = keys.sql(sql, epsilon=500, mechanism="truncate", bounds={"n": [0, 2]})
    assert cut.to_dicts()[0]["n"] <= 1_650
    assert "cut at n: 2" in "\n".join(cut.notes)
    assert f"{LARGEST_CONTRIBUTION:,g}" in "\n".join(keys.sql(sql, epsilon=500, mechanism="truncate").notes)


def test_a_single_level_is_declared_and_assumes_nothing_but_that(keys):
    sql, bounds = "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid", {"n": [0, 1]}
    answer = keys.sql(sql, epsilon=500, mechanism="truncate", bounds=bounds)
    assert answer.assumes == {"n": "at_most"}
    assert "cut at n: 1" in "\n".join(answer.notes)
    assert keys.plan(sql, epsilon=500, mechanism="truncate", bounds=bounds).columns[0].assumes == "at_most"
    assert keys.plan(sql, epsilon=500, mechanism="truncate").columns[0].assumes == "density"


def test_a_self_join_at_the_bound_is_covered():
    """Five rows each where five are allowed: 25 joined rows of each. Of 30 intervals of 0.9, ten or more miss in one
    run of 2,000; seeds are fixed.
    """
    people, each = 120, 5
    tables = {
        "customer": {"columns": {"id": {"type": "id"}}},
        "buy": {
            "references": {"who": "customer.id"},
            "at_most": {"rows": each},
            "columns": {"item": {"values": [1, 2]}},
        },
        "tag": {"public": True},
    }
    policy = {"confide": 1, "budget": {"epsilon": 1000}, "unit": "customer.id", "tables": tables}
    data = {
        "customer": pl.DataFrame({"id": range(people)}),
        "buy": pl.DataFrame({"who": [i // each for i in range(each * people)], "item": [1, 2] * (each * people // 2)}),
        "tag": pl.DataFrame({"item": [1, 1, 1, 1, 2, 2, 2, 2], "label": ["a", "b", "c", "d"] * 2}),
    }
    asked = {
        "SELECT COUNT(*) AS n FROM buy AS a JOIN buy AS b ON a.who = b.who": (25 * people, "5 of buy × 5 of buy"),
        "SELECT COUNT(*) AS n FROM buy JOIN tag ON buy.item = tag.item": (20 * people, "5 of buy × 4 of tag"),
    }
    with confide.testing.open(policy, data, seed=3) as session:
        for sql, (truth, words) in asked.items():
            missed = 0
            for step in range(30):
                answer = session.sql(sql, epsilon=Fraction(1000 + step, 1000), confidence=0.9)
                (row,) = answer.to_dicts()
                missed += not row["n_low"] <= truth <= row["n_high"]
                assert answer.assumes == {"n": "at_most"}
                assert any(words in note for note in answer.notes)
                assert "whatever the data are" not in str(answer)
            assert missed < 10
            assert any("mechanism='truncate'" in note for note in session.plan(sql, epsilon=1).notes)


def test_joins_along_references_stay_as_they_were(keys):
    """Without a mechanism asked for, what was answered by declared bounds is answered by them."""
    answer = keys.sql("SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid", epsilon=1)
    assert answer.mechanism == {"n": "discrete laplace"}


# --- paying -----------------------------------------------------------------------------------------------------------


def test_the_same_question_again_is_free_and_the_same(rows):
    sql = f"SELECT COUNT(*) AS n FROM {JOIN}"
    first = rows.sql(sql, epsilon=3)
    spent = rows.budget.spent
    again = rows.sql("SELECT  COUNT(*) AS n FROM r AS anything JOIN t AS t ON anything.b = t.b", epsilon=3)
    assert again == first
    assert rows.budget.spent == spent


def test_epsilon_is_the_cost_of_the_whole_call():
    with confide.testing.open(ROW, row_data(40), seed=3) as session:
        session.sql(f"SELECT g, COUNT(*) AS n, SUM(x) AS s FROM {JOIN} GROUP BY g", epsilon=2)
        assert session.budget.spent == 2


def test_an_approximate_budget_pays_in_its_own_currency():
    policy = {**ROW, "budget": {"epsilon": 5, "delta": 1e-9}}
    with confide.testing.open(policy, row_data(40), seed=3) as session:
        answer = session.sql(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=1)
        assert answer.cost.rho is not None


def test_a_plan_is_free_and_says_what_it_rests_on(rows, keys):
    spent = rows.budget.spent
    plan = rows.plan(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=1)
    assert rows.budget.spent == spent
    assert plan.mechanism == {"n": "residual"}
    assert "which is private" in str(plan)
    other = keys.plan(f"SELECT COUNT(*) AS n FROM {PAIRS}", epsilon=1, mechanism="truncate")
    assert other.mechanism == {"n": "truncate"}
    with pytest.raises(ParameterError, match="give epsilon instead of within"):
        rows.plan(f"SELECT COUNT(*) AS n FROM {JOIN}", within=50)


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "mechanism", "words"),
    [
        ("SELECT COUNT(*) FROM r, t", "auto", "a cross join is not answered"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b < t.b", "auto", "t is joined on no equal columns"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.g = t.y", "auto", "do not join"),
        ("SELECT COUNT(*) FROM r JOIN r ON r.a = r.b", "auto", "give each its own alias"),
        ("SELECT COUNT(*) FROM r LEFT JOIN t ON r.b = t.b", "auto", "LEFT JOIN to a private table is not answered"),
        ("SELECT COUNT(*) FROM label LEFT JOIN r ON r.a = label.a JOIN t ON r.b = t.b", "auto", "to a private table"),
        (
            "SELECT COUNT(*) FROM r JOIN t ON r.b = t.b LEFT JOIN label ON r.a = label.a "
            "JOIN label AS other ON other.word = label.word",
            "auto",
            "a column of a LEFT JOIN",
        ),
        ("SELECT COUNT(*) FROM r CROSS JOIN t", "auto", "a cross join is not answered"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b < t.b", "auto", "equal"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b = t.b OR r.a = t.c", "auto", "equal"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b = t.b JOIN r ON r.a = t.c", "auto", "give each its own alias"),
        ("SELECT COUNT(DISTINCT r.a) FROM r JOIN t ON r.b = t.b", "auto", "COUNT, SUM and AVG are answered"),
        ("SELECT MEDIAN(x) FROM r JOIN t ON r.b = t.b", "auto", "COUNT, SUM and AVG are answered"),
        ("SELECT COUNT(*) / 0 AS n FROM r JOIN t ON r.b = t.b", "auto", "divides by zero"),
        ("SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b ORDER BY x", "auto", "not a column of the result"),
        ("SELECT COUNT(*) AS n FROM r JOIN t ON r.b = t.b HAVING x > 3", "auto", "not a column of the result"),
        ("SELECT r.a, COUNT(*) FROM r JOIN t ON r.b = t.b GROUP BY r.a", "auto", "is an id"),
        ("SELECT g FROM r JOIN t ON r.b = t.b GROUP BY g", "auto", "add COUNT"),
        ("SELECT COUNT(*) AS n, SUM(x) AS n FROM r JOIN t ON r.b = t.b", "auto", "would be called n"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b = t.b", "r2t", "protects single rows"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b = t.b", "sparkle", "private tables"),
        ("SELECT COUNT(*) FROM r JOIN t ON r.b = t.b WHERE nothing = 1", "auto", "there is no column"),
        (f"SELECT COUNT(*) FROM r AS r0 {' '.join(COPIES)}", "auto", "has 11 private tables.*at most 10"),
    ],
)
def test_refused_from_the_text_alone(rows, sql, mechanism, words):
    spent = rows.budget.spent
    with pytest.raises((QueryError, ParameterError), match=words):
        rows.sql(sql, epsilon=1, mechanism=mechanism)
    with pytest.raises((QueryError, ParameterError), match=words):
        rows.plan(sql, epsilon=1, mechanism=mechanism)
    assert rows.budget.spent == spent


@pytest.mark.parametrize(
    ("sql", "mechanism", "words"),
    [
        ("SELECT COUNT(*) FROM p JOIN o ON p.id = o.pid", "residual", "the policy protects p.id"),
        ("SELECT SUM(z) FROM p JOIN o ON p.id = o.pid", "truncate", "may be negative"),
        ("SELECT COUNT(*) FROM p JOIN o ON p.g = o.item", "auto", "no reference of the policy connects"),
        (f"SELECT COUNT(*) FROM {PAIRS}", "auto", "or ask with mechanism='truncate'"),
        ("SELECT MAX(x) FROM o JOIN l ON o.item = l.oid", "truncate", "COUNT, SUM and AVG are answered"),
        ("SELECT COUNT(*) FROM o JOIN l ON o.item < l.oid", "truncate", "equal"),
        ("SELECT COUNT(*) FROM o, l", "truncate", "cross join"),
        ("SELECT COUNT(*) FROM o JOIN o ON o.item = o.oid", "truncate", "give each its own alias"),
    ],
)
def test_refused_under_a_key(keys, sql, mechanism, words):
    with pytest.raises(QueryError, match=words):
        keys.sql(sql, epsilon=1, mechanism=mechanism)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1e-400", "x"])
def test_an_epsilon_that_is_none_is_refused(rows, epsilon):
    with pytest.raises(ParameterError):
        rows.sql(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=epsilon)


def test_bad_bounds_and_splits(rows, keys):
    sql = "SELECT COUNT(*) AS n FROM p JOIN o ON p.id = o.pid"
    for bounds in ({"m": [0, 5]}, {"n": [1, 5]}, {"n": [0, 0.5]}):
        with pytest.raises(ParameterError):
            keys.sql(sql, epsilon=1, mechanism="truncate", bounds=bounds)
    with pytest.raises(ParameterError, match="needs none"):
        rows.sql(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=1, mechanism="residual", bounds={"n": [0, 4]})
    with pytest.raises(ParameterError, match="split names"):
        rows.sql(f"SELECT COUNT(*) AS n FROM {JOIN}", epsilon=1, split={"m": 1})


# --- neighbours -------------------------------------------------------------------------------------------------------

SAME = [
    f"SELECT COUNT(*) AS n FROM {JOIN}",
    f"SELECT g, SUM(x) AS s FROM {JOIN} GROUP BY g",
    "SELECT COUNT(*) AS n FROM r AS one JOIN r AS two ON one.b = two.a",
    f"SELECT COUNT(*) AS n FROM {JOIN} WHERE r.a = t.c",
    f"SELECT AVG(x) AS n FROM {JOIN}",
]


@pytest.mark.parametrize("seed", range(6))
def test_neighbours_see_the_same_status_shape_and_charge(seed):
    """One row more, with a value that matches everything, nothing, or NULL: all but the noise is the same."""
    data = row_data(30, seed)
    random = np.random.default_rng(seed)
    value = [None, 7, 10**6][seed % 3]
    extra = pl.DataFrame({"a": [value], "b": [value], "x": [10**12], "g": ["zzz"]}, schema=data["r"].schema)
    crowd = pl.DataFrame({"b": [7] * 50, "c": random.integers(0, 3, 50), "y": [1e308] * 50}, schema=data["t"].schema)
    here = {**data, "t": pl.concat([data["t"], crowd])}
    there = {**here, "r": pl.concat([here["r"], extra])}
    seen = []
    for world in (here, there):
        with confide.testing.open(ROW, world, seed=seed) as session:
            told = []
            for sql in SAME:
                try:
                    answer = session.sql(sql, epsilon=1)
                    told.append((len(answer), answer.mechanism, answer.unit, answer.notes, str(answer.cost)))
                except confide.errors.ConfideError as error:
                    told.append(str(error))
            seen.append((told, session.budget.spent))
    assert seen[0] == seen[1]


def test_more_groups_than_a_summary_has_room_for_are_refused():
    policy = {**KEY, "tables": {**KEY["tables"], "p": {"columns": {"id": {"type": "id"}, "b": {"range": [0, 20_000]}}}}}
    data = key_data(20)
    data["p"] = data["p"].with_columns(b=pl.lit(1))
    with confide.testing.open(policy, data, seed=1) as session:
        sql = "SELECT BIN(b, 1) AS b, COUNT(*) AS n FROM p JOIN o ON p.id = o.pid JOIN l ON l.oid = o.oid GROUP BY 1"
        with pytest.raises(QueryError, match="20,001 groups"):
            session.sql(sql, epsilon=1, mechanism="truncate")
        assert session.budget.spent == 0

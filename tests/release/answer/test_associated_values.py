"""How two columns go together, asked in SQL: the numbers are those of the rows where both are known."""

import duckdb
import numpy as np
import polars as pl
import pytest

import confide

ROWS = 4_000
MANY = {"epsilon": 10**6}  # hardly any noise, so that answers are the numbers themselves


def data() -> pl.DataFrame:
    generator = np.random.default_rng(1)
    x = generator.integers(10, 60, ROWS).astype(float)
    y = np.round(np.clip(3 * x + generator.normal(0, 30, ROWS), -50, 400), 1)
    return pl.DataFrame(
        {
            "x": pl.Series(x).cast(pl.Int64),
            "y": y,
            "z": [None if place % 3 == 0 else int(x[place]) * 2 for place in range(ROWS)],
            "g": ["a" if place % 10 else "b" for place in range(ROWS)],
        }
    )


def policy(budget: dict[str, float]) -> dict[str, object]:
    columns = {
        "x": {"range": [0, 100]},
        "y": {"range": [-50, 400], "grain": 0.1},
        "z": {"range": [0, 200]},
        "g": {"values": ["a", "b", "c"]},
    }
    return {"confide": 1, "budget": budget, "unit": "row", "tables": {"t": {"columns": columns}}}


def answers(sql: str, epsilon: float = 10**6, budget: dict[str, float] = MANY) -> list[dict[str, float]]:
    with confide.testing.open(policy(budget), {"t": data()}, seed=3) as session:
        return session.sql(sql, epsilon=epsilon).to_dicts()


def test_the_numbers_are_those_of_a_database() -> None:
    asked = {
        "r": "CORR(x, y)",
        "r2": "REGR_R2(y, x)",
        "cp": "COVAR_POP(y, x)",
        "cs": "COVAR_SAMP(x, y)",
        "s": "REGR_SLOPE(y, x)",
        "i": "REGR_INTERCEPT(y, x)",
        "n": "REGR_COUNT(y, z)",
        "ax": "REGR_AVGX(y, z)",
        "ay": "REGR_AVGY(y, z)",
        "rz": "CORR(y, z)",
        "sz": "REGR_SLOPE(z, y) FILTER (WHERE x > 20)",
    }
    sql = "SELECT " + ", ".join(f"{call} AS {name}" for name, call in asked.items()) + " FROM t"
    (found,) = answers(sql)
    t = data()  # noqa: F841  a table of the query below
    (exact,) = duckdb.sql(sql).fetchall()
    for name, true in zip(asked, exact, strict=True):
        assert found[name] == pytest.approx(true, rel=1e-3), name
        slack = 1e-12 * abs(true)
        assert found[f"{name}_low"] - slack <= true <= found[f"{name}_high"] + slack, name


def test_distinct_values_are_those_of_a_database() -> None:
    asked = {
        "s": "SUM(DISTINCT x)",
        "a": "AVG(DISTINCT y)",
        "z": "SUM(DISTINCT z) FILTER (WHERE x > 20)",
        "c": "COUNT(DISTINCT CASE WHEN g = 'a' THEN g END)",
        "q": "SUM(DISTINCT y) / COUNT(*)",
    }
    sql = "SELECT " + ", ".join(f"{call} AS {name}" for name, call in asked.items()) + " FROM t"
    (found,) = answers(sql)
    t = data()  # noqa: F841  a table of the query below
    (exact,) = duckdb.sql(sql).fetchall()
    for name, true in zip(asked, exact, strict=True):
        assert found[name] == pytest.approx(float(true), rel=1e-3), name


def test_groups_of_which_nothing_is_known_say_so() -> None:
    with confide.testing.open(policy({"epsilon": 3}), {"t": data()}, seed=3) as session:
        answer = session.sql("SELECT g, CORR(x, y) AS r, REGR_SLOPE(y, x) AS s FROM t GROUP BY g", epsilon=1)
    last = answer.to_dicts()[-1]
    assert (last["g"], last["r_low"], last["r_high"]) == ("c", -1, 1)
    assert (last["s_low"], last["s_high"]) == (-np.inf, np.inf)
    assert "whole range" in answer.values[0].note


def test_whether_a_condition_ever_holds() -> None:
    sql = """SELECT BOOL_OR(x > 55) AS some, BOOL_OR(x > 90) AS none, BOOL_AND(x < 90) AS every, EVERY(x < 40) AS often
             FROM t"""
    (found,) = answers(sql, 20, {"epsilon": 30})
    assert [found[name] for name in ("some", "often")] == [1, 0]
    assert [found[f"some{end}"] for end in ("_low", "_high")] == [1, 1]
    assert [found[f"none{end}"] for end in ("_low", "_high")] == [0, 1]
    assert [found[f"every{end}"] for end in ("_low", "_high")] == [0, 1]
    assert [found[f"often{end}"] for end in ("_low", "_high")] == [0, 0]

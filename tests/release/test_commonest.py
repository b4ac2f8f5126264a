"""MODE, from the text to what an analyst takes elsewhere."""

import json
from datetime import date
from typing import Any

import polars as pl
import pytest

from confide import testing
from confide.errors import ConfideError, ParameterError, QueryError
from confide.release import Session
from confide.release.answer.answer import Answer
from tests.release import samples

BUDGETS = [samples.PURE, samples.APPROXIMATE]
COLOURS = ["red", "green", "blue", "grey"]


def opened(data: dict[str, list[Any]], budget: Any = samples.PURE, seed: int = 1, **table: Any) -> Session:
    columns = {
        "g": {"values": ["a", "b", "c"]},
        "colour": {"values": COLOURS, "nulls": True},
        "level": {"values": [3, 1, 2]},
        "flag": {"values": [True, False]},
        "x": {"range": [0, 99]},
        "day": {"range": ["2024-01-01", "2024-12-31"]},
    }
    policy = {"budget": budget, "unit": "row", "tables": {"t": {"columns": columns, **table}}}
    length = len(next(iter(data.values())))
    kinds = {"g": pl.String, "colour": pl.String, "level": pl.Int64, "flag": pl.Boolean, "x": pl.Int64, "day": pl.Date}
    frame = pl.DataFrame({name: data.get(name, [None] * length) for name in columns}, schema=kinds)
    return testing.open(policy, {"t": frame}, seed=seed)


def many(**columns: list[Any]) -> dict[str, list[Any]]:
    return {name: values * 200 for name, values in columns.items()}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("rows", ["private", "public"])
def test_every_kind_of_value_is_found(budget: Any, rows: str) -> None:
    data = many(colour=["blue", "blue", None, "red"], level=[1, 1, 3, 1], flag=[False, False, True, None])
    data |= many(x=[41, 44, 47, 9], day=[date(2024, 5, 6)] * 4, g=["a", "a", "c", "c"])
    session = opened(data, budget, rows=rows)
    asked = {
        "MODE(colour)": "blue",
        "MODE() WITHIN GROUP (ORDER BY colour)": "blue",
        "MODE(colour) FILTER (WHERE x < 20)": "red",
        "MODE(level)": 1,
        "MODE(flag)": False,
        "MODE(BIN(x, 10))": 40,
        "MODE(x > 8)": True,
        "MODE(UPPER(colour))": "BLUE",
        "MODE(MONTH(day))": 5,
        "MODE(CAST(DATE_TRUNC('month', day) AS DATE))": date(2024, 5, 1),
    }
    texts = ", ".join(f"{text} AS m{place}" for place, text in enumerate(asked))
    answer = session.sql(f"SELECT {texts} FROM t", epsilon=20)
    assert [answer[0][f"m{place}"] for place in range(len(asked))] == list(asked.values())
    assert all(column.possible == (column.values,) for column in answer.values)
    assert {column.type for column in answer.values} == {"text", "integer", "boolean", "date"}
    assert Answer.from_bytes(answer.to_bytes()) == answer
    assert answer.to_arrow().num_rows == 1


@pytest.mark.parametrize("budget", BUDGETS)
def test_what_is_possible_is_said_in_groups(budget: Any) -> None:
    data = many(g=["a"] * 8 + ["b"] * 8, colour=["red"] * 4 + ["grey"] * 4 + ["green"] * 7 + ["blue"])
    answer = opened(data, budget).sql("SELECT g, MODE(colour) AS m FROM t GROUP BY g", epsilon=0.5)
    column = answer["m"]
    assert column.possible[0] == ("red", "grey")
    assert column.possible[1] == ("green",)
    assert column.possible[2] == tuple(COLOURS)  # nobody is in c
    assert answer[0]["m_low"] == "red"
    assert answer[0]["m_high"] == "grey"
    assert answer[2]["m"] is None
    assert column.unknown == (2,)
    shown = str(answer)
    assert "red, grey" in shown
    assert "no information" in shown
    facts = json.loads(answer.to_json())
    assert facts["possible"] == {"m": [["red", "grey"], ["green"], COLOURS]}
    assert facts["rows"][1] == {"g": "b", "m": "green", "m_low": "green", "m_high": "green"}
    assert answer.to_polars()["m"].to_list() == [answer[0]["m"], "green", None]
    assert Answer.from_bytes(answer.to_bytes()).values == answer.values
    with pytest.raises(ParameterError, match="no number to draw"):
        answer.plot()
    assert "red, grey" in answer._repr_html_()


def test_values_that_the_text_rules_out_are_not_measured() -> None:
    session = opened(many(colour=["red", "green"], x=[1, 2]))
    wide = session.plan("SELECT MODE(colour) AS m FROM t", epsilon=0.1)
    narrow = session.plan("SELECT MODE(colour) AS m FROM t WHERE colour IN ('green', 'blue')", epsilon=0.1)
    filtered = session.plan("SELECT MODE(colour) FILTER (WHERE colour <> 'red') AS m FROM t", epsilon=0.1)
    widths = [plan.columns[0].half_width for plan in (narrow, filtered, wide)]
    assert widths == sorted(set(widths))
    answer = session.sql("SELECT MODE(colour) AS m FROM t WHERE colour IN ('green', 'blue') AND x = 50", epsilon=0.1)
    assert answer["m"].possible == (("green", "blue"),)


@pytest.mark.parametrize("budget", BUDGETS)
def test_it_costs_what_one_count_costs(budget: Any) -> None:
    session = opened(many(colour=["red"]), budget)
    one, both = (
        session.plan(f"SELECT {text} FROM t", epsilon=1)
        for text in ("COUNT(*) AS n", "COUNT(*) AS n, MODE(colour) AS m")
    )
    assert both.cost.epsilon == one.cost.epsilon
    # Half of the budget each, whatever the number of values: twice the noise, or √2 of it.
    assert 1.2 < both.half_width["n"] / one.half_width["n"] < 2.5
    apart = both.half_width["m"]
    assert any(f"within {apart:,.0f} rows" in note and f"{2 * apart:,.0f} rows ahead" in note for note in both.notes)


def test_the_noise_hides_all_rows_of_a_unit() -> None:
    session = testing.open(samples.policy(), samples.frames(), seed=2)
    rows = session.plan("SELECT MODE(ward) AS m FROM visit", epsilon=1).columns[0].half_width
    people = session.plan("SELECT MODE(ward) AS m FROM visit", epsilon=5).columns[0].half_width
    single = session.plan("SELECT MODE(sex) AS m FROM person", epsilon=1).columns[0].half_width
    assert rows > 4 * people
    assert rows > 4 * single


@pytest.mark.parametrize("seed", range(3))
def test_a_row_that_is_replaced_counts_twice(seed: int) -> None:
    session, other = (opened(many(colour=["red"]), seed=seed, rows=rows) for rows in ("private", "public"))
    text = "SELECT MODE(colour) AS m FROM t"
    private, public = (own.plan(text, epsilon=0.01).columns[0].half_width for own in (session, other))
    assert private * 1.9 < public < private * 2.1


def test_it_is_kept_and_told_from_others() -> None:
    session = opened(many(colour=["red"], level=[1]))
    first = session.sql("SELECT MODE(colour) AS m FROM t", epsilon=1)
    again = session.sql("SELECT mode() WITHIN GROUP (ORDER BY colour DESC) AS m FROM t", epsilon=1)
    assert again.stored
    assert not first.stored
    assert again.values == first.values
    for other in ("MODE(level)", "MODE(UPPER(colour))", "MODE(colour) FILTER (WHERE x < 3)", "MODE(BIN(x, 5))"):
        assert not session.sql(f"SELECT {other} AS m FROM t", epsilon=1).stored
    assert not session.sql("SELECT MODE(BIN(x, 6)) AS m FROM t", epsilon=1).stored


def test_it_passes_through_outer_queries_as_it_is() -> None:
    data = many(g=["a"] * 5 + ["b"] * 3, colour=["red"] * 4 + ["blue"] * 4)
    session = opened(data)
    text = "SELECT g, m, n FROM (SELECT g, MODE(colour) AS m, COUNT(*) AS n FROM t GROUP BY g) WHERE n > 500"
    answer = session.sql(text, epsilon=10)
    assert answer.to_dicts()[0]["m"] == "red"
    assert answer["m"].possible[0] == ("red",)
    assert Answer.from_bytes(answer.to_bytes()).values == answer.values
    plan, spent = session.plan(text, epsilon=10), session.budget.spent
    assert any("m: the answer says which values are possible" in note for note in plan.notes)
    inner = "(SELECT g, MODE(colour) AS m, COUNT(*) AS n FROM t GROUP BY g)"
    for refused in (
        f"SELECT g FROM {inner} WHERE m = 'red'",
        f"SELECT UPPER(m) AS u FROM {inner}",
        f"SELECT m, COUNT(*) AS k FROM {inner} GROUP BY m",
        f"SELECT g, m FROM {inner} ORDER BY m",
        f"SELECT g, m FROM {inner} ORDER BY 2",
        f"SELECT DISTINCT m FROM {inner}",
        f"SELECT m FROM {inner} UNION SELECT m FROM {inner}",
        f"SELECT LAG(m) OVER (ORDER BY g) AS l FROM {inner}",
        "SELECT g, (SELECT MODE(colour) FROM t) AS m, COUNT(*) AS n FROM t GROUP BY g",
        "SELECT COUNT(*) AS n FROM t WHERE colour = (SELECT MODE(colour) FROM t)",
    ):
        with pytest.raises(QueryError):
            session.sql(refused, epsilon=1)
    assert session.budget.spent == spent


@pytest.mark.parametrize("budget", BUDGETS)
def test_nothing_raises_after_a_charge(budget: Any) -> None:
    """Nobody, one row, and noise beyond all counts."""
    for rows in ({"colour": []}, {"colour": ["grey"]}, {"colour": [None]}):
        session = opened(rows, budget)
        for epsilon in (1e-9, 1e-25, 50):
            text = "SELECT g, MODE(colour) AS m, MODE(day > DATE '2024-05-01') AS d FROM t GROUP BY g"
            answer = session.sql(text, epsilon=epsilon)
            assert len(answer) == 3
            assert len(str(answer)) > 100


def test_groups_that_a_threshold_releases_have_one_each() -> None:
    session = testing.open(samples.policy(samples.APPROXIMATE), samples.frames(), seed=2)
    answer = session.sql("SELECT town, MODE(sex) AS m, MODE(region) AS r FROM person GROUP BY town", epsilon=20)
    assert len(answer)
    assert all(own in ((), ("F",), ("M",), ("F", "M")) for own in answer["m"].possible)


def test_what_is_refused_says_what_to_write() -> None:
    session = testing.open(samples.policy(), samples.frames(), seed=2)
    for text, words in (
        ("SELECT MODE(person_id) FROM person", "is an id"),
        ("SELECT MODE(town) FROM person", "GROUP BY town with ORDER BY"),
        ("SELECT MODE(born) FROM person", "BIN"),
    ):
        with pytest.raises(ConfideError, match=words):
            session.plan(text, epsilon=1)

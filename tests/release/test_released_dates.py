"""Extremes and quantiles of dates are dates, with ends that are dates."""

import json
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from confide import testing
from confide.errors import QueryError
from confide.query.question import Dated, Estimated
from confide.query.released_kind import label
from confide.release import Session
from confide.release.answer.answer import Answer
from tests.release import samples

LOW, HIGH = date(2024, 1, 1), date(2024, 12, 31)
BUDGETS = [samples.PURE, samples.APPROXIMATE]


def opened(budget: Any = samples.PURE, rows: int = 8 * 366) -> Session:
    columns = {"g": {"values": ["a", "b"]}, "d": {"range": [LOW, HIGH]}, "x": {"range": [0, 365]}}
    policy = {"budget": budget, "unit": "row", "tables": {"t": {"columns": columns, "size": 4_000}}}
    past = [place % 366 for place in range(rows)]
    frame = pl.DataFrame(
        {"g": ["a"] * rows, "d": [LOW + timedelta(days=own) for own in past], "x": past},
        schema={"g": pl.String, "d": pl.Date, "x": pl.Int64},
    )
    return testing.open(policy, {"t": frame}, seed=4)


@pytest.mark.parametrize("budget", BUDGETS)
def test_they_are_the_numbers_of_days_spelled_out(budget: Any) -> None:
    session = opened(budget)
    for aggregate in ("MIN({})", "MAX({})", "MEDIAN({})", "QUANTILE({}, 0.9)"):
        days = session.sql(f"SELECT g, {aggregate.format('d')} AS v FROM t GROUP BY g", epsilon=2, confidence=0.999)[
            "v"
        ]
        assert days.type == "date"
        for value, low, high in zip(days.values, days.low, days.high, strict=True):
            assert LOW <= low <= value <= high <= HIGH
        assert days.unknown == (1,)  # nobody is in b
        assert (days.low[1], days.high[1]) == (LOW, HIGH)
        true = {"MIN({})": LOW, "MAX({})": HIGH, "MEDIAN({})": date(2024, 7, 1)}.get(aggregate, date(2024, 11, 25))
        assert days.low[0] - timedelta(days=1) <= true <= days.high[0] + timedelta(days=1)
        assert (days.high[0] - days.low[0]).days < 60


def test_they_are_dates_wherever_they_are_taken() -> None:
    answer = opened().sql("SELECT g, MAX(d) AS last FROM t GROUP BY g ORDER BY last DESC", epsilon=2)
    found = answer["last"].values[0]
    assert isinstance(found, date)
    assert found.isoformat() in str(answer)
    assert answer.to_polars().schema["last_low"] == pl.Date
    assert json.loads(answer.to_json())["rows"][0]["last"] == found.isoformat()
    kept = Answer.from_bytes(answer.to_bytes())
    assert kept.values == answer.values


def test_what_is_done_with_them() -> None:
    session = opened()
    text = """SELECT g, MAX(d) - MIN(d) AS days, DATEDIFF('day', MIN(d), MAX(d)) AS same, MAX(d) AS last,
        DATE '2025-01-01' - MAX(d) AS ago, CAST(MIN(d) AS DATE) AS first FROM t
        GROUP BY g HAVING last >= DATE '2024-06-01' AND MIN(d) BETWEEN '2024-01-01' AND DATE '2024-12-31'
        AND DATE '2023-01-01' < MAX(d) ORDER BY MAX(d)"""
    answer = session.sql(text, epsilon=20)
    row = next(row for row in answer if row["g"] == "a")
    assert row["days"] == row["same"]
    assert 330 < row["days"] <= 365
    assert row["days_low"] <= 365 <= row["days_high"]
    assert row["ago"] == (date(2025, 1, 1) - row["last"]).days
    assert isinstance(row["first"], date)
    windowed = session.sql("SELECT g, MIN(d) AS m, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t GROUP BY g", epsilon=5)
    assert windowed["m"].type == "date"
    assert windowed["m"].unknown == (1,)


def test_a_date_costs_what_its_number_costs() -> None:
    """MEDIAN of the day and of days since another day are one statistic, and measured once where both are asked."""
    session = opened()
    both = session.plan("SELECT MIN(d) AS a, QUANTILE(d, 0) AS b FROM t", epsilon=1)
    one = session.plan("SELECT MIN(d) AS a FROM t", epsilon=1)
    assert both.half_width["a"] == both.half_width["b"] == one.half_width["a"]
    days = session.plan("SELECT MIN(d - DATE '2024-01-01') AS a FROM t", epsilon=1)
    assert days.half_width == one.half_width


def test_a_width_is_in_days() -> None:
    session = opened()
    plan = session.plan("SELECT MEDIAN(d) AS m FROM t", within=10)
    assert plan.half_width["m"] <= 10
    answer = session.sql("SELECT MEDIAN(d) AS m FROM t", within=10)
    assert (answer["m"].high[0] - answer["m"].low[0]).days <= 60


def test_between_two_days_an_end_lies_further_out() -> None:
    value = Dated(Estimated(0))
    ends = [label(value, 0.5, end) for end in ("low", "value", "high")]  # type: ignore[arg-type]
    assert ends == [date(1970, 1, 1), date(1970, 1, 1), date(1970, 1, 2)]
    assert label(value, float("inf"), "high") == date.max
    assert label(value, float("-inf"), "low") == date.min


@pytest.mark.parametrize(
    "text",
    [
        "SELECT YEAR(MAX(d)) AS y FROM t",
        "SELECT MAX(d) > DATE '2024-03-01' AS y FROM t",
        "SELECT GREATEST(MAX(d), DATE '2024-03-01') AS y FROM t",
        "SELECT g FROM t GROUP BY g HAVING MAX(d) > DATE '2024-03-01'",
        "SELECT MAX(m) AS y FROM (SELECT g, MAX(d) AS m FROM t GROUP BY g)",
        "SELECT g, m FROM (SELECT g, MAX(d) AS m FROM t GROUP BY g) WHERE m > DATE '2024-03-01'",
        "SELECT COUNT(*) AS n FROM t WHERE d > (SELECT MEDIAN(d) FROM t)",
        "SELECT CAST(MAX(d) AS DOUBLE) AS y FROM t",
    ],
)
def test_nothing_else_is_computed_of_them(text: str) -> None:
    session = opened()
    with pytest.raises(QueryError):
        session.sql(text, epsilon=1)
    assert session.budget.spent == 0


def test_nothing_raises_after_a_charge() -> None:
    session = opened(rows=0)
    for epsilon in (1e-3, 50):
        answer = session.sql("SELECT MIN(d) AS a, MEDIAN(d) AS b, MAX(d) - MIN(d) AS c FROM t", epsilon=epsilon)
        assert answer["a"].unknown == (0,)

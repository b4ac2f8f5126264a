"""GROUP BY ROLLUP, CUBE and GROUPING SETS in SQL: one charge, parts that add up, intervals that hold."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import confide.testing
from confide.errors import ParameterError, QueryError
from tests.release import samples

ROLLUP = "SELECT region, sex, COUNT(*) AS n FROM person WHERE age < 50 GROUP BY ROLLUP(region, sex)"


def people(budget: dict[str, Any] = samples.APPROXIMATE, seed: int = 3) -> Any:
    return confide.testing.open(samples.policy(budget), data=samples.frames(), seed=seed)


def truth() -> dict[tuple[str | None, str | None], int]:
    frame = samples.frames()["person"].filter(samples.pl.col("age") < 50)
    found: dict[tuple[str | None, str | None], int] = {(None, None): frame.height}
    for region in ("N", "E", "S", "W"):
        rows = frame.filter(samples.pl.col("region") == region)
        found[region, None] = rows.height
        for sex in ("F", "M"):
            found[region, sex] = rows.filter(samples.pl.col("sex") == sex).height
    return found


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
def test_parts_add_up_at_one_charge(budget: dict[str, Any]) -> None:
    session = people(budget)
    answer = session.sql(ROLLUP, epsilon=1)
    assert session.budget.spent == pytest.approx(1)
    rows = {(row["region"], row["sex"]): row for row in answer.to_dicts()}
    assert set(rows) == set(truth())
    for region in ("N", "E", "S", "W"):
        assert rows[region, "F"]["n"] + rows[region, "M"]["n"] == pytest.approx(rows[region, None]["n"])
    assert sum(rows[region, None]["n"] for region in "NESW") == pytest.approx(rows[None, None]["n"])
    assert session.sql(ROLLUP, epsilon=1).stored
    assert session.budget.spent == pytest.approx(1)


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize("tables", ["(region), (sex)", "(region), (sex), ()", "(region), (sex, BIN(age, 40))"])
def test_tables_of_which_none_has_all_keys(budget: dict[str, Any], tables: str) -> None:
    """What is best for all may be every cell of all keys, which no table has: it is read all the same."""
    keys = "region, sex, BIN(age, 40) AS years" if "BIN" in tables else "region, sex"
    text = f"SELECT {keys}, COUNT(*) AS n FROM person WHERE age < 50 GROUP BY GROUPING SETS ({tables})"
    rows = people(budget).sql(text, epsilon=1).to_dicts()
    counted = [row for row in rows if row["region"] is not None]
    assert [row["region"] for row in counted] == ["N", "E", "S", "W"]
    for row in counted:
        assert abs(row["n"] - truth()[row["region"], None]) < 60  # by chance once in 10^9


def test_another_condition_is_another_question() -> None:
    session = people()
    session.sql(ROLLUP, epsilon=1)
    assert not session.sql(ROLLUP.replace("50", "51"), epsilon=1).stored
    assert not session.sql(ROLLUP.replace("ROLLUP", "CUBE"), epsilon=1).stored


def test_intervals_hold() -> None:
    """150 answers of 13 groups: more than 22 misses of one group at 5 % have a chance of 10⁻⁵; seeds are fixed."""
    session, exact = people(samples.PURE), truth()
    misses = dict.fromkeys(exact, 0)
    for number in range(150):
        for row in session.sql(ROLLUP, epsilon=Fraction(1, 2) + Fraction(number, 10**9)).to_dicts():
            key = row["region"], row["sex"]
            misses[key] += not row["n_low"] <= exact[key] <= row["n_high"]
    assert max(misses.values()) <= 22


def test_a_plan_says_the_widest() -> None:
    session = people()
    plan = session.plan(ROLLUP, epsilon=1)
    answer = session.sql(ROLLUP, epsilon=1)
    widths = [(row["n_high"] - row["n_low"]) / 2 for row in answer.to_dicts()]
    assert max(widths) <= plan.half_width["n"] <= max(widths) + 1.5
    assert plan.groups == len(answer)
    assert "parts add up" in str(plan)


def test_bins_and_cubes() -> None:
    text = "SELECT region, BIN(age, 20) AS a, COUNT(*) AS n FROM person GROUP BY CUBE(region, BIN(age, 20))"
    rows = people().sql(text, epsilon=1).to_dicts()
    assert len(rows) == 4 * 6 + 4 + 6 + 1
    assert np.isclose(sum(row["n"] for row in rows if row["region"] and row["a"] is not None), rows[-1]["n"])


def test_units_of_several_rows_pay_for_all_of_them() -> None:
    session = people(samples.PURE)
    one = session.plan("SELECT region, COUNT(*) AS n FROM person GROUP BY ROLLUP(region)", epsilon=1)
    many = session.plan("SELECT ward, COUNT(*) AS n FROM visit GROUP BY ROLLUP(ward)", epsilon=1)
    assert many.half_width["n"] > 3.5 * one.half_width["n"]  # 5 rows in 3 groups, against 1 row in 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT GROUPING(region) AS g FROM person GROUP BY ROLLUP(region)", "which is public"),
        ("SELECT GROUPING(sex) AS g, COUNT(*) AS n FROM person GROUP BY ROLLUP(region)", "no key of GROUP BY"),
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_is_charged(text: str, words: str) -> None:
    session = people()
    with pytest.raises(QueryError, match=words):
        session.sql(text, epsilon=1)
    assert session.budget.spent == 0


APART = [
    "SELECT region, MEDIAN(age) AS a FROM person GROUP BY ROLLUP(region)",
    "SELECT region, COUNT(DISTINCT age) AS a FROM person GROUP BY ROLLUP(region)",
    "SELECT region, COUNT(*) * COUNT(*) AS a FROM person GROUP BY ROLLUP(region)",
    "SELECT region, COUNT(*) AS n FROM person GROUP BY ROLLUP(region) ORDER BY n",
    "SELECT region, COUNT(*) AS n FROM visit JOIN person USING (person_id) GROUP BY ROLLUP(region)",
]


@pytest.mark.parametrize("text", APART)
def test_tables_that_are_not_measured_together_are_measured_one_by_one(text: str) -> None:
    session = people()
    plan, answer = session.plan(text, epsilon=1), session.sql(text, epsilon=1)
    assert [row["region"] for row in answer.to_dicts()].count(None) == 1
    assert len(answer) == 5
    assert session.budget.spent == 1
    assert [column.name for column in plan.columns] == [column.name for column in answer.values]


def test_options_of_one_table_are_refused() -> None:
    for more in ({"within": 5}, {"epsilon": 1, "split": {"n": 1}}, {"epsilon": 1, "mechanism": "pair"}):
        with pytest.raises(ParameterError, match="one table"):
            people().sql(ROLLUP, **more)


@pytest.mark.parametrize("unit", ["row", "person.person_id"])
@pytest.mark.parametrize("tables", ["ROLLUP(a, b)", "GROUPING SETS ((a), (b))", "GROUPING SETS ((a, c), (b, c))"])
def test_rows_without_a_value_are_in_no_table(unit: str, tables: str) -> None:
    """Tables count the same rows, read as one or as several: 90 places of each key are too many for one."""
    many = list(range(90))
    columns: dict[str, Any] = {name: {"values": many} for name in "abc"}
    if unit != "row":
        columns["person_id"] = {"type": "id"}
    policy = {"budget": {"epsilon": 10**6}, "unit": unit, "tables": {"person": {"columns": columns}}}
    frame = samples.pl.DataFrame(
        {"person_id": range(6), "a": [1, 1, None, 2, 999, 1], "b": [3, None, 3, 3, 3, 4], "c": [5, 5, 5, 5, 5, None]}
    )
    session = confide.testing.open(policy, data={"person": frame}, seed=1)
    names = [name for name in "abc" if name in tables]
    text = f"SELECT {', '.join(names)}, COUNT(*) AS n FROM person GROUP BY {tables}"
    whole = [row for row in frame.rows(named=True) if all(row[name] in many for name in names)]
    exact: dict[Any, int] = {}
    for own in [("a", "b"), ("a",), ()] if "ROLLUP" in tables else [("a", *names[2:]), ("b", *names[2:])]:
        for row in whole:
            key = tuple(row[name] if name in own else None for name in names)
            exact[key] = exact.get(key, 0) + 1
    for row in session.sql(text, epsilon=10**5).to_dicts():
        assert round(row["n"]) == exact.get(tuple(row[name] for name in names), 0)

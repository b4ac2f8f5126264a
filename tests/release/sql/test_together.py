"""Counts of one SELECT that overlap: measured together at the same cost, exact intervals, never wider."""

from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import confide.testing
from confide.policy import load
from confide.query import bind
from confide.release.sql.allocation import allocate
from tests.release import samples

BANDS = ", ".join(f"COUNT(*) FILTER (WHERE age < {10 * i}) AS u{i}" for i in range(1, 5))
WOMEN = ", ".join(f"COUNT_IF(age < {10 * i} AND sex = 'F') AS f{i}" for i in range(1, 5))
REST = ", ".join(
    f"SUM(CASE WHEN age < {10 * i} AND (sex = 'M' OR sex IS NULL) THEN 1 END) AS m{i}" for i in range(1, 5)
)
TEXT = f"SELECT COUNT(*) AS n, {BANDS}, {WOMEN}, {REST} FROM person"
BUDGETS = pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])


def people(budget: dict[str, Any] = samples.APPROXIMATE, seed: int = 3, policy: Any = None, data: Any = None) -> Any:
    return confide.testing.open(policy or samples.policy(budget), data=data or samples.frames(), seed=seed)


def truth() -> dict[str, int]:
    frame = samples.frames()["person"]
    found = {"n": frame.height}
    for i in range(1, 5):
        young = frame.filter(pl.col("age") < 10 * i)
        found |= {f"u{i}": young.height}
        found |= {f"{own.lower()}{i}": young.filter(pl.col("sex") == own).height for own in "FM"}
    return found


@BUDGETS
def test_parts_add_up_and_cost_is_that_of_the_call(budget: dict[str, Any]) -> None:
    session = people(budget)
    answer = session.sql(TEXT, epsilon=1)
    (row,) = answer.to_dicts()
    assert session.budget.spent == pytest.approx(1)
    for i in range(1, 5):
        assert row[f"f{i}"] + row[f"m{i}"] == pytest.approx(row[f"u{i}"], abs=1e-6)
    assert "measured together" in str(answer)
    assert "parts add up" in str(answer)
    assert session.sql(TEXT, epsilon=1).stored
    assert session.budget.spent == pytest.approx(1)


@BUDGETS
def test_a_plan_says_the_width_and_why(budget: dict[str, Any]) -> None:
    session = people(budget)
    plan, answer = session.plan(TEXT, epsilon=1), session.sql(TEXT, epsilon=1)
    (row,) = answer.to_dicts()
    assert "of what it would be one by one" in str(plan)
    for name, width in plan.half_width.items():
        assert (row[f"{name}_high"] - row[f"{name}_low"]) / 2 == pytest.approx(width, abs=1)


@BUDGETS
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("keys", ["", "region"])
def test_never_wider_than_one_by_one(budget: dict[str, Any], replaced: bool, keys: str) -> None:
    policy = samples.row_policy(budget, "public" if replaced else "private")
    policy["tables"]["t"]["columns"]["region"] = {"values": ["N", "S"]}
    texts = (
        "COUNT_IF(x < 0) a, COUNT_IF(x < 10) b, COUNT_IF(x < 20) c",
        "COUNT_IF(g = 'a') a, COUNT_IF(x < 10) b, COUNT_IF(y > 0.5) c",
        "COUNT_IF(g = 'a') a, COUNT_IF(g = 'b') b, COUNT_IF(g = 'c') c, COUNT_IF(g <> 'a') d",
        "COUNT_IF(g = 'a') a, COUNT_IF(g = 'b') b, COUNT_IF(g = 'a') - COUNT_IF(g = 'b') c",
    )
    for select in texts:
        by = f" GROUP BY {keys}" if keys else ""
        question: Any = bind(f"SELECT {keys + ', ' if keys else ''}{select} FROM t{by}", load(policy), None)  # type: ignore[arg-type]
        own = load(policy).budget
        for confidence in (0.5, 0.95, 0.999):
            made = allocate(question, own, Fraction(1), confidence, overlapping=True)
            alone = allocate(question, own, Fraction(1), confidence)
            assert made.loss == alone.loss
            if not made.together:
                continue
            (joint,) = made.together
            widths = joint.half_widths(confidence)
            for place, width in widths.items():
                assert width <= float(alone.mechanisms[place].law.half_width(confidence))
            assert joint.gain < 1


def test_each_row_of_a_unit_pays() -> None:
    """Five rows of a unit may be in five atoms, or all in one."""
    policy = load(samples.policy(samples.PURE))
    select = "COUNT_IF(ward = 1) a, COUNT_IF(ward <= 2) b, COUNT(*) n"
    question: Any = bind(f"SELECT {select} FROM visit", policy, None)  # type: ignore[arg-type]
    (made,) = allocate(question, policy.budget, Fraction(1), 0.95, overlapping=True).together
    assert made.strategy.name == "atoms"
    assert [float(own.law.scale) for own in made.mechanisms] == [5.0] * len(made.mechanisms)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rows", "keys", "scale"), [("private", "", 1.0), ("public", "", 2.0), ("private", "g", 1.0), ("public", "g", 2.0)]
)
def test_a_row_that_is_replaced_pays_twice(rows: str, keys: str, scale: float) -> None:
    policy = load(samples.row_policy(samples.PURE, rows))
    select = ", ".join(f"COUNT_IF(x < {5 * i}) a{i}" for i in range(5))
    by = " GROUP BY g" if keys else ""
    question: Any = bind(f"SELECT {keys + ', ' if keys else ''}{select} FROM t{by}", policy, None)  # type: ignore[arg-type]
    (made,) = allocate(question, policy.budget, Fraction(1), 0.95, overlapping=True).together
    assert made.strategy.name == "atoms"
    assert float(made.mechanisms[0].law.scale) == scale  # type: ignore[union-attr]


@BUDGETS
def test_intervals_hold(budget: dict[str, Any]) -> None:
    """100 answers: more than 17 misses of one count at 5 % have a chance of 10⁻⁵ each; seeds are fixed."""
    session, exact = people(budget), truth()
    misses = dict.fromkeys(exact, 0)
    for number in range(100):
        (row,) = session.sql(TEXT, epsilon=Fraction(1, 2) + Fraction(number, 10**9)).to_dicts()
        for name, own in exact.items():
            misses[name] += not row[f"{name}_low"] <= own <= row[f"{name}_high"]
    assert max(misses.values()) <= 17
    assert sum(misses.values()) > 0  # and they are not so wide that nothing is ever missed


@BUDGETS
def test_sums_and_differences_of_many_counts_hold(budget: dict[str, Any]) -> None:
    total = " + ".join(f"COUNT_IF(age < {10 * i})" for i in range(1, 5))
    text = f"SELECT {BANDS}, {WOMEN}, {total} AS s, COUNT_IF(age < 40) - COUNT_IF(age < 10) AS d FROM person"
    own = truth()
    exact = {"s": sum(own[f"u{i}"] for i in range(1, 5)), "d": own["u4"] - own["u1"]}
    session, misses = people(budget), {"s": 0, "d": 0}
    for number in range(100):
        (row,) = session.sql(text, epsilon=Fraction(1, 2) + Fraction(number, 10**9)).to_dicts()
        assert row["s"] == pytest.approx(sum(row[f"u{i}"] for i in range(1, 5)), abs=1e-6)
        for name, value in exact.items():
            misses[name] += not row[f"{name}_low"] <= value <= row[f"{name}_high"]
    assert max(misses.values()) <= 17


def test_exact_counts_where_values_are_missing() -> None:
    """At an ε so large that noise is zero, with NULL and values outside of lists and ranges."""
    policy = {
        "budget": {"epsilon": 10**6},
        "unit": "row",
        "tables": {"t": {"columns": {"s": {"values": ["F", "M"]}, "a": {"range": [0, 99]}}}},
    }
    data = {"t": pl.DataFrame({"s": ["F", "M", "?", None] * 6, "a": [None, -5, 0, 10, 99, 100] * 4})}
    session = people(policy=policy, data=data)
    text = (
        "SELECT COUNT(*) n, COUNT_IF(a < 10) u, COUNT_IF(a >= 10 AND s = 'F') f, COUNT(a) k, COUNT(s) c, "
        "COUNT_IF(a IS NULL OR NOT s = 'M') o FROM t"
    )
    answer = session.sql(text, epsilon=100)
    assert "measured together" in str(answer)
    rows = data["t"].rows()
    seen = [(s if s in ("F", "M") else None, None if a is None else min(max(a, 0), 99)) for s, a in rows]
    exact = {
        "n": len(seen),
        "u": sum(a is not None and a < 10 for _, a in seen),
        "f": sum(a is not None and a >= 10 and s == "F" for s, a in seen),
        "k": sum(a is not None for _, a in seen),
        "c": sum(s is not None for s, _ in seen),
        "o": sum(a is None or s == "F" for s, a in seen),
    }
    (row,) = answer.to_dicts()
    assert {name: round(row[name]) for name in exact} == exact


@BUDGETS
def test_within_each_group_with_having_and_limit(budget: dict[str, Any]) -> None:
    text = (
        "SELECT region, COUNT_IF(sex = 'F') AS f, COUNT_IF(sex = 'M' OR sex IS NULL) AS m, COUNT(*) AS n, "
        "AVG(age) AS a FROM person GROUP BY region HAVING n > 10 ORDER BY n DESC LIMIT 3"
    )
    answer = people(budget).sql(text, epsilon=2)
    rows = answer.to_dicts()
    assert [row["region"] for row in rows] == ["N", "E", "S"]
    assert all(row["n"] == pytest.approx(row["f"] + row["m"], abs=1e-6) for row in rows)
    frame = samples.frames()["person"]
    for row in rows:
        exact = frame.filter(pl.col("region") == row["region"])
        assert abs(row["n"] - exact.height) < 150
        assert abs(row["a"] - exact["age"].mean()) < 20


def test_what_is_measured_as_before() -> None:
    """A count by itself, shares of columns, ratios, and columns of a private domain."""
    session = people()
    texts = (
        "SELECT COUNT(*) AS n FROM person",
        "SELECT COUNT_IF(age < 9) / COUNT(*) AS s FROM person",
        "SELECT COUNT_IF(town = 'Bern') AS b, COUNT(*) AS n FROM person",
        "SELECT COUNT(DISTINCT age) AS d, COUNT(*) AS n FROM person",
    )
    for text in texts:
        assert "measured together" not in str(session.plan(text, epsilon=1))
    both = "SELECT COUNT_IF(sex = 'F') AS f, COUNT(*) AS n FROM person"
    assert "measured together" in str(session.plan(both, epsilon=1))
    assert "measured together" not in str(session.sql(both, epsilon=1, split={"f": 2, "n": 1}))


def test_within_finds_the_epsilon_of_all_together() -> None:
    session = people(samples.PURE)
    plan = session.plan(TEXT, within=40)
    assert max(plan.half_width.values()) <= 40
    alone = 13 * session.plan("SELECT COUNT_IF(age < 9) AS n FROM person", within=40).epsilon
    assert plan.epsilon < alone / 3


YOUNG = ", ".join(f"SUM(income) FILTER (WHERE age < {20 * i}) AS y{i}" for i in range(1, 5))
GIRLS = ", ".join(f"SUM(CASE WHEN age < {20 * i} AND sex = 'F' THEN income END) AS g{i}" for i in range(1, 5))
SUMS = f"SELECT SUM(income) AS n, {YOUNG}, {GIRLS} FROM person"


def sums() -> dict[str, int]:
    frame = samples.frames()["person"].with_columns(pl.col("income").clip(0, 500_000))
    found = {"n": frame["income"].sum()}
    for i in range(1, 5):
        young = frame.filter(pl.col("age") < 20 * i)
        found |= {f"y{i}": young["income"].sum(), f"g{i}": young.filter(pl.col("sex") == "F")["income"].sum()}
    return found


@BUDGETS
def test_intervals_of_sums_hold(budget: dict[str, Any]) -> None:
    """100 answers: more than 17 misses of one sum at 5 % have a chance of 10⁻⁵ each; seeds are fixed."""
    session, exact = people(budget), sums()
    misses = dict.fromkeys(exact, 0)
    for number in range(100):
        (row,) = session.sql(SUMS, epsilon=Fraction(1, 2) + Fraction(number, 10**9)).to_dicts()
        for name, own in exact.items():
            misses[name] += not row[f"{name}_low"] <= own <= row[f"{name}_high"]
    assert max(misses.values()) <= 17
    assert sum(misses.values()) > 0


@BUDGETS
def test_sums_cost_the_call_and_a_plan_says_how_they_are_measured(budget: dict[str, Any]) -> None:
    session = people(budget)
    plan, answer = session.plan(SUMS, epsilon=1), session.sql(SUMS, epsilon=1)
    assert session.budget.spent == pytest.approx(1)
    for text in (str(plan), str(answer)):
        assert "measured together" in text
    (row,) = answer.to_dicts()
    for name, width in plan.half_width.items():
        half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
        assert half <= width * 1.01  # an interval is cut where no sum can lie
        assert name != "n" or half == pytest.approx(width, rel=0.01)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("keys", ["", "g"])
@BUDGETS
def test_sums_are_never_wider_than_one_by_one(budget: dict[str, Any], replaced: bool, keys: str) -> None:
    policy = load(samples.row_policy(budget, "public" if replaced else "private"))
    texts = (
        ", ".join(f"SUM(x) FILTER (WHERE x < {5 * i}) s{i}" for i in range(6)),
        ", ".join(f"SUM(y) FILTER (WHERE x < {5 * i}) s{i}" for i in range(6)),
        "SUM(y) FILTER (WHERE x < 0) a, SUM(CASE WHEN x >= 0 THEN y ELSE 0 END) b, SUM(y) c",
    )
    told = 0
    for select in texts:
        by = f" GROUP BY {keys}" if keys else ""
        question: Any = bind(f"SELECT {keys + ', ' if keys else ''}{select} FROM t{by}", policy, None)  # type: ignore[arg-type]
        made = allocate(question, policy.budget, Fraction(1), 0.95, overlapping=True)
        alone = allocate(question, policy.budget, Fraction(1), 0.95)
        assert made.loss == alone.loss
        for joint in made.together:
            told += 1
            assert joint.gain < 1
            for place, width in joint.half_widths(0.95).items():
                assert width <= float(alone.mechanisms[place].law.half_width(0.95))
    assert told >= 2


@pytest.mark.parametrize(
    ("policy", "source", "column", "scale"),
    [
        (samples.row_policy(samples.PURE), "t", "x", 30),  # in [−10, 30]
        (samples.row_policy(samples.PURE, "public"), "t", "x", 2 * 30),
        (samples.policy(samples.PURE), "person", "income", 500_000),
        (samples.policy(samples.PURE), "visit", "cost", 5 * 100_000),  # five rows of a unit, in hundredths
    ],
)
@pytest.mark.parametrize("keyed", [False, True])
def test_what_a_unit_pays_for_in_sums(policy: Any, source: str, column: str, scale: int, keyed: bool) -> None:
    known = load(policy)
    condition, key = {"t": ("x", "g"), "person": ("age", "sex"), "visit": ("cost", "ward")}[source]
    select = ", ".join(f"SUM({column}) FILTER (WHERE {condition} < {5 * i}) a{i}" for i in range(1, 6))
    by = (f"{key}, ", f" GROUP BY {key}") if keyed else ("", "")
    question: Any = bind(f"SELECT {by[0]}{select} FROM {source}{by[1]}", known, None)  # type: ignore[arg-type]
    (made,) = allocate(question, known.budget, Fraction(1), 0.95, overlapping=True).together
    assert made.strategy.name == "atoms"
    assert {float(own.law.scale) for own in made.mechanisms} == {scale}  # type: ignore[union-attr]


def test_counts_and_sums_are_vectors_of_their_own() -> None:
    policy = load(samples.policy(samples.PURE))
    select = f"{BANDS}, {YOUNG}, SUM(age) FILTER (WHERE sex = 'F') AS f, SUM(age) AS t, AVG(age) AS a"
    question: Any = bind(f"SELECT {select} FROM person", policy, None)  # type: ignore[arg-type]
    made = allocate(question, policy.budget, Fraction(1), 0.95, overlapping=True)
    places = [place for own in made.together for place in own.places]
    assert len(made.together) >= 2
    assert len(places) == len(set(places))
    session = people(samples.PURE)
    answer = session.sql(f"SELECT {select} FROM person", epsilon=100)
    assert str(answer).count("measured together") == len(made.together)
    (row,) = answer.to_dicts()
    for i in range(1, 5):
        assert row[f"u{i}"] == pytest.approx(truth()[f"u{i}"], abs=5)
        assert row[f"y{i}"] == pytest.approx(sums()[f"y{i}"], abs=500_000)


def test_exact_sums_where_values_are_missing() -> None:
    """At an ε so large that noise is next to nothing: NULL, values outside of the range, both signs, groups."""
    policy = {
        "budget": {"epsilon": 10**6},
        "unit": "row",
        "tables": {"t": {"columns": {"s": {"values": ["F", "M"]}, "a": {"range": [-9, 99], "grain": 0.5}}}},
    }
    data = {"t": pl.DataFrame({"s": ["F", "M", "?", None] * 6, "a": [None, -5.5, 0, -10, 99, 100] * 4})}
    text = (
        "SELECT s, SUM(a) n, SUM(a) FILTER (WHERE a < 10) u, SUM(CASE WHEN a >= 10 THEN a ELSE 0 END) f, "
        "SUM(a) FILTER (WHERE a IS NOT NULL) k, SUM(a) FILTER (WHERE a < 0) + SUM(a) FILTER (WHERE a >= 0) d "
        "FROM t GROUP BY s"
    )
    answer = people(policy=policy, data=data).sql(text, epsilon=10**5)
    assert "measured together" in str(answer)
    rows = [(s, min(max(a, -9), 99)) for s, a in data["t"].rows() if a is not None]
    for row in answer.to_dicts():
        own = [a for s, a in rows if s == row["s"]]
        exact = {"n": sum(own), "k": sum(own), "d": sum(own)}
        exact |= {"u": sum(a for a in own if a < 10), "f": sum(a for a in own if a >= 10)}
        assert {name: row[name] for name in exact} == pytest.approx(exact, abs=0.01)

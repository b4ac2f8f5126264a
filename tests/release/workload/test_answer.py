"""Workloads asked of a session: one charge, exact forecasts, and intervals that hold."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import confide
import confide.testing
from confide.errors import BudgetError, ParameterError, QueryError
from tests.release import samples

STRATEGIES = ("direct", "identity", "hierarchy", "wavelet", "prefix", "optimised")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "strategies"))


def people(budget: dict[str, Any] = samples.PURE, seed: int = 3, **more: Any) -> Any:
    return confide.testing.open(samples.policy(budget, **more), data=samples.frames(), seed=seed)


def ages() -> np.ndarray:
    return np.bincount(samples.frames()["person"]["age"].to_numpy(), minlength=116)


def true_ranges(table: Any) -> np.ndarray:
    sums = np.concatenate([[0], np.cumsum(ages())])
    return sums[table["age_to"].to_numpy() + 1] - sums[table["age_from"].to_numpy()]


def test_one_charge_and_the_same_again_is_free() -> None:
    session = people()
    workload = confide.ranges("age") + confide.prefixes("income", bins=10_000) + confide.marginals(2, ["region", "sex"])
    first = session.answer(workload, epsilon=0.5)
    assert session.budget.spent == pytest.approx(0.5)
    again = session.answer(workload, epsilon=0.5)
    assert again.stored
    assert not first.stored
    assert session.budget.spent == pytest.approx(0.5)
    assert again.to_arrow().equals(first.to_arrow())


SHAPES = {
    "two columns apart": lambda: confide.ranges("age", bins=20) + confide.marginals(1, ["region", "sex"]),
    "two columns together": lambda: confide.prefixes("age", "income", bins={"age": 20, "income": 100_000}),
    "by another": lambda: confide.ranges("age", by="sex", bins=20) + confide.prefixes("income", bins=100_000),
    "one cell": lambda: confide.ranges("age", bins=200) + confide.marginals(1, ["region"]),
}


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_is_priced_is_answered(shape: str, budget: dict[str, Any]) -> None:
    """A refusal costs nothing; what is charged ends in an answer."""
    session = people(budget)
    for strategy in (*STRATEGIES, "residual", "auto"):
        spent = session.budget.spent
        try:
            found = session.answer(SHAPES[shape](), epsilon=1, strategy=strategy)
        except ParameterError:
            assert session.budget.spent == spent
            continue
        table = found.to_arrow()
        assert len(table) == len(found)
        total = found.sql("SELECT COUNT(*) AS n FROM person").to_dicts()[0]
        assert total["n_low"] - 300 < samples.frames()["person"].height < total["n_high"] + 300


def test_another_strategy_is_another_request() -> None:
    session = people()
    for spent, strategy in enumerate(("hierarchy", "identity", "auto"), start=1):
        assert not session.answer(confide.ranges("age"), epsilon=1, strategy=strategy).stored
        assert session.budget.spent == pytest.approx(spent)


def test_another_goal_is_another_request_and_the_usual_one_has_no_name() -> None:
    session = people(samples.APPROXIMATE)
    wanted = confide.marginals(1, ["region", "sex", "age"]) + confide.marginals(2, ["region", "sex"])
    session.answer(wanted, epsilon=1)
    assert session.answer(wanted, epsilon=1, goal="typical").stored
    assert not session.answer(wanted, epsilon=1, goal="worst").stored
    plans = {goal: session.plan_answer(wanted, epsilon=1, goal=goal) for goal in ("typical", "worst")}
    assert plans["worst"].worst < plans["typical"].worst
    assert plans["worst"].deviation > plans["typical"].deviation
    assert plans["worst"].goal == "worst"
    assert "widest interval" in str(plans["worst"])


def test_what_is_no_goal_is_refused_with_what_is() -> None:
    session = people()
    for goal in ("best", None, 3):
        with pytest.raises(ParameterError, match="write goal='typical'"):
            session.plan_answer(confide.ranges("age"), epsilon=1, goal=goal)
    with pytest.raises(ParameterError, match="there is no goal='worst' for it"):
        session.answer(confide.ranges("age"), epsilon=1, goal="worst", strategy="privtree")
    assert session.budget.spent == 0


@pytest.mark.parametrize("missing", [("nothing",), ("region", "age")])
def test_a_marginal_that_was_not_asked_for_is_refused(missing: tuple[str, ...]) -> None:
    found = people().answer(confide.marginals(1, ["region", "sex"]) + confide.prefixes("age", by="region"), epsilon=1)
    assert found.marginal("sex").title == "sex"
    with pytest.raises(ParameterError, match=r"ask answers\.sql|was not measured"):
        found.marginal(*missing)


def test_one_row_for_each_answer() -> None:
    found = people().answer(
        confide.ranges("age", bins=20)
        + confide.prefixes("income", bins=100_000)
        + confide.marginals(2, ["region", "sex"]),
        epsilon=1,
    )
    table = found.to_arrow()
    assert table.num_rows == len(found) == 6 * 7 // 2 + 6 + 8
    assert table.column_names == [
        "age_from", "age_to", "count", "count_low", "count_high", "income_from", "income_to", "marginal", "region",
        "sex",
    ]  # fmt: skip
    rows = table.to_pylist()
    assert [(row["age_from"], row["age_to"]) for row in rows[:3]] == [(0, 19), (0, 39), (0, 59)]
    assert (rows[-1]["marginal"], rows[-1]["region"], rows[-1]["sex"]) == ("region × sex", "W", "M")
    assert all(row["count_low"] <= row["count_high"] and row["count_low"] >= 0 for row in rows)


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=("pure", "approximate"))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answers_are_off_by_what_the_plan_says(budget: dict[str, Any], strategy: str) -> None:
    """Seeds are fixed. An RMSE over 78 ranges of one measurement is within a factor of 3 of its forecast."""
    session = people(budget)
    workload = confide.ranges("age", bins=10)
    table = session.answer(workload, epsilon=2, strategy=strategy).to_arrow()
    plan = session.plan_answer(workload, epsilon=2, strategy=strategy)
    off = table["count"].to_numpy() - true_ranges_in_bins(table)
    assert plan.deviation / 3 < np.sqrt((off**2).mean()) < 3 * plan.deviation
    assert plan.strategy == strategy


def true_ranges_in_bins(table: Any) -> np.ndarray:
    sums = np.concatenate([[0], np.cumsum(ages())])
    return sums[np.minimum(table["age_to"].to_numpy(), 115) + 1] - sums[table["age_from"].to_numpy()]


@pytest.mark.parametrize("budget", [samples.PURE, samples.APPROXIMATE], ids=("pure", "approximate"))
def test_intervals_hold_as_often_as_they_say(budget: dict[str, Any]) -> None:
    """200 measurements. Misses of one answer are binomial: more than 24 of 200 at 5 % happen with chance 2·10⁻⁵."""
    workload = confide.ranges("age", bins=30)
    session = people(budget)
    misses = np.zeros(10)
    narrow = 0
    for number in range(200):
        found = session.answer(workload, epsilon=Fraction(1, 10) + Fraction(number, 10**9))
        table = found.to_arrow()
        truth = true_ranges_in_bins(table)
        misses += (truth < table["count_low"].to_numpy()) | (truth > table["count_high"].to_numpy())
        middle, half = table["count"].to_numpy(), found.measured.half_widths(found.linear.tables[0], (0,), 0.95)
        narrow += int((np.abs(middle - truth) > half * 0.6).sum())
    assert misses.max() <= 24
    assert narrow > 2 * 200 * 10 * 0.05  # the control: of intervals of 0.6 times the width far more miss


def test_any_count_in_the_span_is_free_and_has_an_interval() -> None:
    session = people(samples.APPROXIMATE)
    found = session.answer(confide.ranges("age") + confide.marginals(2, ["region", "sex", "age"]), epsilon=1)
    spent = session.budget.spent
    answer = found.sql("SELECT COUNT(*) AS n FROM person WHERE age BETWEEN 20 AND 34")
    truth = int(ages()[20:35].sum())
    assert answer.values[0].low[0] <= truth <= answer.values[0].high[0]
    grouped = found.sql("SELECT region, COUNT(*) AS n FROM person WHERE sex = 'F' GROUP BY region")
    assert [len(column.values) for column in grouped.columns] == [4, 4]
    both = found.sql("SELECT COUNT(*) FILTER (WHERE age < 40) - COUNT(*) FILTER (WHERE age >= 40) AS n FROM person")
    gap = int(ages()[:40].sum() - ages()[40:].sum())
    assert both.values[0].low[0] <= gap <= both.values[0].high[0]
    assert session.budget.spent == spent
    with pytest.raises(QueryError, match="region × sex × age does not follow"):
        found.sql("SELECT COUNT(*) AS n FROM person WHERE age < 30 AND region = 'N' AND sex = 'F'")
    with pytest.raises(QueryError, match="income"):
        found.sql("SELECT COUNT(*) AS n FROM person WHERE income < 30000")


@pytest.mark.parametrize("where", ["age IS NULL", "age IS NULL OR sex = 'F'", "NOT (age IS NOT NULL AND sex = 'F')"])
def test_rows_that_are_in_no_table_are_not_said_to_be_none(where: str) -> None:
    found = people().answer(confide.ranges("age", bins=20, by="sex"), epsilon=1)
    with pytest.raises(QueryError, match=r"rows without a value in (age|sex) were not measured"):
        found.sql(f"SELECT COUNT(*) AS n FROM person WHERE {where}")
    with pytest.raises(QueryError, match="were not measured"):
        found.sql("SELECT COUNT(*) FILTER (WHERE age IS NULL) AS n FROM person")
    assert "without a declared value in sex or age are not counted" in str(
        found.sql("SELECT COUNT(*) AS n FROM person")
    )


def test_a_count_in_sql_is_the_same_as_in_the_table() -> None:
    found = people().answer(confide.ranges("age"), epsilon=1)
    table = found.to_arrow().to_pylist()
    row = next(row for row in table if (row["age_from"], row["age_to"]) == (20, 34))
    value = found.sql("SELECT COUNT(*) AS n FROM person WHERE age BETWEEN 20 AND 34").values[0]
    assert value.values[0] == pytest.approx(row["count"])
    assert (value.low[0], value.high[0]) == (row["count_low"], row["count_high"])


def test_all_answers_of_marginals_agree() -> None:
    session = people(samples.APPROXIMATE)
    workload = confide.marginals(2, ["region", "sex", "age"])
    found = session.answer(workload, epsilon=1)
    assert session.plan_answer(workload, epsilon=1).consistent
    assert found.strategy == "residual"
    tables = {table.title: table.values for table in found.tables()}
    assert tables["region × sex"].sum(axis=0) == pytest.approx(tables["sex × age"].sum(axis=1))
    assert tables["region × sex"].sum() == pytest.approx(tables["region × age"].sum())


@pytest.mark.parametrize("rows", ["private", "public"])
def test_rows_that_are_replaced_get_more_noise(rows: str) -> None:
    session = confide.testing.open(samples.row_policy(samples.APPROXIMATE, rows), data=samples.rows_frame(), seed=1)
    plans = [session.plan_answer(confide.ranges("x"), epsilon=1, strategy="hierarchy")]
    assert plans[0].neighbours == ("add-remove" if rows == "private" else "replace-one")
    found = session.answer(confide.ranges("x"), epsilon=1, strategy="hierarchy")
    law = found.measured.noises[0].law
    norms, fine = found.measured.blocks[0].norms, found.measured.blocks[0].fineness
    rho = found.cost.rho
    one = norms.l2_squared if rows == "private" else 2 * (norms.l2_squared - norms.least_inner)
    assert law.variance >= one * fine**2 / (2 * rho)
    assert law.variance <= one * fine**2 / (2 * rho) * Fraction(1_000_001, 1_000_000)


def test_units_of_several_rows_get_more_noise() -> None:
    session = people()
    found = session.answer(confide.marginals(1, ["ward"]), epsilon=1, strategy="direct")
    law, fine = found.measured.noises[0].law, found.measured.blocks[0].fineness
    assert law.scale >= 5 * fine  # at most 5 rows of one person


def test_the_least_epsilon_for_a_width() -> None:
    session = people(samples.APPROXIMATE)
    workload = confide.ranges("age", bins=5)
    plan = session.plan_answer(workload, within=50)
    assert plan.worst <= 50
    less = session.plan_answer(workload, epsilon=plan.cost.epsilon * Fraction(97, 100))
    assert less.worst > 50


def test_both_accounts_are_compared() -> None:
    either = {"epsilon": 10, "delta": 1e-9, "accounting": "either"}
    session = people(either)
    many = session.answer(confide.marginals(2, ["region", "sex", "age"]), epsilon=1)
    assert "gaussian" in many.mechanism or "laplace" in many.mechanism
    assert session.plan_answer(confide.ranges("age", bins=50), epsilon=0.01).mechanism == "discrete laplace"


def test_a_table_without_negative_counts_from_the_same_noise() -> None:
    session = people(samples.APPROXIMATE)
    found = session.answer(confide.ranges("age", by="sex", bins=10), epsilon=1)
    spent = session.budget.spent
    fitted = found.microdata()
    assert session.budget.spent == spent
    assert fitted.column_names == ["sex", "age", "weight"]
    assert min(fitted["weight"].to_pylist()) > 0
    assert abs(sum(fitted["weight"].to_pylist()) - 2_000) < 200


def test_charts() -> None:
    found = people().answer(confide.prefixes("age") + confide.marginals(1, ["region"]), epsilon=1)
    chart = found.plot().to_dict()
    assert "TEST NOISE" in str(chart)
    marks = [layer["mark"]["type"] for panel in chart["vconcat"] for layer in panel["layer"]]
    assert marks == ["area", "line", "rule", "point"]


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("ranges", "the workload is a str; give confide.ranges"),
        (confide.thresholds(1, 2, ["region", "sex"]), "1-of-2 threshold is for synthesize"),
        (confide.ranges("income"), "at most 4,096"),
        (confide.ranges("born"), "at most 4,096"),
        (confide.ranges("town"), "town has no declared values"),
        (confide.ranges("aeg"), "did you mean age"),
        (confide.ranges("age") + confide.ranges("age", bins=5) + confide.prefixes("age", bins=2), "bins of two widths"),
        (confide.prefixes("income", "age"), "at most 1,000,000"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_charged(workload: Any, words: str) -> None:
    session = people()
    with pytest.raises(ParameterError, match=words):
        session.answer(workload, epsilon=1, table="person")
    assert session.budget.spent == 0


def test_the_budget_holds() -> None:
    session = people({"epsilon": 1})
    with pytest.raises(BudgetError):
        session.answer(confide.ranges("age"), epsilon=2)
    assert session.budget.spent == 0
    assert not session.plan_answer(confide.ranges("age"), epsilon=2).affordable


def test_too_small_an_epsilon_is_told_with_one_that_is_enough() -> None:
    with pytest.raises(ParameterError, match="is enough here"):
        people().answer(confide.ranges("age"), epsilon="1e-30")


def test_dates_are_ordered() -> None:
    found = people(samples.APPROXIMATE).answer(confide.prefixes("born", bins=365), epsilon=1)
    rows = found.to_arrow().to_pylist()
    assert str(rows[0]["born_from"]) == "1900-01-01"
    assert rows[0]["born_to"] < rows[1]["born_to"]

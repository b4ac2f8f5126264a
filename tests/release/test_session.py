"""The whole path: policy, SQL, plan, charge, engine, noise, answer."""

import inspect
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import confide
from confide.errors import BudgetError, LedgerError, ParameterError, QueryError, SourceError
from confide.ledger import SqliteLedger
from confide.mechanism import TestRandomness
from confide.privacy.budget import Budget
from confide.release import open_for_tests
from confide.release.session import Session
from tests.release.samples import APPROXIMATE, frames, policy, row_policy, rows_frame

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(income) AS avg FROM person GROUP BY region"


@pytest.fixture
def people(tmp_path: Path) -> Session:
    return confide.open(policy(), frames(), tmp_path / "people.ledger", create=True)


def test_an_answer_has_an_interval_on_every_cell(people: Session) -> None:
    answer = people.sql(BY_REGION, epsilon=10)
    rows = answer.to_dicts()
    assert [row["region"] for row in rows] == ["N", "E", "S", "W"]
    assert set(rows[0]) == {"region", "n", "n_low", "n_high", "avg", "avg_low", "avg_high"}
    for row in rows:
        assert row["n_low"] <= row["n"] <= row["n_high"]
        assert row["avg_low"] <= row["avg"] <= row["avg_high"]
    assert answer.mechanism == {"n": "discrete laplace", "avg": "discrete laplace"}
    assert answer.assumes == {"n": "at_most", "avg": "at_most"}
    assert answer.cost.epsilon == 10


def test_many_forms_near_the_truth(people: Session) -> None:
    data = frames()
    person, visit = data["person"], data["visit"]
    sql = """
        SELECT title, COUNT(DISTINCT person.person_id) AS visitors
        FROM visit JOIN person USING (person_id) JOIN region_name ON region_name.region = person.region
        GROUP BY title ORDER BY visitors DESC LIMIT 2
    """
    rows = people.sql(sql, epsilon=10).to_dicts()
    joined = visit.join(person, on="person_id")
    truth = joined.group_by("region").agg(pl.col("person_id").n_unique()).sort("person_id", descending=True)
    assert [row["title"] for row in rows] == ["North", "East"]
    assert abs(rows[0]["visitors"] - truth["person_id"][0]) < 20
    sql = "SELECT AVG(total) AS mean FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id) AS t"
    row = people.sql(sql, epsilon=10, bounds={"total": [0, 2000]}).to_dicts()[0]
    totals = visit.group_by("person_id").agg(pl.col("cost").sum().clip(0, 2000))["cost"]
    assert abs(row["mean"] - totals.mean()) < 20
    row = people.sql("SELECT STDDEV(age) AS s, SUM(age) / COUNT(*) AS r FROM person", epsilon=10).to_dicts()[0]
    assert abs(row["s"] - person["age"].std()) < 3
    assert abs(row["r"] - person["age"].mean()) < 3


def test_the_same_question_again_is_free_and_the_same(people: Session) -> None:
    first = people.sql(BY_REGION, epsilon=0.1)
    spent = people.budget.spent
    again = people.sql("select REGION, count(*) n, avg(Income) AS avg from PERSON group by 1", epsilon="0.1")
    assert spent == people.budget.spent == 0.1
    assert [c.values for c in first.columns] == [c.values for c in again.columns]
    people.sql(BY_REGION, epsilon=0.2)
    assert people.budget.spent == 0.3


def test_a_stored_answer_outlives_the_process_and_belongs_to_its_analyst(tmp_path: Path) -> None:
    ledger = tmp_path / "l"
    with confide.open(policy(), frames(), ledger, analyst="ana", create=True) as session:
        first = session.sql(BY_REGION, epsilon=1)
    with confide.open(policy(), frames(), ledger, analyst="ana", create=True) as session:
        assert session.sql(BY_REGION, epsilon=1).to_bytes() == first.to_bytes()
        assert session.budget.spent == 1
    with confide.open(policy(), frames(), ledger, analyst="bo", create=True) as session:
        assert session.sql(BY_REGION, epsilon=1).to_bytes() != first.to_bytes()
        assert session.budget.spent == 2
    with confide.open(policy(), frames(seed=8), ledger, analyst="ana", create=True) as session:
        session.sql(BY_REGION, epsilon=1)
        assert session.budget.spent == 3, "other data, another question"


def test_plans_are_free_and_tell_what_will_be(people: Session) -> None:
    plan = people.plan("SELECT COUNT(*) AS n FROM person", within=50)
    assert people.budget.spent == 0
    assert plan.half_width["n"] <= 50
    answer = people.sql("SELECT COUNT(*) AS n FROM person", epsilon=plan.epsilon).to_dicts()[0]
    assert answer["n_high"] - answer["n_low"] <= 100
    narrower = people.plan("SELECT COUNT(*) AS n FROM person", epsilon=plan.epsilon * 0.99)
    assert narrower.half_width["n"] > 50, "within finds the smallest epsilon"
    relative = people.plan(BY_REGION, within="5%")
    assert relative.half_width["avg"] > 0
    both = people.plan(BY_REGION, within={"n": 10})
    assert both.half_width["n"] <= 10


@pytest.mark.parametrize("within", [0, -1, float("nan"), float("inf"), "abc", "abc%", "-5%", True, "0%"])
def test_wrong_widths(people: Session, within: object) -> None:
    with pytest.raises(ParameterError, match="within"):
        people.plan(BY_REGION, within=within)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "abc", 1e308, "1e-400", None, True])
def test_wrong_epsilons_cost_nothing(people: Session, epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        people.sql(BY_REGION, epsilon=epsilon)
    assert people.budget.spent == 0


@pytest.mark.parametrize("rows", [0, -1, 1.5, "many", True, 2**60])
@pytest.mark.parametrize("text", [BY_REGION, "SELECT region, COUNT(*) AS n FROM person GROUP BY ROLLUP (region)"])
def test_wrong_numbers_of_rows_cost_nothing(people: Session, text: str, rows: object) -> None:
    """Also where no width depends on them, and nothing would be made of them."""
    with pytest.raises(ParameterError, match="is not a number of rows"):
        people.sql(text, epsilon=1, rows=rows)  # type: ignore[arg-type]
    assert people.budget.spent == 0


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, float("nan"), "high", True, None])
def test_wrong_confidences(people: Session, confidence: object) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        people.sql(BY_REGION, epsilon=1, confidence=confidence)  # type: ignore[arg-type]


def test_a_split_moves_precision(people: Session) -> None:
    even = people.plan(BY_REGION, epsilon=1)
    counted = people.plan(BY_REGION, epsilon=1, split={"n": 9, "avg": 1})
    assert counted.half_width["n"] < even.half_width["n"]
    assert counted.half_width["avg"] > even.half_width["avg"]
    with pytest.raises(ParameterError, match="split names nn"):
        people.plan(BY_REGION, epsilon=1, split={"nn": 1})


def test_an_empty_budget_refuses_and_reads_nothing(tmp_path: Path) -> None:
    session = confide.open(policy({"epsilon": 1}), frames(), tmp_path / "l", create=True)
    for _ in range(3):
        session.sql(BY_REGION, epsilon=Fraction(1, 3), confidence=0.9)
    session.sql(BY_REGION, epsilon=Fraction(1, 3))
    assert session.budget.left > 0
    session.sql("SELECT COUNT(*) FROM visit", epsilon=Fraction(1, 3))
    assert session.budget.left == 0
    with pytest.raises(BudgetError, match="left"):
        session.sql("SELECT COUNT(*) FROM person WHERE age > 3", epsilon="1e-6")
    assert session.sql(BY_REGION, epsilon=Fraction(1, 3)), "stored answers stay free"
    assert not session.plan(BY_REGION, epsilon=0.1).affordable


def test_caps_per_analyst(tmp_path: Path) -> None:
    rules = policy({"epsilon": 3}, analysts={"ana": 1, "*": 0.5})
    with confide.open(rules, frames(), tmp_path / "l", analyst="ana", create=True) as session:
        session.sql(BY_REGION, epsilon=1)
        with pytest.raises(BudgetError):
            session.sql(BY_REGION, epsilon=0.5)
        assert session.budget.left == 0
        assert session.budget.cap == 1
    with confide.open(rules, frames(), tmp_path / "l", analyst="bo", create=True) as session:
        session.sql(BY_REGION, epsilon=0.5)
        with pytest.raises(BudgetError):
            session.sql(BY_REGION, epsilon=0.6)
    for name in ("carl", "", "anna"):
        with confide.open(rules, frames(), tmp_path / "l", analyst=name) as session:
            assert (session.budget.left, session.budget.shared) == (0, True), "a new name is not a new cap"
            assert not session.plan(BY_REGION, epsilon="0.1").affordable
            with pytest.raises(BudgetError, match="together, may spend"):
                session.sql(BY_REGION, epsilon="0.1")
    for name in ("Ana", "ana ", "*"):
        with pytest.raises(ParameterError):
            confide.open(rules, frames(), tmp_path / "l", analyst=name)


def test_an_approximate_budget_takes_gaussian_noise_and_unknown_keys(tmp_path: Path) -> None:
    session = confide.open(policy(APPROXIMATE), frames(), tmp_path / "l", create=True)
    answer = session.sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town", epsilon=5)
    assert answer.mechanism == {"n": "discrete gaussian with threshold"}
    assert [row["town"] for row in answer.to_dicts()] == ["Alba", "Bern", "Como"]
    assert answer.cost.delta
    assert answer.cost.rho
    narrow = session.plan("SELECT COUNT(*) AS n FROM person", epsilon="0.01", confidence=0.3)
    assert narrow.mechanism == {"n": "discrete laplace"}, "Laplace is narrower at low confidence"
    before = session.budget.spent
    session.sql("SELECT COUNT(*) AS n FROM person", epsilon=5)
    assert before < session.budget.spent < 10, "two calls at 5 compose to less than 10"
    small = confide.open(policy({"epsilon": 1, "delta": 1e-9}), frames(30), tmp_path / "small", create=True)
    assert len(small.sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town", epsilon=0.5)) == 0


def test_a_pure_budget_refuses_unknown_keys(people: Session) -> None:
    with pytest.raises(QueryError, match="delta"):
        people.sql("SELECT town, COUNT(*) FROM person GROUP BY town", epsilon=1)


def test_public_rows_are_counted_exactly_for_next_to_nothing(tmp_path: Path) -> None:
    session = confide.open(row_policy(rows="public"), rows_frame(), tmp_path / "l", create=True)
    row = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).to_dicts()[0]
    assert row == {"n": 1000, "n_low": 1000, "n_high": 1000}
    assert session.budget.spent < 1e-40
    assert session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 0", epsilon=1).mechanism == {"n": "discrete laplace"}
    assert session.budget.spent == pytest.approx(1)


def test_all_declared_keys_are_there_even_empty_ones(tmp_path: Path) -> None:
    session = confide.open(row_policy(), rows_frame(), tmp_path / "l", create=True)
    rows = session.sql("SELECT g, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY g", epsilon=5).to_dicts()
    assert [row["g"] for row in rows] == ["a", "b", "c"]
    assert (rows[2]["m_low"], rows[2]["m_high"]) == (-10, 30), "an empty group's mean is the whole range"
    bins = session.sql("SELECT BIN(x, 20) AS b, COUNT(*) AS n FROM t GROUP BY b", epsilon=5).to_dicts()
    assert [row["b"] for row in bins] == [-20, 0, 20]


def test_having_order_and_limit_act_on_released_numbers(people: Session) -> None:
    sql = "SELECT region, COUNT(*) AS n FROM person GROUP BY 1 HAVING COUNT(*) > 300 ORDER BY n DESC LIMIT 2 OFFSET 1"
    assert [row["region"] for row in people.sql(sql, epsilon=20).to_dicts()] == ["E", "S"]


def test_a_refused_question_costs_nothing(people: Session) -> None:
    for sql in ("SELECT * FROM person", "SELECT MEDIAN(age FROM person", "SELECT SUM(1/(age-5)) FROM person"):
        with pytest.raises(QueryError):
            people.sql(sql, epsilon=1)
    assert people.budget.spent == 0


def test_test_noise_is_repeatable_watermarked_and_never_durable(tmp_path: Path) -> None:
    first = confide.testing.open(policy(), frames(), seed=5).sql(BY_REGION, epsilon=1)
    second = confide.testing.open(policy(), frames(), seed=5).sql(BY_REGION, epsilon=1)
    assert first.to_dicts() == second.to_dicts()
    assert first.test_noise
    assert "TEST NOISE" in str(first)
    assert json.loads(first.to_json())["test_noise"] is True
    durable = SqliteLedger.create(tmp_path / "l", Budget.of(1), {})
    with pytest.raises(LedgerError, match="test noise"):
        Session(None, None, durable, randomness=TestRandomness(1))  # type: ignore[arg-type]


def test_no_public_signature_takes_a_seed() -> None:
    for call in (confide.open, Session.sql, Session.plan):
        assert "seed" not in inspect.signature(call).parameters


def test_wrong_data(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no data for person"):
        confide.open(policy(), None, tmp_path / "l", create=True)
    with pytest.raises(SourceError, match="persn"):
        confide.open(policy(), {"persn": frames()["person"]}, tmp_path / "l", create=True)
    assert not (tmp_path / "l").exists(), "a session that cannot open makes no ledger"


def test_the_answer_goes_elsewhere(people: Session) -> None:
    answer = people.sql(BY_REGION, epsilon=10)
    assert answer.to_polars().columns == list(answer.to_dicts()[0])
    assert answer.to_pandas()["n"].tolist() == list(answer.values[0].values)
    assert answer.to_arrow().num_rows == 4
    facts = json.loads(answer.to_json())
    assert facts["rows"][0]["region"] == "N"
    assert facts["assumes"] == {"n": "at_most", "avg": "at_most"}
    text = str(answer)
    assert all(word in text for word in ("region", "ε = 10", "0.95 interval"))
    assert "<table>" in answer._repr_html_()
    chart = answer.plot().to_dict()
    assert len(chart["vconcat"]) == 2


def test_intervals_cover_end_to_end() -> None:
    """End to end, every cell's interval holds the truth about as often as it says (1,200 cells)."""
    data = frames(400)
    session = open_for_tests(policy({"epsilon": 100_000}), data, seed=11)
    person = data["person"]
    truth = dict(person.group_by("region").agg(pl.col("income").clip(0, 500_000).mean()).iter_rows())
    misses = cells = 0
    for run in range(300):
        epsilon = Fraction(1) + Fraction(run, 10**9)
        for row in session.sql(
            "SELECT region, AVG(income) AS m FROM person GROUP BY region", epsilon=epsilon
        ).to_dicts():
            misses += not row["m_low"] <= truth[row["region"]] <= row["m_high"]
            cells += 1
    # At most 5 % are missed; 1,200 cells exceed 8.1 % with probability below 1e-5.
    assert misses / cells < 0.081
    assert np.isfinite(misses)


def test_a_forecast_of_arithmetic_is_what_its_noise_says(tmp_path: Path) -> None:
    """However large the table is thought to be: beside a large estimate the ends of an interval are one double."""
    columns = {"x": {"range": [-1, 1], "grain": 0.001}, "y": {"range": [0, 10**12], "grain": 10**12}}
    policy = {"budget": {"epsilon": 10**6}, "unit": "row", "tables": {"t": {"size": 10**9, "columns": columns}}}
    with confide.testing.open(policy, {"t": {"x": [0.5], "y": [0]}}, seed=1) as session:
        one, both = (
            session.plan(f"SELECT {shown} AS n FROM t", epsilon=20_000) for shown in ("SUM(x)", "SUM(x) + SUM(x) - 7")
        )
        assert both.half_width["n"] == pytest.approx(2 * one.half_width["n"])
        assert 0 < session.plan("SELECT SUM(x) * 1e-6 + SUM(y) AS n FROM t", epsilon=10).half_width["n"] < 10**13
        assert not any("depends on how many rows" in note for note in both.notes)

"""Verdicts about synthetic answers, through a session: what is asked, what is paid, what is said."""

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import confide
from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import BudgetError, ParameterError, QueryError, SourceError
from confide.mechanism.tally import Tally
from confide.policy import load
from confide.privacy.charge import Charge
from confide.privacy.loss import PureDP
from confide.release.questions import Questions
from confide.release.session import Session
from confide.release.verdict import subject as trust_question
from confide.release.verdict.plan import TrustPlan
from confide.release.verdict.subject import Wanted, fetch, subject_of
from confide.release.verdict.verdict import Verdict, Verdicts
from confide.trust.seen import Clipped, Powers, Seen, Sides, Totals, Values, WholeCell, seen_in
from tests.release.samples import APPROXIMATE, frames, policy, row_policy, rows_frame

CHARGE = Charge(1, "k", PureDP(Fraction(1)), "p", "", "l")


def copy_of(seed: int = 11) -> dict[str, Any]:
    made = frames(seed=seed)
    made["visit"] = made["visit"].with_columns(cost=pl.col("cost").clip(0, 1_000))
    made["person"] = made["person"].with_columns(income=pl.col("income").clip(0, 500_000))
    return made


@pytest.fixture
def people(tmp_path: Path) -> Session:
    return confide.open(policy(), frames(), tmp_path / "people.ledger", create=True)


@pytest.fixture
def tested() -> Session:
    return confide.testing.open(policy(), frames(), seed=5)


def verdict(session: Session, sql: str, **options: Any) -> Verdict:
    given = {"synthetic": copy_of(), "within": "20%", "epsilon": 1, **options}
    found = session.trust(sql, **given)
    assert isinstance(found, Verdict)
    return found


QUERIES = [
    ("SELECT COUNT(*) FROM person WHERE region = 'N' AND age > 40", "optimal"),
    ("SELECT COUNT(DISTINCT town) FROM person", "optimal"),
    ("SELECT SUM(income) FROM person WHERE sex = 'F'", "clip"),
    ("SELECT AVG(income) FROM person WHERE sex = 'F'", "optimal"),
    ("SELECT MEDIAN(age) FROM person WHERE sex = 'F'", "optimal"),
    ("SELECT QUANTILE(age, 0.9) FROM person", "optimal"),
    ("SELECT SUM(cost) FROM visit WHERE ward = 2", "clip"),
    ("SELECT MEDIAN(cost) FROM visit", "optimal"),
]


@pytest.mark.parametrize(("sql", "mechanism"), QUERIES)
def test_close_answers_are_trusted_and_far_ones_are_not(tested: Session, sql: str, mechanism: str) -> None:
    """At ε = 40 a wrong verdict has probability below 10⁻⁴ for each of them."""
    near = verdict(tested, sql, epsilon=40, within="50%" if "DISTINCT" in sql or "visit" in sql else "20%")
    assert (near.trusted, near.mechanism) == (True, mechanism)
    low, high = near.interval
    assert low < near.synthetic_answer < high
    assert near.effective == ((high - low) / 2 >= near.threshold)
    shifted = copy_of()
    person, visit = shifted["person"], shifted["visit"]
    shifted["person"] = pl.concat([person, person]).with_columns(
        age=pl.lit(2, dtype=pl.Int64), income=pl.lit(9.0), town=pl.lit("Nowhere")
    )
    if "age > 40" in sql:
        shifted["person"] = shifted["person"].with_columns(age=pl.lit(99, dtype=pl.Int64))
    shifted["visit"] = visit.with_columns(cost=pl.lit(1.0))
    far = verdict(tested, sql, synthetic=shifted, epsilon=40, within="20%")
    assert not far.trusted
    assert not far


def test_the_synthetic_answer_is_that_of_the_query_on_the_copy(tested: Session) -> None:
    person = copy_of()["person"]
    women = person.filter(pl.col("sex") == "F")
    assert verdict(tested, "SELECT COUNT(*) FROM person WHERE sex = 'F'").synthetic_answer == len(women)
    assert verdict(tested, "SELECT SUM(income) FROM person").synthetic_answer == person["income"].sum()
    mean = verdict(tested, "SELECT AVG(income) FROM person WHERE sex = 'F'").synthetic_answer
    assert mean == pytest.approx(women["income"].mean())
    middle = women["age"].sort()[-(-len(women) // 2) - 1]
    assert verdict(tested, "SELECT MEDIAN(age) FROM person WHERE sex = 'F'").synthetic_answer == middle
    assert verdict(tested, "SELECT MIN(age) FROM person", within=3).synthetic_answer == person["age"].min()
    assert verdict(tested, "SELECT MAX(age) FROM person").synthetic_answer == person["age"].max()


# --- what is read -----------------------------------------------------------------------------------------------------

READINGS = [Totals(), Clipped(0, 30_000), Clipped(10, 20), Sides(20_000, 40_000), Sides(-1, 10**6), Values(),
            Powers((2, 4, 64, 1_024, 2**19)), Powers(tuple(2**step for step in range(1, 20)))]  # fmt: skip


def _session_of(rules: dict[str, Any], data: dict[str, Any]) -> tuple[Any, Any, Any]:
    loaded = load(rules)
    engine = DuckDBEngine(loaded, data)

    def ask(sql: str) -> Any:
        holdings = SimpleNamespace(policy=loaded, engine=engine)
        return subject_of(Questions().bounded(holdings, sql, {}, "duckdb"))  # type: ignore[arg-type]

    return engine, ask, lambda summary: engine.evaluate(summary, CHARGE, b"secret")


def _same(one: Seen, two: Seen) -> bool:
    if isinstance(one, Tally) and isinstance(two, Tally):
        return bool(np.array_equal(one.values, two.values) and np.array_equal(one.counts, two.counts))
    if isinstance(one, int | tuple):
        return one == two
    return bool(np.array_equal(one.counts, two.counts) and np.array_equal(one.sums, two.sums))  # type: ignore[union-attr]


@pytest.mark.parametrize("stored", [pl.Int64, pl.Float64, pl.String])
@pytest.mark.parametrize("reading", READINGS, ids=repr)
def test_statements_read_what_a_tally_would_give(reading: Any, stored: Any) -> None:
    """Cells, buckets and tallies agree; NULLs count nowhere, and values are those that the policy sees.

    Texts are brought to the policy's grid when they are opened: what is cut closer must be cut all the same.
    """
    data = frames(400)
    data["person"] = data["person"].with_columns(
        income=pl.when(pl.col("age") < 10).then(None).otherwise(pl.col("income"))
    )
    asked_of = {**data, "person": data["person"].with_columns(pl.col("income").cast(stored))}
    _, ask, evaluate = _session_of(policy(), asked_of)
    question = ask("SELECT SUM(income) FROM person WHERE sex = 'F'")
    whole = fetch([Wanted(question, (Values(),))], evaluate)[0][0]
    assert isinstance(whole, Tally)
    assert _same(fetch([Wanted(question, (reading,))], evaluate)[0][0], seen_in(reading, whole))
    known = data["person"].filter((pl.col("sex") == "F") & pl.col("income").is_not_null())
    assert whole.total() == known["income"].sum()


def test_buckets_of_both_signs_come_from_one_statement() -> None:
    statements: list[Any] = []
    _, ask, evaluate = _session_of(row_policy(), rows_frame(500))
    question = ask("SELECT SUM(x) FROM t WHERE g = 'a'")
    whole = fetch([Wanted(question, (Values(),))], evaluate)[0][0]
    reading = Powers((2, 4, 8, 16, 32))

    def counted(summary: Any) -> Any:
        statements.append(summary)
        return evaluate(summary)

    found = fetch([Wanted(question, (reading,))], counted)[0][0]
    assert isinstance(whole, Tally)
    assert _same(found, seen_in(reading, whole))
    assert len(statements) == 1
    assert not statements[0].tallies


def test_a_list_over_one_table_is_one_statement_and_groups_too() -> None:
    statements: list[Any] = []
    data = rows_frame(800)
    _, ask, evaluate = _session_of(row_policy(), data)
    texts = ["SELECT COUNT(*) FROM t WHERE g = 'a'", "SELECT SUM(x) FROM t WHERE x > 4", "SELECT COUNT(*) FROM t"]
    wanted = [Wanted(ask(text), (WholeCell(),)) for text in texts]
    wanted.append(Wanted(ask("SELECT MEDIAN(x) FROM t"), (Sides(3, 9),)))

    def counted(summary: Any) -> Any:
        statements.append(summary)
        return evaluate(summary)

    frame = data["t"]
    found = fetch(wanted, counted)
    assert len(statements) == 1
    assert [seen[0] for seen in found] == [
        len(frame.filter(pl.col("g") == "a")),
        frame.filter(pl.col("x") > 4)["x"].sum(),
        len(frame),
        (len(frame), len(frame.filter(pl.col("x") <= 3)), len(frame.filter(pl.col("x") >= 9))),
    ]
    grouped = fetch([Wanted(ask("SELECT g, COUNT(*) FROM t GROUP BY g"), (WholeCell(),) * 3, (0, 1, 2))], counted)[0]
    assert grouped == [len(frame.filter(pl.col("g") == key)) for key in ("a", "b", "c")]
    assert len(statements) == 2


FORMS = [
    "SELECT COUNT(*) FROM visit",
    "SELECT SUM(cost) FROM visit WHERE cost > 20",
    "SELECT AVG(cost) FROM visit",
    "SELECT MEDIAN(cost) FROM visit",
    "SELECT region, COUNT(*) FROM visit JOIN person USING (person_id) GROUP BY region",
    "SELECT ward, SUM(cost) FROM visit GROUP BY ward",
    "SELECT ward, MEDIAN(cost) FROM visit GROUP BY ward",
    "SELECT SUM(total) FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id) AS t",
    "SELECT COUNT(*) FROM person WHERE age > 30",
]


@pytest.mark.parametrize("sql", FORMS)
def test_one_unit_moves_margins_by_what_is_paid_for(sql: str) -> None:
    """The neighbour pair: a unit with far more rows than its bound comes; steps × price stay within ε in all."""
    data = frames(60)
    person, visit = data["person"], data["visit"]
    hostile = person.head(1).with_columns(person_id=pl.lit(10_000, dtype=pl.Int64), age=pl.lit(50, dtype=pl.Int64))
    owners = visit.head(50).with_columns(
        person_id=pl.lit(10_000, dtype=pl.Int64), cost=pl.Series(np.linspace(100, 990, 50))
    )
    more = data | {"person": pl.concat([person, hostile]), "visit": pl.concat([visit, owners])}
    moved, epsilon = Fraction(0), Fraction(1)
    _, ask, evaluate = _session_of(policy(), data)
    _, ask_more, evaluate_more = _session_of(policy(), more)
    session = confide.testing.open(policy(), data, seed=1)
    request = _request(session, sql)
    readings = tuple(group.chooser.make("optimal", epsilon).reading for group in request.groups)
    places = tuple(group.place for group in request.groups)
    before = fetch([Wanted(ask(sql), readings, places)], evaluate)[0]
    after = fetch([Wanted(ask_more(sql), readings, places)], evaluate_more)[0]
    for group, one, two in zip(request.groups, before, after, strict=True):
        margin: Any = group.chooser.make("optimal", epsilon)
        moved += abs(margin.margin.of(one) - margin.margin.of(two)) * margin.margin.epsilon
    assert before != after
    assert moved <= epsilon


def _request(session: Session, sql: str) -> Any:
    from confide.release.verdict.request import prepare_request  # noqa: PLC0415

    return prepare_request(session._holdings, sql, copy_of(), 3, "optimal", "balanced", session._reader("duckdb"))


# --- several ----------------------------------------------------------------------------------------------------------


def test_every_key_has_its_verdict_and_all_cost_epsilon_once(people: Session) -> None:
    found = people.trust(
        "SELECT region, sex, COUNT(*) AS n FROM person GROUP BY region, sex", copy_of(), within=40, epsilon="0.5"
    )
    assert isinstance(found, Verdicts)
    assert len(found) == 8
    assert [one.key for one in found][:3] == [
        {"region": "N", "sex": "F"}, {"region": "N", "sex": "M"}, {"region": "E", "sex": "F"},
    ]  # fmt: skip
    assert people.budget.spent == pytest.approx(0.5)
    assert {one.epsilon for one in found} == {0.5}
    assert "cost ε = 0.5 for 8 verdicts" in str(found)


def test_units_in_several_groups_share_epsilon_over_their_rows(tested: Session) -> None:
    """At most 5 rows in 2 groups: a count in each group gets noise for five rows, a count of people for one."""
    visits = tested.trust("SELECT ward, COUNT(*) FROM visit GROUP BY ward", copy_of(), 100, 1, mechanism="optimal")
    persons = tested.trust(
        "SELECT region, COUNT(*) FROM person GROUP BY region", copy_of(), 100, 1, mechanism="optimal"
    )
    assert isinstance(visits, Verdicts)
    assert isinstance(persons, Verdicts)
    assert visits[0].threshold == pytest.approx(5 * persons[0].threshold, abs=5)


def test_a_list_shares_epsilon(people: Session) -> None:
    texts = [
        "SELECT COUNT(*) FROM person WHERE age < 30",
        "SELECT AVG(age) FROM person",
        "SELECT MEDIAN(age) FROM person",
    ]
    found = people.trust(texts, copy_of()["person"], "10%", "0.6")
    assert isinstance(found, Verdicts)
    assert [one.query for one in found] == texts
    assert [one.epsilon for one in found] == pytest.approx([0.2] * 3)
    assert people.budget.spent == pytest.approx(0.6)
    assert found.trusted == tuple(bool(one) for one in found)


def test_keys_without_a_synthetic_answer_are_left_out_and_named(tested: Session) -> None:
    copy = copy_of()["person"].filter(pl.col("region") != "W")
    found = tested.trust("SELECT region, AVG(age) FROM person GROUP BY region", copy, within=5, epsilon=1)
    assert isinstance(found, Verdicts)
    assert [one.key["region"] for one in found] == ["N", "E", "S"]
    assert "no verdict for region = W: the synthetic answer is NULL" in str(found)
    counts = tested.trust("SELECT region, COUNT(*) FROM person GROUP BY region", copy, within="5%", epsilon=1)
    assert isinstance(counts, Verdicts)
    assert "give within as a number" in counts.notes[0]
    assert len(tested.trust("SELECT region, COUNT(*) FROM person GROUP BY region", copy, within=5, epsilon=1)) == 4  # type: ignore[arg-type]


# --- paying -----------------------------------------------------------------------------------------------------------


def test_the_same_request_again_is_free_and_the_same(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM person WHERE age > 64"
    with confide.open(policy(), frames(), tmp_path / "l", create=True) as session:
        first = session.trust(sql, copy_of()["person"], "5%", 0.5)
        again = session.trust(sql + " ", copy_of()["person"], "5%", "1/2")
        assert first == Verdict(**{**vars(again), "query": first.query})  # type: ignore[union-attr]
        assert session.budget.spent == pytest.approx(0.5)
        session.trust(sql, copy_of(4)["person"], "5%", 0.5)
        assert session.budget.spent == pytest.approx(1.0)
        session.trust(sql, copy_of()["person"], "6%", 0.5)
        session.trust(sql, copy_of()["person"], "5%", 0.5, prefer="cautious")
        session.trust(sql, copy_of()["person"], "5%", 0.5, mechanism="laplace")
        assert session.budget.spent == pytest.approx(2.5)


def test_distances_that_print_alike_are_two_requests(tmp_path: Path) -> None:
    """An interval is open, so its ends may hang on the thirteenth digit."""
    columns = {"x": {"range": [0, 30]}}
    rules = {"confide": 1, "budget": {"epsilon": 300}, "unit": "row", "tables": {"t": {"columns": columns}}}
    session = confide.testing.open(rules, {"t": pl.DataFrame({"x": [1] * 12})}, seed=1)
    twin = pl.DataFrame({"x": [1] * 10})
    found = [session.trust("SELECT COUNT(*) FROM t", twin, within, 100) for within in ("2", "2.0000000000001", 2)]
    assert [bool(one) for one in found] == [False, True, False]
    assert session.budget.spent == 200


def test_nothing_is_paid_for_plans_and_refusals(people: Session) -> None:
    people.plan_trust("SELECT COUNT(*) FROM person", copy_of(), within="5%", epsilon=1)
    with pytest.raises(QueryError):
        people.trust("SELECT age FROM person", copy_of(), "5%", 1)
    with pytest.raises(BudgetError):
        people.trust("SELECT COUNT(*) FROM person", copy_of(), "5%", 1_000)
    assert people.budget.spent == 0


def test_under_delta_a_call_costs_rho(tmp_path: Path) -> None:
    session = confide.open(policy(APPROXIMATE), frames(), tmp_path / "l", create=True)
    found = session.trust("SELECT COUNT(*) FROM person", copy_of(), "5%", 2)
    assert isinstance(found, Verdict)
    assert session.budget.spent == pytest.approx(2, rel=1e-9)
    assert found.cost.rho is not None
    assert Fraction(found.epsilon) ** 2 / 2 <= found.cost.rho
    texts = [f"SELECT COUNT(*) FROM person WHERE age < {age}" for age in (20, 40, 60)]
    several = session.trust(texts, copy_of(), "5%", 1)
    assert isinstance(several, Verdicts)
    assert several.cost.rho is not None
    assert sum(one.epsilon**2 / 2 for one in several) == pytest.approx(float(several.cost.rho), rel=1e-9)


def test_what_replaces_a_row_of_a_public_number_is_paid_for(tmp_path: Path) -> None:
    rules = row_policy(rows="public")
    session = confide.testing.open(rules, rows_frame(), seed=1)
    copy = rows_frame(seed=8)["t"]
    for sql in ("SELECT COUNT(*) FROM t WHERE g = 'a'", "SELECT SUM(x) FROM t", "SELECT AVG(y) FROM t",
                "SELECT MEDIAN(x) FROM t", "SELECT g, MEDIAN(x) FROM t GROUP BY g"):  # fmt: skip
        session.trust(sql, copy, within=3, epsilon=1)
    count = session.trust("SELECT g, COUNT(*) FROM t GROUP BY g", copy, 30, 1, mechanism="optimal")
    private = confide.testing.open(row_policy(), rows_frame(), seed=1)
    plain = private.trust("SELECT g, COUNT(*) FROM t GROUP BY g", copy, 30, 1, mechanism="optimal")
    assert isinstance(count, Verdicts)
    assert isinstance(plain, Verdicts)
    assert count[0].threshold > 1.5 * plain[0].threshold


AGGREGATES = {
    "COUNT(*)": ("optimal", "laplace", "exponential", "exponential-naive"),
    "SUM(x)": ("clip", "optimal", "laplace", "exponential", "exponential-naive", "r2t"),
    "SUM(y)": ("svt",),
    "AVG(x)": ("optimal", "laplace", "exponential-naive"),
    "MEDIAN(x)": ("optimal", "tie-aware", "exponential", "histogram", "exponential-naive"),
    "MAX(x)": ("optimal", "histogram", "tie-aware"),
}


@pytest.mark.parametrize("rows", [0, 1, 500])
@pytest.mark.parametrize(("aggregate", "names"), AGGREGATES.items())
def test_private_data_of_any_size_get_a_verdict(aggregate: str, names: tuple[str, ...], rows: int) -> None:
    """Whether the private table holds anything must not show in anything but the bit: no error, the same cost."""
    data = {"t": rows_frame(max(rows, 1))["t"].head(rows)}
    session = confide.testing.open(row_policy(), data, seed=2)
    for name in names:
        for sql in (f"SELECT {aggregate} FROM t WHERE x > 2", f"SELECT g, {aggregate} FROM t GROUP BY g"):
            before = session.budget.spent
            found = session.trust(sql, rows_frame(seed=8), within=9, epsilon="0.25", mechanism=name)
            assert session.budget.spent - before == pytest.approx(0.25)
            assert len(found) == 2 if isinstance(found, Verdicts) and "COUNT" not in sql else True


def test_inner_queries_take_bounds(tested: Session) -> None:
    sql = "SELECT SUM(total) FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id) AS t"
    wide = verdict(tested, sql, mechanism="optimal")
    narrow = verdict(tested, sql, mechanism="optimal", bounds={"total": [0, 1_000]})
    assert narrow.threshold < wide.threshold / 3


def test_means_of_unbounded_columns_are_refused_before_anything_is_paid(tmp_path: Path) -> None:
    rules = policy()
    rules["tables"]["person"]["columns"]["income"] = {"range": "unbounded", "grain": 1}
    with confide.open(rules, frames(), tmp_path / "l", create=True) as session:
        with pytest.raises(ParameterError, match="needs a range"):
            session.trust("SELECT AVG(income) FROM person", copy_of(), "5%", 1)
        with pytest.raises(ParameterError, match="use optimal"):
            session.trust("SELECT MEDIAN(income) FROM person", copy_of(), "5%", 1, mechanism="tie-aware")
        assert session.budget.spent == 0
        assert verdict(session, "SELECT SUM(income) FROM person").mechanism == "clip"
        assert verdict(session, "SELECT MEDIAN(income) FROM person").mechanism == "optimal"


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_verdict_reads_well_and_travels_as_json(tested: Session) -> None:
    found = verdict(tested, "SELECT COUNT(*) FROM person WHERE age > 30", epsilon=30)
    said = str(found)
    assert said.startswith(f"yes: the synthetic answer {found.synthetic_answer:,} may be used")
    assert "effective from ±1 on" in said
    assert "a wrong yes has probability" in said
    assert "TEST NOISE" in said
    facts = json.loads(found.to_json())
    assert facts["trusted"] is True
    assert facts["test_noise"] is True
    assert facts["mechanism"] == "optimal"
    assert "&" not in found._repr_html_().replace("&#", "")
    weak = verdict(tested, "SELECT COUNT(*) FROM person WHERE age > 30", epsilon="0.001", within=1)
    assert "the verdict says little; spend more, or allow more" in str(weak)


def test_cautious_verdicts_state_their_bound(tested: Session) -> None:
    for sql in ("SELECT COUNT(*) FROM person", "SELECT SUM(income) FROM person", "SELECT MEDIAN(age) FROM person"):
        found = verdict(tested, sql, prefer="cautious")
        assert found.wrong_yes is not None
        assert found.wrong_yes <= 0.05
        assert found.assumes == ""
    assert verdict(tested, "SELECT SUM(income) FROM person", prefer="cautious", mechanism="clip").assumes


# --- plans ------------------------------------------------------------------------------------------------------------


def test_a_plan_forecasts_errors_by_the_gap(people: Session) -> None:
    plan = people.plan_trust("SELECT COUNT(*) FROM person WHERE age > 50", copy_of()["person"], within=30, epsilon=0.1)
    assert isinstance(plan, TrustPlan)
    errors = plan.errors([0, 15, 30, 45, 60])
    assert errors == sorted(errors[:3]) + sorted(errors[3:], reverse=True)
    assert plan.error(0) == pytest.approx(plan.errors([0])[0])
    assert plan.error(0, "laplace") == pytest.approx(2 * plan.error(0), rel=0.01)
    assert plan.needed_epsilon(0, 0.001) > 0.1 > plan.needed_epsilon(0, 0.3)
    assert "a wrong verdict, by the gap" in str(plan)
    assert len(json.loads(plan.to_json())["errors"]) == 6
    found = people.plan_trust("SELECT COUNT(*) FROM person WHERE age > 50", copy_of()["person"], 30, gap=0, error=0.001)
    assert isinstance(found, TrustPlan)
    assert float(found.cost.epsilon) == pytest.approx(plan.needed_epsilon(0, 0.001))
    assert found.error(0) <= 0.001
    assert people.budget.spent == 0


@pytest.mark.parametrize("mechanism", ["r2t", "svt", "clip", "optimal", "laplace", "exponential"])
def test_sums_of_every_decider_are_forecast(people: Session, mechanism: str) -> None:
    plan = people.plan_trust("SELECT SUM(income) FROM person", copy_of()["person"], "10%", 1, mechanism)
    assert isinstance(plan, TrustPlan)
    assert plan.mechanism == mechanism
    assert all(0 <= error <= 1 for error in plan.errors([0, 1e6, -1e6, 1e8]))


def test_a_plan_is_drawn_with_the_deciders_beside_it(people: Session) -> None:
    plan = people.plan_trust("SELECT COUNT(*) FROM person WHERE age > 50", copy_of()["person"], 30, 0.1)
    assert isinstance(plan, TrustPlan)
    drawn = json.dumps(plan.plot("laplace", "exponential").to_dict())
    assert all(name in drawn for name in ("optimal", "laplace", "exponential", "probability of a wrong verdict"))


def test_plans_of_groups_and_under_delta(tmp_path: Path) -> None:
    session = confide.open(policy(APPROXIMATE), frames(), tmp_path / "l", create=True)
    plans = session.plan_trust("SELECT region, COUNT(*) FROM person GROUP BY region", copy_of(), 20, gap=0, error=0.01)
    assert isinstance(plans, tuple)
    assert [plan.key["region"] for plan in plans] == ["N", "E", "S", "W"]
    assert max(plan.error(0) for plan in plans) <= 0.0101
    for wrong in (
        {"gap": -1},
        {"gap": "x"},
        {"gap": 1, "error": 0},
        {"gap": 1, "error": 0.7},
        {"gap": 1, "epsilon": 1},
    ):
        with pytest.raises(ParameterError):
            session.plan_trust("SELECT COUNT(*) FROM person", copy_of(), 20, **wrong)  # type: ignore[arg-type]


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("within", [0, -3, float("nan"), "abc%", "0%", None, True])
def test_distances_that_are_none(people: Session, within: Any) -> None:
    with pytest.raises(ParameterError, match="within="):
        people.trust("SELECT COUNT(*) FROM person", copy_of(), within, 1)


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("SELECT COUNT(*) AS a, SUM(age) AS b FROM person", QueryError, "one aggregate"),
        ("SELECT SUM(age) / COUNT(*) AS a FROM person", QueryError, "arithmetic"),
        ("SELECT STDDEV(age) AS a FROM person", QueryError, "COUNT, SUM, AVG"),
        ("SELECT region, COUNT(*) FROM person GROUP BY region HAVING COUNT(*) > 3", QueryError, "HAVING"),
        ("SELECT region, COUNT(*) FROM person GROUP BY region ORDER BY region", QueryError, "ORDER BY"),
        ([], ParameterError, "list of queries"),
        (7, ParameterError, "list of queries"),
        ("SELECT COUNT(*) FROM nowhere", QueryError, "no table"),
    ],
)
def test_questions_that_no_verdict_is_about(people: Session, sql: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        people.trust(sql, copy_of(), "5%", 1)
    assert people.budget.spent == 0


def test_undeclared_keys_are_refused(tmp_path: Path) -> None:
    session = confide.open(policy(APPROXIMATE), frames(), tmp_path / "l", create=True)
    with pytest.raises(QueryError, match="declares"):
        session.trust("SELECT town, COUNT(*) FROM person GROUP BY town", copy_of(), 5, 1)


def test_a_percentage_of_nothing_says_what_to_write(people: Session) -> None:
    sql = "SELECT COUNT(*) FROM person WHERE age > 114"
    with pytest.raises(ParameterError, match="give within as a number, such as within=50"):
        people.trust(sql, copy_of(), "5%", 1)
    assert isinstance(people.trust(sql, copy_of(), 5, 1), Verdict)


@pytest.mark.parametrize("aggregate", ["SUM(income)", "AVG(income)", "MEDIAN(income)"])
def test_a_synthetic_answer_of_null_is_nothing_to_trust(people: Session, aggregate: str) -> None:
    with pytest.raises(ParameterError, match="the synthetic answer is NULL"):
        people.trust(f"SELECT {aggregate} FROM person WHERE age > 114", copy_of(), 5, 1)
    assert people.budget.spent == 0


def test_unknown_options_are_refused(people: Session) -> None:
    with pytest.raises(ParameterError, match="balanced"):
        people.trust("SELECT COUNT(*) FROM person", copy_of(), 5, 1, prefer="bold")
    with pytest.raises(ParameterError, match="no decider 'magic'"):
        people.trust("SELECT COUNT(*) FROM person", copy_of(), 5, 1, mechanism="magic")
    with pytest.raises(ParameterError, match="name of a decider"):
        people.trust("SELECT COUNT(*) FROM person", copy_of(), 5, 1, mechanism=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilon"):
        people.trust("SELECT COUNT(*) FROM person", copy_of(), 5, -1)
    assert people.budget.spent == 0


def test_frames_that_are_none_are_refused(people: Session) -> None:
    for wrong in (None, 5, {}):
        with pytest.raises((SourceError, ParameterError)):
            people.trust("SELECT COUNT(*) FROM person", wrong, 5, 1)


# --- wide columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", ["", " GROUP BY sex"])
@pytest.mark.parametrize("bounded", [False, True])
def test_wide_columns_are_read_without_a_tally_of_their_values(
    grouped: str, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a summary had at most 100 rows: the same exact numbers, from statements that give fewer."""
    shown = "sex, " if grouped else ""
    if bounded:
        table = "visit JOIN person ON visit.person_id = person.person_id"
        sql, most = f"SELECT {shown}SUM(cost) FROM {table}{grouped}", 100_000
    else:
        sql, most = f"SELECT {shown}SUM(income) FROM person{grouped}", 500_000
    _, ask, evaluate = _session_of(policy(), frames(400))
    question = ask(sql)
    powers = Powers(tuple(2**step for step in range(1, 20)))
    readings = [Clipped(0, 30_000), Clipped(10, most // 7), Sides(200, 30_000), powers, Totals()]
    tallies = fetch([Wanted(question, (Values(),))], evaluate)[0]
    monkeypatch.setattr(trust_question, "LARGEST_SUMMARY", 100)
    sizes: list[int] = []

    def counted(summary: Any) -> Any:
        exact = evaluate(summary)
        sizes.append(
            max([sum(len(own[0]) for own in tally) for tally in exact.tallies] + [len(c) for c in exact.cells])
        )
        return exact

    for first in readings:
        for second in readings[:4] if not isinstance(first, Totals) else readings[4:]:
            own = (first, second)[: len(tallies)]
            found = fetch([Wanted(question, own, tuple(range(len(tallies))))], counted)[0]
            for seen, reading, tally in zip(found, own, tallies, strict=True):
                assert _same(seen, seen_in(reading, tally)), reading
    assert max(sizes) <= 100


def test_a_decider_of_all_values_of_a_wide_column_is_refused_before_paying(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trust_question, "LARGEST_SUMMARY", 100)
    rules = policy()
    with confide.open(rules, frames(200), tmp_path / "l", create=True) as small:
        small.trust("SELECT MEDIAN(age) FROM person", copy_of(), "20%", 1, mechanism="exponential")
    del rules["tables"]["person"]["size"]
    with confide.open(rules, frames(200), tmp_path / "m", create=True) as people:
        with pytest.raises(QueryError, match="mechanism='auto'"):
            people.trust("SELECT MEDIAN(age) FROM person", copy_of(), "20%", 1, mechanism="exponential")
        assert people.budget.spent == 0
        people.trust("SELECT MEDIAN(age) FROM person", copy_of(), "20%", 1)


@pytest.mark.parametrize("epsilon", [1e-30, 1e-12, 90])
@pytest.mark.parametrize("mechanism", ["optimal", "histogram", "exponential", "tie-aware"])
def test_deciders_of_quantiles_at_any_epsilon(tested: Session, mechanism: str, epsilon: float) -> None:
    """Answered without a warning, or refused before anything is charged: the plan says which."""
    call = {"synthetic": copy_of(), "within": 3, "epsilon": epsilon, "mechanism": mechanism}
    for aggregate in ("MEDIAN(age)", "MAX(age)"):
        sql, before = f"SELECT {aggregate} FROM person", tested.budget.spent
        try:
            tested.plan_trust(sql, **call)
        except ParameterError:
            with pytest.raises(ParameterError):
                tested.trust(sql, **call)
            assert tested.budget.spent == before
        else:
            assert tested.trust(sql, **call).trusted in (True, False)
        if epsilon > 1:
            break

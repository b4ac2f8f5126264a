"""Long and nested texts by every way into a session: each is planned, answered or refused, in bounded work."""

import time
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

import confide
import confide.testing
from confide.errors import ConfideError
from confide.privacy.limits import LONGEST_QUERY
from tests.query.test_nesting import CHAINS, chained, nested

COLUMNS = {
    "age": {"range": [0, 115]},
    "income": {"range": [0, 500_000]},
    "region": {"values": ["N", "E", "S", "W"]},
    "sex": {"values": ["F", "M"]},
    "member": {"values": [True, False]},
    "job": {"type": "text"},
    "born": {"range": ["0001-01-05", "9999-12-30"]},
}
POLICY = {
    "confide": 1,
    "budget": {"epsilon": 100_000},
    "unit": "row",
    "tables": {"person": {"columns": COLUMNS}},
}
FRAME = pd.DataFrame(
    {
        "age": [30] * 8,
        "income": [1_000] * 8,
        "region": ["N"] * 8,
        "sex": ["F"] * 8,
        "member": [True] * 8,
        "job": ["x"] * 8,
        "born": [pd.Timestamp("1999-01-01").date()] * 8,
    }
)
LEAST = nested("LEAST(X, 1)", "LEAST(X, 1)", 28, "age")
WIDE = [
    f"SELECT {', '.join(f'{aggregate}(age + {place}) AS c{place}' for place in range(count))} FROM person"
    for aggregate, count in (("SUM", 200), ("STDDEV", 100), ("MEDIAN", 100))
]
SECONDS = 3.0
"""Of the processor, on a machine that may be slow; each takes less than one."""


@pytest.fixture(scope="module")
def people() -> Iterator[confide.Session]:
    with confide.testing.open(POLICY, {"person": FRAME}, seed=1) as session:
        session.plan("SELECT COUNT(*) AS n FROM person", epsilon=1)
        yield session


def took(call: Callable[[], object]) -> float:
    begun, message = time.process_time(), "done"
    try:
        call()
    except ConfideError as error:
        message = str(error)
    assert 0 < len(message) < 1_500
    return time.process_time() - begun


@pytest.mark.parametrize("name", ["branches", "values", "list over CASE", "filters", "having", "alternatives"])
def test_a_chain_is_planned_and_answered(people: confide.Session, name: str) -> None:
    assert name in CHAINS
    text = chained(name)
    assert took(lambda: people.plan(text, epsilon=1)) < SECONDS
    assert took(lambda: people.sql(text, epsilon=1)) < SECONDS


@pytest.mark.parametrize("text", WIDE, ids=["sums", "deviations", "medians"])
def test_many_columns_are_planned_and_answered(people: confide.Session, text: str) -> None:
    assert took(lambda: people.plan(text, epsilon=1)) < SECONDS
    assert took(lambda: people.sql(text, epsilon=1)) < SECONDS
    assert took(lambda: people.plan(text, within=10)) < SECONDS


def test_a_view_and_its_question_together_have_the_length_of_a_question() -> None:
    with confide.testing.open(POLICY, {"person": FRAME}, seed=1) as session:
        where = " OR ".join(["age = 1"] * 1_500)
        session.view("v", f"SELECT age FROM person WHERE {where}")
        assert session.plan("SELECT COUNT(*) AS n FROM v", epsilon=1).columns
        with pytest.raises(ConfideError, match=f"together; at most {LONGEST_QUERY:,} are read"):
            session.plan(f"SELECT COUNT(*) AS n FROM v WHERE {where}", epsilon=1)


def test_a_view_of_a_dialect_that_repeats_parts_is_not_written_out() -> None:
    with confide.testing.open(POLICY, {"person": FRAME}, seed=1) as session:
        nest = nested("LEAST(COALESCE(X, 0), 1)", "LEAST(COALESCE(X, 0), 1)", 14, "age")
        view = f"SELECT age FROM person WHERE {nest} > 0"
        assert took(lambda: session.view("v", view, dialect="mysql")) < SECONDS
        asked = f"SELECT SUM({nest}) AS s FROM v"
        assert took(lambda: session.plan(asked, epsilon=1, dialect="mysql")) < SECONDS
        assert session.plan(asked, epsilon=1, dialect="mysql").columns


def test_every_other_way_in(people: confide.Session) -> None:
    text = f"SELECT COUNT(*) AS n FROM person WHERE {LEAST} > 0"
    calls = [
        lambda: people.plan_trust(text, {"person": FRAME}, within=5, epsilon=1, dialect="mysql"),
        lambda: people.plan_trust([text] * 20_000, {"person": FRAME}, within=5, epsilon=1, dialect="mysql"),
        lambda: people.view("w", f"SELECT age FROM person WHERE {LEAST} > 0", dialect="mysql"),
        lambda: people.plan_synthesize(confide.workload.from_sql([text]), epsilon=1),
        lambda: people.plan_synthesize(confide.workload.from_sql([chained("list")]), epsilon=1),
        people.history,
    ]
    assert all(took(call) < SECONDS for call in calls)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": "1e-999999999"},
        {"epsilon": 10**5_000},
        {"within": "1e999999999%"},
        {"within": 10**5_000},
        {"within": {"n": "9" * 100_000}},
        {"epsilon": 1, "rows": 10**5_000},
        {"epsilon": 1, "confidence": 10**5_000},
        {"epsilon": 1, "split": {"n": "1e999999999"}},
        {"epsilon": 1, "bounds": {"n": [0, "1e999999999"]}},
        {"epsilon": 1, "bounds": {"n": ["1/" + "9" * 100_000, 1]}},
        {"epsilon": 1, "bounds": {"n": [0, 10**5_000]}},
        {"epsilon": 1, "dialect": "x" * 100_000},
        {"epsilon": 1, "mechanism": "x" * 100_000},
    ],
)
def test_absurd_arguments_are_refused(people: confide.Session, options: dict[str, object]) -> None:
    begun = time.process_time()
    with pytest.raises(ConfideError) as caught:
        people.plan("SELECT COUNT(*) AS n FROM person", **options)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 1_500
    assert time.process_time() - begun < SECONDS


def test_bins_of_days_begin_with_the_calendar(people: confide.Session) -> None:
    """The first bin is named by its first day, and there is none before the year 1: known before anything is paid."""
    before = people.budget.spent
    with pytest.raises(ConfideError, match="before the year 1"):
        people.sql("SELECT BIN(born, 3000000) AS b, COUNT(*) AS n FROM person GROUP BY b", epsilon=1)
    assert people.budget.spent == before


def test_a_group_of_zeros_times_a_large_constant(people: confide.Session) -> None:
    """All ends of the intervals may be 0, which fits 64 bits, while the factor does not."""
    text = "SELECT COUNT(*) FILTER (WHERE age > {}) * 1e30 AS n FROM person"
    for place in range(20):
        answer = people.sql(text.format(100 + place // 2), epsilon=5 + place % 2)
        assert answer.values[0].low[0] <= answer.values[0].values[0] <= answer.values[0].high[0]

"""Outer queries, windows and functions of released numbers, asked with next to no noise, are what a database says."""

from collections.abc import Iterator
from fractions import Fraction
from time import process_time
from typing import Any

import duckdb
import pytest

import confide.testing
from confide.errors import BudgetError, QueryError
from confide.release.answer.derived import windowing
from confide.release.answer.derived.building import total_of
from confide.release.session import Session
from tests.release.sql.derived_questions import BOTH, EVERY, GROUPS, POLICY, world


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    return world()


@pytest.fixture
def session(tables: dict[str, Any]) -> Iterator[Session]:
    with confide.testing.open(POLICY, tables, seed=5) as opened:
        yield opened


@pytest.fixture(scope="module")
def database(tables: dict[str, Any]) -> Any:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    try:
        return float(Fraction(value))
    except TypeError:
        return str(value)


def spelled(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def assert_same(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(wanted)
    for one, two in zip(spelled(found), spelled(wanted), strict=True):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert a == (pytest.approx(b, rel=1e-6, abs=1e-6) if isinstance(b, float) else b), (one, two)


@pytest.mark.parametrize("sql", EVERY)
def test_without_noise_it_is_what_a_database_says(sql: str, session: Session, database: Any) -> None:
    answer = session.sql(sql, epsilon=10**6)
    assert_same(
        [tuple(column.values[row] for column in answer.columns) for row in range(len(answer))],
        database.execute(sql).fetchall(),
    )
    for column in answer.values:
        for value, low, high in zip(column.values, column.low, column.high, strict=True):
            assert value is None or isinstance(value, str) or low <= value <= high


def test_one_charge_is_shared_by_all_questions(session: Session) -> None:
    sql = "SELECT COUNT(*) AS n FROM person UNION ALL SELECT COUNT(*) FROM visit"
    answer = session.sql(sql, epsilon=3)
    assert float(answer.cost.epsilon) == 3
    assert session.budget.spent == 3
    assert session.sql(sql, epsilon=3).stored
    assert session.budget.spent == 3


def test_a_plan_forecasts_what_an_answer_shows(session: Session) -> None:
    sql = (
        f"SELECT region, n / SUM(n) OVER () AS share, SUM(n) OVER (ORDER BY region) AS run, n > 9 AS big FROM {GROUPS}"
    )
    plan, answer = session.plan(sql, epsilon=1), session.sql(sql, epsilon=1)
    assert list(plan.half_width) == [column.name for column in answer.values]
    widths = [(high - low) / 2 for low, high in zip(answer["run"].low, answer["run"].high, strict=True)]
    assert plan.half_width["run"] == pytest.approx(max(widths), rel=0.01)
    found = session.plan(f"SELECT AVG(n) AS m FROM {GROUPS}", within=2)
    assert found.half_width["m"] <= 2


def test_rows_chosen_by_value_say_so(session: Session) -> None:
    apart = session.sql(f"SELECT region, n FROM {GROUPS} WHERE n > 200", epsilon=1)
    together = session.sql(f"SELECT region, n / SUM(n) OVER () AS s FROM {GROUPS} WHERE n > 200", epsilon=1)
    assert apart.chosen == (2, 4)
    assert not apart.jointly
    assert together.jointly
    assert together.each_confidence == pytest.approx(1 - 0.05 / 4)
    assert "hold together" in str(together)


def test_keys_alone_say_what_they_were_chosen_by(session: Session) -> None:
    answer = session.sql("SELECT region FROM person GROUP BY region HAVING COUNT(*) > 200", epsilon=1)
    assert sorted(answer["region"].values) == ["E", "N"]
    assert any("decided by noised numbers" in note for note in answer.notes)


def test_a_number_in_where_is_released_first_and_then_a_constant(session: Session) -> None:
    sql = "SELECT region, COUNT(*) AS n FROM person WHERE income > (SELECT AVG(income) FROM person) GROUP BY region"
    plan = session.plan(sql, epsilon=2)
    answer = session.sql(sql, epsilon=2)
    assert float(answer.cost.epsilon) == float(plan.cost.epsilon) == 2
    assert session.budget.spent == 2
    assert "released first" in answer.notes[0]
    assert "the answer is for this constant" in answer.notes[0]
    again = session.sql(sql, epsilon=2)
    assert again.stored
    assert again == answer
    alone = session.sql("SELECT AVG(income) FROM person", epsilon=1)
    assert alone.stored
    with pytest.raises(BudgetError, match="all steps"):
        session.sql(sql, epsilon=10**6)


def test_a_number_that_stands_in_where_twice_is_one_question(session: Session) -> None:
    mean = "(SELECT AVG(income) FROM person)"
    sql = f"SELECT COUNT(*) AS n FROM person WHERE income > {mean} OR age > (SELECT AVG(age) FROM person) OR {mean} > 9"
    answer = session.sql(sql, epsilon=3)
    assert float(answer.cost.epsilon) == session.budget.spent == 3
    assert session.sql("SELECT AVG(income) FROM person", epsilon=1).stored
    assert sum("released first" in note for note in answer.notes) == 2


OLD = "WITH person AS (SELECT income, region, age FROM person WHERE age > 50)"
NAMED = [
    f"{OLD} SELECT COUNT(*) AS n FROM person WHERE income > (SELECT AVG(income) * 1.2 FROM person)",
    f"{OLD}, rich AS (SELECT income AS i FROM person WHERE income > 500) "
    "SELECT region, COUNT(*) AS n FROM person WHERE income > (SELECT AVG(i) FROM rich) GROUP BY region",
    "WITH old AS (SELECT * FROM person WHERE age > 50) "
    "SELECT COUNT(*) AS n FROM person WHERE income > (SELECT AVG(income) FROM old)",
    f"{OLD}, above AS (SELECT age FROM person WHERE income > (SELECT AVG(income) FROM person)) "
    "SELECT COUNT(*) AS n FROM above",
]


@pytest.mark.parametrize("sql", NAMED)
def test_a_number_in_where_knows_the_queries_of_with(sql: str, session: Session, database: Any) -> None:
    """Also one that has the name of a table."""
    answer = session.sql(sql, epsilon=10**5)
    found = [tuple(column.values[row] for column in answer.columns) for row in range(len(answer))]
    assert_same(found, database.execute(sql).fetchall())


NOT_ANSWERED = [
    (f"SELECT region, RANK() OVER (ORDER BY n) AS r FROM {GROUPS} LIMIT 0", "LIMIT 1 or more"),
    ("SELECT SUM(age) OVER () AS s FROM person", "over rows of the data"),
    (f"SELECT region, n FROM {GROUPS} JOIN person USING (region)", "holds rows"),
    (f"SELECT a.n FROM {GROUPS} a JOIN {GROUPS} b ON a.n = b.n", "differ by their noise; join on keys"),
    (f"SELECT RANK() OVER (PARTITION BY n ORDER BY region) AS r FROM {GROUPS}", "PARTITION BY takes keys"),
    (f"SELECT COUNT(DISTINCT n) AS k FROM {GROUPS}", "count distinct keys"),
    (f"SELECT region, LAG(n) OVER (ORDER BY n) AS p FROM {GROUPS}", "order by keys"),
    (f"SELECT region, STRING_AGG(sex) AS s FROM {BOTH} GROUP BY region", "not answered over released rows"),
    (f"SELECT region FROM {GROUPS}", "nothing that is released"),
    (f"SELECT region + 1 AS r, n FROM {GROUPS}", "a number is needed"),
    (f"SELECT n FROM {GROUPS} WHERE region = 3", "compares a text with a"),
    (f"SELECT n FROM {GROUPS} WHERE m > 3", "there is no column m"),
    (f"SELECT n / 0 AS q FROM {GROUPS}", "divides by zero"),
    (f"SELECT REGEXP_REPLACE(region, 'N', 'M') AS r, n FROM {GROUPS}", "is not computed of released numbers"),
    ("SELECT COUNT(*) AS n FROM person INTERSECT SELECT COUNT(*) FROM visit", "INTERSECT and EXCEPT"),
    (
        "SELECT region, COUNT(*) AS n FROM person GROUP BY region UNION ALL SELECT COUNT(*) FROM visit",
        "numbers of columns",
    ),
    (f"SELECT (SELECT n FROM {GROUPS}) AS a, COUNT(*) AS n FROM person", "one column and no GROUP BY"),
    ("WITH RECURSIVE a AS (SELECT COUNT(*) AS n FROM person) SELECT n + 1 AS m FROM a", "recursive"),
    (f"SELECT region, n FROM {GROUPS} t, {GROUPS} t", "two tables are called t"),
    ("SELECT COUNT(*) FROM person WHERE income > (SELECT income FROM person)", "rows"),
    (
        "SELECT COUNT(*) FROM person WHERE income > (SELECT AVG(income) FROM person HAVING COUNT(*) > 9e6)",
        "no GROUP BY",
    ),
    ("SELECT COUNT(*) FROM person WHERE income > (SELECT AVG(income) FROM person LIMIT 0)", "no GROUP BY, HAVING"),
    ("SELECT COUNT(*) FROM person WHERE income > (SELECT AVG(income) FROM person OFFSET 1)", "no GROUP BY, HAVING"),
    (
        "WITH visit AS (SELECT * FROM visit WHERE cost > 400) SELECT COUNT(*) FROM person p "
        "WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.person_id)",
        "WITH visit is named in EXISTS",
    ),
    (
        "WITH visit AS (SELECT * FROM visit WHERE cost > 400) SELECT SUM(n) AS s FROM (SELECT sex, COUNT(*) AS n "
        "FROM person WHERE person_id IN (SELECT person_id FROM visit) GROUP BY sex)",
        "WITH visit is named in EXISTS",
    ),
]


@pytest.mark.parametrize(("sql", "words"), NOT_ANSWERED)
def test_what_is_refused_says_what_to_write(sql: str, words: str, session: Session) -> None:
    with pytest.raises(QueryError, match=words):
        session.sql(sql, epsilon=1)
    assert session.budget.spent == 0


OPEN = {**POLICY, "budget": {"epsilon": 1e5, "delta": 1e-6}, "tables": {"person": {"columns": {
    **POLICY["tables"]["person"]["columns"], "job": {"type": "text"}}}}}  # fmt: skip


def test_keys_that_a_threshold_shows_are_computed_with_as_well(tables: dict[str, Any]) -> None:
    """The number that showed a key has a law of its own; a median is made for all cells that it stands in."""
    jobs = ["baker"] * 400 + ["smith"] * 300 + ["miller"] * 199 + ["king"]
    data = {"person": tables["person"].append_column("job", [jobs])}
    inner = "(SELECT job, COUNT(*) AS n, MEDIAN(income) AS m FROM person GROUP BY job)"
    with confide.testing.open(OPEN, data, seed=4) as session:
        counts = "(SELECT job, COUNT(*) AS n FROM person GROUP BY job)"
        answer = session.sql(f"SELECT SUM(n) AS s, MAX(n) AS x, COUNT(*) AS k FROM {counts}", epsilon=2)
        assert answer["s"].low[0] <= 899 <= answer["s"].high[0]
        assert answer["x"].low[0] <= 400 <= answer["x"].high[0]
        assert answer["k"].values == (3,)
        ranked = session.sql(f"SELECT job, m, RANK() OVER (ORDER BY n DESC) AS r FROM {inner} ORDER BY r", epsilon=20)
        assert ranked["job"].values == ("baker", "smith", "miller")
        assert all(
            low <= value <= high
            for value, low, high in zip(ranked["m"].values, ranked["m"].low, ranked["m"].high, strict=True)
        )
        assert any("left out" in note for note in ranked.notes)
        plan = session.plan(f"SELECT MAX(m) AS m FROM {inner} WHERE n > 10", epsilon=20)
        assert plan.half_width["m"] > 0


def test_windows_up_to_each_row_have_a_bound_in_all(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is kept for itself: many windows over many rows would take gigabytes."""
    monkeypatch.setattr(windowing, "MOST_SUMMED", 2 * 100**2)
    sums = [f"SUM(COUNT(*)) OVER (ORDER BY age) AS s{place}" for place in range(3)]
    three, two = (f"SELECT age, {', '.join(sums[:count])} FROM person GROUP BY age" for count in (3, 2))
    assert_refused_for_free(session, three)
    answer = session.sql(two, epsilon=1)
    assert all(value is not None for name in ("s0", "s1") for value in answer[name].values)


@pytest.mark.parametrize(
    "window", ["ORDER BY age", "ORDER BY n", "ORDER BY age ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"]
)
def test_windows_over_too_many_public_rows_are_refused(
    window: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windowing, "MOST_FRAMED", 40)
    source = "(SELECT age, COUNT(*) AS n FROM person GROUP BY age)"
    assert_refused_for_free(session, f"SELECT age, SUM(n) OVER ({window}) AS s FROM {source}")
    few = session.sql(f"SELECT age, SUM(n) OVER ({window}) AS s FROM {source} WHERE age < 9", epsilon=1)
    assert len(few) == 9
    assert None not in few["s"].values
    assert session.sql(f"SELECT age, SUM(n) OVER () AS s, RANK() OVER (ORDER BY n) AS r FROM {source}", epsilon=1)


def test_windows_over_too_many_keys_that_are_private_are_null(
    tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many there are is released, and not known before the charge."""
    monkeypatch.setattr(windowing, "MOST_FRAMED", 2)
    data = {"person": tables["person"].append_column("job", [["baker"] * 400 + ["smith"] * 300 + ["miller"] * 200])}
    with confide.testing.open(OPEN, data, seed=4) as session:
        sums = "SELECT job, SUM(COUNT(*)) OVER (ORDER BY job) AS s FROM person GROUP BY job"
        answer = session.sql(sums, epsilon=2)
        assert set(answer["s"].values) == {None}
        assert any("too many rows" in note for note in answer.notes)


def assert_refused_for_free(session: Session, sql: str) -> None:
    spent = session.budget.spent
    with pytest.raises(QueryError, match="use wider bins or fewer keys"):
        session.sql(sql, epsilon=1)
    with pytest.raises(QueryError, match="use wider bins or fewer keys"):
        session.plan(sql, epsilon=1)
    assert session.budget.spent == spent


def test_a_running_sum_is_made_of_the_one_before_it() -> None:
    """In time that a copy takes: adding up all terms anew takes ten times as long."""
    one = ({place: Fraction(1) for place in range(200_000)}, Fraction(3))
    begun = process_time()
    total = total_of([one, ({0: Fraction(-1), 1: Fraction(1)}, Fraction(1))])
    assert process_time() - begun < 0.05
    assert (total.constant, len(total.terms), total.terms[1]) == (4, 199_999, 2)


@pytest.mark.parametrize("join", ["LEFT", "FULL"])
@pytest.mark.parametrize("empty", ["one", "two"])
def test_a_side_without_a_row_has_its_columns(join: str, empty: str, session: Session) -> None:
    """Which groups are impossible follows from the text: a table of none has no row to count columns of."""
    none = "WHERE region = 'N' AND region = 'S'"
    one, two = (
        f"SELECT region, COUNT(*) AS n FROM person {none if name == empty else ''} GROUP BY region"
        for name in ("one", "two")
    )
    sql = (
        f"WITH one AS ({one}), two AS ({two}) SELECT one.region AS a, two.region AS b, LEAST(one.n, two.n) AS n "
        f"FROM one {join} JOIN two ON one.region = two.region"
    )
    found = session.sql(sql, epsilon=50).to_dicts()
    groups = len(session.sql("SELECT region, COUNT(*) AS n FROM person GROUP BY region", epsilon=50))
    assert len(found) == (0 if (join, empty) == ("LEFT", "one") else groups)
    assert all((row["a"] is None) == (empty == "one") and (row["b"] is None) == (empty == "two") for row in found)

"""What is made of released rows stays short, however short the text is that asks for it: numbers, texts, patterns.

Each step of a text may double what the one before made: fifteen queries in each other make a thousand million of one.
"""

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import pytest

import confide.testing
from confide.errors import QueryError
from confide.privacy.limits import LONGEST_MADE, MOST_MADE
from confide.release.answer.derived import building
from confide.release.session import Session
from tests.release.sql.derived_questions import GROUPS, POLICY, world

SECONDS = 5.0
"""Of the processor: an exponent passes any bound by far."""
OPEN = {**POLICY, "budget": {"epsilon": 1e5, "delta": 1e-6}, "tables": {"person": {"columns": {
    **POLICY["tables"]["person"]["columns"], "job": {"type": "text"}}}}}  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    return world()


@pytest.fixture
def session(tables: dict[str, Any]) -> Iterator[Session]:
    with confide.testing.open(POLICY, tables, seed=5) as opened:
        yield opened


def nested(inner: str, step: str, levels: int) -> str:
    for _ in range(levels):
        inner = f"SELECT {step}, n FROM ({inner}) AS i"
    return inner


def timed(call: Callable[[], Any]) -> Any:
    begun = process_time()
    found = call()
    assert process_time() - begun < SECONDS
    return found


@pytest.mark.parametrize(
    ("inner", "step"),
    [
        ("SELECT 1234567.891 AS c, COUNT(*) AS n FROM person", "(c / (1 / c)) / (1 / (c / (1 / c))) AS c"),
        ("SELECT 1234567.891 AS c, COUNT(*) AS n FROM person", "(c * c) * (c * c) AS c"),
        (
            "SELECT SUM(k) + 0.1 AS c, SUM(n) AS n FROM (SELECT age AS k, COUNT(*) AS n FROM person GROUP BY age) AS j",
            "(c * c) * (c * c) AS c",
        ),
        ("SELECT 1234567.891 AS c, COUNT(*) AS n FROM person", "0.5 * c * 1e30 AS c"),
    ],
)
def test_exact_numbers_stay_short(inner: str, step: str, session: Session) -> None:
    """Beyond doubles they are NULL, as every number there is; nothing fails after the charge."""
    sql = nested(inner, step, 14)
    timed(lambda: session.plan(sql, epsilon=1))
    answer = timed(lambda: session.sql(sql, epsilon=1))
    assert answer["c"].values == (None,)
    assert answer["n"].low[0] <= 900 <= answer["n"].high[0]


def test_what_noise_is_multiplied_by_stays_short(session: Session) -> None:
    inner = "SELECT 1234567.891 AS c, COUNT(*) AS n FROM person"
    for _ in range(14):
        inner = f"SELECT c, n * c / 0.123456789012345678901234567891 AS n FROM ({inner}) AS i"
    answer = timed(lambda: session.sql(inner, epsilon=1))
    exact = 900 * (1234567.891 / 0.12345678901234568) ** 14
    assert answer["n"].low[0] * (1 - 1e-9) <= exact <= answer["n"].high[0] * (1 + 1e-9)


def test_a_sum_of_very_many_fractions_is_no_long_one(session: Session) -> None:
    bins = "SELECT income AS k, COUNT(*) AS n FROM person GROUP BY income"
    sql = f"SELECT SUM(1 / (k * k * k + 0.123456789)) AS c, SUM(n / (k * k * k + 0.123456789)) AS n FROM ({bins}) AS j"
    answer = timed(lambda: session.sql(sql, epsilon=1))
    exact = sum(1 / (k**3 + 0.123456789) for k in range(1001))
    assert answer["c"].low[0] <= exact * (1 + 1e-9)
    assert answer["c"].high[0] >= exact * (1 - 1e-9)


@pytest.mark.parametrize("levels", [6, 14])
def test_texts_that_double_are_refused_for_free(levels: int, session: Session) -> None:
    sql = nested(GROUPS[1:-1].replace("region,", "region AS k,"), "(k || k) || (k || k) AS k", levels)
    for call in (session.plan, session.sql):
        with pytest.raises(QueryError, match="make shorter ones"):
            timed(lambda call=call: call(sql, epsilon=1))
    assert session.budget.spent == 0


def test_texts_have_a_bound_in_all(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LONGEST_MADE * 4 < MOST_MADE
    monkeypatch.setattr(building, "MOST_MADE", 20)
    with pytest.raises(QueryError, match="make shorter ones"):
        session.sql(f"SELECT region || ' is one' AS k, n FROM {GROUPS}", epsilon=1)
    assert len(session.sql(f"SELECT region || '!' AS k, n FROM {GROUPS}", epsilon=1)) == 4


def test_keys_that_are_released_are_null_where_they_would_be_too_long(tables: dict[str, Any]) -> None:
    """Which there are is known after the charge: then nothing is refused."""
    jobs = {"person": tables["person"].append_column("job", [["baker" * 60] * 500 + ["smith"] * 400])}
    with confide.testing.open(OPEN, jobs, seed=4) as session:
        counts = "SELECT job AS k, COUNT(*) AS n FROM person GROUP BY job"
        answer = session.sql(f"SELECT k || k || k || k AS k, n FROM ({counts}) AS i ORDER BY n DESC", epsilon=20)
        assert answer["k"].values == (None, "smith" * 4)
        assert any("too long" in note for note in answer.notes)


def test_a_hostile_pattern_takes_no_time(session: Session) -> None:
    label = "a" * 900
    groups = f"SELECT CASE WHEN age > 3 THEN '{label}' ELSE 'x' END AS g, COUNT(*) AS n FROM person GROUP BY g"
    for word in ("LIKE", "ILIKE"):
        sql = f"SELECT g {word} '%a%a%a%_a%a%a%a%a%_b' AS hit, n FROM ({groups}) AS i"
        assert timed(lambda sql=sql: session.sql(sql, epsilon=1))["hit"].values == (False, False)


def test_a_pattern_on_keys_is_bounded_as_elsewhere(session: Session) -> None:
    with pytest.raises(QueryError, match="at most 10 %"):
        session.plan(f"SELECT region LIKE '{'%a' * 11}' AS hit, n FROM {GROUPS}", epsilon=1)

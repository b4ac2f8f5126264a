"""The same questions with the same test noise are the same answers on DuckDB, PostgreSQL and Spark, to the letter.

A fourth of the questions of `asked.sql`; all of them, and those of the documentation, are asked in `test_agreement.py`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import confide
from confide.release.session import Session
from tests.engine.sessions import QUESTIONS, REFUSED, census_tables, differing, sessions_of
from tests.servers import PostgresServer

RATIOS = "AVG(income) AS m, COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) AS f"
JOIN = "FROM visit v JOIN person p ON v.person_id = p.person_id"


@pytest.fixture(scope="module")
def sessions(
    postgres_server: PostgresServer, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Session]]:
    with sessions_of(*census_tables(300), postgres_server, spark, tmp_path_factory.mktemp("spark")) as opened:
        yield opened


def test_questions_have_one_answer(sessions: dict[str, Session]) -> None:
    few = [*QUESTIONS[::4], *REFUSED]
    assert len(few) > 12
    different = [
        text
        for sql in few
        for text in differing(sessions, lambda own, sql=sql: own.sql(sql, epsilon=1), sql, refused=sql in REFUSED)
    ]
    assert not different, "\n".join(different)


def test_what_else_is_asked_has_one_answer(sessions: dict[str, Session]) -> None:
    wanted = (
        confide.ranges("age", bins=10)
        + confide.prefixes("income", bins=10_000)
        + confide.marginals(k=2, columns=["region", "sex"])
    )
    calls: dict[str, Callable[[Session], Any]] = {
        "population": lambda own: own.sql(
            f"SELECT region, {RATIOS} FROM person GROUP BY region", epsilon=1, population=True
        ),
        "within": lambda own: own.sql("SELECT COUNT(*) AS n FROM person", within=7),
        "truncated": lambda own: own.sql(f"SELECT SUM(v.cost) AS s {JOIN}", epsilon=1, mechanism="truncate"),
        "summary": lambda own: own.summary(1, "visit"),
        "workload": lambda own: own.answer(wanted, 1, table="person").to_arrow().to_pydict(),
    }
    different = [text for name, call in calls.items() for text in differing(sessions, call, name)]
    assert not different, "\n".join(different)

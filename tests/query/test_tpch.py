"""The questions of TPC-H as they are published: what is bound, and why the others are not."""

from collections.abc import Iterator
from time import perf_counter

import pytest

from confide.engine.duckdb.engine import DuckDBEngine
from confide.errors import QueryError
from confide.query import bind
from tests.query.tpch import POLICIES, TpchQuestion, questions, tables

ALL = questions()


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, DuckDBEngine]]:
    opened = {unit: DuckDBEngine(policy, tables(unit)) for unit, policy in POLICIES.items()}
    yield opened
    for engine in opened.values():
        engine.close()


def test_there_are_22() -> None:
    assert [question.number for question in ALL] == list(range(1, 23))


@pytest.mark.parametrize("question", ALL, ids=[f"Q{question.number}" for question in ALL])
def test_a_question_is_bound_or_says_why_not(question: TpchQuestion, engines: dict[str, DuckDBEngine]) -> None:
    begun = perf_counter()
    try:
        bind(question.text, POLICIES[question.unit], engines[question.unit])
        refused = ""
    except QueryError as error:
        refused = str(error)
    assert perf_counter() - begun < 2
    assert question.refused in refused if question.refused else not refused, refused

"""The questions of TPC-H as they are published: what is bound and planned, and why the others are not."""

from collections.abc import Iterator
from time import perf_counter

import pytest

import confide.testing
from confide.errors import QueryError
from confide.release import Session
from tests.query.tpch import POLICIES, TpchQuestion, questions, tables

ALL = questions()


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, Session]]:
    opened = {unit: confide.testing.open(policy, tables(unit), seed=1) for unit, policy in POLICIES.items()}
    yield opened
    for session in opened.values():
        session.close()


def test_there_are_22_of_which_most_are_answered() -> None:
    assert [question.number for question in ALL] == list(range(1, 23))
    assert sum(not question.refused for question in ALL) == 16
    assert sum(not question.refused and question.unit == "customer" for question in ALL) == 14


@pytest.mark.parametrize("question", ALL, ids=[f"Q{question.number}" for question in ALL])
def test_a_question_is_planned_or_says_why_not(question: TpchQuestion, sessions: dict[str, Session]) -> None:
    begun = perf_counter()
    try:
        sessions[question.unit].plan(question.text, epsilon=1)
        refused = ""
    except QueryError as error:
        refused = str(error)
    assert perf_counter() - begun < 10
    assert question.refused in refused if question.refused else not refused, refused

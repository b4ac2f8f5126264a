"""What no ledger would keep is refused before anything is charged, and what is known only later is cut to what fits."""

from typing import Any

import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import ConfideError, ParameterError, QueryError
from confide.policy import Category
from confide.privacy.limits import LONGEST_ANSWER, MOST_NUMBERS
from confide.query.tree import DeclaredKey, Field
from confide.release import Session, guard
from confide.release.answer import size as room
from tests.release.samples import APPROXIMATE, frames, policy


@pytest.fixture
def session() -> Session:
    return confide.testing.open(policy(APPROXIMATE), frames(200), seed=1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers that keep little."""
    monkeypatch.setattr(room, "LONGEST_ANSWER", 4_000)
    monkeypatch.setattr(guard, "LONGEST_ANSWER", 4_000)


def refused(session: Session, ask: Any) -> ConfideError:
    with pytest.raises(ConfideError) as caught:
        ask()
    assert session.budget.spent == 0
    assert "a ledger keeps at most" in str(caught.value)
    return caught.value


def test_a_great_many_long_keys_are_refused_in_plan_and_answer() -> None:
    texts = [f"{place:03}" + "x" * 700 for place in range(500)]
    table = {"columns": {"g": {"values": texts}, "y": {"range": [0, 999]}}}
    rules = {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": table}}
    sql = "SELECT g, BIN(y, 1) AS b, COUNT(*) AS n FROM t GROUP BY g, b"
    session = confide.testing.open(rules, {"t": pl.DataFrame({"g": texts[:1], "y": [2]})}, seed=1)
    assert LONGEST_ANSWER < 500 * 1000 * 703
    assert isinstance(refused(session, lambda: session.plan(sql, epsilon=1)), QueryError)
    assert isinstance(refused(session, lambda: session.sql(sql, epsilon=1)), QueryError)
    assert session.plan(f"{sql} LIMIT 10", epsilon=1)


def test_the_numbers_of_an_answer_have_room() -> None:
    """Their count is limited already; as long as numbers are written, they fit."""
    assert MOST_NUMBERS * room._NUMBER < LONGEST_ANSWER


@pytest.mark.usefixtures("small")
def test_every_product_is_refused_before_its_charge(session: Session) -> None:
    refused(session, lambda: session.sql("SELECT BIN(age, 1) AS a, COUNT(*) AS n FROM person GROUP BY a", epsilon=1))
    refused(session, lambda: session.microdata([("age", "region", "sex")], 1, table="person"))
    refused(session, lambda: session.plan_microdata([("age", "region", "sex")], 1, table="person"))
    workload = confide.marginals(1, ["region", "sex"])
    refused(session, lambda: session.synthesize(workload, 1, table="person", rows=500))
    refused(session, lambda: session.plan_synthesize(workload, 1, table="person", rows=500))
    sql, copy = "SELECT region, COUNT(*) AS n FROM person GROUP BY region", frames(100)
    assert isinstance(refused(session, lambda: session.trust(sql, copy, 50, 1)), ParameterError)
    refused(session, lambda: session.plan_trust(sql, copy, 50, 1))


@pytest.mark.usefixtures("small")
def test_keys_that_nobody_declared_are_cut_to_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    towns = [f"town {place:03}" for place in range(200)]
    people = frames(2_000)
    people["person"] = people["person"].with_columns(pl.Series("town", [towns[place % 200] for place in range(2_000)]))
    session = confide.testing.open(policy({"epsilon": 1000, "delta": 1e-6}), people, seed=1)
    answer = session.sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town", epsilon=500)
    assert 10 < len(answer) < 200
    assert any("only the first rows are shown" in note for note in answer.notes)
    assert len(answer.to_bytes()) <= 4_000
    assert session.sql("SELECT town, COUNT(*) AS n FROM person GROUP BY town", epsilon=500) == answer


def test_no_key_is_longer_than_is_said_without_writing_it() -> None:
    awkward = ("", "a", '"' * 9, "\x01\n\\" * 5, "é" * 7, "\U0001f600" * 3, "\u2028" * 4)
    column = Field("t", Category("c", ("a",)))
    for values in (*((text,) for text in awkward), awkward, (True, False), (1, -(10**18), None)):
        key = DeclaredKey("c", column, values)
        assert room._key_width(key) <= room._at_most(key)

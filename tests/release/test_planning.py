"""Plans without an ε tell what several give; plans of groups that were counted before know how large they are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import confide
from confide.engine.sql_engine import SqlEngine
from confide.errors import EngineError
from confide.policy import load
from confide.release import Session

AVERAGE = "SELECT g, AVG(x) AS mean FROM t GROUP BY g"
COUNTED = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
ROWS = {"x": [i % 100 for i in range(6_000)], "g": ["a"] * 4_000 + ["b"] * 1_500 + ["c"] * 500}


def rules(**more: Any) -> dict[str, Any]:
    columns = {"x": {"range": [0, 100]}, "g": {"values": ["a", "b", "c"]}}
    tables = {"t": {"columns": columns, "size": 6_000}}
    return {"budget": {"epsilon": 30}, "unit": "row", "tables": tables, **more}


@pytest.fixture
def session() -> Any:
    with confide.testing.open(rules(), ROWS, seed=1) as opened:
        yield opened


def test_without_an_epsilon_a_plan_tells_what_several_give(session: Session) -> None:
    plan = session.plan(COUNTED)
    assert [own.epsilon for own in plan.alternatives] == [0.3, 1, 3, 10]
    assert [own.fitting for own in plan.alternatives] == [100, 30, 10, 3]
    for own in plan.alternatives:
        assert own.half_width == session.plan(COUNTED, epsilon=own.epsilon).half_width
    assert "calls that fit" in str(plan)
    assert "calls that fit" in plan._repr_html_()
    told = json.loads(json.dumps(plan.to_dict()))["alternatives"]
    assert told[0] == {"epsilon": 0.3, "half_width": {"n": 10.0}, "fitting": 100}


@pytest.mark.parametrize("more", [{"epsilon": 1}, {"within": 10}])
def test_with_one_it_tells_that_alone(session: Session, more: dict[str, Any]) -> None:
    plan = session.plan(COUNTED, **more)
    assert plan.alternatives == ()
    assert "alternatives" not in plan.to_dict()
    assert plan.fitting == 30 / plan.epsilon // 1


def test_what_was_spent_is_no_longer_on_offer(session: Session) -> None:
    session.sql(COUNTED, epsilon=15)
    assert [own.fitting for own in session.plan(COUNTED).alternatives] == [50, 15, 5, 1]


def test_joins_are_planned_for_several_too() -> None:
    with confide.testing.open(rules(), ROWS, seed=1) as session:
        plan = session.plan("SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.g = b.g")
        assert len(plan.alternatives) == 4


# --- counts that were released ----------------------------------------------------------------------------------------


def sized(session: Session, **more: Any) -> list[int]:
    """For how many rows a plan says widths, beside those that it assumes."""
    notes = [note for note in session.plan(AVERAGE, epsilon=1, **more).notes if "released before" in note]
    return [int(found.replace(",", "")) for note in notes for found in re.findall(r"with ([0-9,]+) rows", note)]


def test_groups_that_were_counted_are_planned_as_large_as_they_are(session: Session) -> None:
    assert sized(session) == []
    counts = session.sql(COUNTED, epsilon=5).to_dicts()
    assert sized(session) == sorted(row["n"] for row in counts)
    width = session.plan(AVERAGE, epsilon=1, rows=3 * 500).half_width["mean"]
    note = next(note for note in session.plan(AVERAGE, epsilon=1).notes if "released before" in note)
    assert float(note.split("±")[1].split(" ")[0]) == pytest.approx(width, rel=0.05)


def test_counts_of_other_rows_or_groups_are_not_used(session: Session) -> None:
    session.sql("SELECT g, COUNT(*) AS n FROM t WHERE x > 50 GROUP BY g", epsilon=1)
    session.sql("SELECT g, COUNT(x) AS n FROM t GROUP BY g HAVING COUNT(x) > 10", epsilon=1)
    session.sql("SELECT BIN(x, 50) AS b, COUNT(*) AS n FROM t GROUP BY b", epsilon=1)
    session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    session.sql("SELECT g, SUM(x) AS n FROM t GROUP BY g", epsilon=1)
    session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n DESC LIMIT 2", epsilon=1)
    assert sized(session) == []
    session.sql("SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g", epsilon=5)
    assert len(sized(session)) == 3


def test_counts_that_failed_are_none(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is kept, and told to whoever asks again; a plan is not that."""

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(SqlEngine, "evaluate", fails)
    with pytest.raises(EngineError):
        session.sql(COUNTED, epsilon=1)
    monkeypatch.undo()
    assert sized(session) == []
    session.sql(COUNTED, epsilon=2)
    assert len(sized(session)) == 3


def test_counts_of_another_analyst_or_other_data_are_not_used(tmp_path: Path) -> None:
    """Only what this session would be given again for free."""
    place = tmp_path / "t.ledger"
    with confide.open(rules(), ROWS, ledger=place, analyst="ann", create=True) as ann:
        ann.sql(COUNTED, epsilon=1)
        assert len(sized(ann)) == 3
    with confide.open(rules(), ROWS, ledger=place, analyst="bob") as bob:
        assert sized(bob) == []
    with confide.open(rules(version="2"), ROWS, ledger=place, analyst="ann") as later:
        assert sized(later) == []
    with confide.open(rules(), ROWS, ledger=place, analyst="ann") as again:
        spent = again.budget.spent
        assert len(sized(again)) == 3
        assert again.budget.spent == spent


def test_a_session_describes_public_facts_alone(tmp_path: Path) -> None:
    policy = load({**rules(), "ledger": str(tmp_path / "secret-place.ledger")})
    with confide.testing.open(policy, ROWS, seed=1) as session:
        described = session.describe()
    for text in (str(described), described._repr_html_()):
        assert "0 to 100" in text
        assert "a, b, c" in text
        assert "one row of any private table" in text
        assert "secret-place" not in text
        assert str(tmp_path) not in text
    assert "<table>" in described._repr_html_()

"""What a notebook shows: short reprs, HTML of everything that a call gives, refusals in one line."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import confide
import confide.testing
from confide.errors import ConfideError, EngineError, PolicyError, Problem
from confide.release import Session
from tests.host.test_notebook import Tags
from tests.release.samples import APPROXIMATE, frames, policy
from tests.synthesis.fitting import pretend_to_fit

SQL = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM person GROUP BY region"


@pytest.fixture
def session() -> Iterator[Session]:
    with confide.testing.open(policy(APPROXIMATE), frames(), seed=1) as opened:
        yield opened


def test_columns_and_rows(session: Session) -> None:
    answer = session.sql(SQL, epsilon=1)
    rows = answer.to_dicts()
    column = answer["n"]
    assert isinstance(column, confide.release.answer.answer.ValueColumn)
    assert list(column) == [row["n"] for row in rows]
    assert list(column.low) == [row["n_low"] for row in rows]
    assert list(column.high) == [row["n_high"] for row in rows]
    assert (column[0], len(column)) == (rows[0]["n"], len(rows))
    assert np.asarray(column).sum() == sum(row["n"] for row in rows)
    assert list(answer["region"]) == [row["region"] for row in rows]
    assert list(answer) == rows
    assert (answer[0], answer[-1], answer[:2]) == (rows[0], rows[-1], rows[:2])
    assert "n" in answer
    assert "n_low" not in answer
    with pytest.raises(KeyError, match="there is no column m; there are region, n, age"):
        answer["m"]


def results(session: Session, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    pretend_to_fit(monkeypatch)
    twin = session.synthesize(confide.marginals(2, ["region", "sex"]), 1, table="person", rows=5)
    count = "SELECT COUNT(*) FROM person"
    return {
        "answer": session.sql(SQL, epsilon=1),
        "plan": session.plan(SQL, epsilon=1),
        "session": session,
        "budget": session.budget,
        "policy": session.policy,
        "twin": twin,
        "twin plan": session.plan_synthesize(confide.marginals(2, ["region", "sex"]), 1, table="person", rows=5),
        "microdata": session.microdata(["sex"], 1, table="person"),
        "microdata plan": session.plan_microdata(["sex"], 1, table="person"),
        "verdict": session.trust(count, twin, within=50, epsilon=1),
        "verdicts": session.trust([count, f"{count} WHERE sex = 'F'"], twin, within=50, epsilon=1),
        "trust plan": session.plan_trust(count, twin, within=50, epsilon=1),
    }


def test_everything_shows_itself(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, result in results(session, monkeypatch).items():
        page = Tags(result._repr_html_())
        assert result._repr_html_().startswith("<div class='confide'>"), name
        assert page.tags <= {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "b", "span"}, name
        if name not in ("plan", "budget", "twin plan", "microdata plan", "trust plan"):
            assert len(repr(result)) < 200, name
            assert "\n" not in repr(result), name


def test_a_closed_session_still_shows_its_policy(session: Session) -> None:
    session.close()
    assert "the budget cannot be read" in session._repr_html_()


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (confide.errors.QueryError("no\x1b[31m rows"), ["refused: no\\x1b[31m rows"]),
        (confide.errors.ParameterError("epsilon"), ["wrong usage: epsilon"]),
        (EngineError(), [f"failed: {EngineError()}"]),
        (PolicyError((Problem("a", "b"),)), ["refused: the policy has 1 problem:", "  a: b"]),
    ],
)
def test_an_error_is_its_words(error: ConfideError, words: list[str]) -> None:
    assert error._render_traceback_() == words


def test_a_refusal_in_ipython_is_one_line(session: Session) -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    try:
        shell.user_ns["session"] = session
        said = io.StringIO()
        with redirect_stdout(said):
            shell.run_cell("session.sql('SELECT * FROM person', epsilon=1)", store_history=False)
        lines = said.getvalue().strip().splitlines()
        assert len(lines) == 1, said.getvalue()
        assert lines[0].startswith("refused: ")
        shell.run_cell(f"answer = session.sql({SQL!r}, epsilon=1)", store_history=False)
        shown, _ = shell.display_formatter.format(shell.user_ns["answer"])
        assert set(shown) == {"text/plain", "text/html"}
        assert shown["text/plain"].startswith("<Answer: ")
    finally:
        shell.history_manager.end_session() if shell.history_manager else None

"""The ledger of a policy, as its keeper sees it."""

import io
import json
from fractions import Fraction
from pathlib import Path

import pytest

import confide
from confide.errors import LedgerError, LedgerMissing, ParameterError
from confide.ledger import SqliteLedger, check_export
from confide.policy import Policy
from confide.privacy.budget import Budget
from confide.release.custody import books

TEXT = """\
budget: {epsilon: 1}
analysts: {ann: 1/2, "*": 1}
unit: row
ledger: policy.ledger
tables:
  t:
    columns:
      x: {range: [0, 10]}
"""
DATA = {"t": {"x": [1, 2, 3]}}


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(TEXT)
    return Policy.load(path)


def ask(policy: Policy, epsilon: str, analyst: str = "", sql: str = "SELECT COUNT(*) AS n FROM t") -> None:
    with confide.open(policy, DATA, analyst=analyst, create=True) as session:
        session.sql(sql, epsilon=epsilon)


def test_looking_makes_no_ledger(policy: Policy, tmp_path: Path) -> None:
    found = books.look(policy)
    assert (found.exists, found.entries, found.budget.spent, found.budget.left) == (False, 0, 0, 1)
    assert [file.name for file in tmp_path.iterdir()] == ["policy.yaml"]


def test_looking_agrees_with_the_session(policy: Policy) -> None:
    ask(policy, "0.25", "ann")
    ask(policy, "0.25")
    for analyst in ("ann", "bob", ""):
        with confide.open(policy, DATA, analyst=analyst, create=True) as session:
            assert books.look(policy, analyst=analyst).budget == session.budget
    found = books.look(policy, epsilon="1/8")
    assert (found.entries, found.answers_left) == (5, 4)
    with pytest.raises(ParameterError):
        books.look(policy, epsilon="0")


def test_a_ledger_elsewhere(policy: Policy, tmp_path: Path) -> None:
    other = tmp_path / "other.ledger"
    SqliteLedger.create(other, policy.budget, policy.analysts).close()
    assert books.look(policy, other).exists
    assert not books.look(policy).exists
    with pytest.raises(LedgerError, match="does not exist"):
        books.look(policy, tmp_path / "none" / "x.ledger")


def test_lines_say_who_asked_what(policy: Policy) -> None:
    ask(policy, "0.25", "ann")
    ask(policy, "0.125", sql="SELECT SUM(x) AS s FROM t")
    opened, first, second = books.read_lines(policy)
    assert (opened.kind, opened.what) == ("opened", "budget ε = 1; caps *: 1, ann: 0.5")
    assert (first.analyst, first.epsilon, first.what, first.answered) == (
        "ann",
        0.25,
        "sql: SELECT COUNT(*) AS n FROM t",
        True,
    )
    assert (second.analyst, second.epsilon) == ("", 0.125)
    assert books.read_lines(policy, last=1) == (second,)


def test_a_charge_without_its_answer_is_marked(policy: Policy) -> None:
    ask(policy, "0.25")
    path = policy.path.with_suffix(".ledger")  # type: ignore[union-attr]
    with SqliteLedger.open(path) as ledger:
        ledger.charge(policy.budget.cost(Fraction(1, 4)), "interrupted", "key")
    assert [line.answered for line in books.read_lines(policy) if line.kind == "charge"] == [True, False]


@pytest.mark.parametrize("charges", [0, 1, 2, 3, 7, 8, 9, 40])
def test_the_length_is_found_without_reading_everything(tmp_path: Path, charges: int) -> None:
    with SqliteLedger.create(tmp_path / "a.ledger", Budget(Fraction(1))) as ledger:
        for number in range(charges):
            ledger.charge(Budget(Fraction(1)).cost(Fraction(1, 100)), "x", f"{number}")
        assert books._length(ledger) == charges + 1


def test_an_export_adds_up(policy: Policy) -> None:
    ask(policy, "0.25")
    stream = io.StringIO()
    head = books.export(policy, stream)
    assert head == books.verify(policy)
    statement = check_export(stream.getvalue().splitlines())
    assert statement.head == head
    assert all(set(json.loads(line)) == {"entry", "hash"} for line in stream.getvalue().splitlines())


def test_amending_says_what_changed(policy: Policy) -> None:
    ask(policy, "0.25")
    assert books.amend(policy) == ()
    changed = Policy.parse_text(TEXT.replace("epsilon: 1", "epsilon: 2").replace("1/2", "1/4"))
    path = policy.path.with_suffix(".ledger")  # type: ignore[union-attr]
    budget, caps = books.look(changed, path).differs
    assert str(budget) == "the budget is ε = 1 in the ledger, and ε = 2 in the policy"
    assert str(caps) == "the caps are *: 1, ann: 0.5 in the ledger, and *: 1, ann: 0.25 in the policy"
    assert books.amend(changed, path) == (budget, caps)
    assert books.look(changed, path).differs == ()
    assert books.look(changed, path).budget.total == 2
    assert [line.kind for line in books.read_lines(changed, path)] == ["opened", "charge", "amendment"]


def test_what_is_not_there_is_not_made(policy: Policy, tmp_path: Path) -> None:
    for work in (books.read_lines, books.verify, books.amend, books.restore_anchor):
        with pytest.raises(LedgerMissing):
            work(policy)
    with pytest.raises(LedgerMissing):
        books.export(policy, io.StringIO())
    assert [file.name for file in tmp_path.iterdir()] == ["policy.yaml"]

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


def test_each_analyst_is_told_apart(policy: Policy) -> None:
    ask(policy, "0.25", "ann")
    ask(policy, "0.0625", "ann", "SELECT SUM(x) AS s FROM t")
    ask(policy, "0.125", "bob")
    ask(policy, "0.25", "eve")
    ann, others = books.spenders(policy)
    assert ann == books.Spender("ann", 0.3125, 0.5, {"pure": 0.1875}, 0.0625, 3)
    assert others == books.Spender("*", 0.375, 1, {"pure": 0.3125}, 0.25, 1)  # of the whole budget no more is left


def test_without_caps_those_are_told_who_asked(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        TEXT.replace('analysts: {ann: 1/2, "*": 1}\n', "").replace("{epsilon: 1}", "{epsilon: 1, delta: 1e-9}")
    )
    policy = Policy.load(path)
    for analyst in ("zoe", "", "ann"):
        ask(policy, "0.25", analyst)
    found = books.spenders(policy)
    assert [(own.name, own.spent, own.cap, own.last) for own in found] == [
        ("", 0.25, None, 0.25),
        ("ann", 0.25, None, 0.25),
        ("zoe", 0.25, None, 0.25),
    ]
    assert len({own.more for own in found}) == 1
    assert found[0].more == books.look(policy, epsilon="0.25").answers_left


def test_a_budget_a_cap_and_a_call_are_told_apart(policy: Policy) -> None:
    ask(policy, "0.25", "ann")
    ask(policy, "0.125")
    said = str(books.look(policy, analyst="ann").budget)
    assert said == (
        "ε 0.375 spent of 1 in all · analyst 'ann': ε 0.25 spent of a cap of 0.5 · one more call: up to ε 0.25"
    )


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

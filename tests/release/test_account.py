"""Under which account a call is made, what it buys there, and that the same question again is free."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import confide
from confide.errors import BudgetError, ConfideError, LedgerError, ParameterError
from confide.ledger import SqliteLedger
from confide.privacy.loss import ZCDP, PureDP
from confide.release.custody import books
from confide.release.session import Session
from tests.release.samples import frames, policy, row_policy, rows_frame

EITHER: dict[str, Any] = {"epsilon": 3, "delta": 1e-9, "accounting": "either"}
COUNT = "SELECT COUNT(*) AS n FROM t"
ABOVE = "SELECT COUNT(*) AS n FROM t WHERE x > {}"


@pytest.fixture
def session() -> Session:
    return confide.testing.open(row_policy(EITHER), rows_frame(), seed=1)


def test_a_count_is_as_narrow_as_on_a_pure_budget(session: Session) -> None:
    plans = {name: session.plan(COUNT, 0.5, account=name) for name in ("auto", "pure", "concentrated")}
    assert [plan.half_width["n"] for plan in plans.values()] == [6, 6, 22]
    assert [plan.account for plan in plans.values()] == ["pure", "pure", "concentrated"]
    assert all(plan.rooms == {"pure": 6, "concentrated": 30} for plan in plans.values())
    assert "room for 6 more like this in the pure account, or 30 in the concentrated account" in str(plans["auto"])
    answer = session.sql(COUNT, 0.5)
    assert answer.mechanism == {"n": "discrete laplace"}
    assert (answer.cost.epsilon, answer.cost.rho) == (Fraction(1, 2), None)
    assert session.plan(COUNT, 0.5).rooms == {"pure": 5, "concentrated": 0}


def test_the_pure_account_is_filled_to_the_last_quantum(session: Session) -> None:
    for number in range(6):
        session.sql(ABOVE.format(number), 0.5)
    with pytest.raises(BudgetError, match="no question fits any more"):
        session.sql(ABOVE.format(7), "1e-20")
    assert session.budget.accounts == {"pure": 0.0, "concentrated": 0.0}
    assert (session.budget.spent, session.budget.left) == (3.0, 0.0)
    assert not session.plan(COUNT, 0.5).affordable
    assert session._holdings.ledger.verify().sequence == 13


def test_many_small_calls_go_on_in_the_concentrated_account(session: Session) -> None:
    """Sixty pure calls at 0.05 spend all of ε, and 0.075 of ρ: what is left of ρ takes more of them."""
    small = [session.sql(ABOVE.format(Fraction(number, 10)), 0.05) for number in range(62)]
    kinds = [answer.mechanism["n"] for answer in small]
    assert kinds == ["discrete laplace"] * 60 + ["discrete laplace"] * 2, "a pure call fits what is left of ρ as well"
    assert session.budget.accounts["concentrated"] > 0
    gaussian = session.sql(COUNT, 0.5, account="concentrated")
    assert gaussian.mechanism == {"n": "discrete gaussian"}
    spent = session._holdings.ledger.spent()
    assert isinstance(spent, ZCDP)
    assert spent.pure is None


def test_a_call_that_is_not_pure_ends_the_pure_account(session: Session) -> None:
    session.sql(COUNT, 0.1, account="concentrated")
    assert session.plan(COUNT, 1).account == "concentrated"
    with pytest.raises(BudgetError, match="would fit"):
        session.sql(ABOVE.format(0), 1, account="pure")


def test_the_same_question_again_is_free_whatever_the_books_say_now(session: Session) -> None:
    first = session.sql(COUNT, 0.5)
    for number in range(5):
        session.sql(ABOVE.format(number), 0.5)
    for account in ("auto", "pure"):
        again = session.sql(COUNT, 0.5, account=account)
        assert (again.stored, again.to_dicts()) == (True, first.to_dicts())
    with pytest.raises(BudgetError):
        session.sql(COUNT, 0.5, account="concentrated")  # another noise, and so another request


def test_what_was_kept_under_the_other_account_is_given_too(session: Session) -> None:
    wide = session.sql(COUNT, 0.5, account="concentrated")
    again = session.sql(COUNT, 0.5)
    assert (again.stored, again.to_dicts()) == (True, wide.to_dicts())
    narrow = session.sql(COUNT, 0.05, account="pure")
    assert not narrow.stored
    assert session.sql(COUNT, 0.05).to_dicts() == narrow.to_dicts()


def test_a_charge_without_its_answer_is_taken_up_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of ε was paid and the program was stopped. A call like it now fits ρ only, in other noise: this one was
    paid for, and is not paid for twice."""
    ledger = session._holdings.ledger
    for number in range(54):
        ledger.charge(PureDP(Fraction(1, 20)), "a count", str(number))
    with monkeypatch.context() as stopped:
        stopped.setattr(type(ledger), "store", _stopped)
        with pytest.raises(LedgerError):
            session.sql(COUNT, 0.3)
    spent = ledger.spent()
    assert session.plan(COUNT, 0.3).account == "concentrated"
    assert session.sql(COUNT, 0.3).mechanism == {"n": "discrete laplace"}
    assert ledger.spent() == spent == ZCDP(Fraction(9, 80), pure=Fraction(3))


def _stopped(*_: object) -> bytes:
    raise LedgerError("stopped")


def test_what_needs_a_delta_is_asked_in_the_concentrated_account() -> None:
    """Undeclared keys: under `auto` that account is taken, and `pure` is refused as under a pure budget."""
    towns = "SELECT town, COUNT(*) AS n FROM person GROUP BY town"
    with confide.testing.open(policy({**EITHER, "epsilon": 30}), frames(500), seed=1) as people:
        pure_budget = confide.testing.open(policy(), frames(500), seed=1)
        with pytest.raises(ConfideError) as refusal:
            pure_budget.sql(towns, 5)
        with pytest.raises(type(refusal.value)):
            people.sql(towns, 5, account="pure")
        assert people.plan(towns, 5).account == "concentrated"
        assert people.sql(towns, 5).cost.delta


def test_other_products(session: Session) -> None:
    marginals = session.microdata([("g",)], 0.5)
    assert marginals.cost.rho is None
    assert session.microdata([("g",)], 0.5).stored
    many = [("g",), ("x",), ("g", "x")] * 1
    assert session.plan_microdata(many, 0.5, account="concentrated").cost.rho is not None
    edges = {"f": pl.DataFrame({"a": [1, 2, 3, 4], "b": [2, 3, 1, 5]})}
    rules: dict[str, Any] = {"confide": 1, "budget": EITHER, "unit": "row"}
    rules["tables"] = {"f": {"columns": {"a": {"type": "id"}, "b": {"type": "id"}}}}
    with confide.testing.open(rules, edges, seed=1) as own:
        wide = own.graph("f", "a", "b", account="concentrated").stars(2, 0.1)
        assert wide.cost.rho is not None
        assert own.graph("f", "a", "b").triangles(0.1).cost.rho is None
        assert own.graph("f", "a", "b", account="pure").triangles(0.1).stored
    verdict = session.trust(COUNT, rows_frame(), within=50, epsilon=0.5)
    assert verdict.cost.rho is None  # type: ignore[union-attr]
    assert session.plan_trust(COUNT, rows_frame(), within=50, epsilon=0.5).cost.rho is None  # type: ignore[union-attr]


def test_a_join_and_its_plan() -> None:
    joined = "SELECT COUNT(*) AS n FROM visit a JOIN visit b ON a.ward = b.ward"
    with confide.testing.open(policy(EITHER), frames(60), seed=1) as people:
        narrow, wide = (
            people.plan(joined, 0.5, mechanism="truncate", account=name) for name in ("auto", "concentrated")
        )
        assert (narrow.account, wide.account) == ("pure", "concentrated")
        assert narrow.half_width["n"] < wide.half_width["n"]
        assert people.sql(joined, 0.5, mechanism="truncate").cost.rho is None


@pytest.mark.parametrize("account", ["", "rho", None, 3, "Pure"])
def test_an_account_that_there_is_not(session: Session, account: Any) -> None:
    for call in (session.sql, session.plan):
        with pytest.raises(ParameterError, match="account="):
            call(COUNT, 0.5, account=account)
    assert session.budget.spent == 0


@pytest.mark.parametrize(
    ("budget", "kept", "missing"),
    [({"epsilon": 3}, "pure", "concentrated"), ({"epsilon": 3, "delta": 1e-9}, "concentrated", "pure")],
)
def test_a_ledger_with_one_account(budget: dict[str, Any], kept: str, missing: str) -> None:
    with confide.testing.open(row_policy(budget), rows_frame(), seed=1) as own:
        first = own.sql(COUNT, 0.5)
        assert own.sql(COUNT, 0.5, account=kept).to_dicts() == first.to_dicts()
        assert own.plan(COUNT, 0.5).account == kept
        assert own.plan(COUNT, 0.5).rooms == own.budget.accounts == {}
        with pytest.raises(ParameterError, match=f"this ledger's accounting is {kept}"):
            own.sql(COUNT, 0.5, account=missing)


def test_a_ledger_keeps_its_accounting_and_a_policy_that_says_none_takes_it(tmp_path: Path) -> None:
    silent, either = row_policy({"epsilon": 3, "delta": 1e-9}), row_policy(EITHER)
    data, old, new = rows_frame(), tmp_path / "old", tmp_path / "new"
    with confide.open(silent, data, old, create=True) as before:
        assert before.sql(COUNT, 0.5).mechanism == {"n": "discrete gaussian"}
    with pytest.raises(LedgerError, match="a ledger keeps its accounting"):
        confide.open(either, data, old)
    with confide.open(silent, data, old) as still:
        assert still.plan(COUNT, 0.5).account == "concentrated"
        assert still.sql(COUNT, 0.5).stored
    confide.open(either, data, new, create=True).close()
    with confide.open(silent, data, new) as other:
        assert other.sql(COUNT, 0.5).mechanism == {"n": "discrete laplace"}
    found = books.look(confide.Policy.parse(either), new, epsilon="0.5")
    assert (found.answers_left, found.answers_by_account) == (5, {"pure": 5, "concentrated": 0})
    assert str(found.budget) == (
        "ε 0.5 spent of 3 in all (δ = 1e-09) · one more call: up to ε 2.5 in the pure account, or ε 0 in the "
        "concentrated account"
    )
    assert [str(part) for part in books.look(confide.Policy.parse(either), old).differs] == [
        "the accounting is concentrated in the ledger, and either in the policy"
    ]
    with SqliteLedger.open(new) as ledger:
        ledger.charge(PureDP(Fraction(1)), "a count", "key")
        ledger.verify()


def test_a_synthesis_divides_rho_and_takes_epsilon_only_if_it_must(session: Session) -> None:
    plan = session.plan_synthesize(confide.marginals(k=1), 1, columns=["g", "x"], bins={"x": 10}, select="marginals")
    assert plan.cost.rho is not None
    session.sql(COUNT, 1)
    spent = session.plan_synthesize(confide.marginals(k=1), 1, columns=["g", "x"], bins={"x": 10}, select="marginals")
    assert spent.cost.rho is None

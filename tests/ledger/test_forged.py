"""Rows that somebody wrote who can write to the database: opening or verifying finds them out."""

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from confide.errors import BudgetError, LedgerDamaged
from confide.ledger import MemoryLedger, SqliteLedger
from confide.ledger import stored_rows as storage
from confide.ledger.record.entry import ORIGIN, encode, link
from confide.ledger.record.replay import Replay
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP

EITHER = Budget.of(10, "1e-6", "either")


def test_an_account_cannot_be_renamed_into_another(tmp_path: Path) -> None:
    """Three numbers and a name, and two numbers and a longer name, are two accounts."""
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, EITHER, {"bob": 1}) as ledger:
        ledger.charge(PureDP(Fraction(1)), "a question", "one", "bob")
        ledger.charge(ZCDP(Fraction(1, 1000)), "a question", "two", "ann")
    rows = sqlite3.connect(path)
    rho, delta, epsilon = rows.execute("SELECT total FROM account WHERE analyst = 'bob'").fetchone()[0].split(",")
    rows.execute(
        "UPDATE account SET analyst = ?, total = ? WHERE analyst = 'bob'", (f"{epsilon},bob", f"{rho},{delta}")
    )
    rows.commit()
    rows.close()
    with pytest.raises(LedgerDamaged):
        SqliteLedger.open(path, EITHER, {"bob": 1}).verify()


@pytest.mark.parametrize("budget", [Budget.of(3, "1e-6", "either"), Budget.of(3)])
def test_one_amount_in_two_spellings_is_spent_twice(budget: Budget) -> None:
    ledger = MemoryLedger(budget, {"bob": 1})
    ledger.charge(PureDP(Fraction(1)), "a question", "one", "bob")
    bodies: list[dict[str, Any]] = [dict(body) for body, _, _ in ledger._entries]
    again = [f"0{part}" for part in bodies[1]["amount"]]
    total = [str(2 * int(part)) for part in bodies[1]["total"]]
    bodies.append(bodies[1] | {"sequence": 3, "key": "two", "amount": again, "total": total})
    links, previous = [], ORIGIN
    for body in bodies:
        previous = link(previous, encode(body))
        links.append((body["sequence"], encode(body), previous))
    replay = Replay()
    replay.add(links[:1])
    with pytest.raises(LedgerDamaged):
        replay.add(links[1:])


def test_a_cap_is_no_wider_than_the_epsilon_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, EITHER) as ledger:
        ledger.charge(PureDP(Fraction(1)), "a question", "one", "ann")
    rows = sqlite3.connect(path)
    first, (sequence, body, before) = (
        json.loads(rows.execute("SELECT body FROM entry WHERE sequence = 1").fetchone()[0]),
        rows.execute("SELECT sequence, body, hash FROM entry ORDER BY sequence DESC LIMIT 1").fetchone(),
    )
    last = json.loads(body)
    forged = {name: last[name] for name in ("time", "total", "accounts")}
    forged |= {name: first[name] for name in ("accounting", "epsilon", "delta", "caps")}
    cap = [*first["cap"][:2], str(100 * int(first["cap"][2]))]
    forged |= {"sequence": sequence + 1, "kind": "amendment", "terms": sequence + 1, "cap": cap}
    written = encode(forged)
    rows.execute("INSERT INTO entry VALUES (?, ?, ?)", (sequence + 1, written, link(before, written)))
    rows.commit()
    rows.close()
    with pytest.raises(LedgerDamaged, match="more than the ε beside it"):
        SqliteLedger.open(path, EITHER)


def test_two_charges_have_two_answers(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, EITHER) as ledger:
        ledger.charge(PureDP(Fraction(1, 10)), "a question", "one", "ann")
        ledger.store(ledger.charge(PureDP(Fraction(1, 10)), "a question", "two", "ann"), b"x")
    rows = sqlite3.connect(path)
    rows.execute("UPDATE charge SET answered = 4, seal = ? WHERE sequence = 2", (storage.seal(2, "one", 4),))
    rows.commit()
    rows.close()
    with SqliteLedger.open(path) as ledger, pytest.raises(LedgerDamaged):
        ledger.verify()


def test_a_refusal_says_what_fits_under_both_limits() -> None:
    ledger = MemoryLedger(Budget.of(5, "1e-6", "either"), {"bob": Fraction(1)})
    ledger.charge(PureDP(Fraction(2)), "a question", "one", "al")
    for place in range(50):
        ledger.charge(PureDP(Fraction(1, 50)), "a question", f"of bob {place}", "bob")
    with pytest.raises(BudgetError, match=r"a pure call at ε ≤ 0\.16"):
        ledger.charge(PureDP(Fraction(1)), "a question", "two", "bob")

"""An export is checked by a reader who has nothing but the description of its format."""

import hashlib
import io
import json
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import BudgetError, LedgerDamaged, LedgerError
from confide.ledger import Ledger, MemoryLedger, SqliteLedger, check_export, export
from confide.ledger.record import entry as booking
from confide.ledger.record.entry import encode, link
from confide.ledger.record.replay import Replay, Statement
from confide.ledger.record.terms import Terms
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP


def exported(ledger: Ledger) -> list[str]:
    stream = io.StringIO()
    export(ledger, stream)
    return stream.getvalue().splitlines()


@pytest.fixture
def ledger() -> MemoryLedger:
    made = MemoryLedger(Budget.of(1), {"ann": "0.5"})
    for number in range(4):
        charge = made.charge(PureDP(Fraction(1, 10)), "ein Zähler", f"key {number}", "ann")
        made.store(charge, b"42")
    return made


def test_a_stranger_can_add_it_up(ledger: MemoryLedger) -> None:
    """This test imports nothing of the ledger to do so."""
    previous, total, quanta = bytes(32), 0, 1
    for line in exported(ledger):
        record = json.loads(line)
        entry = record["entry"]
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        previous = hashlib.sha256(previous + text.encode()).digest()
        assert previous.hex() == record["hash"]
        quanta = int(entry.get("quanta", quanta))
        total += int(entry.get("amount", ["0"])[0])
        assert int(entry["total"][0]) == total
    assert Fraction(total, quanta) == Fraction(4, 10)


def test_a_shorter_export_is_a_shorter_chain(ledger: MemoryLedger) -> None:
    lines = exported(ledger)
    assert check_export(lines).head == ledger.verify()
    shorter = check_export(lines[:-2])
    assert (shorter.head.sequence, shorter.charges) == (len(lines) - 2, 3)


@pytest.mark.parametrize(
    "line", ["", "x", "[]", "{}", '{"entry": 1, "hash": "00"}', '{"entry": {}, "hash": "zz"}', "[" * 99999]
)
def test_a_line_that_is_no_entry(ledger: MemoryLedger, line: str) -> None:
    lines = exported(ledger)
    with pytest.raises(LedgerDamaged, match=r"line 3|entry 3"):
        check_export([*lines[:2], line, *lines[2:]])


def test_an_empty_export() -> None:
    with pytest.raises(LedgerDamaged, match="no entries"):
        check_export([])


def forge(ledger: MemoryLedger, number: int, **changes: object) -> list[str]:
    """Rewrite one entry and mend every hash after it, as somebody would who knows the format."""
    lines, previous = [], bytes(32)
    for position, line in enumerate(exported(ledger)):
        entry = json.loads(line)["entry"]
        if position == number:
            entry.update(changes)
        previous = link(previous, encode(entry))
        lines.append(json.dumps({"entry": entry, "hash": previous.hex()}))
    return lines


ONE = str(MemoryLedger(Budget.of(1)).entries().__next__().body["quanta"])
FORGERIES = [
    (1, {"amount": ["1"]}, "not the sum"),
    (1, {"amount": ["-1"]}, "not a charge"),
    (1, {"amount": ["0"]}, "not a charge"),
    (1, {"amount": ["1", "1"]}, "not a charge"),
    (1, {"amount": [ONE + "0"]}, "more than its budget held"),
    (1, {"total": ["0"]}, "not the sum"),
    (2, {"total": ["0"]}, "not the sum"),
    (1, {"terms": 2}, "not the sum"),
    (1, {"sequence": 7}, "out of place"),
    (1, {"kind": "genesis"}, "out of place"),
    (1, {"kind": "gift"}, "no known kind"),
    (2, {"charge": 4}, "answers no open charge"),
    (3, {"key": "key 0"}, "second time"),
    (7, {"accounts": "00"}, None),
    (8, {"accounts": "00"}, "accounts"),
    (3, {"analyst": "bob"}, "accounts"),
    (0, {"format": "another"}, "another format"),
    (0, {"quanta": "7"}, "another format"),
    (0, {"epsilon": "abc"}, "not as entries are written"),
    (0, {"cap": ["1"]}, "more than its budget held"),
]


@pytest.mark.parametrize(("number", "changes", "reason"), FORGERIES, ids=lambda value: str(value)[:40])
def test_a_forger_who_mends_the_hashes(
    ledger: MemoryLedger, number: int, changes: dict[str, object], reason: str | None
) -> None:
    """What does not add up is found even so; what adds up has another head, which is why heads are compared."""
    lines = forge(ledger, number, **changes)
    if reason is None:
        assert check_export(lines).head != ledger.verify()
        return
    with pytest.raises(LedgerDamaged, match=reason):
        check_export(lines)


@pytest.mark.parametrize(("number", "changes", "reason"), FORGERIES, ids=lambda value: str(value)[:40])
def test_a_forgery_among_others_that_are_added_at_once(
    ledger: MemoryLedger, number: int, changes: dict[str, object], reason: str | None
) -> None:
    """Entries that come together are added up by columns, and what is wrong with one of them is found as well."""
    records = [json.loads(line) for line in forge(ledger, number, **changes)]
    links = [(place, encode(own["entry"]), bytes.fromhex(own["hash"])) for place, own in enumerate(records, start=1)]

    def added() -> Statement:
        replay = Replay()
        for some in (links[:1], links[1:4], links[4:]):
            replay.add(some)
        return replay.statement()

    if reason in (None, "second time"):  # keys are for whoever has all of them
        assert added().head != ledger.verify()
        return
    with pytest.raises(LedgerDamaged, match=reason):
        added()


EITHER_FORGERIES = [
    (2, {"amount": ["1", "0", ONE]}, "not a charge"),  # ρ that is not ε²/2
    (2, {"amount": [ONE, "1", ONE]}, "not a charge"),
    (2, {"amount": ["1", "0"]}, "not the sum"),
    (3, {"total": ["1", "0", "1"]}, "not the sum"),
    (1, {"amount": ["1"]}, "not a charge"),
    (0, {"accounting": "concentrated"}, "another currency"),
    (0, {"cap": ["1", "1", "1"]}, "more than its budget held"),
]


@pytest.mark.parametrize(("number", "changes", "reason"), EITHER_FORGERIES, ids=lambda value: str(value)[:40])
def test_a_forger_of_two_accounts(number: int, changes: dict[str, object], reason: str) -> None:
    with MemoryLedger(Budget.of(3, "1e-6", "either")) as ledger:
        for key in ("0", "1"):
            ledger.charge(PureDP(Fraction(1, 10)), "a count", key)
        ledger.charge(ZCDP(Fraction(1, 1000)), "a count", "2")
        assert check_export(exported(ledger)).spent == ZCDP(Fraction(11, 1000))
        with pytest.raises(LedgerDamaged, match=reason):
            check_export(forge(ledger, number, **changes))


def test_neither_account_may_be_passed() -> None:
    """Two ledgers that are kept by a program without the rule: one goes on in ε, one takes up ε again."""
    for losses in ((PureDP(Fraction(2)), PureDP(Fraction(2))), (ZCDP(Fraction(1, 100)), PureDP(Fraction(2)))):
        with pytest.MonkeyPatch.context() as unruly:
            unruly.setattr(booking, "holds", lambda cap, total: True)
            with MemoryLedger(Budget.of(3, "1e-6", "either")) as ledger:
                for key, loss in enumerate(losses):
                    ledger.charge(loss, "a count", str(key))
                lines = exported(ledger)
        with pytest.raises(LedgerDamaged, match="entry 3 of the ledger charges more"):
            check_export(lines)


def test_a_ledger_of_the_first_format_is_kept_up_and_not_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its "*" was a cap for each name, and its keys were plain hashes of the data."""
    path = tmp_path / "l"
    with monkeypatch.context() as before:
        before.setattr(booking, "FORMAT", booking.EARLIER)
        before.setattr(Terms, "shares", lambda terms, analyst: False)
        before.setattr(Terms, "limit", lambda terms, analyst: (terms.cap_of["*"], terms.caps["*"]))
        with SqliteLedger.create(path, Budget.of(2), {"ann": 1, "*": "0.5"}) as ledger:
            for name in ("bob", "carl"):
                ledger.charge(PureDP(Fraction(1, 2)), "a count", name, name)
    with SqliteLedger.open(path) as ledger:
        ledger.verify()
        with pytest.raises(BudgetError, match="together"):
            ledger.charge(PureDP(Fraction(1, 100)), "a count", "dora", "dora")
        ledger.charge(PureDP(Fraction(1, 2)), "a count", "ann", "ann")
        ledger.verify()
        stream = io.StringIO()
        with pytest.raises(LedgerError, match="whoever guesses the data could check the guess"):
            export(ledger, stream)
        assert stream.getvalue() == ""


def test_a_shared_cap_that_was_passed_is_noticed() -> None:
    ledger = MemoryLedger(Budget.of(2), {"ann": 1, "*": "0.5"})
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(booking, "against_cap", lambda total, terms, analyst, accounts: terms.nothing)
        for name in ("bob", "carl"):
            ledger.charge(PureDP(Fraction(1, 2)), "a count", name, name)
    stream = io.StringIO()
    export(ledger, stream)
    with pytest.raises(LedgerDamaged, match="charges more than its budget held"):
        check_export(stream.getvalue().splitlines())

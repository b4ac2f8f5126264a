"""A long ledger is verified by two processes: they find what one finds, in the same words."""

import sqlite3
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import LedgerDamaged
from confide.ledger import SqliteLedger, page, soundness
from confide.ledger.sqlite.files import LedgerFiles, verify
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP

CHARGES = 120


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Charges by several analysts under caps, most of them answered, with an amendment; all pure at first."""
    path = tmp_path_factory.mktemp("long") / "ledger"
    with SqliteLedger.create(path, Budget.of(30, "1e-6", "either"), {"ann": 25, "*": 25}) as ledger:
        for number in range(CHARGES):
            if number == 40:
                ledger.amend(caps={"ann": 20, "bob": 20, "*": 20})
            loss = ZCDP(Fraction(1, 10**4)) if number == 115 else PureDP(Fraction(1, 10 + number % 3))
            charge = ledger.charge(loss, f"question {number}", f"key {number}", ("ann", "bob", "carl")[number % 3])
            if number % 7:
                ledger.store(charge, b"answer %d" % number)
    return path


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "LONG", 0)
    monkeypatch.setattr(soundness, "PAGE", 45)
    monkeypatch.setattr(page, "PART", 20)


@pytest.fixture
def copied(long: Path, tmp_path: Path) -> Path:
    for name in ("ledger", "ledger.anchor"):
        (tmp_path / name).write_bytes((long.parent / name).read_bytes())
    return tmp_path / "ledger"


def judged(path: Path) -> object:
    try:
        return verify(LedgerFiles.of(path), 1.0)
    except LedgerDamaged as error:
        return str(error)


def test_two_processes_find_what_one_finds(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = judged(long)
    monkeypatch.setattr(soundness, "LONG", 0)
    monkeypatch.setattr(soundness, "PAGE", 45)
    assert judged(long) == alone
    assert not isinstance(alone, str)


def test_a_page_is_judged_alike_here_and_there(long: Path) -> None:
    connection = sqlite3.connect(long)
    rows = connection.execute(
        "SELECT entry.sequence, body, hash, key, answered, seal FROM entry LEFT JOIN charge USING (sequence)"
    ).fetchall()
    connection.close()
    with page.Helper.started(wanted=True) as helper:
        assert helper is not None
        for first, last in ((1, 60), (90, 180), (0, 5), (60, 100), (3, 60)):
            previous, part = rows[first - 1][2], rows[first:last]
            here, there = page.page_of(previous, part), helper.judge(previous, part).result()
            assert here == there
            plain = all(b'"kind":"charge"' in row[1] or b'"kind":"answer"' in row[1] for row in part)
            assert (here is not None) == plain, "an amendment, or the genesis, is left to be looked at"
        assert helper.judge(bytes(32), rows[90:120]).result() is None


DAMAGE = [
    "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), 'question', 'Question') AS BLOB) "
    "WHERE sequence = (SELECT min(sequence) FROM charge WHERE sequence > 120)",
    "UPDATE charge SET seal = seal + 1 WHERE sequence = (SELECT min(sequence) FROM charge WHERE sequence > 150)",
    "UPDATE charge SET answered = 0 WHERE sequence = (SELECT min(sequence) FROM charge WHERE answered > 150)",
    "UPDATE answer SET answer = CAST('x' || answer AS BLOB) WHERE sequence = (SELECT max(sequence) FROM answer)",
    "DELETE FROM answer WHERE sequence = (SELECT min(sequence) FROM answer)",
    "DELETE FROM charge WHERE sequence = (SELECT max(sequence) FROM charge)",
    "DELETE FROM entry WHERE sequence = 150",
    "UPDATE entry SET hash = zeroblob(32) WHERE sequence = 140",
]


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_is_told_in_the_same_words(statement: str, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(copied)
    connection.execute(statement)
    connection.commit()
    connection.close()
    alone = judged(copied)
    monkeypatch.setattr(soundness, "LONG", 0)
    monkeypatch.setattr(soundness, "PAGE", 45)
    assert isinstance(alone, str)
    assert judged(copied) == alone


@pytest.mark.usefixtures("beside")
def test_a_helper_that_is_gone_is_done_without(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_START", "raise SystemExit # {path!r}")
    assert not isinstance(judged(long), str)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert not isinstance(judged(long), str)
    monkeypatch.setattr(sys, "executable", "/usr/bin/a-program-with-python-inside")
    monkeypatch.setattr(page.subprocess, "Popen", lambda *_, **__: pytest.fail("it was started"))
    assert not isinstance(judged(long), str)

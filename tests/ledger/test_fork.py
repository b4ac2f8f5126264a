"""A ledger that was opened before a fork is used on both sides of it."""

import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from confide.errors import LedgerError
from confide.ledger import Ledger, SqliteLedger
from confide.ledger import stored_rows as storage
from confide.ledger.soundness import walked
from confide.ledger.sqlite import files as inspection
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP

PART = PureDP(Fraction(1, 10_000))


def fork_and_charge(ledger: Ledger, key: str) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            charge = ledger.charge(PART, "a question", key)
            code = 0 if ledger.store(charge, key.encode()) == key.encode() else 2
        finally:
            os._exit(code)
    return process


def test_parent_and_child_go_on_with_the_same_object(tmp_path: Path) -> None:
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1), timeout=30) as ledger:
        ledger.charge(PART, "a question", "before")
        child = fork_and_charge(ledger, "child")
        ledger.charge(PART, "a question", "parent")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ledger.spent() == PureDP(3 * PART.epsilon)
        assert ledger.answer("child") == b"child"
        ledger.charge(PART, "a question", "after")
        ledger.verify()


def test_forks_in_the_middle_of_other_threads_charges(tmp_path: Path) -> None:
    """Without waiting for the threads a fork could copy a locked mutex, or a transaction under way, into the child."""
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1), timeout=60) as ledger:
        stop = threading.Event()
        counts = [0, 0, 0]

        def work(number: int) -> None:
            while not stop.is_set():
                ledger.charge(PART, "a question", f"thread {number} {counts[number]}")
                counts[number] += 1

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        children = [fork_and_charge(ledger, f"child {number}") for number in range(20)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        stop.set()
        for thread in threads:
            thread.join()
        assert codes == [0] * 20
        assert ledger.spent() == PureDP((sum(counts) + 20) * PART.epsilon)
        assert ledger.answer("child 7") == b"child 7"
        ledger.verify()


def test_a_closed_ledger_does_not_trouble_a_fork(tmp_path: Path) -> None:
    ledger = SqliteLedger.create(tmp_path / "ledger", Budget.of(1))
    ledger.close()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_keeps_its_log_when_its_parent_closes(tmp_path: Path) -> None:
    """SQLite takes a fork for the same process: the parent, as if it were the last, removed the log under the child."""
    path = tmp_path / "ledger"
    ledger = SqliteLedger.create(path, Budget.of(1))
    ledger.charge(PART, "a question", "before")
    go_on, closed = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.charge(PART, "a question", "while the parent is there")
            os.write(go_on[1], b"x")
            os.read(closed[0], 1)
            ledger.charge(PART, "a question", "when the parent is not there")
            code = 0
        finally:
            os._exit(code)
    os.read(go_on[0], 1)
    ledger.close()
    os.write(closed[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with SqliteLedger.open(path) as again:
        assert again.spent() == PureDP(3 * PART.epsilon)
        again.verify()


def test_a_fork_in_the_middle_of_ones_own_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler may do: the child neither ends the parent's transaction nor disturbs it."""
    path, appended = tmp_path / "ledger", storage.append
    children: list[int] = []

    def forking(*given: Any) -> Any:
        position = appended(*given)
        if given[2]["kind"] == "charge" and not children:
            children.append(os.fork())
        return position

    ledger = SqliteLedger.create(path, Budget.of(1))
    monkeypatch.setattr(storage, "append", forking)
    try:
        ledger.charge(PART, "a question", "key")
    except LedgerError:
        os._exit(0 if children == [0] else 1)
    finally:
        if children == [0]:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    ledger.charge(PART, "a question", "another")
    ledger.close()
    with SqliteLedger.open(path) as again:
        assert again.spent() == PureDP(2 * PART.epsilon)
        again.verify()


def test_a_charge_within_a_charge_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler may try: it gave back the lock of the one that it interrupted."""
    appended = storage.append
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:

        def interrupted(*given: Any) -> Any:
            monkeypatch.setattr(storage, "append", appended)
            with pytest.raises(LedgerError, match=r"in the middle of a call of this thread.*Nothing was charged"):
                ledger.charge(PART, "a question", "of the handler")
            return appended(*given)

        monkeypatch.setattr(storage, "append", interrupted)
        ledger.charge(PART, "a question", "key")
        ledger.charge(PART, "a question", "another")
        assert ledger.spent() == PureDP(2 * PART.epsilon)
        ledger.verify()


def test_a_fork_waits_for_a_ledger_that_is_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever verifies has a connection of their own, which a child would inherit with its wrong count of locks."""
    reading, read = threading.Event(), threading.Event()

    def slowly(*given: Any) -> Any:
        reading.set()
        read.wait(10)
        return walked(*given)

    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:
        monkeypatch.setattr(inspection, "walked", slowly)
        verifying = threading.Thread(target=ledger.verify)
        verifying.start()
        assert reading.wait(10)
        threading.Timer(0.2, read.set).start()
        child = fork_and_charge(ledger, "child")
        assert read.is_set()
        verifying.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

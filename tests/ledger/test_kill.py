"""kill -9 at random moments, over four processes: nothing that was acknowledged or released is ever uncharged."""

import os
import random
import signal
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import BudgetError
from confide.ledger import Ledger, SqliteLedger
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from tests.ledger.naive import BufferedLedger

PROCESSES = 4
PART = PureDP(Fraction(1, 400))

Opening = Callable[[Path], Ledger]


def open_ledger(folder: Path) -> Ledger:
    return SqliteLedger.open_or_create(folder / "ledger", Budget.of(1), timeout=60)


def client(opening: Opening, folder: Path, prefix: str, record: Path) -> None:
    """Ask, be charged, store, release, for ever; a line in the record is what an analyst has in hand."""
    hand = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with opening(folder) as ledger:
        for number in range(10**6):
            key = f"{prefix}-{number}"
            try:
                charge = ledger.charge(PART, "a question", key)
                os.write(hand, f"charged {key}\n".encode())
                answer = ledger.store(charge, os.urandom(8))
                os.write(hand, f"released {key} {answer.hex()}\n".encode())
            except BudgetError:
                time.sleep(0.001)


def rounds(opening: Opening, folder: Path, count: int, judge: Callable[[Path, Path], None]) -> None:
    """So many rounds of four clients that are killed after a random time; a full ledger gives way to a new one."""
    chance = random.Random(20240229)
    place, record = folder / "0", folder / "0.record"
    place.mkdir()
    for number in range(count):
        children = []
        for child in range(PROCESSES):
            process = os.fork()
            if process == 0:
                try:
                    client(opening, place, f"{number}-{child}", record)
                finally:
                    os._exit(1)
            children.append(process)
        if number % 2:  # killed at work; the others are killed while they open, or make, the ledger
            _wait_for_work(record)
        time.sleep(chance.uniform(0.0, 0.08))
        for process in children:
            os.kill(process, signal.SIGKILL)
        deaths = [os.waitpid(process, 0)[1] for process in children]
        assert deaths == [signal.SIGKILL] * PROCESSES, "a client ended by itself"
        judge(place, record)
        if number % 10 == 9:
            place, record = folder / str(number), folder / f"{number}.record"
            place.mkdir()


def _wait_for_work(record: Path) -> None:
    start = record.stat().st_size if record.exists() else 0
    until = time.monotonic() + 2
    while time.monotonic() < until and (not record.exists() or record.stat().st_size < start + 1000):
        time.sleep(0.002)


def judge(folder: Path, record: Path, opening: Opening = open_ledger) -> None:
    lines = [line.split() for line in record.read_text().splitlines()] if record.exists() else []
    with opening(folder) as ledger:
        ledger.verify()
        charged = {entry.body["key"] for entry in ledger.entries() if entry.kind == "charge"}
        acknowledged = {line[1] for line in lines if line[0] == "charged"}
        assert acknowledged <= charged, f"acknowledged but not charged: {acknowledged - charged}"
        assert ledger.spent() == PureDP(len(charged) * PART.epsilon)
        assert ledger.spent().epsilon <= 1  # type: ignore[union-attr]
        for line in lines:
            if line[0] == "released":
                assert ledger.answer(line[1]) == bytes.fromhex(line[2]), "released, but not what is stored"


def judge_naively(folder: Path, record: Path) -> None:
    charged = {entry.body["key"] for entry in BufferedLedger(folder, Budget.of(1)).entries() if "key" in entry.body}
    acknowledged = {line.split()[1] for line in record.read_text().splitlines()} if record.exists() else set()
    assert acknowledged <= charged, f"acknowledged but not charged: {acknowledged - charged}"


def test_nothing_is_lost(tmp_path: Path) -> None:
    rounds(open_ledger, tmp_path, 20, judge)


def test_a_ledger_that_tells_before_it_writes_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="acknowledged but not charged"):
        rounds(lambda folder: BufferedLedger(folder, Budget.of(1)), tmp_path, 10, judge_naively)

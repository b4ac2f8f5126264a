"""One client of a ledger that something happens to, and a judge of what it leaves behind."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from confide.errors import BudgetError, LedgerError
from confide.ledger import Ledger, SqliteLedger
from confide.ledger.process.anchor import EXIT_CODE
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP

PART = PureDP(Fraction(1, 100))
BUDGET = Budget.of(1)
QUESTIONS = 6
FILE = "people.ledger"


def open_ledger(folder: Path) -> SqliteLedger:
    return SqliteLedger.open_or_create(folder / FILE, BUDGET, timeout=5)


def client(ledger: Ledger, record: Path, questions: int = QUESTIONS, size: int = 500) -> None:
    """Ask some questions and write down what an analyst has in hand, and what each error says of the charge."""
    hand = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(*words: str) -> None:
        os.write(hand, (" ".join(words) + "\n").encode())

    for number in range(questions):
        key = f"key-{number}"
        try:
            charge = ledger.charge(PART, "x" * size, key)
        except LedgerError as error:
            note("nothing" if "Nothing was charged" in str(error) else "maybe", key)
            continue
        except BudgetError:
            note("over", key)
            continue
        note("charged", key)
        try:
            note("released", key, ledger.store(charge, os.urandom(size)).hex())
        except LedgerError as error:
            note("stands" if "The charge stands" in str(error) else "wrong", key)
    os.close(hand)


@dataclass
class Judge:
    """Counts what was judged; `judge` asserts what must hold whatever happened."""

    counts: Counter[str] = field(default_factory=Counter)

    def judge(self, ledger: Ledger, record: Path) -> None:
        lines = [line.split() for line in record.read_text().splitlines()] if record.exists() else []
        ledger.verify()
        charged = {entry.body["key"] for entry in ledger.entries() if entry.kind == "charge"}
        said = {line[0]: {other[1] for other in lines if other[0] == line[0]} for line in lines}
        assert said.get("charged", set()) <= charged, "acknowledged, and not charged"
        assert ledger.spent() == PureDP(len(charged) * PART.epsilon)
        assert len(charged) * PART.epsilon <= 1
        # A later call may have charged what an earlier one could not.
        first = {line[1]: line[0] for line in reversed(lines)}
        for key, word in first.items():
            later = [line[0] for line in lines if line[1] == key][1:]
            assert word != "nothing" or key not in charged or later, f"{key}: said nothing, and charged"
        assert not said.get("wrong"), "an answer that was not stored, without a word of its charge"
        for line in lines:
            self.counts[line[0]] += 1
            if line[0] == "released":
                assert ledger.answer(line[1]) == bytes.fromhex(line[2]), "released, and not what is kept"
        self.counts["ledgers judged"] += 1

    def again(self, ledger: Ledger, record: Path) -> None:
        """The same questions once more, when the fault is mended: the same bytes, and no question is paid twice."""
        client(ledger, record)
        self.judge(ledger, record)
        released = [line.split() for line in record.read_text().splitlines() if line.startswith("released")]
        by_key: dict[str, set[str]] = {}
        for _, key, answer in released:
            by_key.setdefault(key, set()).add(answer)
        assert all(len(answers) == 1 for answers in by_key.values()), "two answers for one charge"
        assert len(by_key) == QUESTIONS, "a question that cannot be answered any more"


def in_fork(work: Callable[[], Any]) -> int:
    """The exit code of a process of its own; a failed disk ends it with code 74, and that is right."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            work()
            code = 0
        except LedgerError:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def told(counts: Counter[str]) -> str:
    return ", ".join(f"{name}: {number}" for name, number in sorted(counts.items()))


# --- run with the failing disk loaded ---------------------------------------------------------------------------------


def sweep(folder: Path, library: str) -> Counter[str]:
    """Every n-th write, and every n-th forcing to disk, fails once, until a run has no n-th."""
    import ctypes  # noqa: PLC0415
    import errno  # noqa: PLC0415

    disk = ctypes.CDLL(library)
    judge = Judge()
    faults = [
        ("write EIO", 1, errno.EIO, 0),
        ("write EIO, torn", 1, errno.EIO, 1),
        ("write ENOSPC", 1, errno.ENOSPC, 0),
        ("write ENOSPC, torn", 1, errno.ENOSPC, 1),
        ("fsync EIO", 2, errno.EIO, 0),
    ]
    for name, kind, error, half in faults:
        number, reached = 0, True
        while reached:
            number += 1
            place = folder / f"{kind}-{error}-{half}-{number}"
            place.mkdir()
            record = place / "record"

            def work(place: Path = place, record: Path = record, number: int = number) -> None:
                disk.failing_disk_arm(kind, number, error, half)  # noqa: B023
                with open_ledger(place) as ledger:
                    client(ledger, record)

            code = in_fork(work)
            assert code in (0, 3, EXIT_CODE), f"{name} {number}: code {code}"
            judge.counts[f"ended with code {code}"] += 1
            with open_ledger(place) as ledger:
                judge.judge(ledger, record)
                judge.again(ledger, record)
            judge.counts[name] += 1
            reached = number < _calls(disk, folder, kind)
    return judge.counts


_CALLS: dict[int, int] = {}


def _calls(disk: Any, folder: Path, kind: int) -> int:
    if kind not in _CALLS:
        place = folder / f"whole-{kind}"
        place.mkdir()
        disk.failing_disk_arm(kind, 10**9, 0, 0)
        with open_ledger(place) as ledger:
            client(ledger, place / "record")
        _CALLS[kind] = disk.failing_disk_seen()
        disk.failing_disk_arm(0, 0, 0, 0)
    return _CALLS[kind]


if __name__ == "__main__":
    print(json.dumps(sweep(Path(sys.argv[1]), sys.argv[2])))

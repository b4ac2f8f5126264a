"""Faults in the middle of everything, with counts: what was released was charged, spent ≤ cap, the chain is whole, and
the same question again gives the same bytes or is free.

`pytest -m audit tests/laboratory/test_faults.py -s` (or `make audit-faults`) prints one line for each part.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from confide.errors import LedgerBusy
from confide.ledger import Ledger, PostgresLedger, SqliteLedger
from confide.release.session import Session
from tests.laboratory.failing_disk import BUDGET, FILE, PART, QUESTIONS, Judge, client, in_fork, open_ledger, told
from tests.laboratory.report import note
from tests.ledger import test_kill, test_postgres_kill
from tests.ledger.postgres_kind import address
from tests.ledger.test_failures import mount_small
from tests.release import test_fork
from tests.release import test_postgres_kill as test_release_kill
from tests.release.test_fork import COUNT, SUM, ask_often, code_of, forked
from tests.servers import PostgresServer

pytestmark = pytest.mark.audit

ROUNDS = 500
HERE = Path(__file__).parent


def report(part: str, counts: Counter[str]) -> None:
    print(f"\n{part}: {told(counts)}")
    note(f"faults, {part}", **counts)


# --- kill -9 ----------------------------------------------------------------------------------------------------------


def killed(opening: test_kill.Opening, folder: Path) -> Counter[str]:
    test_kill.rounds(opening, folder, ROUNDS, lambda place, record: test_kill.judge(place, record, opening))
    lines = [line.split()[0] for record in folder.glob("*.record") for line in record.read_text().splitlines()]
    return Counter(lines) + Counter({"rounds": ROUNDS, "kills": ROUNDS * test_kill.PROCESSES})


def test_kill_of_clients_of_a_file(tmp_path: Path) -> None:
    counts = killed(test_kill.open_ledger, tmp_path)
    report("kill -9, ledger in a file", counts)
    assert counts["released"] > 1000


def test_kill_of_clients_of_a_server(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> None:
    counts = killed(test_postgres_kill.opening(postgres_server, postgres_database, test_kill.Budget.of(1)), tmp_path)
    report("kill -9, ledger on PostgreSQL", counts)
    assert counts["released"] > 1000


def test_kill_of_the_server(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    lines = test_postgres_kill.kill_rounds(own_postgres_server, tmp_path, 100)
    report("kill -9 of the server of a ledger", Counter({"rounds": 100, "lines in hand": lines}))
    assert lines > 1600


def test_kill_of_the_server_of_data_and_ledger(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    fell = test_release_kill.kill_rounds(own_postgres_server, tmp_path, 100)
    report("kill -9 of the server of data and ledger, by where it fell", fell)
    assert fell["other"] == 0


# --- disks ------------------------------------------------------------------------------------------------------------


def test_every_write_and_every_forcing_to_disk_fails_once(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler, so calls of a library cannot be made to fail")
    library = tmp_path / "failing_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "failing_disk.c", "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.laboratory.failing_disk", str(tmp_path), str(library)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts: Counter[str] = Counter(json.loads(done.stdout))
    report("the n-th write or fsync fails", counts)
    assert counts["fsync EIO"] > 10
    assert counts["write ENOSPC, torn"] > 50


def test_a_full_disk_at_every_size(tmp_path: Path) -> None:
    """A disk with room for k pages, for every k until all questions fit."""
    disk = tmp_path / "disk"
    disk.mkdir()
    written = tmp_path / "counts"

    def work() -> None:
        if not mount_small(disk):
            os._exit(77)
        judge, fitted = Judge(), 0
        for pages in range(128):
            for leftover in disk.iterdir():
                leftover.unlink()
            record = tmp_path / f"record-{pages}"
            ballast = disk / "ballast"
            ballast.write_bytes(bytes((128 - pages) * 4096))
            try:
                with open_ledger(disk) as ledger:
                    client(ledger, record)
            except Exception as error:
                judge.counts[f"not made: {type(error).__name__}"] += 1
            lines = record.read_text().splitlines() if record.exists() else []
            fitted += sum(line.startswith("released") for line in lines) == QUESTIONS
            ballast.unlink()
            with open_ledger(disk) as ledger:
                judge.judge(ledger, record)
                judge.again(ledger, record)
            judge.counts["sizes"] += 1
            if fitted > 3:
                break
        written.write_text(json.dumps(judge.counts))

    code = in_fork(work)
    if code == 77:
        pytest.skip("mounting a small file system is not permitted here")
    assert code == 0
    counts: Counter[str] = Counter(json.loads(written.read_text()))
    report("full disk", counts)
    assert counts["stands"] > 0
    assert counts["nothing"] > 0


# --- SIGSTOP ----------------------------------------------------------------------------------------------------------


PART_OF_MANY = type(PART)(PART.epsilon / 10_000)


def serve(ledger: Ledger, name: str, record: Path) -> None:
    """Ask for ever, and write down what an analyst has in hand."""
    hand = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    number = 0
    while True:
        key = f"{name}-{number}"
        try:
            charge = ledger.charge(PART_OF_MANY, "a question", key)
            os.write(hand, f"charged {key}\n".encode())
            answer = ledger.store(charge, os.urandom(8))
            os.write(hand, f"released {key} {answer.hex()}\n".encode())
            number += 1
        except LedgerBusy:
            time.sleep(0.01)


def stops(opening: Callable[[], Ledger], folder: Path, rounds: int, timeout: float) -> Counter[str]:
    """Two clients ask, one of them is stopped at a random moment; nobody else waits for longer than they are told."""
    chance = random.Random(11)
    counts: Counter[str] = Counter()
    record = folder / "record"
    texts: list[str] = []
    children = []
    for name in ("a", "b"):
        process = os.fork()
        if process == 0:
            try:
                serve(opening(), name, record)
            finally:
                os._exit(1)
        children.append(process)
    longest = 0.0
    try:
        with opening() as ledger:
            for number in range(rounds):
                time.sleep(chance.uniform(0.0, 0.03))
                os.kill(children[number % 2], signal.SIGSTOP)
                begun = time.monotonic()
                try:
                    ledger.charge(PART_OF_MANY, "a question", f"c-{number}")
                    counts["charged past a stopped client"] += 1
                except LedgerBusy as error:
                    texts.append(str(error))
                    counts["told that it is busy"] += 1
                longest = max(longest, time.monotonic() - begun)
                os.kill(children[number % 2], signal.SIGCONT)
    finally:
        for process in children:
            os.kill(process, signal.SIGCONT)
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    assert longest < timeout + 2, f"waited {longest:.1f} s"
    maybe = sum("It may have been charged" in text for text in texts)
    assert all("Nothing was charged" in text or "anchor" in text for text in texts)
    counts["of these, told that it may have been charged"] = maybe
    # A client that was stopped while its transaction was ended has lost it, and not its key.
    lines = [line.split() for line in record.read_text().splitlines()]
    with opening() as ledger:
        ledger.verify()
        charged = {entry.body["key"] for entry in ledger.entries() if entry.kind == "charge"}
        assert {line[1] for line in lines if line[0] == "charged"} <= charged
        for line in [line for line in lines if line[0] == "released"][-200:]:
            assert ledger.answer(line[1]) == bytes.fromhex(line[2])
    counts.update({"rounds": rounds, "longest wait, ms": round(1000 * longest), "charges": len(charged)})
    return counts


def test_stopped_clients_of_a_file(tmp_path: Path) -> None:
    SqliteLedger.create(tmp_path / FILE, BUDGET).close()
    report(
        "SIGSTOP, ledger in a file",
        stops(lambda: SqliteLedger.open(tmp_path / FILE, timeout=0.5), tmp_path, 200, 0.5),
    )


def test_stopped_clients_of_a_server(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> None:
    place = address(postgres_server, postgres_database, tmp_path)
    PostgresLedger.create(place, BUDGET).close()
    report(
        "SIGSTOP, ledger on PostgreSQL",
        stops(lambda: PostgresLedger.open(place, timeout=0.5), tmp_path, 200, 0.5),
    )


# --- forks ------------------------------------------------------------------------------------------------------------

session = test_fork.session


@pytest.mark.parametrize("session", ["frame", "csv", "postgres"], indirect=True)
def test_forks_in_the_middle_of_everything(session: Session, request: pytest.FixtureRequest) -> None:
    """Two threads ask all the time; children that are forked meanwhile ask as well, and fork again."""
    over = threading.Event()
    errors: list[BaseException] = []
    asked = [0, 0]

    def work(place: int, sql: str) -> None:
        try:
            while not over.is_set():
                ask_often(session, sql, 100_000 * (place + 1) + asked[place], 1)
                asked[place] += 1
        except BaseException as error:
            errors.append(error)

    def child(first: int) -> None:
        ask_often(session, (COUNT, SUM)[first % 2], first, 2)
        grandchild = forked(lambda: ask_often(session, (SUM, COUNT)[first % 2], 50_000 + first, 2))
        assert code_of(grandchild) == 0

    threads = [threading.Thread(target=work, args=(place, sql)) for place, sql in enumerate((COUNT, SUM))]
    for thread in threads:
        thread.start()
    codes = [code_of(forked(lambda first=1_000 + 7 * number: child(first))) for number in range(50)]  # type: ignore[misc]
    over.set()
    for thread in threads:
        thread.join(60)
    assert not errors, errors
    assert codes == [0] * 50
    ledger: Any = session._holdings.ledger
    ledger.verify()
    charged = sum(entry.kind == "charge" for entry in ledger.entries())
    assert charged == sum(asked) + 200
    name = request.node.callspec.params["session"]
    report(f"forks, {name}", Counter({"forks": 100, "answers in children": 200, "answers meanwhile": sum(asked)}))

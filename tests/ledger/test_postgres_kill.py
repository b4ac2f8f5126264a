"""kill -9 of the clients of a ledger on PostgreSQL, and of its server: nothing acknowledged is ever uncharged."""

import os
import random
import signal
import time
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import LedgerError
from confide.ledger import Ledger, PostgresLedger
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from tests.ledger.postgres_kind import address
from tests.ledger.test_kill import Opening, judge, rounds
from tests.servers import PostgresServer

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")

CLIENTS = 4
PART = PureDP(Fraction(1, 10_000))
BUDGET = Budget.of(100)


def opening(server: PostgresServer, database: str, budget: Budget) -> Opening:
    def opened(folder: Path) -> Ledger:
        return PostgresLedger.open_or_create(address(server, database, folder), budget, timeout=60)

    return opened


def test_nothing_is_lost_with_its_clients(
    postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    opened = opening(postgres_server, postgres_database, Budget.of(1))
    rounds(opened, tmp_path, 8, lambda folder, record: judge(folder, record, opened))


def serve(opened: Opening, folder: Path, prefix: str, record: Path) -> None:
    """Ask for ever, whatever happens to the server; a line in the record is what an analyst has in hand."""
    hand = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with opened(folder) as ledger:
        number = 0
        while True:
            key = f"{prefix}-{number}"
            try:
                charge = ledger.charge(PART, "a question", key)
                os.write(hand, f"charged {key}\n".encode())
                answer = ledger.store(charge, os.urandom(8))
                os.write(hand, f"released {key} {answer.hex()}\n".encode())
                number += 1
            except LedgerError:
                time.sleep(0.02)


class Service:
    """Clients in processes of their own, which never end by themselves."""

    def __init__(self, opened: Opening, folder: Path) -> None:
        self.record = folder / "record"
        self.record.touch()
        self._processes = []
        for number in range(CLIENTS):
            process = os.fork()
            if process == 0:
                try:
                    serve(opened, folder, str(number), self.record)
                finally:
                    os._exit(1)
            self._processes.append(process)

    def wait_for_work(self, lines: int = 8) -> None:
        """Wait until every client has got something done, by itself, since now."""
        start = self.record.stat().st_size
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with self.record.open("rb") as record:
                record.seek(start)
                done = [line.split(b" ")[1].partition(b"-")[0] for line in record.read().splitlines()[:-1]]
            if len(done) >= lines and len(set(done)) == CLIENTS:
                return
            time.sleep(0.01)
        raise AssertionError("the service did not recover by itself")

    def end(self) -> None:
        for process in self._processes:
            os.kill(process, signal.SIGKILL)
        deaths = [os.waitpid(process, 0)[1] for process in self._processes]
        assert deaths == [signal.SIGKILL] * CLIENTS, "a client ended by itself"


def judge_server(opened: Opening, folder: Path, record: Path) -> None:
    """What was acknowledged before is charged, what was released is what is stored, and the chain is whole."""
    lines = [line.split() for line in record.read_text().splitlines(keepends=True) if line.endswith("\n")]
    with opened(folder) as ledger:
        ledger.verify()
        charged = {entry.body["key"] for entry in ledger.entries() if entry.kind == "charge"}
        acknowledged = {line[1] for line in lines if line[0] == "charged"}
        assert acknowledged <= charged, f"acknowledged but not charged: {acknowledged - charged}"
        released = [line for line in lines if line[0] == "released"]
        for line in released[-40:]:
            assert ledger.answer(line[1]) == bytes.fromhex(line[2]), "released, but not what is stored"


def kill_rounds(server: PostgresServer, folder: Path, count: int) -> int:
    """So many rounds in which the server is killed in the middle of charges; the number of lines in hand."""
    chance = random.Random(20240301)
    opened = opening(server, "postgres", BUDGET)
    lines = 0
    for first in range(0, count, 10):  # then a new ledger: a long one takes long to judge
        place = folder / str(first)
        place.mkdir()
        service = Service(opened, place)
        try:
            for number in range(first, min(count, first + 10)):
                service.wait_for_work()
                time.sleep(chance.uniform(0.0, 0.05))
                if number % 3 == 2:
                    # One of its processes: the server then ends all others and recovers by itself.
                    os.kill(chance.choice(server.processes()[1:]), signal.SIGKILL)
                else:
                    server.kill()
                    server.start()
                service.wait_for_work()
                judge_server(opened, place, service.record)
        finally:
            service.end()
        lines += len(service.record.read_text().splitlines())
    return lines


def test_nothing_is_lost_with_its_server(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    assert kill_rounds(own_postgres_server, tmp_path, 3) > 40

"""What an error says of the charge is true: nothing was charged, it stands, or nobody can tell."""

import contextlib
import errno
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from confide.errors import LedgerBusy, LedgerError, LedgerFull
from confide.ledger import Ledger, PostgresLedger, SqliteLedger, stored_rows
from confide.ledger.postgres.connection import GRACE, IDLE
from confide.ledger.process.anchor import Anchor
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from tests.servers import PostgresServer

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")

PART = PureDP(Fraction(1, 1000))
TIMEOUT = 1.0


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "sqlite":
        made: Any = SqliteLedger.create(tmp_path / "ledger", Budget.of(1), timeout=TIMEOUT)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        database = request.getfixturevalue("postgres_database")
        place = server.url(database, schema="people", anchor=str(tmp_path / "ledger.anchor"))
        made = PostgresLedger.create(place, Budget.of(1), timeout=TIMEOUT)
    with made:
        yield made


def failing(exception: Exception) -> Any:
    def raised(*given: object) -> None:
        raise exception

    return raised


@pytest.fixture
def no_commit(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Something that goes wrong before the commit: the disk, or the server, has no room left."""
    whole = ledger._transactions.write

    def write(work: Any) -> Any:
        def full(connection: Any, position: Any) -> Any:
            work(connection, position)
            if isinstance(ledger, SqliteLedger):
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
                raise error
            raise psycopg.errors.DiskFull("no space")

        return whole(full)

    return lambda: monkeypatch.setattr(ledger._transactions, "write", write)


def test_a_charge_without_room_is_no_charge(ledger: Ledger, no_commit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    no_commit()
    with pytest.raises(LedgerFull, match="Nothing was charged") as caught:
        ledger.charge(PART, "a question", "key")
    assert not caught.value.unconfirmed
    assert ledger.spent() == PureDP(Fraction(0))


def test_an_answer_without_room_leaves_its_charge(ledger: Ledger, no_commit: Any) -> None:
    charge = ledger.charge(PART, "a question", "key")
    no_commit()
    with pytest.raises(LedgerFull, match="The charge stands, and no answer was given"):
        ledger.store(charge, b"answer")
    assert ledger.spent() == PART


@pytest.mark.parametrize("kind", ["charge", "store"])
def test_what_fails_after_the_commit_is_not_called_nothing(
    ledger: Ledger, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchor cannot be written: the entry stands in the ledger."""
    charge = ledger.charge(PART, "a question", "key")
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", failing(OSError(errno.ENOSPC, "No space left on device")))
    if kind == "charge":
        with pytest.raises(LedgerError, match="It may have been charged") as caught:
            ledger.charge(PART, "a question", "other")
        assert caught.value.unconfirmed
    else:
        with pytest.raises(LedgerError, match="The charge stands"):
            ledger.store(charge, b"answer")
    monkeypatch.setattr(os, "pwrite", whole)
    # The same call again finds out.
    ledger.charge(PART, "a question", "other")
    assert ledger.store(charge, b"answer") == b"answer"
    assert ledger.spent() == PureDP(2 * PART.epsilon)


def test_every_error_of_a_file_is_an_error_of_the_ledger(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.charge(PART, "a question", "key")
    monkeypatch.setattr(os, "pread", failing(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(LedgerError, match=r"Input/output error.*Nothing was charged"):
        ledger.charge(PART, "a question", "other")


def test_a_connection_that_ends_during_a_commit(
    postgres_server: PostgresServer, postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = postgres_server.url(postgres_database, schema="people", anchor=str(tmp_path / "anchor"))
    with PostgresLedger.create(place, Budget.of(1), timeout=5) as ledger:
        ledger.charge(PART, "a question", "before")
        connection: Any = ledger._transactions._connection  # type: ignore[attr-defined]
        whole = type(connection).commit

        def lost(self: Any) -> None:
            whole(self)
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(type(connection), "commit", lost)
        with pytest.raises(LedgerError, match=r"was lost.*It may have been charged.*is charged once"):
            ledger.charge(PART, "a question", "key")
        monkeypatch.setattr(type(connection), "commit", whole)
        ledger.charge(PART, "a question", "key")
        assert ledger.spent() == PureDP(2 * PART.epsilon)


def test_a_server_that_takes_no_more_connections_is_not_called_lost(
    postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    postgres_server.run(f'ALTER DATABASE "{postgres_database}" CONNECTION LIMIT 0')
    role = postgres_server.create_role("plain")
    place = postgres_server.url(postgres_database, role, schema="people", anchor=str(tmp_path / "anchor"))
    with pytest.raises(LedgerBusy, match="takes no more connections now"):
        PostgresLedger.open(place)


# --- silence ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """Somebody who listens and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


def test_several_silent_addresses_take_no_longer_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.ledger.postgres.connection.CONNECT", 2.0)
    with black_hole() as one, black_hole() as other, black_hole() as third:
        hosts = f"127.0.0.1:{one},127.0.0.1:{other},127.0.0.1:{third}"
        place = f"postgresql://ann@{hosts}/x?schema=people&anchor={tmp_path / 'anchor'}&sslmode=disable"
        started = time.monotonic()
        with pytest.raises(LedgerError, match="did not answer in time"):
            PostgresLedger.open(place)
        assert time.monotonic() - started < 3.5


# --- a process that is stopped in the middle of a charge --------------------------------------------------------------


@contextlib.contextmanager
def stopped_in_a_charge(ledger: Any) -> Iterator[None]:
    """Another process, stopped by SIGSTOP while it holds the writers' lock, and resumed in the end."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:

            def wait(connection: Any, position: Any) -> tuple[None, Any]:
                os.write(writing, b"!")
                os.kill(os.getpid(), signal.SIGSTOP)
                return None, position

            ledger._transactions.write(wait)
        finally:
            os._exit(0)
    try:
        assert os.read(reading, 1) == b"!"
        os.waitpid(process, os.WUNTRACED)
        yield
    finally:
        os.kill(process, signal.SIGCONT)
        os.waitpid(process, 0)
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("ledger", ["sqlite"], indirect=True)
def test_a_stopped_process_holds_up_others_for_their_time_only(ledger: Ledger) -> None:
    charge = ledger.charge(PART, "a question", "before")
    ledger.store(charge, b"answer")
    with stopped_in_a_charge(ledger):
        started = time.monotonic()
        with pytest.raises(LedgerBusy, match=r"in use by others for 1 s. Nothing was charged"):
            ledger.charge(PART, "a question", "meanwhile")
        assert TIMEOUT <= time.monotonic() - started < TIMEOUT + 1
        assert ledger.answer("before") == b"answer", "what was answered can still be read"
        assert ledger.spent() == PART
    ledger.charge(PART, "a question", "meanwhile")
    ledger.verify()


@pytest.mark.parametrize("ledger", ["sqlite", "postgres"], indirect=True)
def test_a_stopped_process_that_cannot_store_says_that_the_charge_stands(ledger: Ledger) -> None:
    charge = ledger.charge(PART, "a question", "before")
    with stopped_in_a_charge(ledger), pytest.raises(LedgerBusy, match="The charge stands"):
        ledger.store(charge, b"answer")
    assert ledger.store(charge, b"answer") == b"answer"


@pytest.mark.parametrize("ledger", ["postgres"], indirect=True)
def test_a_server_ends_the_transaction_of_a_stopped_process(
    ledger: Any, postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    """Within the time for which others wait by default."""
    assert IDLE + GRACE < 10
    place = postgres_server.url(postgres_database, schema="people", anchor=str(tmp_path / "ledger.anchor"))
    with PostgresLedger.open(place) as patient, stopped_in_a_charge(ledger):
        started = time.monotonic()
        patient.charge(PART, "a question", "meanwhile")
        assert time.monotonic() - started < 10


def test_an_anchor_that_is_held_for_too_long(ledger: Any) -> None:
    """On PostgreSQL the charge stands by then; in a file the anchor is the lock."""
    ledger.charge(PART, "a question", "before")
    path = ledger._place.anchor
    held = Anchor(path)
    with held.locked() as got:
        assert got
        with pytest.raises(LedgerError) as caught:
            ledger.charge(PART, "a question", "key")
    held.close()
    text = "It may have been charged" if isinstance(ledger, PostgresLedger) else "Nothing was charged"
    assert text in str(caught.value)
    assert "cannot be reached" not in str(caught.value)
    ledger.charge(PART, "a question", "key")
    assert ledger.spent() == PureDP(2 * PART.epsilon)


def test_a_fork_waits_for_no_longer_than_a_call_takes(ledger: Any) -> None:
    began, over = threading.Event(), threading.Event()

    def slow(connection: Any, position: Any) -> tuple[None, Any]:
        began.set()
        over.wait(0.5)
        return None, position

    thread = threading.Thread(target=lambda: ledger._transactions.write(slow))
    thread.start()
    assert began.wait(10)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.charge(PART, "a question", "child")
            code = 0
        finally:
            os._exit(code)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_entries_are_read_a_page_at_a_time(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, at the end of a page too; the newest of them in one transaction."""
    before = len(list(ledger.entries()))
    for number in range(9):
        ledger.charge(PureDP(PART.epsilon / 100), "a question", f"entry {number}")
    whole = list(ledger.entries())
    assert [entry.sequence for entry in whole] == list(range(1, before + 10))
    reads, read = [], ledger._transactions.read
    monkeypatch.setattr(ledger._transactions, "read", lambda work: reads.append(work) or read(work))
    for size in range(3, len(whole) + 2):
        monkeypatch.setattr(stored_rows, "PAGE", size)
        assert list(ledger.entries()) == whole
        assert list(ledger.entries(after=2)) == whole[2:]
        reads.clear()
        assert list(ledger.entries(newest=2)) == whole[-2:]
        assert len(reads) == 1

"""A server that dies, sleeps, is slow, or locks: one clear error, nothing hangs, and it goes on by itself."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from confide.errors import LedgerBusy, LedgerError
from confide.ledger import PostgresLedger
from confide.ledger.postgres import connection as postgres_connection
from confide.ledger.postgres.connection import PostgresConnection
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP
from tests.ledger.test_fork import PART as CHILD_PART
from tests.ledger.test_fork import fork_and_charge
from tests.servers import PostgresServer

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'confide[postgres]'")

PART = PureDP(Fraction(1, 1000))


def address(server: PostgresServer, folder: Path, database: str = "postgres") -> str:
    return server.url(database, schema="people", anchor=str(folder / "anchor"))


@pytest.fixture
def ledger(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> Iterator[PostgresLedger]:
    place = address(postgres_server, tmp_path, postgres_database)
    with PostgresLedger.create(place, Budget.of(1), timeout=20) as made:
        yield made


def test_a_server_that_dies_and_comes_back(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    server = own_postgres_server
    with PostgresLedger.create(address(server, tmp_path), Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "before")
        server.restart()
        ledger.charge(PART, "a question", "an idle connection that died is no error")
        server.kill()
        texts = set()
        for call in (
            lambda: ledger.charge(PART, "a question", "meanwhile"),
            lambda: ledger.answer("before"),
            ledger.spent,
            lambda: PostgresLedger.open(address(server, tmp_path)),
        ):
            with pytest.raises(LedgerError) as caught:
                call()
            texts.add(str(caught.value))
        assert len(texts) == 2, texts  # what is said of a charge, and of all else
        assert all("cannot be reached; check host, port" in text for text in texts)
        assert any(text.endswith("Nothing was charged") for text in texts)
        server.start()
        ledger.charge(PART, "a question", "meanwhile")
        assert ledger.spent() == PureDP(3 * PART.epsilon)
        ledger.verify()


def test_a_server_that_falls_silent(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    """Each call ends with its time, not with the sum of all times that its parts have."""
    server = own_postgres_server
    with PostgresLedger.create(address(server, tmp_path), Budget.of(1), timeout=2) as ledger:
        ledger.charge(PART, "a question", "before")
        server.pause()
        for call in (lambda: ledger.charge(PART, "a question", "meanwhile"), ledger.spent):
            started = time.monotonic()
            with pytest.raises(LedgerError, match="did not answer in time"):
                call()
            assert time.monotonic() - started < 2 + postgres_connection.GRACE + 1.5
        server.resume()
        ledger.charge(PART, "a question", "meanwhile")

        def silenced(connection: PostgresConnection, position: object) -> tuple[None, object]:
            server.pause()
            return None, position

        started = time.monotonic()
        with pytest.raises(LedgerError, match="did not answer in time") as caught:
            ledger._transactions.write(silenced)  # type: ignore[arg-type]
        assert caught.value.unconfirmed, "the commit was on its way"
        assert time.monotonic() - started < 2 + postgres_connection.GRACE + 1.5
        server.resume()
        assert ledger.spent() == PureDP(2 * PART.epsilon)


@contextlib.contextmanager
def locked(server: PostgresServer, database: str) -> Iterator[None]:
    with server.connect(database) as connection, connection.transaction():
        connection.execute("SELECT FROM people.ledger FOR UPDATE")
        yield


def test_a_lock_held_for_ever(postgres_server: PostgresServer, postgres_database: str, tmp_path: Path) -> None:
    place = address(postgres_server, tmp_path, postgres_database)
    with PostgresLedger.create(place, Budget.of(1), timeout=0.3) as ledger:
        charge = ledger.charge(PART, "a question", "key")
        with locked(postgres_server, postgres_database):
            with pytest.raises(LedgerBusy, match=r"in use by others for 0.3 s. Nothing was charged"):
                ledger.charge(PART, "a question", "another")
            # A paid key needs no lock, nor does looking.
            assert ledger.charge(PART, "a question", "key") == charge
            assert ledger.spent() == PART
        ledger.charge(PART, "a question", "another")


def test_a_client_that_stops_in_the_middle_gives_its_lock_back(
    ledger: PostgresLedger,
    postgres_server: PostgresServer,
    postgres_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_connection, "IDLE", 0.5)
    with PostgresLedger.open(address(postgres_server, tmp_path, postgres_database)) as sleeper:
        began, wake = threading.Event(), threading.Event()

        def asleep(connection: PostgresConnection, position: object) -> None:
            began.set()
            wake.wait(15)
            connection.execute("SELECT 1")

        errors: list[Exception] = []

        def work() -> None:
            try:
                sleeper._transactions.write(asleep)  # type: ignore[arg-type]
            except LedgerError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        began.wait(10)
        started = time.monotonic()
        ledger.charge(PART, "a question", "meanwhile")
        assert time.monotonic() - started < 12, "it waited for the sleeper"
        wake.set()
        thread.join()
        assert len(errors) == 1
        sleeper.charge(PART, "a question", "after")


def test_charges_are_durable_whatever_the_default_is(
    own_postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 takes back what was committed with synchronous_commit off: the control shows that it does here."""
    server = own_postgres_server
    server.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.run("ALTER SYSTEM SET synchronous_commit = off")
    server.restart()
    lost = {}
    for mode in ("on", "off"):
        monkeypatch.setattr(postgres_connection, "COMMIT", mode)
        (tmp_path / mode).mkdir()
        place = server.url(schema=f"people_{mode}", anchor=str(tmp_path / mode / "anchor"))
        with PostgresLedger.create(place, Budget.of(1)) as ledger:
            for number in range(5):
                ledger.charge(PART, "a question", f"key {number}")
            server.kill()
            server.start()
            try:
                lost[mode] = ledger.spent() != PureDP(5 * PART.epsilon)
            except LedgerError:
                lost[mode] = True
    assert lost == {"on": False, "off": True}


def test_a_standby_that_did_not_write_is_no_commit(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    """The server commits and warns when a wait for its standby is cut short; then nobody is told of a charge.

    Whether it warns is a setting, also of a role.
    """
    server = own_postgres_server
    server.run("ALTER ROLE confide SET client_min_messages = error")
    with PostgresLedger.create(address(server, tmp_path), Budget.of(1)) as ledger:
        server.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        server.run("SELECT pg_reload_conf()")
        errors: list[Exception] = []

        def work() -> None:
            try:
                ledger.charge(PART, "a question", "key")
            except LedgerError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        until = time.monotonic() + 20
        while not (found := server.run(waiting)) and time.monotonic() < until:
            time.sleep(0.05)
        server.run(f"SELECT pg_cancel_backend({found[0][0]})")
        thread.join()
        assert [str(error) for error in errors] == [str(errors[0])]
        assert "did not wait until its standby had written the commit. It may have been charged" in str(errors[0])


def test_a_server_that_does_not_force_its_log_to_disk(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    server = own_postgres_server
    with PostgresLedger.create(address(server, tmp_path), Budget.of(1)) as ledger:
        server.run("ALTER SYSTEM SET fsync = off")
        server.restart()
        with pytest.raises(LedgerError, match="fsync off"):
            ledger.charge(PART, "a question", "key")
        with pytest.raises(LedgerError, match="fsync off"):
            PostgresLedger.open(address(server, tmp_path))


def test_a_standby_is_refused_and_a_promotion_must_be_vouched_for(
    own_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    server = own_postgres_server
    with PostgresLedger.create(address(server, tmp_path), Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.start()
        for call in (lambda: ledger.charge(PART, "a question", "more"), ledger.spent):
            with pytest.raises(LedgerError, match="is a standby"):
                call()
        server.run("SELECT pg_promote()")
        with pytest.raises(LedgerError, match="taken over by a standby"):
            ledger.charge(PART, "a question", "more")


def test_tables_removed_in_use(ledger: PostgresLedger, postgres_server: PostgresServer, postgres_database: str) -> None:
    ledger.charge(PART, "a question", "key")
    postgres_server.run("DROP SCHEMA people CASCADE", postgres_database)
    with pytest.raises(LedgerError, match="were removed while it was in use"):
        ledger.charge(PART, "a question", "another")


def test_a_ledger_replaced_in_use(
    ledger: PostgresLedger, postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    """Another one, which is further than ours: neither the anchor nor the last entry would notice."""
    ledger.charge(PART, "a question", "key")
    postgres_server.run("DROP SCHEMA people CASCADE", postgres_database)
    other = postgres_server.url(postgres_database, schema="people", anchor=str(tmp_path / "another machine"))
    with PostgresLedger.create(other, Budget.of(1)) as made:
        for number in range(5):
            made.charge(PART, "a question", f"key {number}")
        with pytest.raises(LedgerError, match="was replaced while it was in use"):
            ledger.charge(PART, "a question", "more")


def test_a_chain_rewritten_while_the_server_was_away(own_postgres_server: PostgresServer, tmp_path: Path) -> None:
    server = own_postgres_server
    with PostgresLedger.create(address(server, tmp_path), Budget.of(1)) as ledger:
        charges = [ledger.charge(PART, "a question", f"key {number}") for number in range(2)]
        server.stop()
        kept = server.folder / "kept"
        shutil.copytree(server.folder / "data", kept, symlinks=True)
        for path in (kept, *kept.rglob("*")):
            shutil.chown(path, (server.folder / "data").stat().st_uid, (server.folder / "data").stat().st_gid)
        server.start()
        for number in range(2):
            ledger.store(charges[number], b"answer")
        server.stop()
        shutil.rmtree(server.folder / "data")
        kept.rename(server.folder / "data")
        server.start()
        other = server.url(schema="people", anchor=str(tmp_path / "another machine"))
        with PostgresLedger.open(other) as elsewhere:
            for number in range(5):
                elsewhere.charge(PART, "a question", f"another key {number}")
        with pytest.raises(LedgerError, match="is not the one that its anchor"):
            ledger.charge(PART, "a question", "more")


def test_parent_and_child_go_on_with_the_same_object(ledger: PostgresLedger) -> None:
    ledger.charge(PART, "a question", "before")
    children = [fork_and_charge(ledger, f"child {number}") for number in range(3)]
    ledger.charge(PART, "a question", "parent")
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert ledger.spent() == PureDP(2 * PART.epsilon + 3 * CHILD_PART.epsilon)
    assert ledger.answer("child 1") == b"child 1"
    ledger.charge(PART, "a question", "after")
    ledger.verify()


def test_forks_in_the_middle_of_other_threads_charges(ledger: PostgresLedger) -> None:
    stop = threading.Event()
    counts = [0, 0]

    def work(number: int) -> None:
        while not stop.is_set():
            ledger.charge(PureDP(PART.epsilon / 1000), "a question", f"thread {number} {counts[number]}")
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    children = [fork_and_charge(ledger, f"child {number}") for number in range(8)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stop.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 8
    assert len([entry for entry in ledger.entries() if entry.kind == "charge"]) == sum(counts) + 8
    ledger.verify()

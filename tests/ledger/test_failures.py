"""A full disk, a failing disk, a lock held for ever, a read-only place, Ctrl-C: a clear error, and nothing lost."""

import ctypes
import os
import platform
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull
from confide.ledger import SqliteLedger
from confide.ledger import stored_rows as storage
from confide.ledger.process.anchor import EXIT_CODE, Anchor, read_mark
from confide.privacy.budget import Budget
from confide.privacy.loss import PureDP

PART = PureDP(Fraction(1, 1000))


def in_child(work: Callable[[], None]) -> tuple[int, str]:
    """Run `work` in a forked process; its exit code and what it wrote to standard error."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.dup2(writing, 2)
            sys.stderr = os.fdopen(2, "w")
            work()
            code = 0
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}")
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text


def fill_up(ledger: SqliteLedger) -> tuple[int, LedgerFull]:
    for number in range(10**6):
        try:
            charge = ledger.charge(PART, "x" * 2000, f"key {number}")
            ledger.store(charge, os.urandom(2000))
        except LedgerFull as error:
            return number, error
    raise AssertionError("the disk never filled up")


def test_a_full_database_is_a_full_disk(tmp_path: Path) -> None:
    """SQLite refuses to grow beyond max_page_count with the same SQLITE_FULL as on a full disk."""
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "first")
        connection = ledger._transactions._connection
        assert connection is not None
        connection.execute("PRAGMA max_page_count = 30")
        done, error = fill_up(ledger)
        assert done > 0
        assert isinstance(error.__cause__, sqlite3.Error)
        assert error.__cause__.sqlite_errorname == "SQLITE_FULL"
        # Whether it was the charge or its answer that found no room, the text is true.
        charged = any(entry.body.get("key") == f"key {done}" for entry in ledger.entries())
        assert ("The charge stands" if charged else "Nothing was charged") in str(error)
        spent = ledger.spent()
        connection.execute("PRAGMA max_page_count = 1000000")
        ledger.charge(PART, "a question", "more")
        assert ledger.spent() == PureDP(spent.epsilon + PART.epsilon)  # type: ignore[union-attr]
        ledger.verify()


def test_a_full_disk(tmp_path: Path) -> None:
    """A file system of half a megabyte, in a mount namespace of a process of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def work() -> None:
        if not mount_small(disk):
            os._exit(77)
        path = disk / "ledger"
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(512 * 1024))
        try:
            SqliteLedger.open_or_create(path, Budget.of(1))
        except LedgerFull:
            assert [file.name for file in disk.iterdir()] == ["ballast"]
        else:
            raise AssertionError("a ledger was made on a full disk")
        os.truncate(ballast, 50_000)
        with SqliteLedger.create(path, Budget.of(1)) as ledger:
            done, error = fill_up(ledger)
            assert done > 0
            cause = error.__cause__
            assert isinstance(cause, sqlite3.Error)
            assert cause.sqlite_errorname == "SQLITE_FULL", cause.sqlite_errorname
            charged = [entry.body["key"] for entry in ledger.entries() if entry.kind == "charge"]
            # The charge of the last question may stand, if it was the answer that found no room; no other may.
            assert charged in ([f"key {n}" for n in range(done)], [f"key {n}" for n in range(done + 1)])
            assert ledger.spent() == PureDP(len(charged) * PART.epsilon)
            ledger.verify()
        ballast.unlink()
        with SqliteLedger.open(path) as ledger:
            charge = ledger.charge(PART, "x" * 2000, f"key {done}")
            assert ledger.store(charge, b"small") == b"small"
            ledger.verify()

    code, text = in_child(work)
    if code == 77:
        pytest.skip("mounting a small file system is not permitted here")
    assert code == 0, text


def mount_small(folder: Path) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, new_user, private = 0x20000, 0x10000000, 0x44000
    user, group = os.getuid(), os.getgid()
    if libc.unshare(new_mounts) != 0:
        if libc.unshare(new_mounts | new_user) != 0:
            return False
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    libc.mount(None, b"/", None, private, None)
    return bool(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=512k") == 0)


SYSTEM_CALLS = {"x86_64": (0xC000003E, 74, 75), "aarch64": (0xC00000B7, 82, 83)}


def forbid_fsync() -> bool:
    """From now on, fsync and fdatasync fail with EIO in this process: a disk that lost its writes."""
    if platform.system() != "Linux" or platform.machine() not in SYSTEM_CALLS:
        return False
    architecture, fsync, fdatasync = SYSTEM_CALLS[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    allow, fail = 0x7FFF0000, 0x00050000 | 5
    program = [
        (load, 0, 0, 4),
        (equal, 0, 4, architecture),
        (load, 0, 0, 0),
        (equal, 1, 0, fsync),
        (equal, 0, 1, fdatasync),
        (give, 0, 0, fail),
        (give, 0, 0, allow),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    filter_program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(set_seccomp, filter_mode, filter_program, 0, 0) == 0)


def test_a_copy_within_the_process_costs_no_charge(tmp_path: Path) -> None:
    """Closing the copied file drops the locks of the process; another one then removes the log, as if it were alone."""
    path = tmp_path / "ledger"
    another = """
        import sys
        from fractions import Fraction
        from confide.ledger import SqliteLedger
        from confide.privacy.loss import PureDP
        with SqliteLedger.open(sys.argv[1]) as ledger:
            ledger.charge(PureDP(Fraction(1, 1000)), "a question", sys.argv[2])
    """

    def elsewhere(key: str) -> None:
        subprocess.run([sys.executable, "-c", textwrap.dedent(another), str(path), key], check=True)

    ledger = SqliteLedger.create(path, Budget.of(1))
    ledger.charge(PART, "a question", "key")
    shutil.copy(path, tmp_path / "copy")
    elsewhere("first")
    with pytest.raises(LedgerError, match=r"start the program again.*It may have been charged"):
        ledger.charge(PART, "a question", "lost")
    with pytest.raises(LedgerError, match="was closed"):
        ledger.charge(PART, "a question", "another")
    elsewhere("second")
    ledger.close()
    elsewhere("third")


def test_signals_wait_for_the_end_of_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a handler raises in between left a transaction open, or a lock taken, for good."""
    called: list[int] = []

    def handler(number: int, frame: object) -> None:
        called.append(number)
        raise TimeoutError(number)

    def interrupted(*given: Any) -> Any:
        for number in (signal.SIGALRM, signal.SIGTERM):
            signal.raise_signal(number)
        assert called == []
        return appended(*given)

    appended = storage.append
    before = {number: signal.signal(number, handler) for number in (signal.SIGALRM, signal.SIGTERM)}
    try:
        with SqliteLedger.create(tmp_path / "ledger", Budget.of(1), timeout=1) as ledger:
            with monkeypatch.context() as patch:
                patch.setattr(storage, "append", interrupted)
                with pytest.raises(TimeoutError):
                    ledger.charge(PART, "a question", "key")
            assert sorted(called) == sorted(before)
            assert all(signal.getsignal(number) is handler for number in before)
            assert ledger.charge(PART, "a question", "key").sequence == 2
            numbers: list[int] = []
            thread = threading.Thread(
                target=lambda: numbers.append(ledger.charge(PART, "a question", "another").sequence)
            )
            thread.start()
            thread.join()
            assert numbers == [3]
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@pytest.mark.parametrize("lost", ["the log", "the anchor"])
def test_a_failed_fsync_ends_the_process(lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "first")

    def work() -> None:
        ledger = SqliteLedger.open(path)
        ledger.charge(PART, "a question", "second")
        if lost == "the anchor":
            whole = Anchor.write
            monkeypatch.setattr(Anchor, "write", lambda *given: (forbid_fsync() or os._exit(77), whole(*given)))
        elif not forbid_fsync():
            os._exit(77)
        ledger.charge(PART, "a question", "third")
        os._exit(99)  # acknowledged, though nothing reached the disk

    code, text = in_child(work)
    if code == 77:
        pytest.skip("system calls cannot be made to fail here")
    assert code == EXIT_CODE, text
    assert "could not be forced to disk" in text
    assert "The process ends here" in text
    with SqliteLedger.open(path) as ledger:
        assert ledger.spent() in (PureDP(2 * PART.epsilon), PureDP(3 * PART.epsilon))
        ledger.verify()


@pytest.mark.parametrize("held", ["database", "anchor"])
def test_a_locked_ledger_is_busy_after_a_while(held: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with SqliteLedger.create(path, Budget.of(1), timeout=0.4) as ledger:
        connection, anchor = sqlite3.connect(path, isolation_level=None), Anchor(Path(f"{path}.anchor"))
        try:
            if held == "database":
                connection.execute("BEGIN IMMEDIATE")
            else:
                assert anchor._lock()
            started = time.monotonic()
            with pytest.raises(LedgerBusy, match=r"in use by others for 0.4 s. Nothing was charged"):
                ledger.charge(PART, "a question", "key")
            assert 0.3 < time.monotonic() - started < 5
            assert ledger.spent() == PureDP(Fraction(0))
            waiting: list[BaseException | None] = []
            threads = [threading.Thread(target=lambda: waiting.append(_outcome(ledger))) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [type(error) for error in waiting] == [LedgerBusy] * 8
            assert time.monotonic() - started < 10, "each waits its own time, not the sum of them"
        finally:
            connection.close()
            anchor.close()
        ledger.charge(PART, "a question", "key")
        assert ledger.spent() == PART


def _outcome(ledger: SqliteLedger) -> BaseException | None:
    try:
        ledger.charge(PART, "a question", "key")
    except LedgerError as error:
        return error
    return None


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that another user can reach; those of pytest are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="confide-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody() -> None:
    """Root may write anywhere: be somebody else."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@pytest.mark.parametrize("protected", ["ledger", "anchor", "folder"])
def test_a_read_only_place(protected: str, shared_folder: Path) -> None:
    path = shared_folder / "ledger"
    with SqliteLedger.create(path, Budget.of(1)) as ledger:
        ledger.charge(PART, "a question", "key")
    path.chmod(0o444 if protected == "ledger" else 0o666)
    Path(f"{path}.anchor").chmod(0o444 if protected == "anchor" else 0o666)
    shared_folder.chmod(0o555 if protected == "folder" else 0o777)

    def work() -> None:
        as_nobody()
        ledger = SqliteLedger.open(path)
        ledger.charge(PART, "a question", "other")

    code, text = in_child(work)
    shared_folder.chmod(0o755)
    assert code == 1
    assert text.startswith("LedgerError: ")
    assert "read-only" in text or "opened for writing" in text
    with SqliteLedger.open(path) as ledger:
        assert ledger.spent() == PART


def test_a_read_only_folder_for_a_new_ledger(shared_folder: Path) -> None:
    def work() -> None:
        as_nobody()
        SqliteLedger.open_or_create(shared_folder / "ledger", Budget.of(1))

    shared_folder.chmod(0o555)
    code, text = in_child(work)
    shared_folder.chmod(0o755)
    assert code == 1
    assert "is read-only: a ledger cannot be made there" in text


INTERRUPTED = """
    import signal, sys
    from fractions import Fraction
    from confide.ledger import SqliteLedger
    from confide.privacy.loss import PureDP

    at_work = False

    def interrupt(number, frame):
        if at_work:
            raise KeyboardInterrupt

    part = PureDP(Fraction(1, 100000))
    interrupted = number = 0
    ledger = SqliteLedger.open(sys.argv[1], timeout=60)
    signal.signal(signal.SIGINT, interrupt)
    print("ready", flush=True)
    while number < 200 or interrupted < 25:
        try:
            at_work = True
            charge = ledger.charge(part, "a question", f"key {number}")
            ledger.store(charge, b"answer")
            at_work = False
            number += 1
        except KeyboardInterrupt:
            at_work = False
            interrupted += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the interpreter's own end is not under test
"""


def test_ctrl_c_at_any_moment(tmp_path: Path) -> None:
    """A client that is interrupted again and again goes on with the same key; nothing is lost, or left locked."""
    path = tmp_path / "ledger"
    SqliteLedger.create(path, Budget.of(1)).close()
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        chance = random.Random(3)
        while process.poll() is None:
            time.sleep(chance.uniform(0.001, 0.02))
            process.send_signal(signal.SIGINT)
            with SqliteLedger.open(path, timeout=30) as other:
                other.charge(PART, "meanwhile", "meanwhile")
        _, text = process.communicate()
    assert process.returncode == 0, text
    with SqliteLedger.open(path) as ledger:
        charged = [entry.body["key"] for entry in ledger.entries() if entry.kind == "charge"]
        charged.remove("meanwhile")
        assert charged == [f"key {number}" for number in range(len(charged))]
        # The last key may have been interrupted between its charge and its answer, and not asked again.
        assert [key for key in charged[:-1] if ledger.answer(key) != b"answer"] == []
        ledger.verify()


def test_an_interrupt_waits_for_the_end_of_the_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:
        whole = Anchor.write

        def interrupted(*given: object) -> None:
            signal.raise_signal(signal.SIGINT)
            whole(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(Anchor, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(PART, "a question", "key")
        mark = read_mark(tmp_path / "ledger.anchor")
        assert mark is not None
        assert mark.sequence == 2, "the interrupt cut the transaction short"
        monkeypatch.setattr(Anchor, "write", whole)
        assert ledger.spent() == PART
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert ledger.charge(PART, "a question", "key").sequence == 2
        assert ledger.spent() == PART


def test_a_connection_that_is_closed_under_a_thread_is_no_damage(tmp_path: Path) -> None:
    """A program that ends closes it while threads that it does not wait for go on; the file is whole."""
    with SqliteLedger.create(tmp_path / "ledger", Budget.of(1)) as ledger:
        charge = ledger.charge(PART, "before", "first")
        connection = ledger._transactions._connection
        assert connection is not None
        connection.close()
        with pytest.raises(LedgerError, match=r"closed while it was in use\. Nothing was charged") as failed:
            ledger.charge(PART, "after", "second")
        assert not isinstance(failed.value, LedgerDamaged)
        with pytest.raises(LedgerError, match=r"closed while it was in use\. The charge stands") as failed:
            ledger.store(charge, b"answer")
        assert not isinstance(failed.value, LedgerDamaged)
    with SqliteLedger.open(tmp_path / "ledger") as ledger:
        assert ledger.verify().sequence == 2

"""The files of a ledger: where they lie, the schema and the connections of its SQLite file, and whether they are sound.

Bodies are blobs, so that their bytes are what was hashed. Amounts are whole quanta, written as text because they exceed
64 bits. SQLite's errors become ours. A judgement, quick when a ledger is opened and whole when it is verified, reads
only and changes no byte.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull, LedgerMissing
from confide.host.fork import undivided
from confide.ledger.durable import never_made
from confide.ledger.process.anchor import Mark, end_process, missing, read_mark
from confide.ledger.record.replay import Statement
from confide.ledger.soundness import UNREADABLE, Opened, judged, walked

_MOMENT = 1.0  # seconds, for two links

APPLICATION = 0x434E4644  # "CNFD"
VERSION = 1
SCHEMA = (
    "CREATE TABLE entry (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL) STRICT",
    "CREATE TABLE charge (sequence INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, answered INTEGER NOT NULL, "
    "seal INTEGER NOT NULL) STRICT",
    "CREATE TABLE answer (sequence INTEGER PRIMARY KEY, answer BLOB NOT NULL) STRICT",
    "CREATE TABLE account (analyst TEXT PRIMARY KEY, total TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE secret (secret BLOB NOT NULL) STRICT",
)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FSYNC = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    """The files of one ledger. An anchor on another disk also notices when a whole folder is set back."""

    path: Path
    anchor: Path

    @classmethod
    def of(cls, path: str | os.PathLike[str], anchor: str | os.PathLike[str] | None = None) -> Self:
        try:
            whole = Path(path).expanduser().resolve()
            beside = Path(f"{whole}.anchor") if anchor is None else Path(anchor).expanduser().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise LedgerError(f"{str(path)!r} is not a place for a ledger ({error})") from error
        return cls(whole, beside)

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def set_back(self) -> str:
        """How a ledger at this place can have become older than its anchor, and what to do."""
        return (
            f"an older copy was put back, or its write-ahead log ({self.log.name}) was lost or damaged. Put back the "
            "newest copy of the ledger together with its log"
        )

    @property
    def log(self) -> Path:
        return Path(f"{self.path}-wal")

    @property
    def empty(self) -> bool:
        """Whether none of its files is there: the only place where a ledger may be made."""
        return not any(map(os.path.lexists, (self.path, self.anchor, self.log)))

    def settle(self) -> None:
        """Wait a moment for a ledger that somebody is making: its anchor is there before it is."""
        until = time.monotonic() + _MOMENT
        while os.path.lexists(self.anchor) and not os.path.lexists(self.path) and time.monotonic() < until:
            time.sleep(0.005)

    def require_ledger(self) -> None:
        """Refuse, in words, what cannot be opened as a ledger."""
        if not self.path.exists():
            for trace, what in ((self.anchor, "anchor"), (self.log, "log")):
                if os.path.lexists(trace):
                    raise LedgerMissing(
                        f"the ledger {self.path} is gone, but its {what} {trace} shows that it existed. It is not made "
                        "again, because what was spent would be forgotten: put the file back"
                    )
            raise never_made(str(self.path))
        if not self.path.is_file():
            raise LedgerError(f"{self.path} is not a file, so it is not a ledger")
        if self.path.stat().st_size == 0:
            raise LedgerDamaged(f"{self.path} is empty: it is not a ledger, or was truncated")
        for place, what in ((self.path, "the ledger"), (self.path.parent, "the folder of the ledger")):
            if not os.access(place, os.W_OK):
                raise LedgerError(f"{what} {place} is read-only: a charge could not be written, so none can be made")

    def require_nothing(self) -> None:
        """Refuse a place that already holds something."""
        if os.path.lexists(self.path):
            raise LedgerError(f"there is already something at {self.path}: open it, or choose another place")
        if not self.empty:
            self.require_ledger()

    def require_folder(self) -> None:
        """Refuse, in words, a place where nothing can be written."""
        for folder in (self.path.parent, self.anchor.parent):
            if not folder.is_dir():
                raise LedgerError(f"the folder {folder} does not exist: make it, or keep the ledger elsewhere")
            if not os.access(folder, os.W_OK):
                raise LedgerError(f"the folder {folder} is read-only: a ledger cannot be made there")

    def index_inode(self) -> tuple[int, int] | None:
        """Which file is now the index of the log, which is there as long as anybody uses the ledger; None if none."""
        try:
            found = os.stat(f"{self.path}-shm")  # noqa: PTH116  quicker, and at every charge
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def inode(self) -> tuple[int, int]:
        """Which file the path leads to now."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise LedgerMissing(f"the ledger {self.path} was removed while it was in use: put it back") from None
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be reached: {error.strerror}") from error
        return found.st_dev, found.st_ino


def connect(path: Path, *, read_only: bool = False, wait: float = 0.0) -> sqlite3.Connection:
    """A connection that commits only when told to. Closing a read-only one changes no byte of the ledger."""
    address = f"{path.as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        if not read_only:
            _make_durable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_durable(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise LedgerError(f"the file system of the ledger does not support a write-ahead log (journal mode {mode!r})")
    # Checkpoints are ours to make, under the writers' lock: SQLite before 3.51.3 may lose a commit when one connection
    # resets the log while another makes a checkpoint.
    for pragma in ("synchronous = FULL", "wal_autocheckpoint = 0", "fullfsync = ON", "checkpoint_fullfsync = ON"):
        connection.execute(f"PRAGMA {pragma}")


def require_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a ledger, or whose tables are not ours to the letter."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    if application != APPLICATION and not rows:
        raise LedgerDamaged(f"{path} is not a ledger of Confide, or was emptied")
    if application != APPLICATION or tuple(text for (text,) in rows) != SCHEMA:
        raise LedgerDamaged(f"{path} is not a ledger of Confide, or its tables were altered")
    if version != VERSION:
        raise LedgerDamaged(f"the ledger {path} is of version {version}; this program reads version {VERSION}")


def create_schema(connection: sqlite3.Connection) -> None:
    for statement in (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}", *SCHEMA):
        connection.execute(statement)


def is_busy(error: sqlite3.Error) -> bool:
    return _code(error) & 0xFF in _BUSY


def translated(error: sqlite3.Error, path: Path) -> LedgerError:
    """SQLite's error as ours. A failed fsync does not return."""
    code = _code(error)
    if code in _FSYNC:
        end_process(f"the ledger {path} could not be forced to disk")
    if isinstance(error, sqlite3.ProgrammingError):
        # Python's own, about the connection and not the file: a program that ends closes it under threads that go on.
        return LedgerError(f"the ledger {path} was closed while it was in use")
    if is_busy(error):
        return LedgerBusy(f"the ledger {path} is locked by another program")
    if code in _FULL:
        return LedgerFull(f"the disk that holds the ledger {path} is full: make room, then ask again")
    if code & 0xFF in _DENIED:
        return LedgerError(
            f"the ledger {path} cannot be opened for writing: its file, its folder and its anchor must be writable by "
            "this user"
        )
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return LedgerError(f"the disk that holds the ledger {path} fails ({_name(error)})")
    if code & 0xFF == sqlite3.SQLITE_NOMEM:
        return LedgerError(f"there is not enough memory to use the ledger {path}")
    return LedgerDamaged(f"the ledger {path} is damaged or is not a ledger ({_name(error)})")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0)


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "") or "unreadable")


def inspect(place: LedgerFiles, wait: float) -> Opened:
    """The cheap check of every opening: schema, genesis, terms, accounts, last entry, and the anchor."""
    # The anchor first: it only ever follows the ledger, so a ledger read later can only be further.
    mark = read_mark(place.anchor)
    with _snapshot(place, wait) as connection:
        opened = judged(connection, mark, place)
        _require_anchor(mark, place)
        return opened


def verify(place: LedgerFiles, wait: float, *, anchored: bool = True) -> Statement:
    """Walk the whole chain, add it up again, and compare with it every row and stored answer beside it."""
    mark = read_mark(place.anchor) if anchored else None
    with _snapshot(place, wait) as connection, _snapshot(place, wait) as beside, _checking(beside) as checked:
        statement = walked(connection, mark, place)
        if anchored:
            _require_anchor(mark, place)
        if (sound := checked()) != "ok":
            raise LedgerDamaged(f"the ledger {place.path} is damaged: {sound}")
        return statement


@contextlib.contextmanager
def _checking(connection: sqlite3.Connection) -> Iterator[Callable[[], str]]:
    """Runs SQLite's own check of its pages beside what is done inside. Yields a function that waits for its verdict."""
    with ThreadPoolExecutor(1) as beside:
        sound = beside.submit(lambda: connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        try:
            yield sound.result
        finally:
            connection.interrupt()


def _require_anchor(mark: Mark | None, place: LedgerFiles) -> None:
    """Refuse a ledger without an anchor, even one without a charge: its log may have been left behind."""
    if mark is None:
        raise missing(place.anchor)


@contextlib.contextmanager
def _snapshot(place: LedgerFiles, wait: float) -> Iterator[sqlite3.Connection]:
    """One state of the ledger, read-only, with our errors. A fork waits for it: see `Transactions.abandon`."""
    try:
        with undivided():
            connection = connect(place.path, read_only=True, wait=wait)
            try:
                connection.execute("BEGIN")
                require_schema(connection, place.path)
                yield connection
            finally:
                connection.close()
    except sqlite3.Error as error:
        raise translated(error, place.path) from error
    except UNREADABLE as error:
        raise LedgerDamaged(f"the ledger {place.path} is not as this program writes ledgers") from error

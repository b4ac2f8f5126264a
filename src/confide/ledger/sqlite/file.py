"""The SQLite file behind a ledger: its schema, its connections, and its errors turned into ours.

Bodies are blobs, so that their bytes are what was hashed. Amounts are whole quanta, written as text because they exceed
64 bits.
"""

import sqlite3
from pathlib import Path

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull
from confide.ledger.process.durability import end_process

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

"""The SQLite file behind a ledger: its schema, its connections, its rows, and its errors turned into ours.

`entry` is the chain and the only authority. `charge` finds an entry by key and says which entry answers it, `account`
holds what each analyst has spent; both follow from the chain and are checked against it. Bodies are blobs, so that
their bytes are what was hashed. Amounts are whole quanta, written as text because they exceed 64 bits.
"""

import hashlib
import sqlite3
import zlib
from pathlib import Path

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull
from confide.ledger.booking import Position
from confide.ledger.chain import ORIGIN, Body, decode, encode, link
from confide.ledger.durability import end_process
from confide.ledger.terms import Quanta

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


def last(connection: sqlite3.Connection) -> tuple[Body, bytes]:
    """The last entry and its hash, checked."""
    row = connection.execute("SELECT max(sequence) FROM entry").fetchone()
    if row is None or row[0] is None:
        raise LedgerDamaged("the ledger has no entries: it is empty or was truncated")
    return entry(connection, row[0])


def entry(connection: sqlite3.Connection, sequence: int) -> tuple[Body, bytes]:
    """One entry and its hash, checked against the entry before it."""
    rows = {
        number: (body, digest)
        for number, body, digest in connection.execute(
            "SELECT sequence, body, hash FROM entry WHERE sequence BETWEEN ? AND ?", (sequence - 1, sequence)
        )
    }
    if sequence not in rows or (sequence > 1 and sequence - 1 not in rows):
        raise LedgerDamaged(f"entry {sequence} of the ledger, or the one before it, is missing")
    encoded, digest = rows[sequence]
    previous = rows[sequence - 1][1] if sequence > 1 else ORIGIN
    return decode(sequence, encoded, previous, digest), digest


def append(connection: sqlite3.Connection, position: Position, body: Body) -> Position:
    """Write the next entry; durable only when the transaction is."""
    encoded = encode(body)
    digest = link(position.hash, encoded)
    connection.execute("INSERT INTO entry VALUES (?, ?, ?)", (body["sequence"], encoded, digest))
    return Position.of(body, digest)


def find(connection: sqlite3.Connection, key: str) -> tuple[Body, int] | None:
    """The charge of a key, and the number of the entry that answers it or 0; None if there is no such charge."""
    row = connection.execute("SELECT sequence, answered, seal FROM charge WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    sequence, answered, stated = row
    body, _ = entry(connection, sequence)
    if stated != seal(sequence, key, answered) or body.get("key") != key:
        raise LedgerDamaged(f"the ledger finds entry {sequence} by a row that was altered or is damaged")
    return body, answered


def set_charge(connection: sqlite3.Connection, sequence: int, key: str, answered: int = 0) -> None:
    connection.execute(
        "INSERT INTO charge VALUES (?, ?, ?, ?) "
        "ON CONFLICT (sequence) DO UPDATE SET answered = excluded.answered, seal = excluded.seal",
        (sequence, key, answered, seal(sequence, key, answered)),
    )


def seal(sequence: int, key: str, answered: int) -> int:
    """Makes the row of a charge notice its own damage: one flipped bit could turn an answered charge into an open one,
    and its question would be answered a second time, with other noise, for nothing."""
    return zlib.crc32(f"{sequence},{answered},{key}".encode())


def account(connection: sqlite3.Connection, analyst: str) -> Quanta | None:
    row = connection.execute("SELECT total FROM account WHERE analyst = ?", (analyst,)).fetchone()
    return read_account(row[0]) if row else None


def set_account(connection: sqlite3.Connection, analyst: str, total: Quanta) -> None:
    connection.execute(
        "INSERT INTO account VALUES (?, ?) ON CONFLICT (analyst) DO UPDATE SET total = excluded.total",
        (analyst, ",".join(map(str, total))),
    )


def read_account(text: str) -> Quanta:
    return tuple(map(int, text.split(",")))


def secret(connection: sqlite3.Connection, genesis: Body) -> bytes:
    """The ledger's secret, if it is the one that its genesis stands for."""
    row = connection.execute("SELECT secret FROM secret").fetchone()
    if row is None or hashlib.sha256(row[0]).hexdigest() != genesis["secret"]:
        raise LedgerDamaged("the secret of the ledger was altered or is damaged")
    return bytes(row[0])


def is_busy(error: sqlite3.Error) -> bool:
    return _code(error) & 0xFF in _BUSY


def translated(error: sqlite3.Error, path: Path) -> LedgerError:
    """SQLite's error as ours. A failed fsync does not return."""
    code = _code(error)
    if code in _FSYNC:
        end_process(f"the ledger {path} could not be forced to disk")
    if is_busy(error):
        return LedgerBusy(f"the ledger {path} is locked by another program; nothing was charged")
    if code in _FULL:
        return LedgerFull(
            f"the disk that holds the ledger {path} is full; nothing was charged. Make room, then ask again"
        )
    if code & 0xFF in _DENIED:
        return LedgerError(
            f"the ledger {path} cannot be opened for writing; nothing was charged. "
            "Its file, its folder and its anchor must be writable by this user"
        )
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return LedgerError(f"the disk that holds the ledger {path} fails ({_name(error)}); nothing was charged")
    if code & 0xFF == sqlite3.SQLITE_NOMEM:
        return LedgerError(f"there is not enough memory to use the ledger {path}; nothing was charged")
    return LedgerDamaged(f"the ledger {path} is damaged or is not a ledger ({_name(error)})")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0)


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "") or "unreadable")

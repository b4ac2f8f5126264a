"""The rows of a ledger, read and written inside a transaction, in the SQL that SQLite and PostgreSQL share.

`entry` is the chain and the only authority. `charge` finds an entry by key and says which entry answers it, `account`
holds what each analyst has spent; both follow from the chain and are checked against it.
"""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from confide.errors import LedgerDamaged
from confide.ledger.record.entry import ORIGIN, Body, Entry, Link, Position, decode, encode, link, require_kept
from confide.ledger.record.terms import Quanta

LAST = "SELECT sequence, body, hash FROM entry ORDER BY sequence DESC LIMIT 2"

PAGE = 500


class Cursor(Protocol):
    """The rows of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to a database, in a transaction. A question mark stands for a parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor: ...


def last(connection: Connection) -> tuple[Body, bytes]:
    """The last entry and its hash, checked."""
    return last_of(connection.execute(LAST).fetchall())


def last_of(rows: list[Link]) -> tuple[Body, bytes]:
    if not rows:
        raise LedgerDamaged("the ledger has no entries: it is empty or was truncated")
    return _checked(rows, rows[0][0])


def entry(connection: Connection, sequence: int) -> tuple[Body, bytes]:
    """One entry and its hash, checked against the entry before it."""
    bounds = (sequence - 1, sequence)
    rows = connection.execute("SELECT sequence, body, hash FROM entry WHERE sequence BETWEEN ? AND ?", bounds)
    return _checked(rows.fetchall(), sequence)


def _checked(rows: list[Link], sequence: int) -> tuple[Body, bytes]:
    known = {number: (encoded, digest) for number, encoded, digest in rows}
    if sequence not in known or (sequence > 1 and sequence - 1 not in known):
        raise LedgerDamaged(f"entry {sequence} of the ledger, or the one before it, is missing")
    encoded, digest = known[sequence]
    previous = known[sequence - 1][1] if sequence > 1 else ORIGIN
    return decode(sequence, encoded, previous, digest), digest


def page(connection: Connection, after: int) -> list[Entry]:
    """The next entries that follow number `after`, each checked against the one before it."""
    rows = connection.execute(
        "SELECT sequence, body, hash FROM entry WHERE sequence >= ? ORDER BY sequence LIMIT ?", (after, PAGE + 1)
    ).fetchall()
    number, previous = max(0, after), ORIGIN
    if number and rows and rows[0][0] == number:
        previous = rows.pop(0)[2]
    found = []
    for sequence, encoded, digest in rows:
        if sequence != number + 1:
            raise LedgerDamaged(f"entry {number + 1} of the ledger, or the one before it, is missing")
        body = decode(sequence, encoded, previous, digest)
        found.append(Entry(sequence, body["kind"], body, digest.hex()))
        number, previous = sequence, digest
    return found


def append(connection: Connection, position: Position, body: Body) -> Position:
    """Write the next entry; durable only when the transaction is."""
    encoded = encode(body)
    digest = link(position.hash, encoded)
    connection.execute("INSERT INTO entry VALUES (?, ?, ?)", (body["sequence"], encoded, digest))
    return Position.of(body, digest)


def find(connection: Connection, key: str) -> tuple[Body, int] | None:
    """The charge of a key, and the number of the entry that answers it or 0; None if there is no such charge."""
    row = connection.execute("SELECT sequence, answered, seal FROM charge WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    sequence, answered, stated = row
    body, _ = entry(connection, sequence)
    if stated != seal(sequence, key, answered) or body.get("key") != key:
        raise LedgerDamaged(f"the ledger finds entry {sequence} by a row that was altered or is damaged")
    return body, answered


def set_charge(connection: Connection, sequence: int, key: str, answered: int = 0) -> None:
    connection.execute(
        "INSERT INTO charge VALUES (?, ?, ?, ?) "
        "ON CONFLICT (sequence) DO UPDATE SET answered = excluded.answered, seal = excluded.seal",
        (sequence, key, answered, seal(sequence, key, answered)),
    )


def seal(sequence: int, key: str, answered: int) -> int:
    """Makes the row of a charge notice its own damage: one flipped bit could turn an answered charge into an open one,
    and its question would be answered a second time, with other noise, for nothing."""
    return zlib.crc32(f"{sequence},{answered},{key}".encode())


def accounts(connection: Connection, analysts: Sequence[str]) -> dict[str, Quanta]:
    """What each of some analysts has spent; nothing for those who were never charged."""
    found = {}
    for start in range(0, len(analysts), PAGE):
        some = tuple(analysts[start : start + PAGE])
        marks = ", ".join("?" * len(some))
        rows = connection.execute(f"SELECT analyst, total FROM account WHERE analyst IN ({marks})", some)
        found.update({analyst: read_account(total) for analyst, total in rows.fetchall()})
    return found


def set_account(connection: Connection, analyst: str, total: Quanta) -> None:
    connection.execute(
        "INSERT INTO account VALUES (?, ?) ON CONFLICT (analyst) DO UPDATE SET total = excluded.total",
        (analyst, ",".join(map(str, total))),
    )


def read_account(text: str) -> Quanta:
    return tuple(map(int, text.split(",")))


def secret(connection: Connection, genesis: Body) -> bytes:
    """The ledger's secret, if it is the one that its genesis stands for."""
    row = connection.execute("SELECT secret FROM secret").fetchone()
    if row is None or hashlib.sha256(row[0]).hexdigest() != genesis["secret"]:
        raise LedgerDamaged("the secret of the ledger was altered or is damaged")
    return bytes(row[0])


def answer(connection: Connection, charged: Body, answered: int) -> bytes:
    """The stored answer of a charge, checked against the chain."""
    body, _ = entry(connection, answered)
    kept = stored(connection, answered)
    if body["kind"] != "answer" or body["charge"] != charged["sequence"] or kept is None:
        raise LedgerDamaged(f"the answer of entry {charged['sequence']} of the ledger was altered or is damaged")
    return require_kept(kept, body)


def stored(connection: Connection, sequence: int) -> bytes | None:
    row = connection.execute("SELECT answer FROM answer WHERE sequence = ?", (sequence,)).fetchone()
    return None if row is None else row[0]


def set_answer(connection: Connection, sequence: int, kept: bytes) -> None:
    connection.execute("INSERT INTO answer VALUES (?, ?)", (sequence, kept))


def set_secret(connection: Connection, made: bytes) -> None:
    connection.execute("INSERT INTO secret VALUES (?)", (made,))

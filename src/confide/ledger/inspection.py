"""Judging the files of a ledger: quickly when it is opened, wholly when it is verified. Reads only; changes no byte."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from confide.errors import LedgerDamaged, LedgerError, LedgerRolledBack
from confide.ledger import storage
from confide.ledger.anchor import Mark, missing, read_mark
from confide.ledger.booking import FORMAT, Position, digest, require_kept
from confide.ledger.chain import Body
from confide.ledger.place import Place
from confide.ledger.replay import Replay, Statement
from confide.ledger.terms import Terms
from confide.privacy.amount import QUANTA

# What reading rows that pass their hash, or that have none, may still raise on files that were tampered with.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)

_BATCH = 200  # few enough to stay in the cache of the processor


@dataclass(frozen=True, slots=True)
class Opened:
    """What a ledger says of itself when it is opened."""

    identity: str
    secret: bytes
    terms: Terms
    position: Position
    anchored: bool


def inspect(place: Place, wait: float) -> Opened:
    """The cheap check of every opening: schema, genesis, terms, accounts, last entry, and the anchor."""
    # The anchor first: it only ever follows the ledger, so a ledger read later can only be further.
    mark = read_mark(place.anchor)
    try:
        return _inspect(place, mark, wait)
    except LedgerDamaged:
        # Of a ledger that was made this moment, the anchor may have been made between the two readings.
        made = read_mark(place.anchor) if mark is None else None
        if made is None:
            raise
        return _inspect(place, made, wait)


def _inspect(place: Place, mark: Mark | None, wait: float) -> Opened:
    with _snapshot(place, wait) as connection:
        first, _ = storage.entry(connection, 1)
        if first["format"] != FORMAT or first["quanta"] != str(QUANTA):
            raise LedgerDamaged(f"the ledger {place.path} is of another format ({first['format']!r})")
        position = Position.of(*storage.last(connection))
        require_mark(connection, mark, position, first["ledger"], place)
        _require_accounts(connection, position)
        terms = Terms.read(storage.entry(connection, position.terms)[0])
        anchored = mark is not None and mark.sequence == position.sequence
        return Opened(first["ledger"], storage.secret(connection, first), terms, position, anchored)


def require_mark(
    connection: sqlite3.Connection, mark: Mark | None, position: Position, identity: str, place: Place
) -> None:
    """Refuse a ledger that is behind its anchor, or is not the one the anchor knows."""
    if mark is None:
        # A crash right after creation leaves no anchor and no charge; anything later has one.
        if position.sequence > 1:
            raise missing(place.anchor)
        return
    if mark.ledger != identity:
        raise LedgerDamaged(f"the anchor {place.anchor} belongs to another ledger than {place.path}")
    require_not_behind(mark, position, place)
    if storage.entry(connection, mark.sequence)[1].hex() != mark.hash:
        raise _forked(mark, place)


def require_not_behind(mark: Mark, position: Position, place: Place) -> None:
    if position.sequence < mark.sequence:
        raise LedgerRolledBack(
            f"the ledger {place.path} ends at entry {position.sequence}, but its anchor {place.anchor} has seen entry "
            f"{mark.sequence}: an older copy was put back, or its write-ahead log ({place.log.name}) was lost or "
            "damaged. Put back the newest copy of the ledger together with its log"
        )
    if position.sequence == mark.sequence and position.hash.hex() != mark.hash:
        raise _forked(mark, place)


def verify(place: Place, wait: float, *, anchored: bool = True) -> Statement:
    """Walk the whole chain, add it up again, and compare with it every row and stored answer beside it."""
    mark = read_mark(place.anchor) if anchored else None
    replay = Replay()
    with _snapshot(place, wait) as connection:
        _walk(connection, replay, mark, place)
        statement = replay.statement()
        position = Position.of(*storage.last(connection))
        if anchored:
            require_mark(connection, mark, position, statement.ledger, place)
        _require_accounts(connection, position)
        storage.secret(connection, storage.entry(connection, 1)[0])
        for count, table in ((replay.charges, "charge"), (replay.answers, "answer")):
            if connection.execute(f"SELECT count(*) FROM {table}").fetchone() != (count,):
                raise LedgerDamaged(f"the ledger {place.path} has rows of {table!r} that its chain has not")
        (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok":
            raise LedgerDamaged(f"the ledger {place.path} is damaged: {sound}")
        return statement


@contextlib.contextmanager
def _snapshot(place: Place, wait: float) -> Iterator[sqlite3.Connection]:
    """One state of the ledger, read-only, with errors that are ours."""
    try:
        connection = storage.connect(place.path, read_only=True, wait=wait)
        try:
            connection.execute("BEGIN")
            storage.require_schema(connection, place.path)
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise storage.translated(error, place.path) from error
    except UNREADABLE as error:
        raise LedgerDamaged(f"the ledger {place.path} is not as this program writes ledgers") from error


def _walk(connection: sqlite3.Connection, replay: Replay, mark: Mark | None, place: Place) -> None:
    answered: dict[int, int] = {}
    marked = mark.sequence if mark is not None else 0
    cursor = connection.execute(
        "SELECT entry.sequence, body, hash, key, answered, seal FROM entry LEFT JOIN charge USING (sequence) "
        "ORDER BY entry.sequence"
    )
    while rows := cursor.fetchmany(_BATCH):
        bodies = replay.add([row[:3] for row in rows])
        for body, (sequence, _, stated, key, answer, seal) in zip(bodies, rows, strict=True):
            if sequence == marked and mark is not None and stated.hex() != mark.hash:
                raise _forked(mark, place)
            if key is not None or "key" in body:
                if body.get("key") != key or seal != storage.seal(sequence, key, answer):
                    raise LedgerDamaged(f"entry {sequence} of the ledger cannot be found by its key: a row was altered")
                if answer:
                    answered[answer] = sequence
            if body["kind"] == "answer":
                if answered.pop(sequence, None) != body["charge"]:
                    raise LedgerDamaged(f"the answer of entry {sequence} of the ledger cannot be found by its charge")
                _require_answer(connection, body)
    if answered:
        raise LedgerDamaged(f"the ledger points to answers that its chain has not (entry {min(answered)})")


def _require_answer(connection: sqlite3.Connection, body: Body) -> None:
    row = connection.execute("SELECT answer FROM answer WHERE sequence = ?", (body["sequence"],)).fetchone()
    if row is None:
        raise LedgerDamaged(f"the answer of entry {body['sequence']} of the ledger is missing")
    require_kept(row[0], body)


def _require_accounts(connection: sqlite3.Connection, position: Position) -> None:
    """Refuse accounts of analysts that are not the ones which the last entry stands for."""
    rows = connection.execute("SELECT analyst, total FROM account")
    accounts = {analyst: storage.read_account(text) for analyst, text in rows}
    if digest(accounts) != position.accounts or any(len(own) != len(position.total) for own in accounts.values()):
        raise LedgerDamaged("what the analysts have spent by their accounts is not what the chain says: it was altered")


def _forked(mark: Mark, place: Place) -> LedgerError:
    return LedgerDamaged(
        f"entry {mark.sequence} of the ledger {place.path} is not the one that its anchor {place.anchor} has seen: "
        "the ledger was rewritten, or belongs to another anchor"
    )

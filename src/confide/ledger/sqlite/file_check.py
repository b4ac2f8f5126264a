"""Judging the files of a ledger: quickly when it is opened, wholly when it is verified. Reads only; changes no byte."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from confide.errors import LedgerDamaged
from confide.host.fork import undivided
from confide.ledger.process.anchor import Mark, missing, read_mark
from confide.ledger.record.replay import Statement
from confide.ledger.soundness import UNREADABLE, Opened, judged, walked
from confide.ledger.sqlite import file as sqlite_file
from confide.ledger.sqlite.files import LedgerFiles


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
    """SQLite's own check of its pages, which runs beside what is done inside; what is given waits for what it says."""
    with ThreadPoolExecutor(1) as beside:
        sound = beside.submit(lambda: connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        try:
            yield sound.result
        finally:
            connection.interrupt()


def _require_anchor(mark: Mark | None, place: LedgerFiles) -> None:
    """Also of a ledger without a charge: it may have been copied without its log, which holds them."""
    if mark is None:
        raise missing(place.anchor)


@contextlib.contextmanager
def _snapshot(place: LedgerFiles, wait: float) -> Iterator[sqlite3.Connection]:
    """One state of the ledger, read-only, with our errors. A fork waits for it: see `Transactions.abandon`."""
    try:
        with undivided():
            connection = sqlite_file.connect(place.path, read_only=True, wait=wait)
            try:
                connection.execute("BEGIN")
                sqlite_file.require_schema(connection, place.path)
                yield connection
            finally:
                connection.close()
    except sqlite3.Error as error:
        raise sqlite_file.translated(error, place.path) from error
    except UNREADABLE as error:
        raise LedgerDamaged(f"the ledger {place.path} is not as this program writes ledgers") from error

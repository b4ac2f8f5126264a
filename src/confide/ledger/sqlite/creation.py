"""Making a ledger: whole and durable under another name first, then put in its place, once."""

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

from confide.errors import LedgerError, LedgerFull
from confide.ledger import durable as keeping
from confide.ledger import stored_rows as storage
from confide.ledger.process.anchor import Anchor, Mark, set_aside, sync_path
from confide.ledger.record.terms import Terms
from confide.ledger.sqlite import files
from confide.ledger.sqlite.files import LedgerFiles, verify


def create(place: LedgerFiles, terms: Terms) -> bool:
    """Make a ledger at `place`; False if somebody else did so first. Of any number of makers exactly one succeeds.

    The anchor is put in its place before the ledger. So a ledger without an anchor is never one that is being made: it
    is a copy, or was moved, and may have been copied from before the first charge.
    """
    place.require_folder()
    name = os.urandom(8).hex()
    draft = place.path.with_name(f".{place.path.name}.{name}.new")
    beside = place.anchor.with_name(f".{place.anchor.name}.{name}.new")
    try:
        _draft_anchor(beside, _draft(draft, terms))
        # A link, unlike a rename, never replaces what is there: not even a ledger made a moment ago.
        os.link(beside, place.anchor)
        try:
            os.link(draft, place.path)
        except BaseException:
            place.anchor.unlink()
            raise
    except FileExistsError:
        place.settle()
        return False
    except sqlite3.Error as error:
        raise files.translated(error, place.path) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LedgerFull(f"the disk is full: no ledger was made at {place.path}") from error
        reason = "hard links are not supported there" if error.errno == errno.EPERM else error.strerror
        raise LedgerError(f"a ledger cannot be made at {place.path}: {reason}") from error
    finally:
        for leftover in (draft, beside, Path(f"{draft}-wal"), Path(f"{draft}-shm"), Path(f"{draft}-journal")):
            with contextlib.suppress(OSError):  # what is wrong is told by the error that is under way
                leftover.unlink()
    sync_path(place.anchor.parent)
    sync_path(place.path.parent)
    return True


def restore_anchor(path: str | os.PathLike[str], anchor: str | os.PathLike[str] | None = None) -> None:
    """Make a lost or damaged anchor again. For the custodian, who vouches that the ledger is the newest there is.

    The whole chain is verified first. An anchor that can be read is never replaced: a ledger that is behind it has lost
    charges, and no program can know how many.
    """
    place = LedgerFiles.of(path, anchor)
    place.require_ledger()
    statement = verify(place, 10.0, anchored=False)
    if os.path.lexists(place.anchor):
        set_aside(place.anchor)
    made = Anchor(place.anchor, create=True)
    try:
        with made.locked() as held:
            if not held:
                raise LedgerError(f"the ledger {place.path} is in use: stop its users, then restore the anchor")
            sync_path(place.log)
            made.write(Mark(statement.ledger, statement.head.sequence, statement.head.hash))
    finally:
        made.close()


def _draft(draft: Path, terms: Terms) -> Mark:
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = files.connect(draft)
    try:
        connection.execute("BEGIN IMMEDIATE")
        files.create_schema(connection)
        identity = keeping.begin(connection, terms)
        body, digest = storage.last(connection)
        connection.execute("COMMIT")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LedgerError(f"the new ledger {draft} is held by another program")
    finally:
        connection.close()
    sync_path(draft)
    return Mark(identity, body["sequence"], digest.hex())


def _draft_anchor(draft: Path, mark: Mark) -> None:
    anchor = Anchor(draft, create=True)
    try:
        anchor.write(mark)
    finally:
        anchor.close()

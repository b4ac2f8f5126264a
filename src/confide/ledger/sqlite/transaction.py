"""Transactions on the files of a ledger, for threads, processes and forks at once.

A write holds the anchor's lock, begins, checks the last entry against the anchor, appends, commits (which forces the
log to disk), and moves the anchor (which forces that to disk); only then does anybody hear of it. So whatever was
acknowledged is in the ledger, and the anchor knows. A crash in between leaves a ledger ahead of its anchor, which the
next user mends.
"""

import contextlib
import sqlite3
from collections.abc import Callable

from confide.errors import LedgerDamaged, LedgerError, LedgerFull
from confide.host.fork import leave_open
from confide.ledger import stored_rows as storage
from confide.ledger.durable import Reading, Result, Writing
from confide.ledger.process.anchor import Anchor, Mark, sync_path
from confide.ledger.process.turn import Holding
from confide.ledger.record.entry import Position
from confide.ledger.soundness import UNREADABLE, require_not_behind
from confide.ledger.sqlite import files
from confide.ledger.sqlite.files import LedgerFiles

_LOG_BYTES = 4 * 2**20  # a write-ahead log beyond this is folded into the ledger,
_COMMITS = 256  # but not more often than this


class SqliteTransactions(Holding[sqlite3.Connection]):
    """One connection and one anchor, opened when first needed, used by one thread at a time."""

    def __init__(self, place: LedgerFiles, identity: str, timeout: float) -> None:
        self._place = place
        self._identity = identity
        self._inode = place.inode()
        self._index: tuple[int, int] | None = None
        self._commits = _COMMITS
        self._sent = False  # whether a commit is under way, or done
        super().__init__(place.name, timeout)

    def catch_up(self) -> None:
        """Bring an anchor that a crash left behind up to the ledger."""
        self.write(lambda connection, position: (None, position))

    def write(self, work: Writing[Result]) -> Result:
        """Run `work` in one durable transaction, alone among all writers."""

        def attempt(connection: sqlite3.Connection, anchor: Anchor) -> tuple[Result] | None:
            with anchor.locked() as held:
                if not held:
                    return None
                mark = anchor.read()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    before = self._position(connection, mark)
                    result, after = work(connection, before)
                    self._sent = True
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if self._place.index_inode() != self._index:
                    raise self._left_behind(connection)
                if mark is None or mark.sequence < before.sequence:
                    # Somebody died between the commit and the anchor, perhaps before the log was forced to disk.
                    sync_path(self._place.log)
                if mark is None or mark.sequence < after.sequence:
                    anchor.write(Mark(self._identity, after.sequence, after.hash.hex()))
                self._fold_log(connection)
                return (result,)

        return self._run(attempt)

    def read(self, work: Reading[Result]) -> Result:
        """Run `work` on one consistent state of the ledger."""

        def attempt(connection: sqlite3.Connection, anchor: Anchor) -> tuple[Result]:
            mark = anchor.read()
            connection.execute("BEGIN")
            try:
                position = self._position(connection, mark)
                return (work(connection, position, mark or Mark(self._identity, 0, "")),)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        return self._run(attempt)

    def abandon(self) -> None:
        """In the child of a fork: closed, and not only forgotten.

        SQLite counts the locks of a file for the whole process, and a fork inherits the count but not the locks. While
        the inherited connection is open, one that is opened here takes no lock of its own; when the parent then closes,
        it believes that nobody is left and removes the log, with what is charged here after that. Closing says nothing
        to the parent: its locks are its own, and they show that the child is not the last.

        If the thread that forks is in the middle of a transaction itself, in a signal handler, then closing would roll
        that back, and with it undo in shared memory what the parent may have committed meanwhile. So nothing more
        is done on that connection, nor with the ledger in this process.
        """
        if self._connection is not None and self._connection.in_transaction:
            self._connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
            self._closed = True
        elif self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        super().abandon()

    def _position(self, connection: sqlite3.Connection, mark: Mark | None) -> Position:
        """Where the chain stands, never behind the anchor that was read before."""
        position = Position.of(*storage.last(connection))
        if mark is not None:
            require_not_behind(mark, position, self._place)
        return position

    def _run(self, attempt: Callable[[sqlite3.Connection, Anchor], tuple[Result] | None]) -> Result:
        def tried(deadline: float) -> tuple[Result] | None:
            self._sent = False
            try:
                return attempt(*self._connect())
            except sqlite3.Error as error:
                if files.is_busy(error) and not self._sent:
                    return None
                failure = files.translated(error, self._place.path)
                # A commit for which there was no room is not there; one that failed otherwise may be, after a crash.
                raise self._judged(failure, self._sent and not isinstance(failure, LedgerFull)) from error
            except LedgerError as error:
                raise self._judged(error, self._sent) from error.__cause__
            except OSError as error:
                failure = LedgerError(f"the files of the ledger {self._place.path} cannot be used: {error.strerror}")
                raise self._judged(failure, self._sent) from error
            except UNREADABLE as error:
                raise LedgerDamaged(f"the ledger {self._place.path} is not as it should be") from error

        return self._turns.take(tried)

    @staticmethod
    def _judged(error: LedgerError, unconfirmed: bool) -> LedgerError:
        error.unconfirmed = unconfirmed
        return error

    def _connect(self) -> tuple[sqlite3.Connection, Anchor]:
        self.require_open()
        if self._place.inode() != self._inode:
            raise LedgerDamaged(f"the ledger {self._place.path} was replaced while it was in use: open it again")
        if self._anchor is None:
            self._anchor = Anchor(self._place.anchor)
        if self._connection is not None:
            return self._connection, self._anchor
        connection = self._keep(files.connect(self._place.path))
        self._index = self._place.index_inode()
        return connection, self._anchor

    def _left_behind(self, connection: sqlite3.Connection) -> LedgerError:
        """Somebody took themselves for the last user and removed the log with its index: a commit to it is on no disk.

        Whoever copies the file of the ledger within this process makes the system drop the locks of the process, and
        then the next to close it elsewhere finds nobody. What they folded into the ledger is whole. So this connection
        is never closed: that would put what it believes in the place of what others have written since.
        """
        leave_open(connection)
        if self._closing is not None:
            self._closing.detach()
        self._connection, self._closing, self._closed = None, None, True
        return LedgerDamaged(
            f"the log of the ledger {self._place.path} was removed while it was in use: start the program again. This "
            "comes of copying the ledger within the program that uses it, or of removing its files"
        )

    def _fold_log(self, connection: sqlite3.Connection) -> None:
        """Move a long log into the ledger, under the writers' lock. It is a matter of size only: failing is no loss.

        RESTART keeps the file of the log, so that later commits overwrite it instead of making it grow, which is what
        costs most when a file is forced to disk.
        """
        self._commits += 1
        if self._commits < _COMMITS:
            return
        self._commits = 0
        try:
            if self._place.log.stat().st_size > _LOG_BYTES:
                connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        except FileNotFoundError:
            return
        except sqlite3.Error as error:
            files.translated(error, self._place.path)  # ends the process if it was an fsync

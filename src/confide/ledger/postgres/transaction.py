"""Transactions on a ledger in PostgreSQL, for threads, processes, forks and machines at once.

A write begins, locks the one row of the table `ledger`, checks the last entry against this machine's anchor, appends,
commits (which waits until the server's log is on disk, and on the disk of a synchronous standby if it has one), and
moves the anchor; only then does anybody hear of it.
"""

import time
from collections.abc import Callable

from confide.errors import LedgerBusy, LedgerDamaged, LedgerError
from confide.ledger.durable import Reading, Result, Writing
from confide.ledger.postgres import ledger_tables
from confide.ledger.postgres.connection import PostgresConnection
from confide.ledger.postgres.driver import driver, is_busy, is_gone, silent, translated
from confide.ledger.postgres.location import PostgresPlace
from confide.ledger.process.anchor import Anchor, Mark
from confide.ledger.process.turn import Holding
from confide.ledger.record.entry import Position
from confide.ledger.soundness import UNREADABLE, require_mark, require_not_behind


class PostgresTransactions(Holding[PostgresConnection]):
    """One connection and one anchor, opened when needed and again when lost, used by one thread at a time."""

    def __init__(
        self, place: PostgresPlace, identity: str, timeout: float, connection: PostgresConnection | None = None
    ) -> None:
        self._place = place
        self._identity = identity
        self._sent = False  # whether a commit is under way, or done
        super().__init__(place.name, timeout, connection)

    def write(self, work: Writing[Result]) -> Result:
        """Run `work` in one durable transaction, alone among all writers."""

        def attempt(anchor: Anchor, deadline: float) -> tuple[Result]:
            mark = anchor.read()
            connection, position = self._begin(mark, deadline, write=True)
            result, after = work(connection, position)
            self._sent = True
            connection.commit()
            self._move(anchor, mark, after, deadline)
            return (result,)

        return self._run(attempt)

    def read(self, work: Reading[Result]) -> Result:
        """Run `work` on one consistent state of the ledger."""

        def attempt(anchor: Anchor, deadline: float) -> tuple[Result]:
            mark = anchor.read()
            connection, position = self._begin(mark, deadline, write=False)
            return (work(connection, position, mark or Mark(self._identity, 0, "")),)

        return self._run(attempt)

    def catch_up(self) -> None:
        """Bring this machine's anchor up to the ledger. What can be read was committed, so it is durable."""

        def attempt(anchor: Anchor, deadline: float) -> tuple[None]:
            mark = anchor.read()
            _, position = self._begin(mark, deadline, write=False)
            self._move(anchor, mark, position, deadline)
            return (None,)

        self._run(attempt)

    def abandon(self) -> None:
        if self._connection is not None:
            self._connection.abandon()
        super().abandon()

    def _run(self, attempt: Callable[[Anchor, float], tuple[Result]]) -> Result:
        psycopg = driver()

        def tried(deadline: float) -> tuple[Result] | None:
            self.require_open()
            self._sent = False
            try:
                if self._anchor is None:
                    self._anchor = Anchor(self._place.anchor)
                return attempt(self._anchor, deadline)
            except psycopg.Error as error:
                if is_busy(error):
                    return None
                cut = self._connection is not None and self._connection.cut
                failure = silent(self._place.name) if cut else translated(error, self._place.name)
                failure.unconfirmed = self._sent and is_gone(error)
                raise failure from error
            except LedgerError as error:
                error.unconfirmed = self._sent
                raise
            except OSError as error:
                failure = LedgerError(f"the anchor {self._place.anchor} cannot be used: {error.strerror}")
                failure.unconfirmed = self._sent
                raise failure from error
            except UNREADABLE as error:
                raise LedgerDamaged(f"the ledger {self._place.name} is not as it should be") from error
            finally:
                if self._connection is not None:
                    self._connection.rollback()
                    if self._connection.closed:
                        self._drop()

        return self._turns.take(tried)

    def _begin(self, mark: Mark | None, deadline: float, *, write: bool) -> tuple[PostgresConnection, Position]:
        """A connection in a transaction, and where the chain stands: never behind the anchor that was read before."""
        if self._connection is not None:
            try:
                return self._connection, self._start(self._connection, mark, deadline, write=write)
            except driver().OperationalError:
                if not self._connection.closed:
                    raise
                # It died while it was idle: nothing was under way.
                self._drop()
        connection = self._keep(PostgresConnection(self._place, deadline))
        position = self._start(connection, mark, deadline, write=write)
        ledger_tables.require_server(connection, self._place)
        if mark is not None:
            require_mark(connection, mark, position, self._identity, self._place)
        return connection, position

    def _start(self, connection: PostgresConnection, mark: Mark | None, deadline: float, *, write: bool) -> Position:
        connection.begin(write=write, deadline=deadline)
        identity, position = ledger_tables.start(connection, self._place, lock=write)
        if identity != self._identity:
            raise LedgerDamaged(f"the ledger {self._place.name} was replaced while it was in use: open it again")
        if mark is not None:
            require_not_behind(mark, position, self._place)
        return position

    def _move(self, anchor: Anchor, mark: Mark | None, position: Position, deadline: float) -> None:
        """Move the anchor, durably. Others on this machine may have moved it further meanwhile; it never goes back."""
        if mark is not None and mark.sequence >= position.sequence:
            return
        while True:
            with anchor.locked() as held:
                if held:
                    anchor.write(Mark(self._identity, position.sequence, position.hash.hex()))
                    return
            if time.monotonic() > deadline:
                raise LedgerBusy(f"the anchor {anchor.path} was in use by others for too long")
            time.sleep(0.001)

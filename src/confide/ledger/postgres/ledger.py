"""The ledger for several machines: one schema in a PostgreSQL database, and an anchor on each machine."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Self, final

from confide.errors import LedgerDamaged, LedgerError, LedgerMissing
from confide.ledger.durable import TIMEOUT, KeptLedger
from confide.ledger.postgres import ledger_tables
from confide.ledger.postgres.connection import PostgresConnection
from confide.ledger.postgres.driver import driver, translated
from confide.ledger.postgres.location import PostgresPlace
from confide.ledger.postgres.transaction import PostgresTransactions
from confide.ledger.process.anchor import Anchor, Mark, read_mark, set_aside
from confide.ledger.record.entry import Head
from confide.ledger.record.replay import Statement
from confide.ledger.record.terms import Terms
from confide.ledger.soundness import UNREADABLE, Opened, judged, walked
from confide.privacy.budget import Budget

PathLike = str | os.PathLike[str]


@final
class PostgresLedger(KeptLedger):
    """A durable ledger. Make one with `create`, `open` or `open_or_create`; use it from any thread and across forks.

    An address is postgresql://user@host/database?schema=people. `anchor` is a file of this machine, used if the address
    names none.
    """

    def __init__(self, place: PostgresPlace, timeout: float = TIMEOUT) -> None:
        connection = PostgresConnection(place)
        try:
            opened = _inspect(connection, place)
            _make_anchor(place)  # a machine that never saw this ledger has none yet
            transactions = PostgresTransactions(place, opened.identity, timeout, connection)
            super().__init__(opened, transactions)
            self._place = place
            if not opened.anchored:
                transactions.catch_up()
        except BaseException:
            connection.close()
            raise

    @classmethod
    def create(
        cls,
        address: str,
        budget: Budget,
        caps: Mapping[str, object] | None = None,
        *,
        anchor: PathLike | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Make a new ledger where there is none."""
        return cls.make(PostgresPlace.of(address, anchor), budget, caps, timeout=timeout)

    @classmethod
    def open(
        cls,
        address: str,
        budget: Budget | None = None,
        caps: Mapping[str, object] | None = None,
        *,
        anchor: PathLike | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Open a ledger that is there; a budget or caps that are given must be its own."""
        place = PostgresPlace.of(address, anchor)
        return cls(place, timeout)._with_terms(budget, caps, place.name)

    @classmethod
    def open_or_create(
        cls,
        address: str,
        budget: Budget,
        caps: Mapping[str, object] | None = None,
        *,
        anchor: PathLike | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Open a ledger, or make it if neither it nor an anchor of it is there. All who do so at once get the same."""
        return cls.at(PostgresPlace.of(address, anchor), budget, caps, create=True, timeout=timeout)

    @classmethod
    def make(
        cls, place: PostgresPlace, budget: Budget, caps: Mapping[str, object] | None = None, *, timeout: float = TIMEOUT
    ) -> Self:
        """Make a new ledger at a place."""
        if not _create(place, Terms.of(budget, caps)):
            raise LedgerError(f"there is already a ledger at {place.name}: open it, or choose another schema")
        return cls(place, timeout)

    @classmethod
    def at(
        cls,
        place: PostgresPlace,
        budget: Budget,
        caps: Mapping[str, object] | None = None,
        *,
        create: bool,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Open the ledger at a place; with `create`, make it if it is not there."""
        try:
            ledger = cls(place, timeout)
        except LedgerMissing:
            if not create:
                raise
            _create(place, Terms.of(budget, caps))
            ledger = cls(place, timeout)
        return ledger._with_terms(budget, caps, place.name)

    def verify(self) -> Head:
        self._transactions.require_open()
        return _verify(self._place).head

    def __repr__(self) -> str:
        return f"<PostgresLedger {self._place.name}>"


def postgres_holds_ledger(place: PostgresPlace) -> bool:
    """Whether a ledger is there; `LedgerMissing` if this machine's anchor shows that one was, and it is gone."""
    mark = read_mark(place.anchor)
    with _snapshot(place) as connection:
        if ledger_tables.holds_ledger(connection, place):
            return True
    if mark is not None:
        raise ledger_tables.missing(place, anchored=True)
    return False


def restore_postgres_anchor(place: PostgresPlace) -> None:
    """Vouch for a ledger whose database was restored or taken over, or make a damaged anchor again. For the custodian.

    The whole chain is verified first. An anchor that can be read is never replaced: a ledger that is behind it has lost
    charges, and no program can know how many.
    """
    try:
        mark = read_mark(place.anchor)
    except LedgerDamaged:
        mark = None
    statement = _verify(place, mark, vouched=False)
    moved = _vouch(place)
    if mark is not None:
        if not moved:
            raise LedgerError(
                f"the anchor {place.anchor} is there and can be read, and the database is the one that the ledger "
                "knows: there is nothing to restore"
            )
        return
    if os.path.lexists(place.anchor):
        set_aside(place.anchor)
    anchor = _make_anchor(place, keep=True)
    try:
        with anchor.locked() as held:
            if not held:
                raise LedgerError(f"the anchor {place.anchor} is in use: stop its users, then restore it")
            anchor.write(Mark(statement.ledger, statement.head.sequence, statement.head.hash))
    finally:
        anchor.close()


def _inspect(connection: PostgresConnection, place: PostgresPlace) -> Opened:
    """The cheap check of every opening: server, schema, rights, terms, accounts, last entry, and the anchor."""
    # The anchor first: it only ever follows the ledger, so a ledger read later can only be further.
    mark = read_mark(place.anchor)
    with _own_errors(place):
        connection.begin(write=False)
        ledger_tables.require_server(connection, place)
        ledger_tables.require_schema(connection, place, anchored=mark is not None)
        identity, _ = ledger_tables.start(connection, place)
        opened = judged(connection, mark, place)
        if opened.identity != identity:
            raise LedgerDamaged(f"{place.name} is not a ledger of Confide, or its table 'ledger' was altered")
        connection.rollback()
        return opened


def _verify(place: PostgresPlace, mark: Mark | None = None, *, vouched: bool = True) -> Statement:
    mark = read_mark(place.anchor) if vouched else mark
    with _snapshot(place) as connection:
        ledger_tables.require_schema(connection, place, anchored=mark is not None)
        if vouched:
            ledger_tables.start(connection, place)
        return walked(connection, mark, place)


def _create(place: PostgresPlace, terms: Terms) -> bool:
    if postgres_holds_ledger(place):
        return False
    _make_anchor(place)  # before the ledger: a place without one is no place for it
    with _connected(place) as connection:
        connection.begin(write=True)
        ledger_tables.require_server(connection, place)
        made = ledger_tables.create(connection, place, terms)
        connection.commit()
        return made


def _vouch(place: PostgresPlace) -> bool:
    with _connected(place) as connection:
        connection.begin(write=True)
        moved = ledger_tables.vouch(connection)
        connection.commit()
        return moved


def _make_anchor(place: PostgresPlace, *, keep: bool = False) -> Anchor:
    elsewhere = f"or keep the anchor elsewhere: write &anchor=/var/lib/confide/{place.schema}.anchor"
    if not place.anchor.parent.is_dir():
        raise LedgerError(f"the folder {place.anchor.parent} of the anchor does not exist: make it, {elsewhere}")
    try:
        anchor = Anchor(place.anchor, create=True)
    except LedgerError as error:
        raise LedgerError(f"{error}; change that, {elsewhere}") from error
    if not keep:
        anchor.close()
    return anchor


@contextlib.contextmanager
def _snapshot(place: PostgresPlace) -> Iterator[PostgresConnection]:
    """One state of the ledger, read-only."""
    with _connected(place) as connection:
        connection.begin(write=False)
        yield connection


@contextlib.contextmanager
def _connected(place: PostgresPlace) -> Iterator[PostgresConnection]:
    """A connection for a moment."""
    connection = PostgresConnection(place)
    try:
        with _own_errors(place):
            yield connection
    finally:
        connection.rollback()
        connection.close()


@contextlib.contextmanager
def _own_errors(place: PostgresPlace) -> Iterator[None]:
    try:
        yield
    except driver().Error as error:
        raise translated(error, place.name) from error
    except UNREADABLE as error:
        raise LedgerDamaged(f"the ledger {place.name} is not as this program writes ledgers") from error

"""The ledger that is used: one SQLite file with a write-ahead log and an anchor, shared by threads and processes."""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import TracebackType
from typing import Self

from confide.errors import LedgerDamaged, ParameterError
from confide.ledger import booking, creation, storage
from confide.ledger.anchor import Anchor, Mark
from confide.ledger.booking import Position, Request
from confide.ledger.chain import Body, Entry, Head
from confide.ledger.inspection import inspect, verify
from confide.ledger.place import Place
from confide.ledger.terms import LONGEST_NAME, Terms, require_text
from confide.ledger.transaction import TIMEOUT, Transactions
from confide.privacy.budget import Budget, Currency, of_quanta
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss

PathLike = str | os.PathLike[str]

_PAGE = 500


class SqliteLedger:
    """A durable ledger. Make one with `create`, `open` or `open_or_create`; use it from any thread and across forks."""

    durable = True

    def __init__(self, place: Place, timeout: float = TIMEOUT) -> None:
        place.require_ledger()
        opened = inspect(place, timeout)
        self.identity = opened.identity
        self.secret = opened.secret
        self._place = place
        self._timeout = timeout
        self._terms = (opened.position.terms, opened.terms)
        self._transactions = Transactions(place, opened.identity, timeout)
        if opened.position.sequence == 1:
            Anchor(place.anchor, create=True).close()  # the maker may have died before it made the anchor
        if not opened.anchored:
            self._transactions.catch_up()

    @classmethod
    def create(
        cls,
        path: PathLike,
        budget: Budget,
        caps: Mapping[str, object] | None = None,
        *,
        anchor: PathLike | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Make a new ledger where there is none."""
        place = Place.of(path, anchor)
        place.require_nothing()
        if not creation.create(place, Terms.of(budget, caps)):
            place.require_nothing()
        return cls(place, timeout)

    @classmethod
    def open(
        cls,
        path: PathLike,
        budget: Budget | None = None,
        caps: Mapping[str, object] | None = None,
        *,
        anchor: PathLike | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Open a ledger that is there; a budget or caps that are given must be its own."""
        ledger = cls(Place.of(path, anchor), timeout)
        try:
            ledger._terms[1].require(budget, caps, str(ledger._place.path))
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def open_or_create(
        cls,
        path: PathLike,
        budget: Budget,
        caps: Mapping[str, object] | None = None,
        *,
        anchor: PathLike | None = None,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Open a ledger, or make it if neither it nor its anchor is there. All who do so at once get the same one."""
        place = Place.of(path, anchor)
        if place.empty:
            creation.create(place, Terms.of(budget, caps))
        return cls.open(path, budget, caps, anchor=anchor, timeout=timeout)

    @property
    def budget(self) -> Budget:
        return self._current_terms().budget

    @property
    def cap(self) -> Currency:
        return of_quanta(self._current_terms().cap)

    @property
    def caps(self) -> Mapping[str, Fraction]:
        return self._current_terms().caps

    def charge(self, loss: PrivacyLoss, purpose: str, key: str, analyst: str = "") -> Charge:
        def look(connection: sqlite3.Connection, position: Position, mark: Mark) -> Charge | None:
            request = Request.of(self._terms_at(connection, position), loss, purpose, key, analyst)
            known = storage.find(connection, key)
            if known is None or known[0]["sequence"] > mark.sequence:
                return None
            return booking.repeated(known[0], request, self.identity)

        def work(connection: sqlite3.Connection, position: Position) -> tuple[Charge, Position]:
            terms = self._terms_at(connection, position)
            request = Request.of(terms, loss, purpose, key, analyst)
            known = storage.find(connection, key)
            if known is not None:
                return booking.repeated(known[0], request, self.identity), position
            body, own = booking.charge(position, terms, request, storage.account(connection, analyst))
            after = storage.append(connection, position, body)
            storage.set_charge(connection, after.sequence, key)
            storage.set_account(connection, analyst, own)
            return booking.receipt(body, self.identity), after

        # A key that was paid for needs no lock: who asks again does not wait for those who ask anew.
        return self._transactions.read(look) or self._transactions.write(work)

    def store(self, charge: Charge, answer: bytes) -> bytes:
        booking.require_answer(answer)
        sequence, key = charge.sequence, charge.key

        def answered(connection: sqlite3.Connection) -> tuple[Body, int]:
            known = storage.find(connection, key)
            if charge.ledger != self.identity or known is None or known[0]["sequence"] != sequence:
                raise ParameterError("this charge is not of this ledger: an answer is stored where it was paid")
            return known

        def look(connection: sqlite3.Connection, position: Position, mark: Mark) -> bytes | None:
            known = answered(connection)
            return _kept(connection, *known) if 0 < known[1] <= mark.sequence else None

        def work(connection: sqlite3.Connection, position: Position) -> tuple[bytes, Position]:
            known = answered(connection)
            if known[1]:
                return _kept(connection, *known), position
            after = storage.append(connection, position, booking.answer(position, sequence, answer))
            connection.execute("INSERT INTO answer VALUES (?, ?)", (after.sequence, answer))
            storage.set_charge(connection, sequence, key, after.sequence)
            return answer, after

        kept = self._transactions.read(look)
        return self._transactions.write(work) if kept is None else kept

    def answer(self, key: str) -> bytes | None:
        require_text(key, "the key of a charge", booking.LONGEST_KEY)

        def look(connection: sqlite3.Connection, position: Position, mark: Mark) -> tuple[bytes, bool] | None:
            known = storage.find(connection, key)
            if known is None or not known[1]:
                return None
            return _kept(connection, *known), known[1] <= mark.sequence

        found = self._transactions.read(look)
        if found is None:
            return None
        answer, anchored = found
        if not anchored:
            # Its writer may have died before the log was forced to disk: do that before anybody sees the answer, lest
            # the power fail and the question be answered a second time, with other noise, for the same charge.
            self._transactions.catch_up()
        return answer

    def spent(self, analyst: str | None = None) -> Currency:
        require_text(analyst or "", "the name of an analyst", LONGEST_NAME)

        def work(connection: sqlite3.Connection, position: Position, mark: Mark) -> Currency:
            if analyst is None:
                return of_quanta(position.total)
            return of_quanta(storage.account(connection, analyst) or (0,) * len(position.total))

        return self._transactions.read(work)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        start = after

        def work(connection: sqlite3.Connection, position: Position, mark: Mark) -> list[Entry]:
            return _page(connection, start)

        while page := self._transactions.read(work):
            yield from page
            start = page[-1].sequence

    def amend(self, budget: Budget | None = None, caps: Mapping[str, object] | None = None) -> None:
        def work(connection: sqlite3.Connection, position: Position) -> tuple[None, Position]:
            terms = self._terms_at(connection, position).amended(budget, caps)
            return None, storage.append(connection, position, booking.amendment(position, terms))

        self._transactions.write(work)

    def verify(self) -> Head:
        self._transactions.require_open()
        return verify(self._place, self._timeout).head

    def close(self) -> None:
        self._transactions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SqliteLedger {self._place.path}>"

    def _current_terms(self) -> Terms:
        return self._transactions.read(lambda connection, position, mark: self._terms_at(connection, position))

    def _terms_at(self, connection: sqlite3.Connection, position: Position) -> Terms:
        """The terms in force, read again only when somebody amended them."""
        if self._terms[0] != position.terms:
            self._terms = (position.terms, Terms.read(storage.entry(connection, position.terms)[0]))
        return self._terms[1]


def _kept(connection: sqlite3.Connection, charged: Body, answered: int) -> bytes:
    """The stored answer of a charge, checked against the chain."""
    body, _ = storage.entry(connection, answered)
    found = connection.execute("SELECT answer FROM answer WHERE sequence = ?", (answered,)).fetchone()
    if body["kind"] != "answer" or body["charge"] != charged["sequence"] or found is None:
        raise LedgerDamaged(f"the answer of entry {charged['sequence']} of the ledger was altered or is damaged")
    return booking.require_kept(found[0], body)


def _page(connection: sqlite3.Connection, after: int) -> list[Entry]:
    rows = connection.execute(
        "SELECT sequence FROM entry WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, _PAGE)
    ).fetchall()
    page = []
    for (sequence,) in rows:
        body, digest = storage.entry(connection, sequence)
        page.append(Entry(sequence, body["kind"], body, digest.hex()))
    return page

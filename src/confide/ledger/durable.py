"""What every durable ledger does, wherever its rows are: charging, answering, amending, reading, in transactions.

An error also says what the call has left behind, because only the call knows.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from confide.errors import LedgerError, LedgerMissing, ParameterError
from confide.ledger import stored_rows as storage
from confide.ledger.process.anchor import Mark
from confide.ledger.record import entry as booking
from confide.ledger.record.entry import ORIGIN, Body, Entry, Head, Payment, Position
from confide.ledger.record.terms import Standing, Terms, require_text
from confide.ledger.soundness import Opened
from confide.ledger.stored_rows import Connection
from confide.privacy.budget import Budget, Currency, of_quanta
from confide.privacy.charge import Charge
from confide.privacy.limits import LONGEST_KEY, LONGEST_LEDGER_NAME
from confide.privacy.loss import PrivacyLoss

NOTHING: Final = "Nothing was charged"
MAYBE: Final = "It may have been charged, and no answer was given; the same call again finds out, and is charged once"
STANDS: Final = "The charge stands, and no answer was given; the same call again costs nothing more"

Result = TypeVar("Result")
Writing = Callable[[Connection, Position], tuple[Result, Position]]
Reading = Callable[[Connection, Position, Mark], Result]

TIMEOUT = 10.0


class Saying:
    """Inside, an error of the ledger also says what was charged: `sure`, or `unsure` if a commit was not confirmed."""

    __slots__ = ("_sure", "_unsure")

    def __init__(self, sure: str = NOTHING, unsure: str = MAYBE) -> None:
        self._sure = sure
        self._unsure = unsure

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LedgerError):
            told = type(error)(f"{error}. {self._unsure if error.unconfirmed else self._sure}")
            told.unconfirmed = error.unconfirmed
            raise told from error.__cause__


def never_made(name: str) -> LedgerMissing:
    """No ledger, and no sign of one. One that was made here without a word would give the budget a second time."""
    return LedgerMissing(
        f"there is no ledger at {name}. If the policy was used before, say where its ledger is: ledger: in the policy, "
        "--ledger, or ledger=. If it never was, make one, with its whole budget unspent: "
        "confide ledger create POLICY, or confide.open(..., create=True)"
    )


class Transactions(Protocol):
    """How the rows of a ledger are reached: each piece of work in one transaction, on a chain that was checked."""

    def write(self, work: Writing[Result]) -> Result:
        """Run `work` in one durable transaction, alone among all writers."""

    def read(self, work: Reading[Result]) -> Result:
        """Run `work` on one consistent state of the ledger, with the mark that the anchor held before."""

    def catch_up(self) -> None:
        """Bring an anchor that is behind up to the ledger."""

    def require_open(self) -> None:
        """Refuse a ledger that was closed."""

    def close(self) -> None: ...


def begin(connection: Connection, terms: Terms) -> str:
    """Write the first entry of a new ledger, and its secret; returns the identity of the ledger."""
    identity, secret = os.urandom(16).hex(), os.urandom(32)
    nowhere = Position(0, ORIGIN, terms.nothing, 0, 0)
    storage.append(connection, nowhere, booking.genesis(identity, secret, terms))
    storage.set_secret(connection, secret)
    return identity


class KeptLedger(ABC):
    """A ledger on transactions. What it was made from, and how it is verified, is for each kind to say."""

    durable = True

    def __init__(self, opened: Opened, transactions: Transactions) -> None:
        self.identity = opened.identity
        self.secret = opened.secret
        self.accounts = opened.terms.budget.accounts
        self._terms = (opened.position.terms, opened.terms)
        self._transactions = transactions
        # What was last seen not to be there, so that it is not looked for twice. Hints: a write looks again.
        self._unpaid: str | None = None
        self._unanswered: int | None = None

    @abstractmethod
    def verify(self) -> Head:
        """Walk the whole chain, add everything up again, and return its head."""

    def charge(self, loss: PrivacyLoss, purpose: str, key: str, analyst: str = "", request: str = "") -> Charge:
        def look(connection: Connection, position: Position, mark: Mark) -> Charge | None:
            payment = Payment.of(self._terms_at(connection, position), loss, purpose, key, analyst, request)
            known = storage.find(connection, key)
            if known is None or known[0]["sequence"] > mark.sequence:
                return None
            return booking.repeated(known[0], payment, self.identity)

        def work(connection: Connection, position: Position) -> tuple[Charge, Position]:
            terms = self._terms_at(connection, position)
            payment = Payment.of(terms, loss, purpose, key, analyst, request)
            known = storage.find(connection, key)
            if known is not None:
                return booking.repeated(known[0], payment, self.identity), position
            body, own = booking.charge(position, terms, payment, storage.accounts(connection, terms.looked_at(analyst)))
            after = storage.append(connection, position, body)
            storage.set_charge(connection, after.sequence, key)
            storage.set_account(connection, analyst, own)
            self._unanswered = after.sequence
            return booking.receipt(body, self.identity), after

        # A key that was paid for needs no lock: who asks again does not wait for those who ask anew.
        with Saying(NOTHING, MAYBE):
            paid = None if self._unpaid == key else self._transactions.read(look)
            self._unpaid = None
            return paid or self._transactions.write(work)

    def paid(self, key: str) -> bool:
        require_text(key, "the key of a charge", LONGEST_KEY)

        def look(connection: Connection, position: Position, mark: Mark) -> bool:
            return storage.find(connection, key) is not None

        return self._transactions.read(look)

    def store(self, charge: Charge, answer: bytes) -> bytes:
        booking.require_answer(answer)
        sequence, key = charge.sequence, charge.key

        def answered(connection: Connection) -> tuple[Body, int]:
            known = storage.find(connection, key)
            if charge.ledger != self.identity or known is None or known[0]["sequence"] != sequence:
                raise ParameterError("this charge is not of this ledger: an answer is stored where it was paid")
            return known

        def look(connection: Connection, position: Position, mark: Mark) -> bytes | None:
            known = answered(connection)
            return storage.answer(connection, *known) if 0 < known[1] <= mark.sequence else None

        def work(connection: Connection, position: Position) -> tuple[bytes, Position]:
            known = answered(connection)
            if known[1]:
                return storage.answer(connection, *known), position
            after = storage.append(connection, position, booking.answer(position, sequence, answer))
            storage.set_answer(connection, after.sequence, answer)
            storage.set_charge(connection, sequence, key, after.sequence)
            return answer, after

        with Saying(STANDS, STANDS):
            kept = None if self._unanswered == sequence else self._transactions.read(look)
            self._unanswered = None
            return self._transactions.write(work) if kept is None else kept

    def answer(self, key: str) -> bytes | None:
        require_text(key, "the key of a charge", LONGEST_KEY)

        def look(connection: Connection, position: Position, mark: Mark) -> tuple[bytes, bool] | None:
            known = storage.find(connection, key)
            if known is None or not known[1]:
                self._unpaid = key if known is None else None
                return None
            return storage.answer(connection, *known), known[1] <= mark.sequence

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
        require_text(analyst or "", "the name of an analyst", LONGEST_LEDGER_NAME)

        def work(connection: Connection, position: Position, mark: Mark) -> Currency:
            if analyst is None:
                return of_quanta(position.total)
            own = storage.accounts(connection, [analyst]).get(analyst)
            return of_quanta(own or self._terms_at(connection, position).nothing)

        return self._transactions.read(work)

    def standing(self, analyst: str = "") -> Standing:
        require_text(analyst, "the name of an analyst", LONGEST_LEDGER_NAME)

        def work(connection: Connection, position: Position, mark: Mark) -> Standing:
            terms = self._terms_at(connection, position)
            accounts = storage.accounts(connection, terms.looked_at(analyst))
            counted = booking.against_cap(position.total, terms, analyst, accounts)
            return Standing(terms, of_quanta(position.total), analyst, of_quanta(counted))

        return self._transactions.read(work)

    def entries(self, after: int = 0, newest: int | None = None) -> Iterator[Entry]:
        start, more = after, True

        def work(connection: Connection, position: Position, mark: Mark) -> list[Entry]:
            return storage.page(connection, start if newest is None else max(start, position.sequence - newest))

        while more:
            page = self._transactions.read(work)
            yield from page
            more = len(page) >= storage.PAGE
            start = page[-1].sequence if page else start

    def amend(self, budget: Budget | None = None, caps: Mapping[str, object] | None = None) -> None:
        def work(connection: Connection, position: Position) -> tuple[None, Position]:
            terms = self._terms_at(connection, position).amended(budget, caps)
            return None, storage.append(connection, position, booking.amendment(position, terms))

        with Saying("The terms were not changed", "The terms may have been changed: look before you try again"):
            self._transactions.write(work)

    def close(self) -> None:
        self._transactions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _with_terms(self, budget: Budget | None, caps: Mapping[str, object] | None, name: str) -> Self:
        """This ledger, if it has the budget and caps that are given; otherwise it is closed."""
        try:
            self._terms[1].require(budget, caps, name)
        except BaseException:
            self.close()
            raise
        return self

    def _terms_at(self, connection: Connection, position: Position) -> Terms:
        """The terms in force, read again only when somebody amended them."""
        if self._terms[0] != position.terms:
            self._terms = (position.terms, Terms.read(storage.entry(connection, position.terms)[0]))
        return self._terms[1]

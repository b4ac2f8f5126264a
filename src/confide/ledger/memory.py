"""A ledger that dies with its process: for test noise only."""

import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from confide.errors import LedgerError, ParameterError
from confide.host.fork import abandon_in_children
from confide.ledger.record import entry as booking
from confide.ledger.record.entry import ORIGIN, Body, Entry, Head, Payment, Position, encode, link
from confide.ledger.record.replay import Replay
from confide.ledger.record.terms import Quanta, Standing, Terms, require_text
from confide.privacy.budget import Budget, Currency, of_quanta
from confide.privacy.charge import Charge
from confide.privacy.limits import LONGEST_KEY, LONGEST_LEDGER_NAME
from confide.privacy.loss import PrivacyLoss


class MemoryLedger:
    """The protocol of a ledger without its durability. A session on real data refuses it."""

    durable = False

    def __init__(self, budget: Budget, caps: Mapping[str, object] | None = None) -> None:
        self._mutex = threading.RLock()
        self._terms = Terms.of(budget, caps)
        self._entries: list[tuple[Body, bytes, bytes]] = []
        self._charged: dict[str, int] = {}
        self._answers: dict[str, bytes] = {}
        self._own: dict[str, Quanta] = {}
        self._closed = False
        self._process = os.getpid()
        self.identity = os.urandom(16).hex()
        self.secret = os.urandom(32)
        self.accounts = budget.accounts
        self._append(booking.genesis(self.identity, self.secret, self._terms))
        abandon_in_children(self)

    def charge(self, loss: PrivacyLoss, purpose: str, key: str, analyst: str = "", request: str = "") -> Charge:
        with self._mutex:
            self._require_open()
            payment = Payment.of(self._terms, loss, purpose, key, analyst, request)
            if key in self._charged:
                return booking.repeated(self._entries[self._charged[key] - 1][0], payment, self.identity)
            body, own = booking.charge(self._position(), self._terms, payment, self._own)
            self._append(body)
            self._own[analyst] = own
            self._charged[key] = body["sequence"]
            return booking.receipt(body, self.identity)

    def paid(self, key: str) -> bool:
        require_text(key, "the key of a charge", LONGEST_KEY)
        with self._mutex:
            self._require_open()
            return key in self._charged

    def store(self, charge: Charge, answer: bytes) -> bytes:
        booking.require_answer(answer)
        with self._mutex:
            self._require_open()
            if charge.ledger != self.identity or self._charged.get(charge.key) != charge.sequence:
                raise ParameterError("this charge is not of this ledger: an answer is stored where it was paid")
            if charge.key not in self._answers:
                self._append(booking.answer(self._position(), charge.sequence, answer))
                self._answers[charge.key] = answer
            return self._answers[charge.key]

    def answer(self, key: str) -> bytes | None:
        require_text(key, "the key of a charge", LONGEST_KEY)
        with self._mutex:
            self._require_open()
            return self._answers.get(key)

    def spent(self, analyst: str | None = None) -> Currency:
        require_text(analyst or "", "the name of an analyst", LONGEST_LEDGER_NAME)
        with self._mutex:
            self._require_open()
            if analyst is None:
                return of_quanta(self._position().total)
            return of_quanta(self._own.get(analyst, self._terms.nothing))

    def standing(self, analyst: str = "") -> Standing:
        require_text(analyst, "the name of an analyst", LONGEST_LEDGER_NAME)
        with self._mutex:
            self._require_open()
            total = self._position().total
            counted = booking.against_cap(total, self._terms, analyst, self._own)
            return Standing(self._terms, of_quanta(total), analyst, of_quanta(counted))

    def entries(self, after: int = 0, newest: int | None = None) -> Iterator[Entry]:
        with self._mutex:
            self._require_open()
            chosen = self._entries[max(0, after, 0 if newest is None else len(self._entries) - newest) :]
        for body, _, digest in chosen:
            yield Entry(body["sequence"], body["kind"], body, digest.hex())

    def amend(self, budget: Budget | None = None, caps: Mapping[str, object] | None = None) -> None:
        with self._mutex:
            self._require_open()
            terms = self._terms.amended(budget, caps)
            self._append(booking.amendment(self._position(), terms))
            self._terms = terms

    def verify(self) -> Head:
        with self._mutex:
            self._require_open()
            replay, answers = Replay(), {hashlib.sha256(kept).hexdigest() for kept in self._answers.values()}
            replay.add([(body["sequence"], encoded, digest) for body, encoded, digest in self._entries])
            for body, _, _ in self._entries:
                if body["kind"] == "answer" and body["answer"] not in answers:
                    raise LedgerError("a stored answer is not what the chain says")
            return replay.statement().head

    def close(self) -> None:
        self._closed = True

    def abandon(self) -> None:
        """In the child of a fork: nobody here holds the lock."""
        self._mutex = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _position(self) -> Position:
        body, _, digest = self._entries[-1]
        return Position.of(body, digest)

    def _append(self, body: Body) -> None:
        encoded = encode(body)
        previous = self._entries[-1][2] if self._entries else ORIGIN
        self._entries.append((body, encoded, link(previous, encoded)))

    def _require_open(self) -> None:
        if self._closed:
            raise LedgerError("this ledger was closed")
        if os.getpid() != self._process:
            # Either side would have the whole budget to itself.
            raise LedgerError("a ledger in memory belongs to the process that made it, and not to one forked from it")

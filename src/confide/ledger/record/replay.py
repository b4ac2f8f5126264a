"""Add a chain up again from its first entry, trusting nothing that it says about itself."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add, gt, sub
from types import MappingProxyType

from confide.errors import LedgerDamaged
from confide.ledger.record import entry as booking
from confide.ledger.record.chain import ORIGIN, Body, Head, Link, link
from confide.ledger.record.terms import Quanta, Terms
from confide.privacy.amount import QUANTA
from confide.privacy.budget import Budget, Currency, of_quanta


@dataclass(frozen=True, slots=True)
class Statement:
    """What a chain adds up to."""

    head: Head
    ledger: str
    budget: Budget
    spent: Currency
    by_analyst: Mapping[str, Currency]
    charges: int
    answers: int


class Replay:
    """Takes the entries in order; the first that does not follow from those before it is `LedgerDamaged`.

    A million entries take seconds because entries come in batches: one call of the JSON reader parses a whole batch.
    """

    def __init__(self) -> None:
        self._sequence = 0
        self._hash = ORIGIN
        self._identity = ""
        self._terms: Terms | None = None
        self._terms_at = 0
        self._total: Quanta = ()
        self._own: dict[str, Quanta] = {}
        self._named: Quanta = ()  # what analysts with caps of their own have spent
        self._accounts = ""
        self._together = True  # whether all without a cap of their own are under "*" together
        self._unanswered: set[int] = set()
        self.charges = 0
        self.answers = 0

    def add(self, links: Sequence[Link]) -> list[Body]:
        """Check some entries against all before them, and return their bodies."""
        self._require_linked(links)
        try:
            text = b",".join([encoded for _, encoded, _ in links]).decode("ascii")
            bodies: list[Body] = json.loads(f"[{text}]")
            for (sequence, _, _), body in zip(links, bodies, strict=True):
                self._follow(sequence, body)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise LedgerDamaged(f"entry {self._sequence + 1} of the ledger is not as entries are written") from error
        self._hash = links[-1][2] if links else self._hash
        return bodies

    def statement(self) -> Statement:
        if self._terms is None:
            raise LedgerDamaged("the ledger has no entries: it is empty or was truncated")
        if int(self._accounts, 16) != booking.digest(self._own):
            raise LedgerDamaged("the accounts stated by the last entry of the ledger are not what was charged")
        own = {analyst: of_quanta(quanta) for analyst, quanta in sorted(self._own.items())}
        return Statement(
            Head(self._sequence, self._hash.hex()),
            self._identity,
            self._terms.budget,
            of_quanta(self._total),
            MappingProxyType(own),
            self.charges,
            self.answers,
        )

    def _require_linked(self, links: Sequence[Link]) -> None:
        previous = self._hash
        for expected, (sequence, encoded, stated) in enumerate(links, start=self._sequence + 1):
            if sequence != expected:
                raise LedgerDamaged(f"entry {expected} of the ledger is missing")
            if link(previous, encoded) != stated:
                raise LedgerDamaged(
                    f"entry {sequence} of the ledger does not match its hash: it was altered or damaged"
                )
            previous = stated

    def _follow(self, sequence: int, body: Body) -> None:
        kind = body["kind"]
        if body["sequence"] != sequence or (kind == "genesis") != (sequence == 1):
            raise LedgerDamaged(f"entry {sequence} of the ledger is out of place")
        if kind == "charge":
            self._charge(body)
        elif kind == "answer":
            self._answer(body)
        elif kind in ("amendment", "genesis"):
            self._amend(body)
        else:
            raise LedgerDamaged(f"entry {sequence} of the ledger is of no known kind ({kind})")
        if tuple(map(int, body["total"])) != self._total or body["terms"] != self._terms_at:
            raise LedgerDamaged(f"the total stated by entry {sequence} of the ledger is not the sum of its charges")
        self._accounts = body["accounts"]
        self._sequence = sequence

    def _amend(self, body: Body) -> None:
        terms = Terms.read(body)
        if self._terms is None:
            if body["format"] not in (booking.FORMAT, booking.EARLIER) or body["quanta"] != str(QUANTA):
                raise LedgerDamaged(f"the ledger is of another format ({body['format']!r})")
            self._together = body["format"] == booking.FORMAT
            self._total = terms.nothing
            self._identity = body["ledger"]
        elif terms.budget.pure != self._terms.budget.pure:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger changes its currency")
        self._terms, self._terms_at = terms, body["sequence"]
        self._named = terms.nothing
        for analyst in terms.named:
            self._named = tuple(map(add, self._named, self._own.get(analyst, terms.nothing)))

    def _charge(self, body: Body) -> None:
        terms, analyst, amount = self._terms, body["analyst"], tuple(map(int, body["amount"]))
        before = self._own.get(analyst)
        if terms is None or len(amount) != len(self._total) or min(amount) < 0 or not any(amount):
            raise LedgerDamaged(f"the amount of entry {body['sequence']} of the ledger is not a charge")
        self._total = tuple(map(add, self._total, amount))
        own = self._own[analyst] = tuple(map(add, before, amount)) if before else amount
        if True in map(gt, self._total, terms.cap) or (terms.caps and self._over(terms, analyst, amount, own)):
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger charges more than its budget held")
        self._unanswered.add(body["sequence"])
        self.charges += 1

    def _over(self, terms: Terms, analyst: str, amount: Quanta, own: Quanta) -> bool:
        limit = terms.limit(analyst)
        if terms.shares(analyst) and self._together:
            own = tuple(map(sub, self._total, self._named))
        elif limit is not None:
            self._named = tuple(map(add, self._named, amount))
        return limit is not None and any(map(gt, own, limit[0]))

    def _answer(self, body: Body) -> None:
        if body["charge"] not in self._unanswered:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger answers no open charge")
        self._unanswered.remove(body["charge"])
        self.answers += 1

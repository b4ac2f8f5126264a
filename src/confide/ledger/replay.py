"""Add a chain up again from its first entry, trusting nothing that it says about itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from confide.errors import LedgerDamaged
from confide.ledger import booking
from confide.ledger.chain import ORIGIN, Body, Head, decode
from confide.ledger.terms import Quanta, Terms, read_quanta, write_quanta
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
    """Takes the entries in order; the first that does not follow from those before it is `LedgerDamaged`."""

    def __init__(self) -> None:
        self._sequence = 0
        self._hash = ORIGIN
        self._identity = ""
        self._terms: Terms | None = None
        self._terms_at = 0
        self._total: Quanta = ()
        self._own: dict[str, Quanta] = {}
        self._own_hash: dict[str, int] = {}
        self._accounts = 0
        self._unanswered: set[int] = set()
        self.charges = 0
        self.answers = 0

    def add(self, sequence: int, encoded: bytes, stated: bytes) -> Body:
        """Check one entry against all before it, and return its body."""
        if sequence != self._sequence + 1:
            raise LedgerDamaged(f"entry {self._sequence + 1} of the ledger is missing")
        try:
            body = decode(sequence, encoded, self._hash, stated)
            if (sequence == 1) != (body["kind"] == "genesis"):
                raise LedgerDamaged(f"entry {sequence} of the ledger is a {body['kind']}, out of place")
            match body["kind"]:
                case "charge":
                    self._charge(body)
                case "answer":
                    self._answer(body)
                case "amendment":
                    self._amend(body)
                case "genesis":
                    self._begin(body)
                case kind:
                    raise LedgerDamaged(f"entry {sequence} of the ledger is of no known kind ({kind})")
            if body["total"] != write_quanta(self._total) or body["terms"] != self._terms_at:
                raise LedgerDamaged(f"the total stated by entry {sequence} of the ledger is not the sum of its charges")
            if body["accounts"] != f"{self._accounts:064x}":
                raise LedgerDamaged(f"the accounts stated by entry {sequence} of the ledger are not what was charged")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LedgerDamaged(f"entry {sequence} of the ledger is not as this program writes entries") from error
        self._sequence, self._hash = sequence, stated
        return body

    def statement(self) -> Statement:
        if self._terms is None:
            raise LedgerDamaged("the ledger has no entries: it is empty or was truncated")
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

    def _begin(self, body: Body) -> None:
        if body["format"] != booking.FORMAT or body["quanta"] != str(QUANTA):
            raise LedgerDamaged(f"the ledger is of another format ({body['format']!r}); this is {booking.FORMAT!r}")
        self._amend(body)
        self._identity = body["ledger"]

    def _amend(self, body: Body) -> None:
        terms = Terms.read(body)
        if self._terms is None:
            self._total = terms.nothing
        elif terms.budget.pure != self._terms.budget.pure:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger changes its currency")
        self._terms, self._terms_at = terms, body["sequence"]

    def _charge(self, body: Body) -> None:
        terms, analyst, amount = self._terms, body["analyst"], read_quanta(body["amount"])
        if terms is None or len(amount) != len(self._total) or min(amount) < 0 or not any(amount):
            raise LedgerDamaged(f"the amount of entry {body['sequence']} of the ledger is not a charge")
        self._total = tuple(map(int.__add__, self._total, amount))
        own = self._own[analyst] = tuple(map(int.__add__, self._own.get(analyst, terms.nothing), amount))
        limit = terms.limit(analyst)
        if any(map(int.__gt__, self._total, terms.cap)) or (limit and any(map(int.__gt__, own, limit[0]))):
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger charges more than its budget held")
        if body["analyst_total"] != write_quanta(own):
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger states a wrong total for its analyst")
        digest = booking.account_hash(analyst, own)
        self._accounts = (self._accounts - self._own_hash.get(analyst, 0) + digest) % 2**256
        self._own_hash[analyst] = digest
        self._unanswered.add(body["sequence"])
        self.charges += 1

    def _answer(self, body: Body) -> None:
        if body["charge"] not in self._unanswered:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger answers no open charge")
        self._unanswered.remove(body["charge"])
        self.answers += 1

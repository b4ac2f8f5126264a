"""Add a chain up again from its first entry, trusting nothing that it says about itself."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import sub
from types import MappingProxyType

from confide.errors import LedgerDamaged
from confide.ledger.record import entry as booking
from confide.ledger.record.entry import ORIGIN, Body, Head, Link, link
from confide.ledger.record.stretch import UNREADABLE, ChainStretch, stretch_of
from confide.ledger.record.terms import Quanta, Terms, holds, plus
from confide.privacy.amount import QUANTA
from confide.privacy.budget import CONCENTRATED, EITHER, PURE, Budget, Currency, of_quanta

_MOST_REMEMBERED = 10_000


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

    A million entries take seconds because entries come in batches: one call of the JSON reader parses a whole batch,
    and its charges and answers are added up column by column (`stretch`).
    """

    def __init__(self) -> None:
        self._sequence = 0
        self._hash = ORIGIN
        self._identity = ""
        self._terms: Terms | None = None
        self._terms_at = 0
        self._total: Quanta = ()
        self._own: dict[str, Quanta] = {}
        self._spent: Counter[tuple[str, Quanta]] = Counter()  # how often an analyst paid what, not yet in `_own`
        self._named: Quanta = ()  # what analysts with caps of their own have spent
        self._accounts = ""
        self._together = True  # whether all without a cap of their own are under "*" together
        self._unanswered: set[int] = set()
        self._amounts: dict[tuple[str, ...], Quanta] = {}  # as they are written; most are written often
        self.charges = 0
        self.answers = 0

    def add(self, links: Sequence[Link]) -> list[Body]:
        """Check some entries against all before them, and return their bodies."""
        made = stretch_of(self._hash, links)
        if made is not None and self.fold(made[0]):
            return made[1]
        self._require_linked(links)
        try:
            text = b",".join([encoded for _, encoded, _ in links]).decode("ascii")
            bodies: list[Body] = json.loads(f"[{text}]")
            for (sequence, _, _), body in zip(links, bodies, strict=True):
                self._follow(sequence, body)
        except UNREADABLE as error:
            raise LedgerDamaged(f"entry {self._sequence + 1} of the ledger is not as entries are written") from error
        self._hash = links[-1][2] if links else self._hash
        return bodies

    def statement(self) -> Statement:
        if self._terms is None:
            raise LedgerDamaged("the ledger has no entries: it is empty or was truncated")
        self._settle()
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

    def fold(self, stretch: ChainStretch) -> bool:
        """Follow all entries of a stretch; False, and nothing is changed, where they must be added one by one."""
        try:
            return self._follow_stretch(stretch)
        except (*UNREADABLE, LedgerDamaged):
            return False

    def _follow_stretch(self, stretch: ChainStretch) -> bool:
        """Follow charges and answers together, if they hold.

        Amounts are not negative and the terms stand, so no sum ever falls: what a cap holds at the end, it held all
        along. Whatever is not plain, or does not hold, is left to `add`, which says what is wrong with which entry.
        """
        terms, closed = self._terms, {charge for charge, _ in stretch.answers}
        follows = (stretch.after, stretch.first, stretch.total_before) == (self._hash, self._sequence + 1, self._total)
        if terms is None or not follows or stretch.terms != self._terms_at or not holds(terms.cap, stretch.total):
            return False
        opened = set(range(stretch.first, stretch.last + 1)) - {answer for _, answer in stretch.answers}
        known = [
            charge < answer and (charge in self._unanswered or charge in opened) for charge, answer in stretch.answers
        ]
        if len(closed) < len(known) or not all(known):
            return False
        spent: Counter[tuple[str, Quanta]] = Counter()
        for (who, what), count in stretch.spent.items():
            spent[who, self._amount(what, stretch.first)] += count  # one amount may be written in several ways
        if terms.caps and not self._capped(terms, stretch.total, spent):
            return False
        self._sequence, self._hash, self._total = stretch.last, stretch.hash, stretch.total
        self._spent.update(spent)
        if len(self._spent) > _MOST_REMEMBERED:
            self._settle()
        self._unanswered |= opened
        self._unanswered -= closed
        self.charges += len(opened)
        self.answers += len(closed)
        self._accounts = stretch.accounts
        return True

    def _capped(self, terms: Terms, total: Quanta, gained: Mapping[tuple[str, Quanta], int]) -> bool:
        """Whether the caps of analysts hold some more charges; if so, what those with a cap have spent moves on."""
        self._settle()
        own: dict[str, Quanta] = {}
        named, shared = self._named, None
        for (analyst, amount), times in gained.items():
            limit, before = terms.limit(analyst), self._own.get(analyst, terms.nothing)
            own[analyst] = _plus(own.get(analyst, before), amount, times)
            if terms.shares(analyst) and self._together:
                shared = limit
            elif limit is not None:
                named = _plus(named, amount, times)
                if not holds(limit[0], own[analyst]):
                    return False
        if shared is not None and not holds(shared[0], tuple(map(sub, total, named))):
            return False
        self._named = named
        return True

    def _settle(self) -> None:
        """Add what was counted to the accounts of analysts."""
        for (analyst, amount), times in self._spent.items():
            self._own[analyst] = _plus(self._own.get(analyst, amount), amount, times - (analyst not in self._own))
        self._spent.clear()

    def _amount(self, written: tuple[str, ...], sequence: int) -> Quanta:
        """What an entry charges, in quanta; refused unless it is something."""
        amount = self._amounts.get(written)
        if amount is None:
            amount = tuple(map(int, written))
            if self._terms is None or min(amount) < 0 or not any(amount) or not _is_paid_in(self._terms, amount):
                raise LedgerDamaged(f"the amount of entry {sequence} of the ledger is not a charge")
            if len(self._amounts) == _MOST_REMEMBERED:
                self._amounts.clear()
            self._amounts[written] = amount
        return amount

    def _follow(self, sequence: int, body: Body) -> None:
        self._settle()
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
        if len(terms.cap) != {PURE: 1, CONCENTRATED: 2, EITHER: 3}[terms.budget.rule]:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger has a cap in another currency than its own")
        if not terms.coherent:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger has a cap of more than the ε beside it")
        if self._terms is None:
            if body["format"] not in booking.FORMATS or body["quanta"] != str(QUANTA):
                raise LedgerDamaged(f"the ledger is of another format ({body['format']!r})")
            self._together = body["format"] != booking.EARLIER
            self._total = terms.nothing
            self._identity = body["ledger"]
        elif terms.budget.rule != self._terms.budget.rule:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger changes its currency")
        self._terms, self._terms_at = terms, body["sequence"]
        self._named = terms.nothing
        for analyst in terms.named:
            self._named = plus(self._named, self._own.get(analyst, terms.nothing))

    def _charge(self, body: Body) -> None:
        terms, analyst, amount = self._terms, body["analyst"], self._amount(tuple(body["amount"]), body["sequence"])
        before = self._own.get(analyst)
        assert terms is not None  # no charge is the first entry
        self._total = plus(self._total, amount)
        own = self._own[analyst] = plus(before, amount) if before else amount
        if not holds(terms.cap, self._total) or (terms.caps and self._over(terms, analyst, amount, own)):
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger charges more than its budget held")
        self._unanswered.add(body["sequence"])
        self.charges += 1

    def _over(self, terms: Terms, analyst: str, amount: Quanta, own: Quanta) -> bool:
        limit = terms.limit(analyst)
        if terms.shares(analyst) and self._together:
            own = tuple(map(sub, self._total, self._named))
        elif limit is not None:
            self._named = plus(self._named, amount)
        return limit is not None and not holds(limit[0], own)

    def _answer(self, body: Body) -> None:
        if body["charge"] not in self._unanswered:
            raise LedgerDamaged(f"entry {body['sequence']} of the ledger answers no open charge")
        self._unanswered.remove(body["charge"])
        self.answers += 1


def _plus(one: Quanta, other: Quanta, times: int) -> Quanta:
    return tuple(before + amount * times for before, amount in zip(one, other, strict=False))


def _is_paid_in(terms: Terms, amount: Quanta) -> bool:
    """Whether an amount is one in the currency of the terms. A pure call counts its ε, and ε²/2 beside it."""
    if len(terms.cap) < 3 or len(amount) != 3:
        return len(amount) == min(len(terms.cap), 2)
    rho, delta, epsilon = amount
    return delta == 0 and rho == -(-(epsilon**2) // (2 * QUANTA))

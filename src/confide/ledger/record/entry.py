"""The chain of a ledger: what each entry says, and the hash by which it follows from all before it.

What the next entry says is made by pure functions: every ledger stores what they return, and a replay repeats them. An
entry carries the running total, so that the last one alone says what was spent; a digest of what each analyst spent, so
that those accounts cannot be set back apart from the chain; and the number of the entry that holds the terms.

Its body is a JSON object of text, whole numbers and lists of them, written in one way only (sorted keys, no spaces,
ASCII), so that a reader of an export can rebuild the exact bytes. hash(n) = SHA-256(hash(n − 1) ‖ body(n)), and hash(0)
is 32 zero bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from confide.errors import BudgetError, LedgerDamaged, ParameterError
from confide.ledger.record.terms import Quanta, Terms, holds, loss_text, plus, read_quanta, require_text, write_quanta
from confide.privacy.amount import QUANTA, from_quanta, show
from confide.privacy.budget import EITHER, in_currency, of_quanta, quanta_of
from confide.privacy.charge import Charge
from confide.privacy.limits import LONGEST_ANSWER, LONGEST_KEY, LONGEST_LEDGER_NAME, LONGEST_PURPOSE, LONGEST_REQUEST
from confide.privacy.loss import PrivacyLoss

Body = dict[str, Any]
Link = tuple[int, bytes, bytes]  # the number of an entry, its bytes, its hash

ORIGIN = bytes(32)

FORMAT = "confide ledger 2"
TWO_ACCOUNTS = "confide ledger 3"
"""The same, for terms under which either account may hold."""
EARLIER = "confide ledger 1"
"""Its "*" was a cap for each analyst without one, and its keys were plain hashes. It is kept up, and not exported."""
FORMATS = (FORMAT, TWO_ACCOUNTS, EARLIER)

_WRAP = 2**256

Accounts = Mapping[str, Quanta]
"""What analysts have spent; those who spent nothing are left out."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a chain goes: the number of its last entry and that entry's hash."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One link: a genesis, a charge, an answer or an amendment, with everything it says in `body`."""

    sequence: int
    kind: str
    body: Body
    hash: str


def encode(body: Body) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def link(previous: bytes, encoded: bytes) -> bytes:
    """The hash of an entry that follows the entry with hash `previous`."""
    return hashlib.sha256(previous + encoded).digest()


def decode(sequence: int, encoded: bytes, previous: bytes, stated: bytes) -> Body:
    """The body of entry `sequence`, or `LedgerDamaged` if its hash is not what its bytes give."""
    if link(previous, encoded) != stated:
        raise LedgerDamaged(f"entry {sequence} of the ledger does not match its hash: it was altered or is damaged")
    body: Body = json.loads(encoded)
    if body.get("sequence") != sequence:
        raise LedgerDamaged(f"entry {sequence} of the ledger says that it is entry {body.get('sequence')}")
    return body


@dataclass(frozen=True, slots=True)
class Position:
    """Where a chain stands: what the next entry must know of the last one."""

    sequence: int
    hash: bytes
    total: Quanta
    accounts: int
    terms: int

    @classmethod
    def of(cls, body: Body, entry_hash: bytes) -> Self:
        return cls(body["sequence"], entry_hash, read_quanta(body["total"]), int(body["accounts"], 16), body["terms"])


@dataclass(frozen=True, slots=True)
class Payment:
    """A charge that is asked for, checked and turned into the currency of the ledger."""

    amount: Quanta
    purpose: str
    key: str
    analyst: str
    request: str

    @classmethod
    def of(cls, terms: Terms, loss: PrivacyLoss, purpose: str, key: str, analyst: str, request: str) -> Self:
        require_text(key, "the key of a charge", LONGEST_KEY)
        require_text(purpose, "the purpose of a charge", LONGEST_PURPOSE)
        require_text(analyst, "the name of an analyst", LONGEST_LEDGER_NAME)
        require_text(request, "the request of a charge", LONGEST_REQUEST)
        if not key:
            raise ParameterError("a charge needs a key: it is what makes asking twice free")
        amount = quanta_of(in_currency(loss, of_quanta(terms.cap)))
        if not any(amount):
            raise ParameterError("a charge of nothing is refused: whatever reads private data costs something")
        return cls(amount, purpose, key, analyst, request)


def genesis(identity: str, secret: bytes, terms: Terms) -> Body:
    return {
        "sequence": 1,
        "kind": "genesis",
        "format": TWO_ACCOUNTS if terms.budget.rule == EITHER else FORMAT,
        "ledger": identity,
        "secret": hashlib.sha256(secret).hexdigest(),
        "currency": terms.currency,
        "quanta": str(QUANTA),
        "time": _now(),
        "total": write_quanta(terms.nothing),
        "accounts": f"{0:064x}",
        "terms": 1,
        **terms.body(),
    }


def charge(position: Position, terms: Terms, payment: Payment, accounts: Accounts) -> tuple[Body, Quanta]:
    """The entry of a charge and the analyst's new account, or `BudgetError` if a cap does not hold it.

    `accounts` are those that `Terms.looked_at` names.
    """
    account = accounts.get(payment.analyst)
    total = plus(position.total, payment.amount)
    own = payment.amount if account is None else plus(account, payment.amount)
    limit = terms.limit(payment.analyst)
    counted = against_cap(position.total, terms, payment.analyst, accounts) if limit is not None else terms.nothing
    if not holds(terms.cap, total) or (limit is not None and not holds(limit[0], plus(counted, payment.amount))):
        raise BudgetError(refusal(position.total, terms, payment, counted))
    body = _next(position, "charge") | {
        "key": payment.key,
        "analyst": payment.analyst,
        "purpose": payment.purpose,
        "amount": write_quanta(payment.amount),
        "total": write_quanta(total),
        "accounts": f"{moved(position.accounts, payment.analyst, account, own):064x}",
    }
    if payment.request:
        body["request"] = payment.request
    return body, own


def against_cap(total: Quanta, terms: Terms, analyst: str, accounts: Accounts) -> Quanta:
    """What counts against the cap of an analyst: their own account, or, if they have no cap of their own, those of all
    such together. A name is easily made up, so a cap for each of them would be none. Their ε is known only as long as
    nobody at all has made a call that is not pure."""
    if not terms.shares(analyst):
        return accounts.get(analyst, terms.nothing)
    for name in terms.named:
        total = _minus(total, accounts.get(name, terms.nothing))
    return total


def answer(position: Position, charged: int, kept: bytes) -> Body:
    return _next(position, "answer") | {
        "charge": charged,
        "answer": hashlib.sha256(kept).hexdigest(),
        "bytes": len(kept),
    }


def amendment(position: Position, terms: Terms) -> Body:
    return _next(position, "amendment") | terms.body() | {"terms": position.sequence + 1}


def receipt(body: Body, identity: str) -> Charge:
    """The charge that an entry records."""
    loss = of_quanta(read_quanta(body["amount"]))
    return Charge(body["sequence"], body["key"], loss, body["purpose"], body["analyst"], identity)


def repeated(body: Body, payment: Payment, identity: str) -> Charge:
    """The first charge of a key that is used again, if it is used for the same thing."""
    if read_quanta(body["amount"]) != payment.amount or body["analyst"] != payment.analyst:
        raise ParameterError(
            f"this key already stands for another charge (entry {body['sequence']}): a key may be used again only by "
            "the same analyst and for the same loss"
        )
    return receipt(body, identity)


def require_answer(kept: bytes) -> None:
    if not isinstance(kept, bytes):
        raise ParameterError(f"an answer is kept as bytes, not {type(kept).__name__}")
    if len(kept) > LONGEST_ANSWER:
        raise ParameterError(f"an answer of {len(kept)} bytes is too large for a ledger; {LONGEST_ANSWER} are allowed")


def require_kept(kept: bytes, body: Body) -> bytes:
    """The stored answer, if it is what the chain says it is."""
    if hashlib.sha256(kept).hexdigest() != body["answer"]:
        raise LedgerDamaged(f"the answer stored with entry {body['sequence']} was altered or is damaged")
    return kept


def moved(accounts: int, analyst: str, before: Quanta | None, after: Quanta) -> int:
    """The digest of all accounts when one moves. It is a sum of hashes, so a move costs two however many there are."""
    left = _account_hash(analyst, before) if before is not None else 0
    return (accounts - left + _account_hash(analyst, after)) % _WRAP


def digest(accounts: Accounts) -> int:
    """The digest of all accounts."""
    return sum(_account_hash(analyst, account) for analyst, account in accounts.items()) % _WRAP


def _account_hash(analyst: str, account: Quanta) -> int:
    # Accounts have one, two or three numbers, and names may begin with digits and commas: three say that they are.
    text = ("either," if len(account) == 3 else "") + ",".join(map(str, account)) + "," + analyst
    return int.from_bytes(hashlib.sha256(text.encode()).digest())


def refusal(total: Quanta, terms: Terms, payment: Payment, own: Quanta) -> str:
    """Why a charge does not fit: what was asked, what is left, what the total is, what would fit."""
    budget = terms.budget
    limit = terms.limit(payment.analyst)
    parts = [f"this would cost {_as_epsilon(terms, payment.amount)}"]
    left = _minus(terms.cap, total)
    lefts = [left]
    if not holds(left, payment.amount):
        parts.append(
            f"Of the whole budget of {budget}, {_as_epsilon(terms, total)} is spent "
            f"and {_as_epsilon(terms, left)} is left"
        )
    if limit is not None:
        left_own = _minus(limit[0], own)
        if not holds(left_own, payment.amount):
            who = f"The analyst {payment.analyst!r}"
            if terms.shares(payment.analyst):
                who = "Everybody without a cap of their own, together,"
            parts.append(
                f"{who} may spend ε = {show(limit[1])}, of which {_as_epsilon(terms, own)} is spent "
                f"and {_as_epsilon(terms, left_own)} is left"
            )
        lefts.append(left_own)
        left = tuple(map(min, left, left_own))
    largest = {}
    for account in budget.accounts:
        fits = [budget.largest_under(account, of_quanta(own_left)) for own_left in lefts]
        largest[account] = None if None in fits else min(most for most in fits if most is not None)
    if len(left) > 1 and payment.amount[1] > left[1]:
        parts.append(f"Its δ of {show(from_quanta(payment.amount[1]))} is more than is left of δ")
    called = "question" if len(largest) == 1 else "{} call"
    room = [f"a {called.format(account)} at ε ≤ {show(most)}" for account, most in largest.items() if most]
    fitting = f"{', or '.join(room)} would fit" if room else "no question fits any more"
    return ". ".join(parts) + f". Nothing was charged; {fitting}."


def _as_epsilon(terms: Terms, quanta: Quanta) -> str:
    """An amount as ε; of an (ε, δ) budget both as ρ, which adds up, and as the ε it means."""
    if terms.budget.pure:
        return loss_text(quanta)
    return f"{loss_text(quanta)} (as ε: {show(terms.budget.as_epsilon(of_quanta(quanta)))})"


def _next(position: Position, kind: str) -> Body:
    return {
        "sequence": position.sequence + 1,
        "kind": kind,
        "time": _now(),
        "total": write_quanta(position.total),
        "accounts": f"{position.accounts:064x}",
        "terms": position.terms,
    }


def _minus(cap: Quanta, total: Quanta) -> Quanta:
    return tuple(max(0, most - spent) for most, spent in zip(cap, total, strict=False))


def _now() -> str:
    """For people to read. Nothing is ordered or decided by a clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")

"""The ledger of a policy, for whoever keeps it: what was spent and on what, whether it is whole, and its terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any

from confide.ledger import Entry, Head, Ledger, MemoryLedger
from confide.ledger import export as write_export
from confide.ledger.record.terms import Standing
from confide.policy import Policy
from confide.policy.analyst import ANYBODY_ELSE
from confide.privacy.amount import parse_amount, show
from confide.privacy.budget import EITHER, Budget, of_quanta
from confide.release.cost import BudgetState, budget_state, rooms
from confide.release.custody.ledgers import (
    LedgerPath,
    LedgerPlace,
    exists,
    ledger_place,
    make_ledger,
    open_existing,
    restore,
)
from confide.release.guard import FAILURE

_FAILED = sha256(FAILURE).hexdigest()
_NEWEST = 2_000
"""So many entries are looked through for who asked lately."""


@dataclass(frozen=True, slots=True)
class Line:
    """One charge, or one change of the terms, as a person reads it. `epsilon` is what it would be alone."""

    sequence: int
    time: str
    kind: str
    analyst: str = ""
    epsilon: float | None = None
    what: str = ""
    answered: bool = False
    failed: bool = False
    """Whether the outcome is the constant failure."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A term, "budget", "accounting" or "caps", that a ledger and its policy do not agree on."""

    term: str
    ledger: str
    policy: str

    def __str__(self) -> str:
        verb = "are" if self.term == "caps" else "is"
        return f"the {self.term} {verb} {self.ledger} in the ledger, and {self.policy} in the policy"


@dataclass(frozen=True, slots=True)
class Books:
    """The state of a policy's ledger, and the terms in which the two differ."""

    path: LedgerPlace
    exists: bool
    budget: BudgetState
    entries: int
    differs: tuple[Difference, ...]
    answers_left: int | None = None
    answers_by_account: Mapping[str, int] = field(default_factory=dict)
    """The same under each account, where there are two."""


@dataclass(frozen=True, slots=True)
class Spender:
    """An analyst, or "*" for all without a cap of their own together; `left` is what one more call may cost at most,
    by account, and `more` how many calls like the last one fit.
    """

    name: str
    spent: float
    cap: float | None
    left: Mapping[str, float]
    last: float | None
    more: int | None


def look(policy: Policy, ledger: LedgerPath = None, analyst: str = "", epsilon: object = None) -> Books:
    """What is spent and left. `epsilon` asks for how many more calls at that ε there is room.

    A ledger that was never made has spent nothing; it is not made by looking.
    """
    path = ledger_place(policy, ledger)
    with open_existing(path) if exists(path) else MemoryLedger(policy.budget, policy.analysts) as book:
        standing = book.standing(analyst)
        state = budget_state(standing)
        exact = None if epsilon is None else parse_amount(epsilon, "epsilon")
        by_account = {} if exact is None else rooms(standing, exact)
        fitting = None if exact is None or by_account else standing.room(standing.budget.cost(exact))
        differs = _differences(standing, policy)
        entries = _length(book) if book.durable else 0
        return Books(path, book.durable, state, entries, differs, max(by_account.values(), default=fitting), by_account)


def spenders(policy: Policy, ledger: LedgerPath = None) -> tuple[Spender, ...]:
    """What each analyst has spent and may spend: those with a cap, all others together, and who asked lately."""
    with open_existing(ledger_place(policy, ledger)) as book:
        newest = list(book.entries(after=max(0, _length(book) - _NEWEST)))
        last = {entry.body["analyst"]: entry.body["amount"] for entry in newest if entry.kind == "charge"}
        caps = book.standing().caps
        named = [name for name in caps if name != ANYBODY_ELSE]
        others = [name for name in last if name not in caps]
        found = [_spender(book, name, last.get(name)) for name in named]
        if ANYBODY_ELSE in caps:
            return (*found, _spender(book, ANYBODY_ELSE, last[others[-1]] if others else None))
        return (*found, *(_spender(book, name, last[name]) for name in sorted(others)))


def _spender(book: Ledger, name: str, amount: list[str] | None) -> Spender:
    standing = book.standing(name)
    budget = standing.budget
    # Under a cap, what counts against it; without one each account is looked at alone.
    spent = book.spent(name) if standing.own_cap is None else standing.counted
    loss = None if amount is None else of_quanta(tuple(int(number) for number in amount))
    return Spender(
        name,
        float(budget.as_epsilon(spent)),
        None if standing.own_cap is None else float(standing.own_cap),
        {account: float(standing.left(account) or 0) for account in budget.accounts},
        None if loss is None else float(budget.as_epsilon(loss)),
        None if loss is None else standing.room(loss),
    )


def create(policy: Policy, ledger: LedgerPath = None) -> LedgerPlace:
    """Make the ledger of a policy, with its whole budget unspent, where there is none; returns where."""
    place = ledger_place(policy, ledger)
    make_ledger(place, policy.budget, policy.analysts)
    return place


def read_lines(policy: Policy, ledger: LedgerPath = None, last: int = 20) -> tuple[Line, ...]:
    """The newest charges and changes of terms, oldest first."""
    with open_existing(ledger_place(policy, ledger)) as book:
        # A charge and its answer are two entries.
        newest = list(book.entries(after=max(0, _length(book) - 2 * last)))
        outcomes = {entry.body["charge"]: entry.body["answer"] for entry in newest if entry.kind == "answer"}
        budget = book.standing().budget
        lines = [_line(entry, budget, outcomes.get(entry.sequence)) for entry in newest if entry.kind != "answer"]
        return tuple(lines[-last:])


def verify(policy: Policy, ledger: LedgerPath = None) -> Head:
    """Walk the whole chain and add everything up again; `LedgerDamaged` or `LedgerRolledBack` if it does not hold."""
    with open_existing(ledger_place(policy, ledger)) as book:
        return book.verify()


def export(policy: Policy, stream: IO[str], ledger: LedgerPath = None) -> Head:
    """Every entry as one JSON line that anybody can add up again."""
    with open_existing(ledger_place(policy, ledger)) as book:
        return write_export(book, stream)


def amend(policy: Policy, ledger: LedgerPath = None) -> tuple[Difference, ...]:
    """Put the policy's budget and caps on the ledger's record; what had to be changed for that."""
    with open_existing(ledger_place(policy, ledger)) as book:
        differs = _differences(book.standing(), policy)
        if differs:
            book.amend(policy.budget, policy.analysts)
        return differs


def restore_anchor(policy: Policy, ledger: LedgerPath = None) -> tuple[LedgerPlace, Path]:
    """Make a lost anchor again; the custodian vouches that the ledger is the newest there is. Ledger and anchor."""
    place = ledger_place(policy, ledger)
    return place, restore(place)


def _differences(book: Standing, policy: Policy) -> tuple[Difference, ...]:
    found = []
    if (book.budget.epsilon, book.budget.delta) != (policy.budget.epsilon, policy.budget.delta):
        found.append(Difference("budget", str(book.budget), str(policy.budget)))
    if policy.budget.accounting and book.budget.rule != policy.budget.rule:
        found.append(Difference("accounting", book.budget.rule, policy.budget.rule))
    if dict(book.caps) != dict(policy.analysts):
        found.append(Difference("caps", _caps(book.caps), _caps(policy.analysts)))
    return tuple(found)


def _caps(caps: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name}: {show(epsilon)}" for name, epsilon in sorted(caps.items())) or "none"


def _line(entry: Entry, budget: Budget, outcome: str | None) -> Line:
    body: dict[str, Any] = entry.body
    if entry.kind != "charge":
        caps = {name: Fraction(terms["epsilon"]) for name, terms in body["caps"].items()}
        delta = f", δ = {show(Fraction(body['delta']))}" if Fraction(body["delta"]) else ""
        either = ", in either account" if body.get("accounting") == EITHER else ""
        terms = f"budget ε = {show(Fraction(body['epsilon']))}{delta}{either}" + (
            f"; caps {_caps(caps)}" if caps else ""
        )
        kind = "opened" if entry.kind == "genesis" else entry.kind
        return Line(entry.sequence, body["time"], kind, what=terms)
    paid = of_quanta(tuple(int(number) for number in body["amount"]))
    epsilon = float(budget.as_epsilon(paid))
    answered, failed = outcome is not None, outcome == _FAILED
    return Line(entry.sequence, body["time"], "charge", body["analyst"], epsilon, body["purpose"], answered, failed)


def _length(book: Ledger) -> int:
    """The number of entries, found by halving: each look reads one page, however long the ledger is."""

    def after(number: int) -> Iterator[Entry]:
        return islice(book.entries(after=number), 1)

    low, high = 0, 1
    while any(after(high)):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if any(after(middle)) else (low, middle)
    return low

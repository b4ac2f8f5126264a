"""What any ledger must do: describe one as a `LedgerKind`, then call `check_ledger`, or each of `CHECKS`."""

import io
import itertools
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from confide.errors import BudgetError, LedgerError, ParameterError
from confide.ledger import Ledger, check_export, export
from confide.privacy.amount import QUANTA
from confide.privacy.budget import Budget, in_currency
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, ApproxDP, PrivacyLoss, PureDP

Result = TypeVar("Result")
Caps = Mapping[str, object] | None

DELTA = Fraction(1, 10**6)
QUANTUM = Fraction(1, QUANTA)
CLIENTS = 64
CALLS = 1000


@dataclass(frozen=True)
class LedgerKind:
    """An implementation: how to make a ledger in a folder, and how another process opens it (None: it cannot)."""

    create: Callable[[Path, Budget, Caps], Ledger]
    reopen: Callable[[Path], Ledger] | None = None


def check_ledger(kind: LedgerKind, folder: Path) -> None:
    """Run every check, each in a folder of its own."""
    for check in CHECKS:
        place = folder / check.__name__
        place.mkdir()
        check(kind, place)


def pure(epsilon: str | int | Fraction) -> PureDP:
    return PureDP(Fraction(epsilon))


def refuses(error: type[Exception], call: Callable[[], object], *words: str) -> None:
    """The call raises exactly this kind of error, and its text has these words."""
    text = None
    try:
        call()
    except error as raised:
        text = str(raised)
    assert text is not None, f"{error.__name__} was not raised"
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"


def check_exact(kind: LedgerKind, folder: Path) -> None:
    """Tenths, thirds and fortieths fill a budget of 1 exactly: never over by one unit, never refused early."""
    for parts in (10, 3, 7, 40):
        (folder / str(parts)).mkdir()
        with kind.create(folder / str(parts), Budget.of(1), None) as ledger:
            part = Budget.of(1).cost(Fraction(1, parts))
            for number in range(parts):
                ledger.charge(part, "a part", f"part {number}")
            assert ledger.spent() == PureDP(Fraction(1)) == ledger.standing().cap
            refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "one unit", "over"), "no question fits")
            refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM / 10**9), "less", "over"))
            assert ledger.spent() == ledger.standing().cap


def check_exact_rho(kind: LedgerKind, folder: Path) -> None:
    """A question at the whole ε fills an (ε, δ) budget, and so do its thirds in ρ; δ is paid from its own half."""
    budget = Budget(Fraction(3), DELTA)
    with kind.create(folder, budget, None) as ledger:
        whole = budget.cost(Fraction(3))
        assert isinstance(whole, ZCDP)
        ledger.charge(ZCDP(whole.rho / 3), "a third, rounded up", "0")
        refuses(BudgetError, lambda: ledger.charge(whole, "the whole", "1"), "ρ = ", "as ε: 3", "would fit")
        ledger.charge(ZCDP(Fraction(0), DELTA / 2), "all of δ", "2")
        refuses(BudgetError, lambda: ledger.charge(ZCDP(QUANTUM, QUANTUM), "more δ", "3"), "left of δ")
        spent = ledger.spent()
        assert isinstance(spent, ZCDP)
        assert 0 <= spent.rho - whole.rho / 3 < QUANTUM
        ledger.charge(ZCDP(whole.rho - spent.rho), "the rest", "4")
        assert ledger.spent() == ledger.standing().cap


def check_either(kind: LedgerKind, folder: Path) -> None:
    """Where either account may hold, a call needs one of them; a call that is not pure ends the pure one for good."""
    for name in ("pure first", "rho first", "caps"):
        (folder / name).mkdir()
    budget = Budget(Fraction(3), DELTA, "either")
    cap = budget.cap
    assert isinstance(cap, ZCDP)
    with kind.create(folder / "pure first", budget, None) as ledger:
        assert ledger.standing().cap == cap == ZCDP(cap.rho, DELTA / 2, Fraction(3))
        charges = [ledger.charge(pure(1), "a count", str(number)) for number in range(3)]
        assert charges[0].loss == ZCDP(Fraction(1, 2), pure=Fraction(1))
        assert ledger.spent() == ZCDP(Fraction(3, 2), pure=Fraction(3)), "ρ is beyond its cap, and ε is not"
        refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "3"), "pure ε = 3", "no question fits")
        refuses(BudgetError, lambda: ledger.charge(ZCDP(QUANTUM), "more", "3"), "no question fits")
        assert ledger.charge(pure(1), "a count", "0") == charges[0]
        assert [ledger.paid(key) for key in ("0", "3")] == [True, False]
        refuses(
            ParameterError, lambda: ledger.amend(Budget(Fraction(9), DELTA, "concentrated")), "keeps its accounting"
        )
        ledger.amend(Budget(Fraction(4), DELTA))
        assert ledger.standing().budget.rule == "either"
        ledger.charge(pure(1), "a count", "3")
        ledger.verify()
    with kind.create(folder / "rho first", budget, None) as ledger:
        ledger.charge(pure("0.1"), "pure", "0")
        ledger.charge(ZCDP(cap.rho / 4), "not pure", "1")
        assert ledger.spent().pure is None  # type: ignore[union-attr]
        refuses(BudgetError, lambda: ledger.charge(pure(1), "pure, and too much for ρ", "2"), "would fit")
        ledger.charge(pure("0.1"), "pure, and within ρ", "2")
        ledger.amend(Budget(Fraction(4), DELTA, "either"))
        refuses(BudgetError, lambda: ledger.charge(pure(2), "the pure account stays closed", "3"))
        head = ledger.verify()
        stream = io.StringIO()
        assert export(ledger, stream) == head
        lines = stream.getvalue().splitlines()
        assert check_export(lines).spent == ledger.spent()
    with kind.create(folder / "caps", budget, {"ann": 1, "*": "0.5"}) as ledger:
        ledger.charge(pure(1), "all that ann may in ε, and more than she may in ρ", "0", "ann")
        refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "1", "ann"), "'ann' may spend ε = 1")
        ledger.charge(pure("0.5"), "all that others may", "1", "bob")
        refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "2", "carl"), "together")
        assert ledger.standing("carl").counted == ZCDP(Fraction(1, 8), pure=Fraction(1, 2))
        assert ledger.standing("ann").left("pure") is None
        ledger.verify()
    (folder / "other").mkdir()
    with kind.create(folder / "other", Budget(Fraction(3), DELTA), None) as ledger:
        refuses(ParameterError, lambda: ledger.amend(budget), "keeps its accounting")


def check_idempotent(kind: LedgerKind, folder: Path) -> None:
    with kind.create(folder, Budget.of(1), None) as ledger:
        first = ledger.charge(pure("0.25"), "a count", "key", "ann")
        assert first == Charge(first.sequence, "key", pure("0.25"), "a count", "ann", ledger.identity)
        assert ledger.charge(pure("0.25"), "said otherwise", "key", "ann") == first
        assert ledger.spent() == pure("0.25")
        refuses(ParameterError, lambda: ledger.charge(pure("0.5"), "a count", "key", "ann"), "another charge")
        refuses(ParameterError, lambda: ledger.charge(pure("0.25"), "a count", "key", "bob"), "another charge")
        assert ledger.spent() == pure("0.25")
        ledger.charge(pure("0.75"), "the rest", "rest")
        assert ledger.charge(pure("0.25"), "a count", "key", "ann") == first, "a paid key is free when nothing is left"


def check_refusals(kind: LedgerKind, folder: Path) -> None:
    """A refusal says what was asked, what is left, what the total is and what would fit; it writes nothing."""
    with kind.create(folder, Budget.of(1), None) as ledger:
        ledger.charge(pure("0.7"), "most", "most")
        head = ledger.verify()
        refuses(
            BudgetError,
            lambda: ledger.charge(pure("0.5"), "too much", "much"),
            "cost ε = 0.5",
            "budget of ε = 1",
            "ε = 0.7 is spent",
            "ε = 0.3 is left",
            "ε ≤ 0.3 would fit",
            "Nothing was charged",
        )
        assert ledger.verify() == head
        assert ledger.spent() == pure("0.7")
        assert ledger.answer("much") is None


def check_caps(kind: LedgerKind, folder: Path) -> None:
    """An analyst's cap holds beside the data set's; "*" is what all who are not named may spend together."""
    with kind.create(folder, Budget.of(2), {"ann": "0.5", "*": Fraction(1, 3)}) as ledger:
        assert dict(ledger.standing().caps) == {"ann": Fraction(1, 2), "*": Fraction(1, 3)}
        ledger.charge(pure("0.5"), "all of it", "1", "ann")
        refuses(
            BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "2", "ann"), "'ann' may spend ε = 0.5", "no qu"
        )
        others = ("bob", "", "carl", "*", "Ann", "ann ")
        refuses(BudgetError, lambda: ledger.charge(pure("0.34"), "more", "3", "bob"), "together, may spend ε = 0.333")
        for analyst in others[:3]:
            ledger.charge(pure(Fraction(1, 9)), "a third of it", f"3 {analyst}", analyst)
        for analyst in others:
            refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "4", analyst), "together")  # noqa: B023
            assert ledger.standing(analyst).counted == pure(Fraction(1, 3))
        assert ledger.spent("ann") == ledger.standing("ann").counted == pure("0.5")
        assert ledger.spent("bob") == ledger.spent("carl") == ledger.spent("") == pure(Fraction(1, 9))
        assert ledger.spent("nobody") == pure(0)
        assert ledger.spent() == pure(Fraction(5, 6))
        ledger.amend(caps={"ann": 2, "bob": 1, "*": Fraction(1, 3)})
        assert ledger.standing("carl").counted == pure(Fraction(2, 9)), "bob has a cap of his own now"
        ledger.charge(pure(Fraction(1, 9)), "what bob leaves", "5", "dora")
        refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "6", "carl"), "together")
        ledger.amend(caps={"ann": 2})
        refuses(BudgetError, lambda: ledger.charge(pure("1.1"), "over the budget", "7", "ann"), "budget of ε = 2")
        ledger.charge(pure("1"), "the rest", "7", "ann")
        assert ledger.spent("ann") == pure("1.5")
        ledger.verify()


def check_requests(kind: LedgerKind, folder: Path) -> None:
    """What was asked is kept beside what it was for, whole, and stands in the chain."""
    with kind.create(folder, Budget.of(1), None) as ledger:
        asked = json.dumps(["request", 1, "sql", "é" * 6_000])
        charge = ledger.charge(pure("0.1"), "a count", "1", "ann", asked)
        assert ledger.charge(pure("0.1"), "a count", "1", "ann", asked) == charge
        ledger.charge(pure("0.1"), "another", "2")
        bodies = [entry.body for entry in ledger.entries() if entry.kind == "charge"]
        assert [body.get("request") for body in bodies] == [asked, None]
        refuses(ParameterError, lambda: ledger.charge(pure("0.1"), "a count", "3", "", "x" * 2**21), "request")
        ledger.verify()


def check_standing(kind: LedgerKind, folder: Path) -> None:
    """All of one moment: terms, what all have spent, and what counts against the cap that somebody is under."""
    with kind.create(folder, Budget.of(2), {"ann": 1, "*": "0.5"}) as ledger:
        ledger.charge(pure("0.25"), "a count", "1", "ann")
        ledger.charge(pure("0.125"), "a count", "2", "bob")
        for analyst, cap, counted, shared in (("ann", 1, "0.25", False), ("carl", Fraction(1, 2), "0.125", True)):
            seen = ledger.standing(analyst)
            assert (seen.analyst, seen.own_cap, seen.shared) == (analyst, cap, shared)
            assert (seen.spent, seen.counted, seen.cap) == (pure("0.375"), pure(counted), pure(2))
            assert seen.holds(pure(cap - Fraction(counted)))
            assert not seen.holds(pure(cap - Fraction(counted) + Fraction(1, 1000)))
        before = ledger.standing()
        ledger.amend(Budget.of(3), {})
        assert (before.budget, ledger.standing().budget) == (Budget.of(2), Budget.of(3))
        assert ledger.standing("ann").own_cap is None
        refuses(ParameterError, lambda: ledger.standing("x" * 1_000), "the name of an analyst")


def check_answers(kind: LedgerKind, folder: Path) -> None:
    """The first stored answer is the answer, byte for byte, for everybody and for ever."""
    with kind.create(folder, Budget.of(1), None) as ledger:
        for number, kept in enumerate((b"", b"\0\xff{}", os.urandom(300_000))):
            charge = ledger.charge(pure("0.1"), "a count", f"key {number}")
            assert ledger.answer(charge.key) is None
            assert ledger.store(charge, kept) == kept
            second = ledger.store(charge, b"another draw of the noise")
            assert second == kept, "a second answer took the place of the first"
            assert ledger.answer(charge.key) == kept
        assert ledger.answer("never asked") is None
        paid = ledger.charge(pure("0.1"), "a count", "key")
        forged = (
            Charge(paid.sequence, "key", paid.loss, "", "", "another ledger"),
            Charge(paid.sequence + 1, "key", paid.loss, "", "", ledger.identity),
            Charge(paid.sequence, "never paid", paid.loss, "", "", ledger.identity),
        )
        for charge in forged:
            refuses(ParameterError, lambda: ledger.store(charge, b"x"), "not of this ledger")  # noqa: B023
        refuses(ParameterError, lambda: ledger.store(paid, "text"), "bytes")  # type: ignore[arg-type]
        assert ledger.answer("key") is None
        ledger.verify()


def check_currencies(kind: LedgerKind, folder: Path) -> None:
    """Every loss is paid in the budget's currency, rounded up; a pure budget pays no δ."""
    for name in ("pure", "approximate"):
        (folder / name).mkdir()
    with kind.create(folder / "pure", Budget.of(1), None) as ledger:
        for refused in (ZCDP(Fraction(1, 100)), ApproxDP(Fraction(1, 10), DELTA)):
            refuses(ParameterError, lambda: ledger.charge(refused, "a count", "key"), "delta")  # noqa: B023
        assert ledger.spent() == pure(0)
    with kind.create(folder / "approximate", Budget(Fraction(3), DELTA), None) as ledger:
        losses: tuple[PrivacyLoss, ...] = (
            PureDP(Fraction(1, 10)),
            ZCDP(Fraction(1, 1000)),
            ApproxDP(Fraction(1, 10), DELTA / 10),
        )
        for number, loss in enumerate(losses):
            assert ledger.charge(loss, "a count", str(number)).loss == in_currency(loss, ledger.standing().cap)
        assert ledger.spent() == ZCDP(Fraction(1, 200) + Fraction(1, 1000) + Fraction(1, 200), DELTA / 10)


def check_bad_input(kind: LedgerKind, folder: Path) -> None:
    with kind.create(folder, Budget.of(1), None) as ledger:
        head = ledger.verify()
        calls: list[Callable[[], object]] = [
            lambda: ledger.charge(pure(0), "free", "key"),
            lambda: ledger.charge(pure("0.1"), "no key", ""),
            lambda: ledger.charge(pure("0.1"), "long key", "k" * 10_000),
            lambda: ledger.charge(pure("0.1"), "half a letter", "\ud800"),
            lambda: ledger.charge(pure("0.1"), "\ud800", "key"),
            lambda: ledger.charge(pure("0.1"), "p" * 10**7, "key"),
            lambda: ledger.charge(pure("0.1"), "long name", "key", "a" * 10_000),
            lambda: ledger.charge(pure("0.1"), "no text", b"key"),  # type: ignore[arg-type]
            lambda: ledger.amend(caps={"ann": -1}),
            lambda: ledger.amend(caps={"ann": "abc"}),
            lambda: ledger.amend(budget=Budget(Fraction(1), DELTA)),
        ]
        for call in calls:
            refuses(ParameterError, call)
        assert ledger.verify() == head
    refuses(LedgerError, lambda: ledger.charge(pure("0.1"), "too late", "key"), "closed")
    refuses(LedgerError, ledger.spent, "closed")


def check_amendments(kind: LedgerKind, folder: Path) -> None:
    """A budget may grow or shrink on the record; what was spent stays spent."""
    with kind.create(folder, Budget.of(1), None) as ledger:
        ledger.charge(pure(1), "all", "1")
        ledger.amend(Budget.of(2))
        assert (ledger.standing().budget, ledger.standing().cap) == (Budget.of(2), pure(2))
        ledger.charge(pure("0.5"), "more", "2")
        ledger.amend(Budget.of("0.5"))
        refuses(BudgetError, lambda: ledger.charge(PureDP(QUANTUM), "more", "3"), "ε = 1.5 is spent", "no question")
        assert ledger.spent() == pure("1.5")
        assert [entry.kind for entry in ledger.entries()] == ["genesis", "charge", "amendment", "charge", "amendment"]
        ledger.verify()


def check_chain(kind: LedgerKind, folder: Path) -> None:
    """The chain can be read in parts, exported, added up again without the ledger, and holds no secret."""
    with kind.create(folder, Budget(Fraction(3), DELTA), {"*": 2}) as ledger:
        for number in range(5):
            charge = ledger.charge(ZCDP(Fraction(1, 1000), DELTA / 100), 'häufig ∑ \n\t"x"', f"key {number}", "änn")
            ledger.store(charge, b"answer %d" % number)
        entries = list(ledger.entries())
        assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
        assert list(ledger.entries(after=7)) == entries[7:]
        assert list(ledger.entries(newest=3)) == entries[-3:]
        assert list(ledger.entries(after=9, newest=3)) == entries[9:]
        assert list(ledger.entries(newest=1000)) == entries
        stream = io.StringIO()
        head = export(ledger, stream)
        assert head == ledger.verify()
        lines = stream.getvalue().splitlines()
        statement = check_export(lines)
        assert (statement.head, statement.ledger, statement.budget) == (head, ledger.identity, ledger.standing().budget)
        assert (statement.spent, dict(statement.by_analyst)) == (ledger.spent(), {"änn": ledger.spent("änn")})
        assert (statement.charges, statement.answers) == (5, 5)
        assert len(ledger.secret) == 32
        for private in (ledger.secret.hex(), "answer 1"):
            assert private not in stream.getvalue()
        for number, line in enumerate(lines):
            record = json.loads(line)
            for field, value in record["entry"].items():
                forged = json.dumps({"entry": {**record["entry"], field: _other(value)}, "hash": record["hash"]})
                changed = [*lines[:number], forged, *lines[number + 1 :]]
                refuses(LedgerError, lambda: check_export(changed))  # noqa: B023
            refuses(LedgerError, lambda: check_export([*lines[:number], *lines[number + 1 :], "x"]))  # noqa: B023


def _other(value: Any) -> Any:
    match value:
        case int():
            return value + 1
        case str():
            return value + "0"
        case list():
            return [_other(part) for part in value]
        case dict():
            return {key: _other(part) for key, part in value.items()} or {"ann": {"epsilon": "1", "cap": ["1", "1"]}}
    raise TypeError(type(value))


def check_reopening(kind: LedgerKind, folder: Path) -> None:
    """Another client sees everything at once: charges, answers, totals, amendments, identity and secret."""
    if kind.reopen is None:
        return
    with kind.create(folder, Budget.of(1), {"ann": 1}) as one, kind.reopen(folder) as two:
        charge = one.charge(pure("0.1"), "a count", "key", "ann")
        assert two.charge(pure("0.1"), "a count", "key", "ann") == charge
        assert two.store(charge, b"yes") == one.store(charge, b"no") == b"yes"
        assert one.answer("key") == two.answer("key") == b"yes"
        two.amend(Budget.of(3), {"ann": 2})
        seen = one.standing()
        assert (seen.budget, dict(seen.caps), seen.cap) == (Budget.of(3), {"ann": Fraction(2)}, pure(3))
        one.charge(pure("1.5"), "a count", "more", "ann")
        assert (one.identity, one.secret, one.spent("ann")) == (two.identity, two.secret, two.spent("ann"))
        assert one.verify() == two.verify()


def check_thread_race(kind: LedgerKind, folder: Path) -> None:
    """64 threads race for the last units: as many as fit are charged, never one more, never one less."""
    with kind.create(folder, Budget.of(1), None) as ledger:
        ledger.charge(pure("0.9"), "most of it", "most")
        outcomes = _in_threads(CLIENTS, lambda number: _try_charge(ledger, pure("0.01"), f"last {number}"))
        assert sum(outcomes) == 10, f"{sum(outcomes)} charges were acknowledged where 10 fit"
        assert ledger.spent() == pure(1)
        assert len([entry for entry in ledger.entries() if entry.kind == "charge"]) == 11
        ledger.verify()


def check_process_race(kind: LedgerKind, folder: Path) -> None:
    """64 processes race for the last unit: one is charged."""
    if kind.reopen is None:
        return
    with kind.create(folder, Budget.of(1), None) as ledger:
        ledger.charge(pure("0.99"), "most of it", "most")

        def client(number: int) -> bool:
            assert kind.reopen is not None
            with kind.reopen(folder) as mine:
                return _try_charge(mine, pure("0.01"), f"last {number}")

        outcomes = _in_processes(CLIENTS, client)
        assert sum(outcomes) == 1, f"{sum(outcomes)} processes were charged for the last unit"
        assert ledger.spent() == pure(1)
        assert len([entry for entry in ledger.entries() if entry.kind == "charge"]) == 2
        ledger.verify()


def check_one_key(kind: LedgerKind, folder: Path) -> None:
    """One key in 1,000 parallel calls: one charge, one answer, the same for all."""
    with kind.create(folder, Budget.of(1), None) as ledger:
        processes = 1 if kind.reopen is None else 8

        def client(number: int) -> set[tuple[Charge, bytes]]:
            with ExitStack() as stack:
                mine = ledger if kind.reopen is None else stack.enter_context(kind.reopen(folder))

                def call(_: int) -> tuple[Charge, bytes]:
                    charge = mine.charge(pure("0.5"), "one question", "key")
                    return charge, mine.store(charge, os.urandom(16))

                return set(_in_threads(CALLS // processes, call))

        results = [client(0)] if processes == 1 else _in_processes(processes, client)
        everything = set().union(*results)
        assert len(everything) == 1, f"{len(everything)} different outcomes for one key"
        ((charge, answer),) = everything
        assert (ledger.charge(pure("0.5"), "", "key"), ledger.answer("key")) == (charge, answer)
        assert ledger.spent() == pure("0.5")
        assert [entry.kind for entry in ledger.entries()] == ["genesis", "charge", "answer"]
        ledger.verify()


def check_against_model(kind: LedgerKind, folder: Path, examples: int = 10) -> None:
    """Any sequence of calls leaves what a few lines of exact arithmetic say it leaves."""
    numbers = itertools.count()

    class Machine(LedgerMachine):
        def start(self) -> None:
            self.kind, self.folder = kind, folder / str(next(numbers))
            self.folder.mkdir()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        ),
    )


amounts = st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(1, 7), QUANTUM, QUANTUM / 3, Fraction(3, 10)])
keys = st.sampled_from([f"key {number}" for number in range(12)])
analysts = st.sampled_from(["ann", "bob", ""])


class LedgerMachine(RuleBasedStateMachine):
    """A ledger beside a model of it."""

    kind: LedgerKind
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.start()
        self.cap = Fraction(1)
        self.caps = {"ann": Fraction(1, 2), "*": Fraction(2, 3)}
        self.paid: dict[str, tuple[Fraction, str, Charge]] = {}
        self.kept: dict[str, bytes] = {}
        self.ledger = self.kind.create(self.folder, Budget.of(1), self.caps)

    def start(self) -> None:
        raise NotImplementedError

    def teardown(self) -> None:
        self.ledger.verify()
        self.ledger.close()

    def spent(self, analyst: str | None = None) -> Fraction:
        return sum((amount for amount, who, _ in self.paid.values() if analyst in (None, who)), Fraction(0))

    def counted(self, analyst: str) -> Fraction:
        return self.spent(analyst) if analyst in self.caps else self.spent() - self.spent("ann")

    @rule(key=keys, amount=amounts, analyst=analysts)
    def charge(self, key: str, amount: Fraction, analyst: str) -> None:
        price = Fraction(-(-amount.numerator * QUANTA // amount.denominator), QUANTA)

        def call() -> Charge:
            return self.ledger.charge(PureDP(amount), "a question", key, analyst)

        if key in self.paid:
            before, who, charge = self.paid[key]
            if (before, who) == (price, analyst):
                assert call() == charge
            else:
                refuses(ParameterError, call)
        elif self.spent() + price > self.cap or self.counted(analyst) + price > self.caps.get(analyst, self.caps["*"]):
            refuses(BudgetError, call, "Nothing was charged")
        else:
            self.paid[key] = (price, analyst, call())

    @precondition(lambda self: self.paid)
    @rule(data=st.data(), answer=st.binary(max_size=20))
    def store(self, data: st.DataObject, answer: bytes) -> None:
        key = data.draw(st.sampled_from(sorted(self.paid)))
        kept = self.kept.setdefault(key, answer)
        assert self.ledger.store(self.paid[key][2], answer) == kept

    @rule(epsilon=st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(4, 3)]))
    def amend(self, epsilon: Fraction) -> None:
        self.ledger.amend(Budget(epsilon))
        self.cap = epsilon

    @rule()
    def reopen(self) -> None:
        if self.kind.reopen is not None:
            self.ledger.close()
            self.ledger = self.kind.reopen(self.folder)

    @invariant()
    def same_totals(self) -> None:
        assert self.ledger.spent() == PureDP(self.spent())
        for analyst in ("ann", "bob", ""):
            assert self.ledger.spent(analyst) == PureDP(self.spent(analyst))
            assert self.ledger.standing(analyst).counted == PureDP(self.counted(analyst))
        assert self.ledger.standing().cap == PureDP(self.cap)

    @invariant()
    def same_answers(self) -> None:
        for key in ("key 0", "key 1", "key 2"):
            assert self.ledger.answer(key) == self.kept.get(key)


def _try_charge(ledger: Ledger, loss: PrivacyLoss, key: str) -> bool:
    try:
        ledger.charge(loss, "the last unit", key)
    except BudgetError:
        return False
    return True


def _in_threads(count: int, call: Callable[[int], Result]) -> list[Result]:
    """Run so many calls at once, started together; any error is the caller's."""
    results: list[Result] = []
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait(60)
            results.append(call(number))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def _in_processes(count: int, call: Callable[[int], Result]) -> list[Result]:
    """The same in processes of their own, forked from this one."""
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(count), context.SimpleQueue()

    def run(number: int) -> None:
        try:
            start.wait(60)
            results.put((call(number), None))
        except BaseException as error:
            results.put((None, f"{type(error).__name__}: {error}"))

    processes = [context.Process(target=run, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    outcomes: list[tuple[Any, str | None]] = [results.get() for _ in processes]
    for process in processes:
        process.join()
    failed = [error for _, error in outcomes if error is not None]
    assert not failed, failed[0]
    return [result for result, _ in outcomes]


CHECKS: tuple[Callable[[LedgerKind, Path], None], ...] = (
    check_exact,
    check_exact_rho,
    check_either,
    check_idempotent,
    check_refusals,
    check_caps,
    check_requests,
    check_standing,
    check_answers,
    check_currencies,
    check_bad_input,
    check_amendments,
    check_chain,
    check_reopening,
    check_thread_race,
    check_process_race,
    check_one_key,
    check_against_model,
)

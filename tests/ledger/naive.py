"""A ledger as one would write it first: the control that shows the checks can fail. Never use it for anything else."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from confide.errors import BudgetError, LedgerError, ParameterError
from confide.ledger.record.entry import Entry, Head
from confide.ledger.record.terms import Standing, Terms
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss, PureDP


class NaiveLedger:
    """Floats; reads, checks, then writes without a lock; the last answer wins; caps and chains are forgotten."""

    durable = True
    identity = "naive"
    secret = bytes(32)
    accounts = ("pure",)

    def __init__(self, folder: Path, budget: Budget) -> None:
        self._file = folder / "naive.json"
        self.budget = budget
        if not self._file.exists():
            self._save({"spent": 0.0, "charges": [], "answers": {}})

    def charge(self, loss: PrivacyLoss, purpose: str, key: str, analyst: str = "", request: str = "") -> Charge:
        state = self._load()
        assert isinstance(loss, PureDP)
        for number, (known, epsilon) in enumerate(state["charges"], start=2):
            if known == key:
                if epsilon != float(loss.epsilon):
                    raise ParameterError("this key already stands for another charge")
                return Charge(number, key, loss, purpose, analyst, self.identity)
        if state["spent"] + float(loss.epsilon) > float(self.budget.epsilon):
            raise BudgetError("the budget is exhausted")
        time.sleep(0.02)  # what any real check would take: the window in which another client reads the same total
        state["spent"] += float(loss.epsilon)
        state["charges"].append((key, float(loss.epsilon)))
        self._save(state)
        return Charge(len(state["charges"]) + 1, key, loss, purpose, analyst, self.identity)

    def paid(self, key: str) -> bool:
        return any(known == key for known, _ in self._load()["charges"])

    def store(self, charge: Charge, answer: bytes) -> bytes:
        state = self._load()
        state["answers"][charge.key] = answer.hex()
        self._save(state)
        return answer

    def answer(self, key: str) -> bytes | None:
        found = self._load()["answers"].get(key)
        return None if found is None else bytes.fromhex(found)

    def spent(self, analyst: str | None = None) -> Currency:
        return PureDP(Fraction(repr(self._load()["spent"])))

    def standing(self, analyst: str = "") -> Standing:
        return Standing(Terms.of(self.budget), self.spent(), analyst, self.spent(analyst))

    def entries(self, after: int = 0, newest: int | None = None) -> Iterator[Entry]:
        state = self._load()
        yield Entry(1, "genesis", {}, "")
        for number, (key, _) in enumerate(state["charges"], start=2):
            yield Entry(number, "charge", {"key": key}, "")

    def amend(self, budget: Budget | None = None, caps: Mapping[str, object] | None = None) -> None:
        self.budget = budget or self.budget

    def verify(self) -> Head:
        return Head(1 + len(self._load()["charges"]), "")

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def _load(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._file.read_text())
        return state

    def _save(self, state: dict[str, Any]) -> None:
        draft = self._file.with_name(f"{os.getpid()}-{time.monotonic_ns()}")
        draft.write_text(json.dumps(state))
        draft.rename(self._file)


class BufferedLedger(NaiveLedger):
    """Tells of a charge before it is written, and writes every tenth time."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        super().__init__(folder, budget)
        self._buffer: list[tuple[str, float]] = []

    def charge(self, loss: PrivacyLoss, purpose: str, key: str, analyst: str = "", request: str = "") -> Charge:
        assert isinstance(loss, PureDP)
        self._buffer.append((key, float(loss.epsilon)))
        if len(self._buffer) == 10:
            state = self._load()
            state["charges"].extend(self._buffer)
            state["spent"] += sum(epsilon for _, epsilon in self._buffer)
            self._save(state)
            self._buffer.clear()
        if len(key) > 10**6:
            raise LedgerError("never")
        return Charge(0, key, loss, purpose, analyst, self.identity)

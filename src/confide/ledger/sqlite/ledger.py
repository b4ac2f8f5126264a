"""The ledger that is used: one SQLite file with a write-ahead log and an anchor, shared by threads and processes."""

import os
from collections.abc import Mapping
from typing import Self, final

from confide.ledger.durable import TIMEOUT, KeptLedger
from confide.ledger.record.entry import Head
from confide.ledger.record.terms import Terms
from confide.ledger.sqlite import creation
from confide.ledger.sqlite.files import LedgerFiles, inspect, verify
from confide.ledger.sqlite.transaction import SqliteTransactions
from confide.privacy.budget import Budget

PathLike = str | os.PathLike[str]


@final
class SqliteLedger(KeptLedger):
    """A durable ledger. Make one with `create`, `open` or `open_or_create`; use it from any thread and across forks."""

    def __init__(self, place: LedgerFiles, timeout: float = TIMEOUT) -> None:
        place.require_ledger()
        opened = inspect(place, timeout)
        transactions = SqliteTransactions(place, opened.identity, timeout)
        super().__init__(opened, transactions)
        self._place = place
        self._timeout = timeout
        if opened.anchored:
            self.spent()  # on a connection that may write: one that only reads leaves an empty log behind
        else:
            transactions.catch_up()

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
        place = LedgerFiles.of(path, anchor)
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
        place = LedgerFiles.of(path, anchor)
        return cls(place, timeout)._with_terms(budget, caps, place.name)

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
        """Open a ledger, or make it if there is no trace of one. All who do so at once get the same one."""
        place = LedgerFiles.of(path, anchor)
        if place.empty:
            creation.create(place, Terms.of(budget, caps))
        else:
            place.settle()
        return cls.open(path, budget, caps, anchor=anchor, timeout=timeout)

    def verify(self) -> Head:
        self._transactions.require_open()
        return verify(self._place, self._timeout).head

    def __repr__(self) -> str:
        return f"<SqliteLedger {self._place.path}>"

"""What every ledger does. `tests/conformance/ledger.py` holds any implementation to it."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Protocol, Self

from confide.ledger.record.entry import Entry, Head
from confide.ledger.record.terms import Standing
from confide.privacy.budget import Budget, Currency
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss


class Ledger(Protocol):
    """One budget, spent by many: atomic, durable, exact, and idempotent by key."""

    @property
    def durable(self) -> bool:
        """Whether a charge outlives the process. A session on real data takes only a ledger whose charges do."""

    @property
    def identity(self) -> str:
        """Made at random at creation; every charge carries it."""

    @property
    def secret(self) -> bytes:
        """32 random bytes made at creation, under which keys are made and contributions bounded. Never exported."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """Under which accounts of its budget a call may be charged. A ledger keeps them."""

    def charge(self, loss: PrivacyLoss, purpose: str, key: str, analyst: str = "", request: str = "") -> Charge:
        """Pay `loss`, durably, before anything is read; the same key again pays nothing more.

        `purpose` says for people what it is for, and `request` for programs: its identity, which makes the key.
        """

    def paid(self, key: str) -> bool:
        """Whether a key was charged, be it answered or not."""

    def store(self, charge: Charge, answer: bytes) -> bytes:
        """Keep the answer of a charge and return the one that is kept: the first, whoever stored it."""

    def answer(self, key: str) -> bytes | None:
        """The stored answer of the charge with this key, byte for byte."""

    def spent(self, analyst: str | None = None) -> Currency:
        """What was spent by all, or by one analyst."""

    def standing(self, analyst: str = "") -> Standing:
        """The terms and what is spent, as an analyst sees them, all of one moment."""

    def entries(self, after: int = 0, newest: int | None = None) -> Iterator[Entry]:
        """The chain, oldest first, after entry number `after`; with `newest`, only so many of the last."""

    def amend(self, budget: Budget | None = None, caps: Mapping[str, object] | None = None) -> None:
        """Change the budget or the caps, on the record. The currency stays; what was spent stays spent."""

    def verify(self) -> Head:
        """Walk the whole chain, add everything up again, and return its head."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

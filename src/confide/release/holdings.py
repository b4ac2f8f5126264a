"""What a release is made from: one policy's data, its ledger, an analyst and a source of noise.

Everything that is paid for goes through `once`: charge before read, and the answer stored before it is sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Final

from confide.engine import Engine
from confide.ledger import Ledger
from confide.mechanism import Randomness
from confide.policy import Policy
from confide.privacy.budget import fits, in_currency
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss

LONGEST_PURPOSE: Final = 4_000

Release = Callable[[Charge], bytes]


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """Held by a session and lent to what it releases."""

    policy: Policy
    engine: Engine
    ledger: Ledger
    randomness: Randomness
    analyst: str = ""
    _facts: str = field(init=False, repr=False)  # a policy does not change, and every key names its facts

    def __post_init__(self) -> None:
        object.__setattr__(self, "_facts", self.policy.facts_fingerprint)

    def key(self, kind: str, *parts: str) -> str:
        """The same request on the same data with the same parameters by the same analyst has the same key."""
        whole = (kind, self._facts, self.engine.version, self.analyst, *parts)
        return sha256("\x1f".join(whole).encode()).hexdigest()

    def once(self, key: str, purpose: str, prepare: Callable[[], tuple[PrivacyLoss, Release]]) -> bytes:
        """What is stored under a key; else what `prepare` names is charged, released and stored. Never refunded."""
        stored = self.ledger.answer(key)
        if stored is None:
            loss, release = prepare()
            charge = self.ledger.charge(loss, purpose[:LONGEST_PURPOSE], key, self.analyst)
            stored = self.ledger.store(charge, release(charge))
        return stored

    def affordable(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits what is left, for the analyst and for the data."""
        ledger = self.ledger
        cost = in_currency(loss, ledger.cap)
        own = self._own_cap()
        if own is not None and not fits(ledger.spent(self.analyst), cost, ledger.budget.cap_of(own)):
            return False
        return fits(ledger.spent(), cost, ledger.cap)

    def _own_cap(self) -> Fraction | None:
        caps = self.ledger.caps
        return caps.get(self.analyst, caps.get("*"))

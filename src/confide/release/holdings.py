"""What a release is made from: one policy's data, its ledger, an analyst and a source of noise.

Everything that is paid for goes through `once`: charge before read, then one outcome, which is kept before it is given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from confide.engine import Engine
from confide.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerFull
from confide.ledger import Ledger
from confide.mechanism import Randomness
from confide.policy import Policy
from confide.privacy.budget import fits, in_currency
from confide.privacy.charge import Charge
from confide.privacy.loss import PrivacyLoss
from confide.privacy.naming import sealed_name
from confide.release.cost import cap_over
from confide.release.guard import guarded, told

LONGEST_PURPOSE: Final = 4_000

Release = Callable[[Charge], bytes]
Result = TypeVar("Result")

_UNKEPT: Final[dict[type[LedgerError], str]] = {
    LedgerFull: "the disk that holds the ledger is full",
    LedgerBusy: "the ledger was in use by others for too long",
    LedgerDamaged: "the ledger is not as it was when the question was charged",
    LedgerError: "the ledger could not be written",
}


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
        """The same request on the same data with the same parameters by the same analyst has the same key.

        Keys are exported, and the state of the data is part of them: so they are made under the ledger's secret.
        """
        whole = ("key", kind, self._facts, self.engine.version, self.analyst, *parts)
        return sealed_name(self.ledger.secret, *whole)

    def known(self, key: str, read: Callable[[bytes], Result]) -> Result | None:
        """What is kept under a key, read; None if there is nothing. A failure that is kept is raised again."""
        kept = self.ledger.answer(key)
        return None if kept is None else told(kept, read)

    def once(
        self,
        key: str,
        purpose: str,
        prepare: Callable[[], tuple[PrivacyLoss, Release]],
        read: Callable[[bytes], Result],
    ) -> Result:
        """What is kept under a key, read; else what `prepare` names is charged, released and kept. Never refunded.

        `prepare` looks at public facts alone, and refuses what it must. From the charge on there is one outcome: what
        was released, or the constant `EngineError`. It is kept before anybody hears of it, and the same call gives it
        again; of several callers with one key all get the outcome that was kept first.
        """
        kept = self.ledger.answer(key)
        if kept is not None:
            return told(kept, read)
        loss, release = prepare()
        self.engine.ready()
        charge = self.ledger.charge(loss, purpose[:LONGEST_PURPOSE], key, self.analyst)
        outcome, result = guarded(lambda: release(charge), read)
        kept = self._keep(charge, outcome)
        return result if result is not None and kept == outcome else told(kept, read)

    def _keep(self, charge: Charge, outcome: bytes) -> bytes:
        """Keep an outcome. Where that fails nothing is given, and the words say that the charge stands."""
        kind: type[LedgerError]
        try:
            return self.ledger.store(charge, outcome)
        except LedgerError as error:
            kind = next(kind for kind in _UNKEPT if isinstance(error, kind))
        except Exception:
            kind = LedgerError
        raise kind(
            f"{_UNKEPT[kind]}, so what was found is not kept and not given; the charge stands, and the same call again "
            "costs nothing more"
        )

    def affordable(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits what is left, for the analyst and for the data."""
        ledger = self.ledger
        cost = in_currency(loss, ledger.cap)
        own = cap_over(ledger, self.analyst)
        if own is not None and not fits(ledger.against_cap(self.analyst), cost, ledger.budget.cap_of(own)):
            return False
        return fits(ledger.spent(), cost, ledger.cap)

"""The receipt of a payment."""

from dataclasses import dataclass

from confide.privacy.loss import ZCDP, PureDP


@dataclass(frozen=True, slots=True)
class Charge:
    """What a ledger gives for a durable payment. Private data is read against one, and never without.

    `loss` is what was paid, in the ledger's own currency; `ledger` is the identity of the ledger that holds it.
    """

    sequence: int
    key: str
    loss: PureDP | ZCDP
    purpose: str
    analyst: str
    ledger: str

"""Under which account of the budget a call is made: the one that it names, or the one that gives the narrower answer.

Decided before anything is charged, from what was asked, the policy and the books, all of which are public.
"""

from collections.abc import Mapping, Sequence
from math import exp, inf, log
from typing import Final, Protocol, TypeVar

from confide.errors import ParameterError
from confide.ledger.record.terms import Standing
from confide.privacy.amount import shown_value
from confide.privacy.budget import CONCENTRATED, PURE
from confide.privacy.loss import ZCDP, PrivacyLoss, PureDP

AUTO: Final = "auto"


class Offer(Protocol):
    """A request with its price under one account."""

    @property
    def loss(self) -> PrivacyLoss: ...

    @property
    def widths(self) -> Sequence[float]:
        """How wide each number that it measures would be: comparable with the same request under the other account."""


Offered = TypeVar("Offered", bound=Offer)


def accounts_for(kept: tuple[str, ...], account: object) -> tuple[str, ...]:
    """The accounts that a call may be made under, of those that a ledger keeps; `auto` is all of them."""
    name = str.__str__(account) if isinstance(account, str) else None
    if name == AUTO:
        return kept
    if name not in (PURE, CONCENTRATED):
        raise ParameterError(
            f"account={shown_value(account)} is unknown; there are 'auto', {PURE!r} and {CONCENTRATED!r}"
        )
    if name not in kept:
        raise ParameterError(
            f"account={name!r} is refused: this ledger's accounting is {kept[0]}; it has both accounts if it is made "
            "with a delta and accounting: either in the policy's budget"
        )
    return (name,)


def preferred(standing: Standing, offers: Mapping[str, Offered]) -> str:
    """Of the accounts that hold their offer the one with the narrower answer, and the pure one if they are alike."""
    if len(offers) == 1:
        return next(iter(offers))
    fitting = [account for account, offer in offers.items() if standing.holds(offer.loss)] or list(offers)
    best, *others = sorted(fitting, key=lambda account: account != PURE)
    for other in others:
        if _ratio(offers[other].widths, offers[best].widths) < 1:
            best = other
    return best


def pure_width(loss: PrivacyLoss) -> float:
    """How wide a pure mechanism is, up to a factor: 1/ε, or 1/√(2ρ) where ρ pays for it."""
    if isinstance(loss, ZCDP):
        return float(2 * loss.rho) ** -0.5 if loss.rho else inf
    assert isinstance(loss, PureDP)
    return 1 / float(loss.epsilon) if loss.epsilon else inf


def _ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """How much wider one offer is than the other: the geometric mean over what is measured."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    if any(a == inf or b == 0 for a, b in pairs):
        return inf
    if any(a == 0 or b == inf for a, b in pairs):
        return 0.0
    return exp(sum(log(a / b) for a, b in pairs) / len(pairs)) if pairs else 1.0

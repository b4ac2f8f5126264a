"""What a release is made from: one policy's data, its ledger, an analyst and a source of noise.

Everything that is paid for goes through `ask`: charge before read, then one outcome, which is kept before it is given.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from confide.engine import Engine
from confide.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    ParameterError,
    QueryError,
)
from confide.ledger import Ledger
from confide.ledger.record.terms import Standing
from confide.mechanism import Randomness
from confide.policy import Policy
from confide.privacy.budget import PURE, Budget
from confide.privacy.charge import Charge
from confide.privacy.identity import kept_form, sealed_name, under_account
from confide.release.account import AUTO, Offer, accounts_for, preferred
from confide.release.guard import GOES_ON, NOT_CHARGED, guarded, quiet, told, was_charged
from confide.release.request import Asked, Priced, Request

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

    def key(self, identity: str) -> str:
        """The same request on the same data under the same policy by the same analyst has the same key.

        Keys are exported, and the state of the data is part of them: so they are made under the ledger's secret.
        """
        return sealed_name(self.ledger.secret, "key", self._facts, self.engine.version, self.analyst, identity)

    def known(self, identity: str, read: Callable[[bytes], Result]) -> Result | None:
        """What is kept for a request, read; None if there is nothing. A failure that is kept is raised again."""
        kept = self.ledger.answer(self.key(identity))
        return None if kept is None else told(kept, read)

    def standing(self) -> Standing:
        """How the books stand for the analyst: read once, and handed to whoever asks."""
        return self.ledger.standing(self.analyst)

    def accounts(self, account: object = AUTO) -> tuple[str, ...]:
        """The accounts under which a call may be made."""
        return accounts_for(self.ledger.accounts, account)

    def identified(self, identity: str, account: str) -> str:
        """The identity of a request under an account. It buys another noise there, so it is another request; where a
        ledger has one account only there is nothing to tell apart."""
        return under_account(identity, account) if account == PURE and len(self.ledger.accounts) > 1 else identity

    def ask(self, request: Request[Result], account: object = AUTO) -> Asked[Result]:
        """What is kept for a request; else it is priced, charged, measured and kept. Never refunded.

        `price` looks at public facts alone, and refuses what it must. From the charge on there is one outcome: what
        was measured, or the constant `EngineError`. It is kept before anybody hears of it, and the same call gives it
        again; of several callers with one request all get the outcome that was kept first. Under `auto` what is kept or
        paid for under any account is given; else the account is chosen that gives the narrower answer.
        """
        asked, accounts = request.identity(), self.accounts(account)
        identities = {name: self.identified(asked, name) for name in accounts}
        for own in identities.values():
            kept = self.ledger.answer(self.key(own))
            if kept is not None:
                return Asked(told(kept, request.decode), stored=True)
        chosen, priced = self._priced(request, identities)
        identity = identities[chosen]
        key = self.key(identity)
        self.engine.ready()
        with self._saying_what_was_charged(key):
            charge = self.ledger.charge(priced.loss, request.purpose, key, self.analyst, kept_form(identity))
            outcome, result = guarded(lambda: priced.measure(self, charge), request.decode)
            kept = self._keep(charge, outcome)
        if result is not None and kept == outcome:
            return Asked(result, stored=False)
        return Asked(told(kept, request.decode), stored=kept != outcome)

    @contextmanager
    def _saying_what_was_charged(self, key: str) -> Iterator[None]:
        """Whoever is stopped in here hears whether the charge was written: a Ctrl-C may come on either side of it."""
        try:
            yield
        except KeyboardInterrupt as stop:
            with suppress(Exception):
                if not was_charged(stop):
                    stop.add_note(GOES_ON if self.ledger.paid(key) else NOT_CHARGED)
            raise

    def _priced(self, request: Request[Result], identities: Mapping[str, str]) -> tuple[str, Priced]:
        """The account of a call, and what it costs there. The books are read first: what another caller pays for
        meanwhile, and only that, is then seen to be paid."""
        standing = self.standing()
        paid = [name for name, own in identities.items() if len(identities) > 1 and self.ledger.paid(self.key(own))]
        names = paid[:1] or list(identities)
        if len(names) > 1:
            names = [self.preferred(standing, request.price, names)]
        return names[0], request.price(standing.budget.under(names[0]))

    def preferred(self, standing: Standing, price: Callable[[Budget], Offer], accounts: Sequence[str]) -> str:
        """The account under which a call gets the narrower answer, of those that hold it."""
        offers, refusals = {}, []
        for name in accounts:
            try:
                with quiet():  # what is said of an account that is not taken is said for nothing
                    offers[name] = price(standing.budget.under(name))
            except (ParameterError, QueryError) as refusal:
                refusals.append(refusal)  # a pure call has no δ to find undeclared keys with, or is too small
        if not offers:
            raise refusals[-1]
        return preferred(standing, offers)

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

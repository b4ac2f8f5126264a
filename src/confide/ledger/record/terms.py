"""The terms of a ledger: its budget and what each analyst may spend of it; and how it stands under them at a moment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import add, gt
from types import MappingProxyType
from typing import Any, Self

from confide.errors import LedgerError, ParameterError
from confide.privacy.amount import parse_amount, show, to_quanta_up
from confide.privacy.budget import EITHER, Budget, Currency, amounts, in_currency, of_quanta, quanta_of, remaining
from confide.privacy.limits import LONGEST_LEDGER_NAME
from confide.privacy.loss import PrivacyLoss

Quanta = tuple[int, ...]
"""(ε,) of a pure budget; (ρ, δ) of one with a δ; (ρ, δ, ε) where either account may hold, as long as all is pure."""

ANYBODY_ELSE = "*"


@dataclass(frozen=True, slots=True)
class Terms:
    """A budget and the caps beside it, with both also as the whole quanta that are compared at every charge."""

    budget: Budget
    caps: Mapping[str, Fraction] = field(default_factory=dict)
    cap: Quanta = ()
    cap_of: Mapping[str, Quanta] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: Budget, caps: Mapping[str, object] | None = None) -> Self:
        """Terms from what a person gives: caps as anything that reads as an amount of ε."""
        exact = {}
        for analyst, epsilon in (caps or {}).items():
            require_text(analyst, "the name of an analyst", LONGEST_LEDGER_NAME)
            # A cap of 0 keeps somebody out.
            nothing = isinstance(epsilon, int | Fraction) and not isinstance(epsilon, bool) and epsilon == 0
            exact[analyst] = Fraction(0) if nothing else parse_amount(epsilon, f"the cap of {analyst!r}")
        ordered = dict(sorted(exact.items()))
        return cls(
            budget,
            MappingProxyType(ordered),
            quanta_of(budget.cap),
            MappingProxyType({analyst: quanta_of(budget.cap_of(epsilon)) for analyst, epsilon in ordered.items()}),
        )

    @classmethod
    def read(cls, body: dict[str, Any]) -> Self:
        """Terms as an entry states them. The quanta are taken as written: what was promised then holds now."""
        budget = Budget(Fraction(body["epsilon"]), Fraction(body["delta"]), body.get("accounting", ""))
        caps = {analyst: Fraction(stated["epsilon"]) for analyst, stated in body["caps"].items()}
        cap_of = {analyst: read_quanta(stated["cap"]) for analyst, stated in body["caps"].items()}
        return cls(budget, MappingProxyType(caps), read_quanta(body["cap"]), MappingProxyType(cap_of))

    def body(self) -> dict[str, Any]:
        accounting = {"accounting": EITHER} if self.budget.rule == EITHER else {}
        return accounting | {
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta),
            "cap": write_quanta(self.cap),
            "caps": {
                analyst: {"epsilon": str(epsilon), "cap": write_quanta(self.cap_of[analyst])}
                for analyst, epsilon in self.caps.items()
            },
        }

    @property
    def coherent(self) -> bool:
        """Whether no cap is wider than the ε and the δ beside it; ρ is always below ε."""
        delta = to_quanta_up(self.budget.delta)
        pairs = [(self.cap, self.budget.epsilon), *((self.cap_of[analyst], own) for analyst, own in self.caps.items())]
        return all(
            len(cap) == len(self.cap)
            and all(0 <= part <= (delta if place == 1 else to_quanta_up(epsilon)) for place, part in enumerate(cap))
            for cap, epsilon in pairs
        )

    @property
    def nothing(self) -> Quanta:
        return (0,) * len(self.cap)

    @property
    def currency(self) -> str:
        return "epsilon" if self.budget.pure else "rho,delta,epsilon" if self.budget.rule == EITHER else "rho,delta"

    @property
    def named(self) -> tuple[str, ...]:
        """Whoever has a cap of their own."""
        return tuple(analyst for analyst in self.caps if analyst != ANYBODY_ELSE)

    def shares(self, analyst: str) -> bool:
        """Whether an analyst has no cap of their own, and is under that of all such together."""
        return ANYBODY_ELSE in self.caps and (analyst == ANYBODY_ELSE or analyst not in self.caps)

    def looked_at(self, analyst: str) -> tuple[str, ...]:
        """Whose accounts decide whether a charge of an analyst fits."""
        return (analyst, *self.named) if self.shares(analyst) else (analyst,)

    def limit(self, analyst: str) -> tuple[Quanta, Fraction] | None:
        """The cap that an analyst is under, in quanta and as ε; None if there is none."""
        name = ANYBODY_ELSE if self.shares(analyst) else analyst
        return (self.cap_of[name], self.caps[name]) if name in self.caps else None

    def amended(self, budget: Budget | None, caps: Mapping[str, object] | None) -> Self:
        """These terms with another budget, other caps or both; the currency cannot change under a running total."""
        if budget is not None and not budget.accounting and not budget.pure:
            budget = replace(budget, accounting=self.budget.accounting)
        changed = self.of(budget or self.budget, self.caps if caps is None else caps)
        if changed.budget.pure != self.budget.pure:
            raise ParameterError(
                f"a ledger keeps its currency: a budget of {self.budget} cannot become {changed.budget}, "
                "because one of them has a δ and the other has none"
            )
        if changed.budget.rule != self.budget.rule:
            raise ParameterError(
                f"a ledger keeps its accounting: it is {self.budget.rule}, and cannot become {changed.budget.rule}, "
                "because what was added up is not known in the other"
            )
        return changed

    def require(self, budget: Budget | None, caps: Mapping[str, object] | None, where: str) -> None:
        """Refuse a budget or caps that differ from these."""
        if budget is not None and (budget.epsilon, budget.delta) != (self.budget.epsilon, self.budget.delta):
            raise LedgerError(
                f"the budget asked for is {budget}, but the ledger {where} holds a budget of {self.budget}: "
                "write that one in the policy, or amend the ledger (the change goes on its record)"
            )
        if budget is not None and budget.accounting and budget.rule != self.budget.rule:
            raise LedgerError(
                f"the accounting asked for is {budget.rule}, but that of the ledger {where} is {self.budget.rule}: "
                "write that one in the policy; a ledger keeps its accounting"
            )
        if caps is not None and dict(Terms.of(self.budget, caps).caps) != dict(self.caps):
            raise LedgerError(
                f"the caps asked for are {_shown(Terms.of(self.budget, caps).caps)}, but the ledger {where} holds "
                f"{_shown(self.caps)}: write those in the policy, or amend the ledger (the change goes on its record)"
            )


def loss_text(quanta: Quanta) -> str:
    """An amount in the ledger's own currency, for people."""
    names = ("ε",) if len(quanta) == 1 else ("ρ", "δ", "pure ε")
    shown = zip(names, amounts(of_quanta(quanta)), strict=False)
    return ", ".join(f"{name} = {show(amount)}" for name, amount in shown if amount or name != "δ")


def plus(one: Quanta, other: Quanta) -> Quanta:
    """The sum. It has an ε only if both have one: a call that is not pure ends the pure account for good."""
    return tuple(map(add, one, other))


def holds(cap: Quanta, total: Quanta) -> bool:
    """Whether a total is within a cap: in the pure account, or in that of ρ and δ, where there are two."""
    if len(cap) == len(total) == 3 and total[2] <= cap[2]:
        return True
    return not any(map(gt, total[:2], cap[:2]))


def write_quanta(quanta: Quanta) -> list[str]:
    return [str(number) for number in quanta]


def read_quanta(written: list[str]) -> Quanta:
    return tuple(map(int, written))


def require_text(text: object, what: str, longest: int) -> None:
    if not isinstance(text, str):
        raise ParameterError(f"{what} must be text, not {type(text).__name__}")
    if len(text) > longest:
        raise ParameterError(f"{what} has {len(text)} characters; {longest} are allowed")
    if "\0" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
        raise ParameterError(f"{what} has a character that is not text")


def _shown(caps: Mapping[str, Fraction]) -> str:
    return "{" + ", ".join(f"{analyst!r}: {show(epsilon)}" for analyst, epsilon in caps.items()) + "}"


@dataclass(frozen=True, slots=True)
class Standing:
    """The terms and what is spent, as one analyst sees them. It may be old by now: a charge looks again."""

    terms: Terms
    spent: Currency
    """By all."""
    analyst: str
    counted: Currency
    """Against the cap that the analyst is under: of "*", what all who are not named have spent together."""

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self.terms.budget

    @property
    def cap(self) -> Currency:
        """The budget in its currency: what `spent` may reach."""
        return of_quanta(self.terms.cap)

    @property
    def caps(self) -> Mapping[str, Fraction]:
        """The ε that one analyst may spend, by name; "*" what all who are not named may spend together."""
        return self.terms.caps

    @property
    def own_cap(self) -> Fraction | None:
        """The ε that caps the analyst: their own, or that of all without one, together; None if there is none."""
        limit = self.terms.limit(self.analyst)
        return None if limit is None else limit[1]

    @property
    def shared(self) -> bool:
        """Whether the analyst is under the cap of all who have none of their own."""
        return self.terms.shares(self.analyst)

    def holds(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits what is left, for the analyst and for the data."""
        return self.room(loss) > 0

    def room(self, loss: PrivacyLoss) -> int:
        """How many more calls of a loss fit what is left, for the analyst and for the data."""
        cost = in_currency(loss, self.cap)
        return min(_times(spent, cost, cap) for spent, cap in self._limits())

    def left(self, account: str) -> Fraction | None:
        """The largest ε that one more call may have under an account; None if none fits."""
        calls = [self.budget.largest_under(account, remaining(spent, cap)) for spent, cap in self._limits()]
        return None if None in calls else min(call for call in calls if call is not None)

    def _limits(self) -> Iterator[tuple[Currency, Currency]]:
        """What is spent and how much may be, of the data and of the analyst."""
        yield self.spent, self.cap
        limit = self.terms.limit(self.analyst)
        if limit is not None:
            yield self.counted, of_quanta(limit[0])


def _times(spent: Currency, cost: Currency, cap: Currency) -> int:
    """How often a cost fits what is left, in the account that holds it most often."""
    most = zip(amounts(spent), amounts(cost), amounts(cap), strict=False)
    times = [0 if one > all_ else int((all_ - one) // each) if each else None for one, each, all_ in most]
    first = min([number for number in times[:2] if number is not None], default=0)
    return max([first, *[number or 0 for number in times[2:]]])

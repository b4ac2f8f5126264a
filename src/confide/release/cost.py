"""What a call costs, in the words of the budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from confide.host.notebook import framed, lines, meter
from confide.ledger.record.terms import Standing
from confide.privacy.amount import show
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP

NEXT_TO_NOTHING = Fraction(1, 10**40)
"""What is written for a number that no unit can change."""


@dataclass(frozen=True, slots=True)
class Cost:
    """ε of the whole call, as asked; under an (ε, δ) budget also the ρ and δ that the ledger adds up."""

    epsilon: Fraction
    rho: Fraction | None = None
    delta: Fraction | None = None

    @classmethod
    def of(cls, epsilon: Fraction, loss: PureDP | ZCDP) -> "Cost":
        if isinstance(loss, PureDP):
            return cls(loss.epsilon if loss.epsilon > NEXT_TO_NOTHING else Fraction(0))
        return cls(epsilon if loss.rho > NEXT_TO_NOTHING else Fraction(0), loss.rho, loss.delta)

    def to_dict(self) -> dict[str, Any]:
        parts = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        return {name: str(amount) for name, amount in parts.items() if amount is not None}

    @classmethod
    def from_dict(cls, parts: dict[str, str]) -> "Cost":
        return cls(**{name: Fraction(amount) for name, amount in parts.items()})

    def __str__(self) -> str:
        text = f"ε = {show(self.epsilon)}"
        if self.rho is not None:
            text += f" (ρ = {float(self.rho):.3g}" + (f", δ = {float(self.delta):.1g})" if self.delta else ")")
        return text


def added_costs(costs: Sequence[Cost]) -> Cost:
    """What several calls cost together, as ε that was asked for and as what the ledger adds up."""
    parts = {
        name: None
        if any(getattr(cost, name) is None for cost in costs)
        else sum((getattr(cost, name) for cost in costs), Fraction(0))
        for name in ("rho", "delta")
    }
    return Cost(sum((cost.epsilon for cost in costs), Fraction(0)), **parts)


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The budget as ε: the total, what is spent, and what one more call may cost at most."""

    total: float
    spent: float
    left: float
    delta: float
    analyst: str = ""
    cap: float | None = None
    """The cap that the analyst is under, if there is one; `spent` and `left` are then what counts against it."""
    shared: bool = False
    """Whether that is the cap of all who have none of their own, together."""
    accounts: Mapping[str, float] = field(default_factory=dict)
    """Where either account may hold: what one more call may cost at most under each."""
    spent_in_all: float = 0.0
    """What everybody has spent together; the same as `spent` where no cap is looked at."""

    def __str__(self) -> str:
        """The whole budget, the cap if there is one, and one more call: three amounts, told one after the other."""
        parts = [self.in_all]
        if self.cap is not None:
            parts.append(f"{self.capped}: ε {self.spent:.6g} spent of a cap of {self.cap:.6g}")
        return " · ".join([*parts, f"one more call: {self.one_call}"])

    @property
    def in_all(self) -> str:
        """The whole budget, and what everybody has spent of it."""
        delta = f" (δ = {self.delta:g})" if self.delta else ""
        return f"ε {self.spent_in_all:.6g} spent of {self.total:.6g} in all{delta}"

    @property
    def one_call(self) -> str:
        """What one more call may cost at most, under each account that there is."""
        if not self.accounts:
            return f"up to ε {self.left:.6g}" if self.left else "nothing is left for one"
        each = [f"ε {left:.6g} in the {account} account" for account, left in self.accounts.items()]
        return f"up to {', or '.join(each)}"

    def _repr_html_(self) -> str:
        return framed(*self.parts())

    def parts(self) -> list[str]:
        """A bar and its words, for a frame in a notebook."""
        return [meter(self.spent, self.total if self.cap is None else self.cap), lines([str(self)])]

    @property
    def capped(self) -> str:
        """Who is under the cap."""
        return "everybody without a cap of their own, together" if self.shared else f"analyst {self.analyst!r}"

    def answers_left(self, epsilon: float, budget: Budget) -> int:
        """Roughly how many calls at `epsilon` are left."""
        if budget.pure:
            return int(Fraction(str(self.left)) / Fraction(str(epsilon)))
        each, whole = budget.cost(Fraction(str(epsilon))), budget.cost(Fraction(str(self.left))) if self.left else None
        if whole is None or isinstance(each, PureDP) or isinstance(whole, PureDP):
            return 0
        return int(whole.rho / each.rho)


def budget_state(standing: Standing) -> BudgetState:
    """What is spent and what is left, as ε; for an analyst under a cap, that cap's."""
    budget, own = standing.budget, standing.own_cap
    each = {account: float(standing.left(account) or 0) for account in budget.accounts}
    spent = float(budget.as_epsilon(standing.spent if own is None else standing.counted))
    return BudgetState(
        float(budget.epsilon),
        spent,
        max(each.values()),
        float(budget.delta),
        standing.analyst,
        None if own is None else float(own),
        standing.shared,
        each if len(each) > 1 else {},
        float(budget.as_epsilon(standing.spent)),
    )


def rooms(standing: Standing, epsilon: Fraction) -> dict[str, int]:
    """How many more calls at ε there is room for under each account, where there are two."""
    budget = standing.budget
    if len(budget.accounts) == 1:
        return {}
    return {account: standing.room(budget.under(account).cost(epsilon)) for account in budget.accounts}


def rooms_text(fitting: Mapping[str, int]) -> str:
    """The same in words."""
    (first, number), *others = fitting.items()
    said = [f"room for {number:,} more like this in the {first} account"]
    return ", or ".join(said + [f"{number:,} in the {account} account" for account, number in others])

"""What is public about an aggregate: its kind, its grid, and how much one unit can change it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from confide.errors import ParameterError
from confide.mechanism import Law, laplace
from confide.mechanism.tally import REACH, Domain

Kind = Literal["count", "sum", "mean", "quantile"]
Prefer = Literal["balanced", "cautious"]

DELTA: Final = Fraction(1, 20)
"""How often an effective decider may err: with equal answers, and with answers 2τ apart."""

CAUTION: Final = Fraction(1, 20)
"""How often a cautious decider may say yes where no is right."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One aggregate under a policy.

    `whole`: by how much one unit changes the aggregate itself, over all groups together (counts and sums; None where
    the column is unbounded). `rows`: how many rows of one unit come or go, over all groups together. `single`: one
    unit changes one group only. `swapped`: rows are replaced and their number is public, so `rows` is even.
    """

    kind: Kind
    whole: int | None = None
    rows: int = 1
    single: bool = True
    swapped: bool = False
    low: int | None = None
    high: int | None = None
    q: Fraction | None = None

    @property
    def domain(self) -> Domain | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def ends(self) -> Domain:
        return self.domain or (-REACH, REACH)

    def bounded(self, name: str) -> Domain:
        """The domain, for a decider that needs one."""
        if self.domain is None:
            others = {"sum": "; for an unbounded column use clip", "quantile": "; for an unbounded column use optimal"}
            raise ParameterError(f"the decider {name} needs a range in the policy{others.get(self.kind, '')}")
        return self.domain

    def possible(self, answer: Fraction) -> bool:
        """Whether some data have this answer: no count is negative, and no mean lies outside of its column's range."""
        if self.kind == "count":
            return answer >= 0
        if self.domain is None:
            return True
        low, high = self.domain
        if self.kind == "sum":
            return answer == 0 or (high > 0 if answer > 0 else low < 0)
        return low <= answer <= high

    def change(self, low: int, high: int) -> int:
        """By how much one unit changes a sum of values in [low, high]."""
        if self.swapped:
            return self.rows // 2 * (max(high, 0) - min(low, 0))
        return self.rows * max(abs(low), abs(high))


@dataclass(frozen=True, slots=True)
class Steps:
    """A margin in steps: changes of up to `size` are one step, and each step costs at most `epsilon`.

    A unit that changes one margin by at most c is one step of size c at all of ε. If it may change several groups, each
    is counted in smaller steps at a smaller price, which add up to ε over all of them.
    """

    size: int
    epsilon: Fraction

    def of(self, margin: int) -> int:
        """Rounded up: what is inside stays at 1 or above, what is outside at 0 or below."""
        return -(-margin // self.size)

    @property
    def law(self) -> Law:
        return laplace(1, self.epsilon).law


def row_steps(facts: Facts, low: int, high: int, epsilon: Fraction) -> Steps:
    """For a sum over rows of values in [low, high]."""
    if facts.single:
        return Steps(max(1, facts.change(low, high)), epsilon)
    return Steps(max(1, abs(low), abs(high)), epsilon / facts.rows)


def whole_steps(facts: Facts, epsilon: Fraction) -> Steps:
    """For the aggregate itself."""
    whole = facts.whole
    if whole is None:
        raise ParameterError("an unbounded column has no sensitivity; use the decider clip")
    # What no unit can change costs nothing; with the least possible noise there is no rule of its own for it.
    whole = max(1, whole)
    return Steps(whole, epsilon) if facts.single else Steps(1, epsilon / whole)

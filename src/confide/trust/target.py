"""What is decided, whether an answer lies in an open interval around the synthetic one; and what is public about it.

Answers are indices on the column's public grid, so that the numbers inside an interval are whole, or sums of such.
Public about an aggregate are its kind, its grid, and how much one unit can change it.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from confide.errors import ParameterError
from confide.mechanism import Law, laplace
from confide.mechanism.tally import REACH, Domain
from confide.privacy.amount import shown_value

_PERCENTAGE: Final = re.compile(r"\s*([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})\s*%\s*", re.ASCII)
_WIDTH: Final = re.compile(r"\s*([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?\s*", re.ASCII)
_LARGEST: Final = Fraction(10) ** 30
_SMALLEST: Final = 1 / _LARGEST
_LONGEST_RATIO: Final = 1_000  # bits of its numbers

Kind = Literal["count", "sum", "mean", "quantile"]
Prefer = Literal["balanced", "cautious"]

DELTA: Final = Fraction(1, 20)
"""How often an effective decider may err: with equal answers, and with answers 2τ apart."""

CAUTION: Final = Fraction(1, 20)
"""How often a cautious decider may say yes where no is right."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two answers may be apart: so many units, or a share of the synthetic answer."""

    amount: Fraction
    relative: bool

    @classmethod
    def parse(cls, given: object) -> "Distance":
        relative, exact = _exact(given)
        if exact is None or not _SMALLEST <= exact <= _LARGEST:
            raise ParameterError(
                f"within={shown_value(given)} is not a distance; write a number above 0, such as 50, "
                "or a share of the synthetic answer, such as '5%'"
            )
        return cls(exact / 100 if relative else exact, relative)

    def tau(self, answer: Fraction, grain: Fraction) -> Fraction:
        """τ in steps of the grid, for a synthetic answer in such steps; 0 if that is what a share of it is."""
        return abs(answer) * self.amount if self.relative else self.amount / grain

    def __str__(self) -> str:
        amount = self.amount * 100 if self.relative else self.amount
        return f"{float(amount):.12g}%" if self.relative else f"{float(amount):.12g}"


@dataclass(frozen=True, slots=True)
class Target:
    """The open interval (answer - τ, answer + τ)."""

    answer: Fraction
    tau: Fraction

    def __post_init__(self) -> None:
        if self.tau <= 0:
            raise ValueError("τ is positive")

    @property
    def low(self) -> Fraction:
        return self.answer - self.tau

    @property
    def high(self) -> Fraction:
        return self.answer + self.tau

    @property
    def first(self) -> int:
        """The least whole number inside."""
        return math.floor(self.low) + 1

    @property
    def last(self) -> int:
        return math.ceil(self.high) - 1

    def widened(self, tau: Fraction) -> "Target":
        """The same answer with another τ."""
        return Target(self.answer, tau)


def _exact(given: object) -> tuple[bool, Fraction | None]:
    if isinstance(given, bool):
        return False, None
    if isinstance(given, str):
        share = _PERCENTAGE.fullmatch(given)
        if share is not None:
            return True, Fraction(share[1])
        return False, Fraction(given.strip()) if _WIDTH.fullmatch(given) else None
    if isinstance(given, int | Fraction):
        short = max(abs(given.numerator), given.denominator).bit_length() <= _LONGEST_RATIO
        return False, Fraction(given.numerator, given.denominator) if short else None
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False, None
    # A double stands for its shortest decimal, so 0.1 is one tenth.
    return False, Fraction(repr(number)) if math.isfinite(number) else None


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

"""A budget, the currency it is spent in, and the arithmetic of a running total under a fixed cap.

A pure budget adds ε. An (ε, δ) budget adds ρ of zCDP: half of its δ pays for turning the total ρ into an ε, the other
half for explicit δ (thresholds on unknown keys). A δ'-approximate ρ-zCDP total with δ' ≤ δ/2, where ρ-zCDP implies
(ε, δ/2)-DP, is (ε, δ' + δ/2)-DP ([BunSteinke2016], section 8), so the budget as a whole is (ε, δ)-DP. A fixed cap
on such sums may be filled adaptively ([Whitehouse2023], Theorem 1: a filter).

With `accounting="either"` an (ε, δ) budget E has two accounts, and a call is let through if either holds it: every call
so far was pure and Σε ≤ E; or Σρ and Σδ' are within their cap, where a pure call counts ε²/2. Then all is (E, δ)-DP.
Proof. Whoever asks may be taken to throw no coins, so that a transcript fixes all calls and all refusals. Let P and Q
be the laws of transcripts on neighbours, A the transcripts whose calls are all pure with Σε ≤ E, and B all others. On
A, P ≤ e^E · Q point by point, factor by factor. The last call of a transcript in B was held by ρ, so the whole of it
is within that cap, and so was every beginning of it: sums never fall. Run the same calls under the cap of ρ alone:
along B that lets through what was let through, and refuses what was refused, which neither account held. So P' = P and
Q' = Q on B. It is a filter, and (E, δ)-DP: for S ⊆ B, P(S) = P'(S) ≤ e^E · Q'(S) + δ = e^E · Q(S) + δ. Add what A and
B have of any set. Caps of analysts refuse more, by sums that the transcript fixes: the same proof holds with them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from confide.errors import ParameterError
from confide.privacy.amount import from_quanta, parse_amount, root, show, to_quanta_down, to_quanta_up
from confide.privacy.conversion import epsilon_of, rho_for, rho_of_pure
from confide.privacy.loss import ZCDP, ApproxDP, PrivacyLoss, PureDP

Currency = PureDP | ZCDP

PURE: Final = "pure"
CONCENTRATED: Final = "concentrated"
EITHER: Final = "either"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent in all: ε-DP, or (ε, δ)-DP."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    accounting: str = ""
    """What is added up: "pure" (ε), "concentrated" (ρ) or "either"; as it was written, "" where nothing was."""

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or not isinstance(self.delta, Fraction):
            raise TypeError("a budget is exact: give Fractions, or use Budget.of")
        parse_amount(self.epsilon, "epsilon")
        if self.delta:
            parse_amount(self.delta, "delta")
        if self.delta >= 1:
            raise ParameterError(
                f"delta = {show(self.delta)} is refused: it must be below 1, and is best below 1/rows."
            )
        if self.accounting not in ("", PURE, CONCENTRATED, EITHER):
            raise ParameterError(
                f"accounting = {self.accounting!r} is unknown; there are pure, concentrated and either."
            )
        if self.accounting and (self.accounting == PURE) != self.pure:
            need = "has no delta: leave it out" if self.delta else "needs a delta"
            raise ParameterError(f"accounting = {self.accounting!r} {need}, or write another accounting.")
        if not quanta_of(self.cap)[0]:
            raise ParameterError(f"epsilon = {show(self.epsilon)} at delta = {show(self.delta)} is too small to spend.")

    @classmethod
    def of(cls, epsilon: object, delta: object = 0, accounting: str = "") -> "Budget":
        """A budget from anything that `parse_amount` reads; a delta of 0 or None means a pure budget."""
        pure = delta is None or (isinstance(delta, int | float) and not isinstance(delta, bool) and delta == 0)
        exact = Fraction(0) if pure else parse_amount(delta, "delta")
        return cls(parse_amount(epsilon, "epsilon"), exact, accounting)

    @property
    def pure(self) -> bool:
        return self.delta == 0

    @property
    def rule(self) -> str:
        """What is added up. Where nobody wrote it, that is ε of a pure budget and ρ of another."""
        return self.accounting or (PURE if self.pure else CONCENTRATED)

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts under which a call may be made."""
        return (PURE, CONCENTRATED) if self.rule == EITHER else (self.rule,)

    def under(self, account: str) -> "Budget":
        """The budget as one of its accounts sees it: what a call costs there, and which noise that buys."""
        return Budget(self.epsilon, Fraction(0) if account == PURE else self.delta)

    @property
    def cap(self) -> Currency:
        """What the running total may reach."""
        return self.cap_of(self.epsilon)

    def cap_of(self, epsilon: Fraction) -> Currency:
        """The cap in this budget's currency that stands for `epsilon` at the budget's δ."""
        if self.pure:
            return PureDP(_down(epsilon))
        pure = _down(epsilon) if self.rule == EITHER else None
        if epsilon == 0:
            return ZCDP(Fraction(0), pure=pure)
        return ZCDP(rho_for(epsilon, self.delta / 2), _down(self.delta / 2), pure)

    def cost(self, epsilon: Fraction) -> Currency:
        """What one call at `epsilon` costs: whole quanta, so that a call at the budget's ε fills the cap exactly."""
        cost = PureDP(_down(epsilon)) if self.pure else ZCDP(rho_for(epsilon, self.delta / 2))
        if not quanta_of(cost)[0]:
            raise ParameterError(f"epsilon = {show(epsilon)} is too small to ask anything with.")
        return cost

    def as_epsilon(self, loss: Currency) -> Fraction:
        """A total in this budget's currency as ε at the budget's δ, rounded up; the lesser of two accounts."""
        if isinstance(loss, PureDP):
            return loss.epsilon
        if loss.pure is not None:
            return min(loss.pure, self.as_epsilon(ZCDP(loss.rho, loss.delta)))
        if self.pure:
            raise ParameterError("a loss in ρ has no ε under a pure budget")
        # Two searches choose two α: a total that fills ρ(ε) is ε by definition, not ε give or take a rounding.
        whole = rho_for(self.epsilon, self.delta / 2)
        if loss.rho == whole:
            return self.epsilon
        epsilon = epsilon_of(loss.rho, self.delta / 2)
        return min(epsilon, self.epsilon) if loss.rho < whole else epsilon

    def explicit_delta(self, cost: ZCDP) -> Fraction:
        """The δ that a call may spend: of the half that is not for conversion, as large a share as it takes of ρ.

        So both last equally long.
        """
        cap = self.cap
        assert isinstance(cap, ZCDP)
        return self.delta / 2 * cost.rho / cap.rho

    def largest_under(self, account: str, left: Currency) -> Fraction | None:
        """The largest ε of at most four digits that one call may still ask for under an account; None if nothing fits.

        A pure call may fit ρ as well, if ε is used up.
        """
        own = self.under(account)
        if isinstance(left, PureDP):
            most = left.epsilon
        elif account == PURE:
            most = max(left.pure or Fraction(0), root(2 * left.rho))
        else:
            most = own.as_epsilon(ZCDP(left.rho, left.delta))
        call = _shorten(most, math.ceil)
        while call and not fits(_nothing(left), in_currency(own.cost(call), left), left):
            call = _shorten(call * Fraction(9999, 10000), math.floor)
        return call or None

    def __str__(self) -> str:
        delta = "" if self.pure else f", δ = {show(self.delta)}"
        return f"ε = {show(self.epsilon)}{delta}" + (", in either account" if self.rule == EITHER else "")


def in_currency(loss: PrivacyLoss, cap: Currency) -> Currency:
    """`loss` in the currency of `cap`, rounded up to whole quanta."""
    match loss, cap:
        case PureDP(epsilon), PureDP():
            return PureDP(_up(epsilon))
        case PureDP(epsilon), ZCDP(_, _, None):
            return ZCDP(_up(rho_of_pure(epsilon)))
        case PureDP(epsilon), ZCDP():
            return ZCDP(_up(rho_of_pure(_up(epsilon))), pure=_up(epsilon))
        case ZCDP(rho, delta), ZCDP():
            return ZCDP(_up(rho), _up(delta))
        case ApproxDP(epsilon, delta), ZCDP():
            return ZCDP(_up(rho_of_pure(epsilon)), _up(delta))
        case ApproxDP(epsilon, delta), PureDP() if delta == 0:
            return PureDP(_up(epsilon))
        case _:
            raise ParameterError(
                "a pure budget has no δ to pay with: Gaussian noise and thresholds on unknown keys need "
                "a delta in the policy's budget"
            )


def add(first: Currency, second: Currency) -> Currency:
    match first, second:
        case PureDP(one), PureDP(two):
            return PureDP(one + two)
        case ZCDP(rho, delta, pure), ZCDP(more_rho, more_delta, more_pure):
            both = None if pure is None or more_pure is None else pure + more_pure
            return ZCDP(rho + more_rho, delta + more_delta, both)
        case _:
            raise TypeError("two losses of different currencies do not add: convert them with in_currency")


def fits(total: Currency, loss: Currency, cap: Currency) -> bool:
    """Whether `total` and `loss` together stay within `cap`, in one account or the other."""
    together = add(total, loss)
    if isinstance(together, ZCDP) and isinstance(cap, ZCDP):
        pure = together.pure is not None and cap.pure is not None and together.pure <= cap.pure
        return pure or (together.rho <= cap.rho and together.delta <= cap.delta)
    return isinstance(together, PureDP) and isinstance(cap, PureDP) and together.epsilon <= cap.epsilon


def remaining(total: Currency, cap: Currency) -> Currency:
    """What `cap` leaves after `total`, never less than nothing. A total without a pure ε leaves none either."""
    left = [max(Fraction(0), most - amount) for amount, most in zip(amounts(total), amounts(cap), strict=False)]
    return PureDP(*left) if isinstance(cap, PureDP) else ZCDP(*left)


def amounts(loss: Currency) -> tuple[Fraction, ...]:
    """The numbers of a loss: (ε,), (ρ, δ), or (ρ, δ, ε) of what is pure where both are added up."""
    if isinstance(loss, PureDP):
        return (loss.epsilon,)
    return (loss.rho, loss.delta) if loss.pure is None else (loss.rho, loss.delta, loss.pure)


def quanta_of(loss: Currency) -> tuple[int, ...]:
    """A loss as whole quanta, rounded up: (ε,), (ρ, δ) or (ρ, δ, ε)."""
    return tuple(to_quanta_up(amount) for amount in amounts(loss))


def of_quanta(quanta: tuple[int, ...]) -> Currency:
    """The loss behind whole quanta: one number is ε, two are (ρ, δ), three (ρ, δ, ε)."""
    exact = [from_quanta(number) for number in quanta]
    return PureDP(*exact) if len(exact) == 1 else ZCDP(*exact)


def _nothing(like: Currency) -> Currency:
    if isinstance(like, PureDP):
        return PureDP(Fraction(0))
    return ZCDP(Fraction(0), pure=None if like.pure is None else Fraction(0))


def _up(amount: Fraction) -> Fraction:
    return from_quanta(to_quanta_up(amount))


def _down(amount: Fraction) -> Fraction:
    return from_quanta(to_quanta_down(amount))


def _shorten(amount: Fraction, rounding: Callable[[Fraction], int]) -> Fraction:
    """`amount` to four significant digits; 0 below 10⁻¹²."""
    if amount < Fraction(1, 10**12):
        return Fraction(0)
    digits = 4
    while amount * 10**digits < 1000:
        digits += 1
    return Fraction(rounding(amount * 10**digits), 10**digits)

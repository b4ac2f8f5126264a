"""A budget, the currency it is spent in, and the arithmetic of a running total under a fixed cap.

A pure budget adds ε. An (ε, δ) budget adds ρ of zCDP: half of its δ pays for turning the total ρ into an ε, the other
half for explicit δ (thresholds on unknown keys). A δ'-approximate ρ-zCDP total with δ' ≤ δ/2, where ρ-zCDP implies
(ε, δ/2)-DP, is (ε, δ' + δ/2)-DP ([BunSteinke2016], section 8), so the budget as a whole is (ε, δ)-DP. A fixed cap
on such sums may be filled adaptively ([Whitehouse2023], Theorem 1: a filter).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from confide.errors import ParameterError
from confide.privacy.amount import from_quanta, parse_amount, show, to_quanta_down, to_quanta_up
from confide.privacy.conversion import epsilon_of, rho_for, rho_of_pure
from confide.privacy.loss import ZCDP, ApproxDP, PrivacyLoss, PureDP

Currency = PureDP | ZCDP


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent in all: ε-DP, or (ε, δ)-DP."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

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
        if not quanta_of(self.cap)[0]:
            raise ParameterError(f"epsilon = {show(self.epsilon)} at delta = {show(self.delta)} is too small to spend.")

    @classmethod
    def of(cls, epsilon: object, delta: object = 0) -> "Budget":
        """A budget from anything that `parse_amount` reads; a delta of 0 or None means a pure budget."""
        pure = delta is None or (isinstance(delta, int | float) and not isinstance(delta, bool) and delta == 0)
        return cls(parse_amount(epsilon, "epsilon"), Fraction(0) if pure else parse_amount(delta, "delta"))

    @property
    def pure(self) -> bool:
        return self.delta == 0

    @property
    def cap(self) -> Currency:
        """What the running total may reach."""
        return self.cap_of(self.epsilon)

    def cap_of(self, epsilon: Fraction) -> Currency:
        """The cap in this budget's currency that stands for `epsilon` at the budget's δ."""
        if self.pure:
            return PureDP(_down(epsilon))
        if epsilon == 0:
            return ZCDP(Fraction(0))
        return ZCDP(rho_for(epsilon, self.delta / 2), _down(self.delta / 2))

    def cost(self, epsilon: Fraction) -> Currency:
        """What one call at `epsilon` costs: whole quanta, so that a call at the budget's ε fills the cap exactly."""
        cost = PureDP(_down(epsilon)) if self.pure else ZCDP(rho_for(epsilon, self.delta / 2))
        if not quanta_of(cost)[0]:
            raise ParameterError(f"epsilon = {show(epsilon)} is too small to ask anything with.")
        return cost

    def as_epsilon(self, loss: Currency) -> Fraction:
        """What a total in this budget's currency means as ε at the budget's δ, rounded up."""
        if isinstance(loss, PureDP):
            return loss.epsilon
        if self.pure:
            raise ParameterError("a loss in ρ has no ε under a pure budget")
        # Two searches choose two α: a total that fills ρ(ε) is ε by definition, not ε give or take a rounding.
        whole = rho_for(self.epsilon, self.delta / 2)
        if loss.rho == whole:
            return self.epsilon
        epsilon = epsilon_of(loss.rho, self.delta / 2)
        return min(epsilon, self.epsilon) if loss.rho < whole else epsilon

    def explicit_delta(self, cost: ZCDP) -> Fraction:
        """Of the half of δ that is not for conversion, as large a part as a call takes of ρ: both last equally long."""
        cap = self.cap
        assert isinstance(cap, ZCDP)
        return self.delta / 2 * cost.rho / cap.rho

    def largest_call(self, left: Currency) -> Fraction | None:
        """The largest ε of at most four digits that one call may still ask for; None if nothing fits."""
        call = _shorten(left.epsilon if isinstance(left, PureDP) else self.as_epsilon(left), math.ceil)
        while call and not fits(_nothing(left), self.cost(call), left):
            call = _shorten(call * Fraction(9999, 10000), math.floor)
        return call or None

    def __str__(self) -> str:
        return f"ε = {show(self.epsilon)}" + ("" if self.pure else f", δ = {show(self.delta)}")


def in_currency(loss: PrivacyLoss, cap: Currency) -> Currency:
    """`loss` in the currency of `cap`, rounded up to whole quanta."""
    match loss, cap:
        case PureDP(epsilon), PureDP():
            return PureDP(_up(epsilon))
        case PureDP(epsilon), ZCDP():
            return ZCDP(_up(rho_of_pure(epsilon)))
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
        case ZCDP(rho, delta), ZCDP(more_rho, more_delta):
            return ZCDP(rho + more_rho, delta + more_delta)
        case _:
            raise TypeError("two losses of different currencies do not add: convert them with in_currency")


def fits(total: Currency, loss: Currency, cap: Currency) -> bool:
    """Whether `total` and `loss` together stay within `cap`."""
    return all(amount <= most for amount, most in zip(amounts(add(total, loss)), amounts(cap), strict=True))


def remaining(total: Currency, cap: Currency) -> Currency:
    """What `cap` leaves after `total`; nothing rather than less than nothing."""
    left = [max(Fraction(0), most - amount) for amount, most in zip(amounts(total), amounts(cap), strict=True)]
    return PureDP(*left) if isinstance(cap, PureDP) else ZCDP(*left)


def amounts(loss: Currency) -> tuple[Fraction, ...]:
    """The numbers of a loss: (ε,) or (ρ, δ)."""
    return (loss.epsilon,) if isinstance(loss, PureDP) else (loss.rho, loss.delta)


def quanta_of(loss: Currency) -> tuple[int, ...]:
    """A loss as whole quanta, rounded up: (ε,) or (ρ, δ)."""
    return tuple(to_quanta_up(amount) for amount in amounts(loss))


def of_quanta(quanta: tuple[int, ...]) -> Currency:
    """The loss behind whole quanta: one number is ε, two are (ρ, δ)."""
    exact = [from_quanta(number) for number in quanta]
    return PureDP(*exact) if len(exact) == 1 else ZCDP(*exact)


def _nothing(like: Currency) -> Currency:
    return PureDP(Fraction(0)) if isinstance(like, PureDP) else ZCDP(Fraction(0))


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

"""What one step of a synthesis pays, and the noise that it buys: the same for a plan and for the curator."""

from fractions import Fraction
from typing import Final

from confide.errors import ParameterError
from confide.mechanism import Additive, gaussian, laplace
from confide.privacy.amount import from_quanta, to_quanta_down
from confide.privacy.budget import Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.query.sensitivity import Sensitivity

NO_ROUND: Final = "this epsilon buys no round: its noise would drown any count; give a larger one"
_ONE_QUANTUM: Final = from_quanta(1)
_MOST_NOISE: Final = 2**40
"""Noise beyond this says that the budget is a mistake; below it every noisy count fits 64 bits."""


def share_of(cost: Currency, share: Fraction) -> Currency:
    """A share of a call's cost in whole quanta, rounded down, so that all shares leave at least one."""
    amount = cost.epsilon if isinstance(cost, PureDP) else cost.rho
    part = from_quanta(to_quanta_down((amount - _ONE_QUANTUM) * share)) if share else Fraction(0)
    return PureDP(part) if isinstance(cost, PureDP) else ZCDP(part)


def paid_share(cost: Currency, share: Fraction) -> Currency:
    """The same for a step: it must pay something."""
    loss = share_of(cost, share)
    if not (loss.epsilon if isinstance(loss, PureDP) else loss.rho):
        raise ParameterError(NO_ROUND)
    return loss


def step_noise(loss: Currency, parts: int, sensitivity: Sensitivity) -> Additive:
    """The noise of each count where so many tables, or single counts, divide what a step pays."""
    if isinstance(loss, PureDP):
        mechanism = laplace(sensitivity.l1, loss.epsilon / parts)
    else:
        mechanism = gaussian(sensitivity.l2_squared, loss.rho / parts)
    if mechanism.law.variance > _MOST_NOISE**2:
        raise ParameterError(NO_ROUND)
    return mechanism


def one_count(rows: int) -> Sensitivity:
    """How much a unit of so many rows can change a single count."""
    return Sensitivity(rows, rows**2)

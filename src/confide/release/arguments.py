"""Arguments that many calls take, read exactly: ε, confidence, shares and bounds."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from confide.errors import ParameterError
from confide.privacy.amount import exact_number, parse_amount, shown_value
from confide.privacy.budget import Budget
from confide.privacy.loss import ZCDP, PureDP
from confide.release.statistics import root


def exact_epsilon(value: object) -> Fraction:
    return parse_amount(value, "epsilon")


def confidence_level(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1 or math.isnan(value):
        raise ParameterError(f"confidence={shown_value(value)} is not between 0 and 1; write for example 0.95")
    if value > 1 - 1e-9:
        raise ParameterError(f"confidence={value!r} is too near 1; at most 0.999999999 is answered")
    return float(value)


def pure_share(budget: Budget, epsilon: Fraction) -> tuple[PureDP | ZCDP, Fraction]:
    """What a call of ε costs, and the ε of a pure mechanism that costs no more: √(2ρ) where ρ is added up."""
    loss = budget.cost(epsilon)
    return loss, loss.epsilon if isinstance(loss, PureDP) else root(2 * loss.rho)


def exact_split(split: Mapping[str, object] | None) -> dict[str, Fraction]:
    """How a call's ε is shared among its columns."""
    return {name: parse_amount(share, f"split[{name}]") for name, share in (split or {}).items()}


def exact_bounds(bounds: Mapping[str, Sequence[object]] | None) -> dict[str, tuple[Fraction, Fraction]]:
    """The ends that a caller gives to columns of an inner query."""
    result = {}
    for name, ends in (bounds or {}).items():
        try:
            low, high = (exact_number(end, "bound") for end in ends)
        except (TypeError, ValueError, ParameterError):
            raise ParameterError(
                f"bounds[{name!r}] must be two numbers, [low, high]; got {shown_value(ends)}"
            ) from None
        if low >= high or max(abs(low), abs(high)) > 2**62:
            raise ParameterError(f"bounds[{name!r}] must be [low, high] with low below high; got {shown_value(ends)}")
        result[name] = (low, high)
    return result

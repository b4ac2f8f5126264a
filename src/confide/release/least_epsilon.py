"""The least ε that a call takes: where the one that was given is too small for exact arithmetic, or for a width."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, log10
from typing import Final, TypeVar

from confide.errors import ConfideError, EpsilonTooSmall, ParameterError
from confide.privacy.amount import LARGEST, show, shown_value

DIGITS: Final = 2
_LARGEST_EPSILON = Fraction(10_000)
_SMALLEST_EPSILON = Fraction(1, 10**9)

Made = TypeVar("Made")


def made_at(epsilon: Fraction, make: Callable[[Fraction], Made]) -> Made:
    """What `make` makes of ε from public facts. If ε is too small for it, the refusal says what is not."""
    try:
        return make(epsilon)
    except EpsilonTooSmall as refusal:
        least = _least(epsilon, make)
        said = "no epsilon is enough" if least is None else f"epsilon={show(least)} is enough"
        raise EpsilonTooSmall(f"{refusal}; {said} here, with the rest as it is") from None


def _least(epsilon: Fraction, make: Callable[[Fraction], Made]) -> Fraction | None:
    """A number of two digits that is enough, and at most a tenth above the least: scales fall as ε grows."""

    def enough(tried: Fraction) -> bool:
        try:
            make(tried)
        except EpsilonTooSmall:
            return False
        except ConfideError:
            return True  # refused for another reason, which is for the next call to tell
        return True

    low, high = epsilon, epsilon
    while not enough(high):
        if high == LARGEST:
            return None
        low, high = high, min(high * 1000, LARGEST)
    while high / low > Fraction(11, 10):
        middle = _short(Fraction(float(low * high) ** 0.5))
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _short(number: Fraction) -> Fraction:
    """Rounded up to two digits, so that it reads well and stays exact."""
    unit = Fraction(10) ** (floor(log10(number)) - DIGITS + 1)
    return -(-number // unit) * unit


def smallest_epsilon(within: object, holds: Callable[[Fraction], bool]) -> Fraction:
    """The smallest ε, to four digits, at which every column is expected to be within what is asked."""
    if not holds(_LARGEST_EPSILON):
        raise ParameterError(
            f"within={shown_value(within)} is not reached at any ε up to {show(_LARGEST_EPSILON)}; "
            "ask for a wider interval or larger groups"
        )
    low, high = _SMALLEST_EPSILON, _LARGEST_EPSILON
    while high / low > Fraction(100_01, 100_00):
        # Halving on a logarithmic scale, on numbers short enough to stay exact and readable.
        middle = _five_digits(Fraction(float(low * high) ** 0.5))
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _five_digits(value: Fraction) -> Fraction:
    """Rounded up to five significant digits."""
    scale = Fraction(10) ** (ceil(log10(value)) - 5)
    return ceil(value / scale) * scale

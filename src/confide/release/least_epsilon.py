"""The least ε that a call takes, told where the one that was given is too small for exact arithmetic."""

from collections.abc import Callable
from fractions import Fraction
from math import floor, log10
from typing import Final, TypeVar

from confide.errors import ConfideError, EpsilonTooSmall
from confide.privacy.amount import LARGEST, show

DIGITS: Final = 2

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

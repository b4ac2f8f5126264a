"""What is to be decided: whether an answer lies in an open interval around the synthetic one.

Answers are indices on the column's public grid, so that the numbers inside an interval are whole, or sums of such.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from confide.errors import ParameterError
from confide.privacy.amount import shown_value

_PERCENTAGE: Final = re.compile(r"\s*([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})\s*%\s*", re.ASCII)
_WIDTH: Final = re.compile(r"\s*([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?\s*", re.ASCII)
_LARGEST: Final = Fraction(10) ** 30
_SMALLEST: Final = 1 / _LARGEST
_LONGEST_RATIO: Final = 1_000  # bits of its numbers


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

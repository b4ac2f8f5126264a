"""How the miss rate of a value is shared among the noisy numbers that it is made of, so that all hold together."""

from collections.abc import Iterable
from math import nextafter
from typing import assert_never

from confide.mechanism.noise.law import Confidence
from confide.query.question import (
    Arithmetic,
    Association,
    Between,
    Commonest,
    Dated,
    Estimated,
    FixedNumber,
    Magnitude,
    Mean,
    Measured,
    Occurs,
    Rounded,
    Spread,
    Value,
)


class MissShares:
    """How the miss rate of a value is shared between its two sides: by how many noisy numbers each is made of.

    Halving it at every level would leave a long product confidences that no double tells from 1.
    """

    def __init__(self) -> None:
        self._leaves: dict[int, tuple[int, bool]] = {}

    def of(self, value: Arithmetic, confidence: Confidence) -> tuple[Confidence, Confidence]:
        left, right = self._count(value.left)[0], self._count(value.right)[0]
        if not left or not right:
            return confidence, confidence
        if left == right:
            return (1 + confidence) / 2, (1 + confidence) / 2
        miss = 1 - confidence
        return 1 - miss * left / (left + right), 1 - miss * right / (left + right)

    def _count(self, value: Value) -> tuple[int, bool]:
        """How many noisy numbers there are, and whether they are one linear combination, whose law is known."""
        if id(value) not in self._leaves:
            self._leaves[id(value)] = self._counted(value)
        return self._leaves[id(value)]

    def _counted(self, value: Value) -> tuple[int, bool]:
        match value:
            case FixedNumber():
                return 0, True
            case Measured():
                return 1, True
            case Arithmetic(operation, left, right):
                (first, one), (second, two) = self._count(left), self._count(right)
                alone = operation in "+-" or (operation == "*" and not first) or not second
                return (min(1, first + second), True) if one and two and alone else (first + second, False)
            case Between(inner) | Magnitude(inner) | Rounded(inner):
                return self._count(inner)[0], False
            case Estimated() | Dated() | Commonest() | Mean() | Spread() | Association() | Occurs():
                return 1, False
        assert_never(value)


def needed_confidences(values: Iterable[Value], confidence: Confidence) -> dict[int, float]:
    """At which confidence each statistic is measured, so that every value made of it holds with `confidence`."""
    needed: dict[int, float] = {}
    shares = MissShares()
    pending: list[tuple[Value, Confidence]] = [(value, confidence) for value in values]
    while pending:
        value, level = pending.pop()
        match value:
            case Estimated(statistic) | Dated(Estimated(statistic)) | Commonest(statistic):
                needed[statistic] = max(needed.get(statistic, 0.0), _raised(level))
            case Arithmetic(_, left, right):
                first, second = shares.of(value, level)
                pending += [(left, first), (right, second)]
            case Between(inner) | Magnitude(inner) | Rounded(inner):
                pending.append((inner, level))
            case Measured() | Mean() | Spread() | Association() | Occurs() | FixedNumber():
                pass  # made of no statistic
            case _:
                assert_never(value)
    return needed


def _raised(level: Confidence) -> float:
    """The least double that is no less."""
    nearest = float(level)
    return nearest if nearest >= level else nextafter(nearest, 1.0)

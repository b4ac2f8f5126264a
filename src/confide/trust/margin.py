"""How far the data are from the edge of an interval, in steps: at 1 or above inside, at 0 or below outside.

A margin is an exact integer whose change between neighbours is at most one step. If there are several, the least of
them counts: it is positive exactly if all are.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, assert_never

from confide.trust.seen import Reading, Seen, Sides, Totals, WholeCell
from confide.trust.target import Facts, Steps, Target, row_steps, whole_steps


class Margin(Protocol):
    @property
    def reading(self) -> Reading: ...

    @property
    def epsilon(self) -> Fraction:
        """What a step costs."""

    def of(self, seen: Seen) -> int:
        """The least margin, in steps."""


@dataclass(frozen=True, slots=True)
class WholeMargin:
    """A count or a sum x: x - first + 1, and last - x + 1."""

    target: Target
    steps: Steps

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction) -> "WholeMargin":
        return cls(target, whole_steps(facts, epsilon))

    @property
    def reading(self) -> Reading:
        return WholeCell()

    @property
    def epsilon(self) -> Fraction:
        return self.steps.epsilon

    def of(self, seen: Seen) -> int:
        assert isinstance(seen, int)
        return self.steps.of(min(seen - self.target.first, self.target.last - seen) + 1)


@dataclass(frozen=True, slots=True)
class MeanMargin:
    """A mean lies in (l, r) exactly if Σ(x - l) > 0 and Σ(r - x) > 0: two sums, and no division.

    A row changes them by at most what lies between its value and the end; no rows at all count as outside.
    """

    target: Target
    low_steps: Steps
    high_steps: Steps

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction) -> "MeanMargin":
        low, high = facts.bounded("optimal (and any other of a mean)")
        ends = [
            (end.denominator * low - end.numerator, end.denominator * high - end.numerator)
            for end in (target.low, target.high)
        ]
        return cls(target, *(row_steps(facts, *end, epsilon) for end in ends))

    @property
    def reading(self) -> Reading:
        return Totals()

    @property
    def epsilon(self) -> Fraction:
        return self.low_steps.epsilon

    def of(self, seen: Seen) -> int:
        assert isinstance(seen, tuple)
        total, rows = seen
        low, high = self.target.low, self.target.high
        above = low.denominator * total - low.numerator * rows
        under = high.numerator * rows - high.denominator * total
        return min(self.low_steps.of(above), self.high_steps.of(under))


@dataclass(frozen=True, slots=True)
class QuantileMargin:
    """The ⌈qn⌉-th smallest value (the first for q = 0) lies in (l, r): two counts against qn, ties included.

    With q = p/d it is above l exactly if pn - d·#{x <= l} > 0, and below r exactly if d·#{x < r} - pn >= 0. A row that
    comes or goes changes both by at most max(p, d - p): by 1 for the median, which is half a row. No rows count as
    outside.
    """

    q: Fraction
    sides: Sides
    steps: Steps

    @classmethod
    def make(cls, facts: Facts, target: Target, epsilon: Fraction) -> "QuantileMargin":
        assert facts.q is not None
        p, d = facts.q.numerator, facts.q.denominator
        size = max(p, d - p)
        steps = Steps(size * facts.rows, epsilon) if facts.single else Steps(size, epsilon / facts.rows)
        return cls(facts.q, sides_of(facts, target), steps)

    @property
    def reading(self) -> Reading:
        return self.sides

    @property
    def epsilon(self) -> Fraction:
        return self.steps.epsilon

    def of(self, seen: Seen) -> int:
        assert isinstance(seen, tuple)
        rows, below, above = seen
        p, d = self.q.numerator, self.q.denominator
        least = 1 if p == 0 else 0  # the smallest of n values is the first, though 0·n is 0
        return self.steps.of(min(p * rows + least - d * below, d * (rows - above) - p * rows + 1 - least))


def sides_of(facts: Facts, target: Target) -> Sides:
    """The values at or beyond the ends of the interval, within what the domain holds."""
    low, high = facts.ends
    below, above = math.floor(target.low), math.ceil(target.high)
    return Sides(min(max(below, low - 1), high), max(min(above, high + 1), low))


def margin_of(facts: Facts, target: Target, epsilon: Fraction) -> Margin:
    """The margin of any aggregate."""
    match facts.kind:
        case "mean":
            return MeanMargin.make(facts, target, epsilon)
        case "quantile":
            return QuantileMargin.make(facts, target, epsilon)
        case "count" | "sum":
            return WholeMargin.make(facts, target, epsilon)
        case _:
            assert_never(facts.kind)

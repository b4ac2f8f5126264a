"""How large a question may become: every part of its tree is counted, as often as it is written out.

A tree that holds one part twice is small in memory and large wherever it is walked: compared, hashed, named in a key,
written as SQL. So what a construct repeats (the subject of BETWEEN, of CASE x WHEN) is counted as often as it repeats
it, before it is built, and all work on a question is bounded by the limit.
"""

from typing import assert_never

from confide.errors import QueryError
from confide.privacy.limits import MOST_PARTS
from confide.query.question import (
    Arithmetic,
    Association,
    Between,
    Commonest,
    Dated,
    Estimated,
    Magnitude,
    Mean,
    Measured,
    Occurs,
    Rounded,
    Spread,
    Value,
)
from confide.query.question import FixedNumber as ReleasedNumber
from confide.query.tree import (
    Absolute,
    Always,
    Among,
    Both,
    Choice,
    Combined,
    Compare,
    Constant,
    CurveValue,
    Derived,
    Divided,
    Either,
    Field,
    FirstKnown,
    Floored,
    Known,
    Matched,
    Number,
    OneOf,
    Predicate,
    Reading,
    SameField,
    Scaled,
    TextHolds,
    TextIs,
    TextLength,
    TextLike,
    TextOrder,
)

LISTED_PER_PART = 32
"""Constants of a list that count as one part."""


class Room:
    """How many more parts the tree of one question may have."""

    def __init__(self, parts: int = MOST_PARTS) -> None:
        self.left = parts

    def take(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise QueryError(
                f"the query says more than {MOST_PARTS:,} things once BETWEEN, CASE x WHEN and declared values are "
                "written out; use fewer conditions, IN for a list, or CASE WHEN with plain comparisons"
            )

    def take_listed(self, constants: int) -> None:
        self.take(constants // LISTED_PER_PART)

    def repeat(self, node: Field | Number | Value, times: int) -> None:
        """A part that a construct holds so many times more."""
        if times > 0:
            self.take(times * size(node))


def size(node: Field | Number | Predicate | Value) -> int:
    """The parts of a tree, those that are held twice counted twice."""
    match node:
        case Scaled(inner) | Absolute(inner) | Floored(inner) | Between(inner) | Magnitude(inner) | Rounded(inner):
            return 1 + size(inner)
        case CurveValue(inner=inner, written=written):
            return 1 + size(inner) + len(written) // LISTED_PER_PART
        case Divided(left, right) | Combined(_, left, right) | Compare(_, left, right) | Arithmetic(_, left, right):
            return 1 + size(left) + size(right)
        case Choice(branches, otherwise):
            own = sum(size(condition) + size(value) for condition, value in branches)
            return 1 + own + (0 if otherwise is None else size(otherwise))
        case FirstKnown(parts) | Both(parts) | Either(parts):
            return 1 + sum(size(part) for part in parts)
        case OneOf(subject, indices):
            return 1 + size(subject) + len(indices) // LISTED_PER_PART
        case Known(subject):
            return 1 + size(subject)
        case Among(_, values) | TextIs(_, values):
            return 1 + len(values) // LISTED_PER_PART
        case Field() | Reading() | Derived() | Constant() | Always() | TextLike() | SameField() | TextLength():
            return 1
        case Matched(_, on, where):
            return 1 + len(on) + size(where)
        case TextOrder() | TextHolds():
            return 1
        case (
            Estimated()
            | Dated()
            | Commonest()
            | Measured()
            | Mean()
            | Spread()
            | Association()
            | Occurs()
            | ReleasedNumber()
        ):
            return 1
        case _:
            assert_never(node)

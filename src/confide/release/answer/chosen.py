"""Rows that are chosen by value, and the confidence at which their intervals are computed.

Whoever shows the five largest of 200 noisy counts shows those whose noise was large: intervals that hold 95 times in
100 for every count hold hardly ever for these. What can hold for rows that are chosen is the false coverage rate
([BenjaminiYekutieli2005]): the share of the intervals shown, in a column, that miss, taken as 0 where none is shown. It
is at most 1 - confidence on average if each interval shown is computed with the miss rate

    (1 - confidence) × shown / groups,                                                                           (*)

two numbers that are released. Proof. Let T_i be all that is released of group i; given the data the noises of groups
are independent, so the T_i are. Our rules are `simple` in the sense of the paper: given all T_j but T_i, the number r
of rows shown is the same for every T_i for which i is shown. For HAVING compares numbers of one group, so that with i
there are 1 + (how many others pass) to choose from; and ORDER BY, OFFSET and LIMIT show min(limit, passing - offset)
of them, whichever come first. So the expected share is

    Σ_i E[1{i shown, i missed} / r] <= Σ_i E[P(i missed at the rate (1 - confidence) r / groups | other T_j) / r],

and each of the terms is at most (1 - confidence) / groups. Where an interval is made before r is known, as a
quantile's, it has the rate for the least r there can be, which is no larger; nothing else in the proof changes. Where
the intervals of all groups share one noisy scale, as in joins, the part of the miss rate that is for the scale adds
P(scale too small) once, and the proof stands for the rest.

Keys of undeclared domain: which of them passed the threshold is a choice too. It is made by noise that no interval is
computed from, or, where the number that showed a key is its count, by noise whose interval holds given that it passed.
Given which passed, all of the above holds with `groups` for how many did.

Not chosen by value, and unchanged: rows that keys alone choose (HAVING on keys, LIMIT in an order of keys), and a LIMIT
that leaves out nothing. With shown = groups, (*) is the usual miss rate.
"""

from fractions import Fraction
from typing import Final, assert_never

from confide.mechanism.noise.law import Confidence
from confide.query.question import AllOf, AnyOf, Comparison, Condition, Shown, ShownKey

MOST_RELEASED: Final = 100_000_000
"""Keys of undeclared domain that any summary has room for: for intervals that are made before it is known how many."""


def passes_by_value(question: Shown) -> bool:
    """Whether HAVING looks at a released number."""
    return question.having is not None and _looks_at_values(question.having)


def cut_by_value(question: Shown) -> bool:
    """Whether which rows come first is a matter of released numbers: an order by all keys leaves nothing to them."""
    keys: set[int] = set()
    for order in question.order:
        if not isinstance(order.by, ShownKey):
            return len(keys) < len(question.keys)
        keys.add(order.by.key)
    return False


def least_shown(question: Shown, groups: int) -> int | None:
    """The fewest rows that a choice by value leaves, if it leaves any; None if it leaves all, or if there is none."""
    if passes_by_value(question):
        return 1
    if not cut_by_value(question) or (question.limit is None and not question.offset):
        return None
    rest = max(groups - question.offset, 1)
    shown = rest if question.limit is None else max(min(rest, question.limit), 1)
    if shown == groups:
        return None
    return shown if question.having is None else 1


def level(confidence: Confidence, shown: int, groups: int) -> Confidence:
    """The confidence of each interval, if so many of so many groups are shown."""
    if not 0 < shown < groups:
        return confidence
    return 1 - (1 - Fraction(confidence)) * Fraction(shown, groups)


def least_level(question: Shown, confidence: Confidence, groups: int | None) -> Confidence:
    """The confidence of intervals that are made before anything is released: for the fewest rows that may be shown.

    `groups`: how many there are; None if that is private as yet.
    """
    most = MOST_RELEASED if groups is None else groups
    shown = least_shown(question, most)
    return confidence if shown is None else level(confidence, shown, most)


def expected_level(question: Shown, confidence: Confidence, groups: int | None) -> Confidence:
    """The same for forecasts: where the number of groups is private, as if all were shown."""
    return confidence if groups is None else least_level(question, confidence, groups)


def choice_notes(question: Shown, groups: int | None) -> tuple[str, ...]:
    """What a forecast takes a choice by value to be."""
    if groups is None:
        chosen = passes_by_value(question) or (cut_by_value(question) and question.limit is not None)
        said = (
            "the width depends on how many of the released keys are shown, chosen by value: here it is for all of them"
        )
        return (said,) if chosen else ()
    shown = least_shown(question, groups)
    if shown is None or groups == 1:
        return ()
    if question.having is None:
        return (f"rows are chosen by value, {shown:,} of {groups:,}: the width is for what is shown",)
    return (f"the width depends on how many of the {groups:,} groups pass HAVING: here it is for one, the widest",)


def _looks_at_values(condition: Condition) -> bool:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return any(_looks_at_values(part) for part in parts)
        case Comparison(_, left, _):
            return not isinstance(left, ShownKey)
        case _:
            assert_never(condition)

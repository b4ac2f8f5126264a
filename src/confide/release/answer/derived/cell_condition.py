"""Conditions on cells: surely true, surely false, or both are possible; and CASE, which they choose by."""

from collections.abc import Callable, Sequence
from typing import Any

from confide.release.answer.derived.cell_range import NULL, CellRange, hull, number, strict

Ranges = Sequence[CellRange]
Condition = Callable[[Ranges], CellRange]


def truth(value: bool | None, low: bool, high: bool, parts: Ranges) -> CellRange:
    found = number(None, 0.0, 1.0, parts)
    own = None if value is None else bool(min(max(value, low), high))
    return CellRange(own, low, high, found.missing, False, found.assumes)


def comparison(
    surely: Callable[[CellRange, CellRange], bool],
    maybe: Callable[[CellRange, CellRange], bool],
    own: Callable[[Any, Any], bool],
) -> Condition:
    def ranged(parts: Ranges) -> CellRange:
        one, two = parts
        value = None if one.value is None or two.value is None else own(one.value, two.value)
        return truth(value, surely(one, two), maybe(one, two), parts)

    return strict(ranged)


def surely_same(one: CellRange, two: CellRange) -> bool:
    """Surely equal."""
    return bool(one.low == one.high == two.low == two.high)


def may_be_same(one: CellRange, two: CellRange) -> bool:
    if one.options or two.options:
        return bool(set(one.options) & set(two.options))
    return bool(one.low <= two.high and two.low <= one.high)


def all_true(parts: Ranges) -> CellRange:
    values = [part.value for part in parts]
    own = False if any(value is False for value in values) else None if None in values else True
    low = all(part.low is True and not part.missing for part in parts)
    high = all(part.high is True for part in parts if part.low is not None) and any(True for _ in parts)
    missing = any(part.missing for part in parts) and not any(part.high is False and not part.missing for part in parts)
    if high and all(part.low is None for part in parts):
        return NULL
    return CellRange(own, low, high, missing, False, _assumed(parts))


def _assumed(parts: Ranges) -> Any:
    return number(None, 0.0, 0.0, parts).assumes


def negation(parts: Ranges) -> CellRange:
    (part,) = parts
    if part.low is None:
        return NULL
    return CellRange(
        None if part.value is None else not part.value, not part.high, not part.low, part.missing, False, part.assumes
    )


def any_true(parts: Ranges) -> CellRange:
    return negation([all_true([negation([part]) for part in parts])])


def is_null(parts: Ranges) -> CellRange:
    (part,) = parts
    return CellRange(part.value is None, part.low is None, part.missing)


def chosen_case(parts: Ranges) -> CellRange:
    """The branches that may be reached, in their order."""
    reached: list[CellRange] = []
    value, decided, missing = None, False, False
    for condition, result in zip(parts[:-1:2], parts[1::2], strict=True):
        if not decided and condition.value is True:
            value, decided = result.value, True
        if condition.high is True:
            reached.append(result)
            missing |= result.missing
        if condition.low is True and not condition.missing:
            break
    else:
        reached.append(parts[-1])
        missing |= parts[-1].missing
        if not decided:
            value = parts[-1].value
    return hull(reached, value, missing)

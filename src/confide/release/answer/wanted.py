"""How wide intervals may be, as `within` says it: for plans, and for answers that turned out wider."""

from collections.abc import Callable, Mapping
from datetime import date
from math import inf, nan
from typing import Any

from confide.errors import ParameterError
from confide.privacy.amount import shown_value
from confide.release.answer.answer import Answer
from confide.release.answer.plan import Within
from confide.release.arguments import by_name

Target = Callable[[str, float], float]
"""From the name of a column and an estimate of it, the half-width that is wanted."""


def wanted_width(within: Within, names: list[str]) -> Target:
    """What is wanted of each column; a share is of the estimate."""
    if isinstance(within, Mapping):
        widths = by_name(within, "within", "{'n': 50, 'avg': '2%'}")
        unknown = sorted(set(widths) - set(names))
        if unknown:
            raise ParameterError(f"within names {', '.join(unknown)}, but the answer's columns are {', '.join(names)}")
        each = {name: _one_target(value) for name, value in widths.items()}
        return lambda name, estimate: each[name](estimate) if name in each else inf
    target = _one_target(within)
    return lambda _, estimate: target(estimate)


def wider_than_wanted(answer: Answer, within: Within) -> tuple[str, ...]:
    """What to say of columns with intervals that are wider than was asked for: arithmetic on released numbers."""
    target = wanted_width(within, [column.name for column in answer.values])
    said = []
    for column in answer.values:
        if column.type in ("text", "boolean") or column.places:
            continue
        cells = [own for own in zip(column.values, column.low, column.high, strict=True) if None not in own]
        halves = [(_half(low, high), target(column.name, _double(value))) for value, low, high in cells]
        wide = [half for half, wanted in halves if half > wanted * (1 + 1e-9)]
        if wide:
            asked = within[column.name] if isinstance(within, Mapping) else within
            which = "the interval is" if len(halves) == 1 else f"{len(wide):,} of {len(halves):,} intervals are"
            most = "nothing is known of one" if max(wide) == inf else f"the widest is ±{max(wide):.4g}"
            said.append(
                f"{column.name}: {which} wider than the ±{asked} that was asked for ({most}): fewer rows count than "
                "the plan takes, or values lie otherwise"
            )
    return tuple(said)


def plain_within(within: object) -> Within:
    """The same in types of Python's own, read once; or a refusal."""
    if isinstance(within, Mapping):
        return {name: _plain(value) for name, value in by_name(within, "within", "{'n': 50, 'avg': '2%'}").items()}
    return _plain(within)


def _plain(value: object) -> float | str:
    if isinstance(value, str):
        text = str.__str__(value)
        _one_target(text)
        return text
    return _positive(value, value)


def _half(low: Any, high: Any) -> float:
    if isinstance(low, date):
        return float((high - low).days) / 2
    return _double(high) / 2 - _double(low) / 2


def _double(value: Any) -> float:
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days)
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _one_target(within: float | int | str) -> Callable[[float], float]:
    if isinstance(within, str) and within.strip().endswith("%"):
        share = _positive(within.strip()[:-1], within) / 100
        return lambda estimate: share * abs(estimate)
    width = _positive(within, within)
    return lambda _: width


def _positive(value: object, given: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = nan
    if isinstance(value, bool) or not 0 < number < inf:
        raise ParameterError(
            f"within={shown_value(given)} is not a width; write a number above 0, such as 50, or a share such as '5%'"
        )
    return number

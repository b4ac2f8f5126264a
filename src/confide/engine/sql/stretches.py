"""Which values a statement counts, as a condition."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from confide.engine.sql.syntax import integer

Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ByGroup:
    """Intervals of values, each wanted of one group alone, by its number. Those of one group do not overlap."""

    parts: tuple[tuple[int, Stretch], ...]


Wanted = Sequence[Stretch] | ByGroup
"""Intervals that are wanted of every group, of which others may come along; or of each group its own."""

MOST: Final = 4
"""A condition has so many intervals at most: each is looked at for every row."""


def inside(value: str, stretches: Sequence[Stretch]) -> str:
    """True for known values that lie in one of the intervals, and for some between them."""
    parts = [f"{value} BETWEEN {integer(low)} AND {integer(high)}" for low, high in united(stretches)]
    return f"({' OR '.join(parts)})" if parts else "FALSE"


def own_values(rows: str, shown: Sequence[str], group: str, value: str, wanted: ByGroup) -> str:
    """SELECT what is shown of those rows whose value lies in an interval of their group."""
    listed = ", ".join(f"({integer(number)}, {integer(low)}, {integer(high)})" for number, (low, high) in wanted.parts)
    kept = ", ".join(f"b.{column} AS {column}" for column in shown)
    told = f"SELECT {', '.join(shown)}, {group} AS g FROM ({rows}) AS a"
    return (
        f"SELECT {kept} FROM ({told}) AS b JOIN (VALUES {listed}) AS w(g, low, high) "
        f"ON b.g = w.g AND b.{value} BETWEEN w.low AND w.high"
    )


def united(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Few intervals that cover all."""
    found: list[Stretch] = []
    for low, high in sorted(stretches):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    while len(found) > MOST:
        gaps = [after[0] - before[1] for before, after in pairwise(found)]
        place = gaps.index(min(gaps))
        found[place : place + 2] = [(found[place][0], found[place + 1][1])]
    return found

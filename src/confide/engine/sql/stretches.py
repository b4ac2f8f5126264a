"""Which values a statement counts, as a condition."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from confide.engine.sql.syntax import integer

Stretch = tuple[int, int]

MOST: Final = 4
"""A condition has so many intervals at most: each is looked at for every row."""


def inside(value: str, stretches: Sequence[Stretch]) -> str:
    """True for known values that lie in one of the intervals, and for some between them."""
    parts = [f"{value} BETWEEN {integer(low)} AND {integer(high)}" for low, high in united(stretches)]
    return f"({' OR '.join(parts)})" if parts else "FALSE"


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

"""Ranks in the order of released numbers: between which places a row surely stands.

Row j surely comes before row i if the interval of their difference says so. Where all rows have noise of one law, that
is the law of the difference of two noises, and the G - 1 differences of a row share its miss rate; otherwise all rows'
own intervals do, and two rows whose intervals overlap may come in either order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from confide.release.answer.derived.cell import DerivedCell
from confide.release.answer.derived.cell_range import CellRange, double, number


@dataclass(frozen=True, slots=True)
class Places:
    """Of each row how many surely, and how many at most, come before it; and how many may stand where it does."""

    sure: list[int]
    possible: list[int]
    level: list[int]


class Ranking:
    """Rows of a partition. `classes`: by what public columns order them first, as places; `cells`: by which number
    then, growing or falling; `there`: whether each row is there, None for surely. `estimated`: their places by
    estimates, from 1 on, rows that nothing tells apart together; `numbered`: the same without ties; `dense` likewise.
    """

    __slots__ = ("cells", "classes", "dense", "descending", "estimated", "numbered", "there")

    def __init__(
        self,
        classes: Sequence[int],
        cells: Sequence[DerivedCell | None],
        descending: bool,
        there: Sequence[DerivedCell | None],
        estimated: tuple[Sequence[int], Sequence[int], Sequence[int]],
    ) -> None:
        self.classes, self.cells, self.descending, self.there = classes, cells, descending, there
        self.numbered, self.estimated, self.dense = estimated

    def __len__(self) -> int:
        return len(self.cells)


class RankCell(DerivedCell):
    """A place in a ranking, or what follows from it: `more` are the tiles of NTILE, or the ends of LIMIT."""

    __slots__ = ("kind", "more", "place", "ranking")

    def __init__(self, ranking: Ranking, place: int, kind: str, more: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.ranking, self.place, self.kind, self.more = ranking, place, kind, more


class RunningCell(DerivedCell):
    """The sum, or the number, of all rows up to one in a ranking."""

    __slots__ = ("kind", "place", "ranking", "values")

    def __init__(self, ranking: Ranking, place: int, kind: str, values: Sequence[DerivedCell]) -> None:
        super().__init__()
        self.ranking, self.place, self.kind, self.values = ranking, place, kind, values


def places_of(
    classes: Sequence[int], ends: Sequence[tuple[float, float]], there: Sequence[tuple[bool, bool]]
) -> Places:
    """From intervals (of numbers that grow along the order): j is surely before i if its upper end is below i's lower
    one, and may be if its lower end is below i's upper one. `there`: surely, possibly.
    """
    members: dict[int, list[int]] = {}
    for place, own in enumerate(classes):
        members.setdefault(own, []).append(place)
    sure, possible, level = [0] * len(ends), [0] * len(ends), [0] * len(ends)
    before = (0, 0)
    for own in sorted(members):
        rows = members[own]
        highs = sorted(ends[row][1] for row in rows if there[row][0])
        lows = sorted(ends[row][0] for row in rows if there[row][1])
        for row in rows:
            low, high = ends[row]
            self_sure, self_possible = there[row][0] and high < low, there[row][1] and low < high
            sure[row] = before[0] + bisect_left(highs, low) - self_sure
            possible[row] = before[1] + bisect_left(lows, high) - self_possible
            level[row] = before[1] + bisect_right(lows, high) - there[row][1]
        before = (before[0] + len(highs), before[1] + len(lows))
    return Places(sure, possible, level)


def rank_range(cell: RankCell, places: Places, parts: Sequence[CellRange]) -> CellRange:
    """What a row's place says."""
    ranking, place, rows = cell.ranking, cell.place, len(cell.ranking)
    sure, possible, level = places.sure[place], places.possible[place], places.level[place]
    numbered, estimated = ranking.numbered[place], ranking.estimated[place]

    def found(value: float, low: float, high: float, whole: bool = True) -> CellRange:
        own = number(float(value), float(low), float(high), parts, whole)
        return CellRange(own.value, own.low, own.high, False, whole, own.assumes)

    match cell.kind:
        case "row_number":
            return found(numbered, 1 + sure, 1 + level)
        case "rank":
            return found(estimated, 1 + sure, 1 + possible)
        case "dense_rank":
            return found(ranking.dense[place], 1 + (sure > 0), 1 + possible)
        case "percent_rank":
            last = max(rows - 1, 1)
            return found((estimated - 1) / last, sure / last, possible / last, whole=False)
        case "cume_dist":
            up_to = sum(other <= estimated for other in ranking.estimated)
            return found(up_to / rows, (1 + sure) / rows, (1 + level) / rows, whole=False)
        case "ntile":
            tiles = cell.more[0]
            return found(tile(numbered, rows, tiles), tile(1 + sure, rows, tiles), tile(1 + level, rows, tiles))
    offset, last = cell.more
    value = offset < numbered <= last
    first, furthest = 1 + sure, 1 + level
    own = found(0, 0, 0)
    surely, maybe = first > offset and furthest <= last, first <= last and furthest > offset
    return CellRange(value, surely and value, maybe or value, False, False, own.assumes)


def tile(place: int, rows: int, tiles: int) -> int:
    """The tile of a place: the first ones have a row more, if rows cannot be shared evenly."""
    size, more = divmod(rows, tiles)
    if place <= more * (size + 1):
        return (place - 1) // (size + 1) + 1
    return more + (place - 1 - more * (size + 1)) // max(size, 1) + 1


def running_range(
    cell: RunningCell, ends: Sequence[tuple[float, float]], values: Sequence[CellRange], total: Any
) -> CellRange:
    """Rows that are surely not after this one count, and those that may be before it may."""
    ranking, place = cell.ranking, cell.place
    own_class, (own_low, own_high) = ranking.classes[place], ends[place]
    low = high = value = 0.0
    for row, part in enumerate(values):
        if part.low is None:
            continue
        least, most = (1.0, 1.0) if cell.kind == "count" else (double(part.low), double(part.high))
        if ranking.estimated[row] <= ranking.estimated[place] and part.value is not None:
            value += 1.0 if cell.kind == "count" else double(part.value)
        earlier = ranking.classes[row] < own_class
        same = ranking.classes[row] == own_class
        if earlier or row == place or (same and ends[row][1] <= own_low):
            low, high = low + least, high + most
        elif same and ends[row][0] <= own_high:
            low, high = low + min(least, 0.0), high + max(most, 0.0)
    whole = cell.kind == "count" or all(part.whole for part in values)
    found = number(value, low, high, values, whole)
    return CellRange(found.value, found.low, found.high, False, whole, found.assumes)


def uniform(signatures: Sequence[Any]) -> bool:
    """Whether all rows have noise of one law, none of it shared."""
    return len(set(signatures)) == 1 and signatures[0] is not None


def halves(values: Sequence[Fraction], half: Fraction) -> list[tuple[float, float]]:
    """Half of the bound of a difference on either side: two of these do not overlap if the difference passes it."""
    return [(float(value - half / 2), float(value + half / 2)) for value in values]

"""Window functions over released rows: partitions and frames are public, or ranks say how sure they are."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from confide.privacy.limits import MOST_FRAMED, MOST_SUMMED
from confide.query.derivation.derivation import Windowed
from confide.release.answer.derived.building import total_of
from confide.release.answer.derived.cell import NOTHING, TRUE, DerivedCell, PublicCell, SumCell
from confide.release.answer.derived.ordering import ranking_of, sorted_rows
from confide.release.answer.derived.ranking import RankCell, RunningCell

if TYPE_CHECKING:
    from confide.release.answer.derived.derived_rows import DerivedRow, DerivedRows

RANKS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def windowed(maker: "DerivedRows", window: Windowed, rows: Sequence["DerivedRow"]) -> list[DerivedCell]:
    """A window function in all rows."""
    partition = [maker.column(own, rows) for own in window.partition]
    order = [maker.column(own.by, rows) for own in window.order]
    parts = [maker.column(own, rows) for own in window.parts]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for at in range(len(rows)):
        key = tuple((isinstance(own[at].value, bool), own[at].value) for own in partition)  # type: ignore[attr-defined]
        groups.setdefault(key, []).append(at)
    found: list[DerivedCell] = [NOTHING] * len(rows)
    for places in groups.values():
        own = _Partition(
            maker, window, [rows[at] for at in places],
            [[column[at] for at in places] for column in order], [[column[at] for at in places] for column in parts],
        )  # fmt: skip
        for at, cell in zip(places, own.cells(), strict=True):
            found[at] = cell
    return found


class _Partition:
    def __init__(
        self,
        maker: "DerivedRows",
        window: Windowed,
        rows: Sequence["DerivedRow"],
        order: list[list[DerivedCell]],
        parts: list[list[DerivedCell]],
    ) -> None:
        self.maker, self.window, self.rows, self.order, self.parts = maker, window, rows, order, parts

    def cells(self) -> list[DerivedCell]:
        public = all(isinstance(cell, PublicCell) for own in self.order for cell in own)
        function = self.window.function
        if function in RANKS:
            return self._ranks(public)
        if not public:
            return self._running()
        if self.window.frame == (None, None) and function in ("sum", "avg", "min", "max", "count"):
            return [self._gathered(range(len(self.rows)))] * len(self.rows)
        return self._framed()

    def _ranks(self, public: bool) -> list[DerivedCell]:
        more = tuple(max(1, int(cell.value)) for own in self.parts[:1] for cell in own[:1])  # type: ignore[attr-defined]
        there = [row.there for row in self.rows]
        present = [True] * len(self.rows)
        ranking = ranking_of(self.maker.evaluation, self.order, self.window.order, there, present)
        cells: list[DerivedCell] = [RankCell(ranking, at, self.window.function, more) for at in range(len(self.rows))]
        if not public:
            return cells
        # In an order of keys nothing is uncertain: as good as a constant.
        return [SumCell({}, Fraction(self.maker.evaluation.value(cell))) for cell in cells]

    def _running(self) -> list[DerivedCell]:
        """Sums up to a row in the order of a released number."""
        if not self._has_room() or not self.maker.frames:
            return [NOTHING] * len(self.rows)
        there = [row.there for row in self.rows]
        present = [True] * len(self.rows)
        ranking = ranking_of(self.maker.evaluation, self.order, self.window.order, there, present)
        values = self.parts[0] if self.parts else [TRUE] * len(self.rows)
        if self.window.frame == (None, None):
            return [self._gathered(range(len(self.rows)))] * len(self.rows)
        return [RunningCell(ranking, at, self.window.function, values) for at in range(len(self.rows))]

    def _has_room(self) -> bool:
        """Whether frames of all rows of the partition may still be made."""
        count = len(self.rows)
        before, after = self.window.frame
        wide = count if before is None or after is None else min(count, before + after + 1)
        if count <= MOST_FRAMED:
            self.maker.summed += count * max(wide, 1)
        if count > MOST_FRAMED or self.maker.summed > MOST_SUMMED:
            self.maker.left_out = True
            return False
        return True

    def _framed(self) -> list[DerivedCell]:
        """In an order of keys: which rows count for which is public."""
        count = len(self.rows)
        order = sorted_rows(self.maker.evaluation, self.order, self.window.order, [True] * count)
        found: list[DerivedCell] = [NOTHING] * count
        function = self.window.function
        if function in ("lag", "lead"):
            for at, row in enumerate(order):
                steps = int(self.parts[1][row].value)  # type: ignore[attr-defined]
                other = at - steps if function == "lag" else at + steps
                found[row] = self.parts[0][order[other]] if 0 <= other < count else self.parts[2][row]
            return found
        ends = self._last_peers(order) if self.window.peers else list(range(count))
        before, after = self.window.frame
        made: dict[tuple[int, int], DerivedCell] = {}
        running: SumCell | None = None
        if function not in ("first", "last") and (not self._has_room() or not self.maker.frames):
            return found
        for at, row in enumerate(order):
            first = 0 if before is None else max(0, at - before)
            last = (
                count - 1
                if after is None
                else min(count - 1, at + after)
                if after or not self.window.peers
                else ends[at]
            )
            if function in ("first", "last"):
                found[row] = self.parts[0][order[first if function == "first" else last]] if first <= last else NOTHING
                continue
            key = (first, last)
            if key not in made:
                grown = self._grown(made, key, order, running)
                made[key] = (
                    grown if grown is not None else self._gathered([order[place] for place in range(first, last + 1)])
                )
            cell = made[key]
            running = cell if isinstance(cell, SumCell) else None
            found[row] = cell
        return found

    def _grown(
        self,
        made: dict[tuple[int, int], DerivedCell],
        key: tuple[int, int],
        order: Sequence[int],
        before: SumCell | None,
    ) -> DerivedCell | None:
        """A running sum from the one before it; None if that is not to be had."""
        if self.window.function != "sum" or before is None or key[0] != 0 or not made:
            return None
        earlier = max((last for first, last in made if first == 0), default=-1)
        if made.get((0, earlier)) is not before or earlier >= key[1]:
            return None
        more = [self.maker.evaluation.linear(self.parts[0][order[place]]) for place in range(earlier + 1, key[1] + 1)]
        if any(own is None for own in more):
            return None
        return total_of([(dict(before.terms), before.constant), *[own for own in more if own is not None]])

    def _last_peers(self, order: Sequence[int]) -> list[int]:
        """Of each place the last of those that the order cannot tell from it."""
        keys = [tuple(column[row].value for column in self.order) for row in order]  # type: ignore[attr-defined]
        ends = list(range(len(keys)))
        for at, (own, following) in reversed(list(enumerate(pairwise(keys)))):
            if own == following:
                ends[at] = ends[at + 1]
        return ends

    def _gathered(self, places: Sequence[int]) -> DerivedCell:
        values = self.parts[0] if self.parts else [TRUE] * len(self.rows)
        pairs = [(self.rows[at].there or TRUE, values[at]) for at in places]
        return self.maker.building.gathered(self.window.function, pairs)

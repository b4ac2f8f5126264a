"""Answers from parts of columns that were found privately: whole parts have exact laws, their cells have bounds."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Final

import numpy as np

from confide.release.block_noise import BlockNoise
from confide.release.workload.chosen_table import MARK, ChosenTable
from confide.release.workload.measured_design import Ends, MeasuredDesign, answered
from confide.workload.asked import AskedTable
from confide.workload.strategy.line import Floats, Integers, Kind, stretches
from confide.workload.strategy.partition import CellGrid, Partition

_AT_ONCE: Final = 1 << 22
"""Pairs of an answer and a part that are looked at together."""
Truths = np.typing.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PartitionedDesign:
    """A partition of the cells of one to three columns, in their order, and what was measured of its parts."""

    name: str
    partition: Partition
    parts: MeasuredDesign
    sizes: tuple[int, ...]

    @cached_property
    def _grid(self) -> CellGrid:
        return CellGrid(self.sizes)

    @property
    def strategy(self) -> str:
        return f"{self.name} ({self.partition.parts:,} parts, {self.parts.strategy})"

    @property
    def noises(self) -> tuple[BlockNoise, ...]:
        return self.parts.noises

    def answers(self, table: AskedTable, place: int, confidence: float) -> Ends:
        """Estimates with parts spread evenly; from the parts wholly inside to all that are touched.

        The lower end is that of a sum of whole parts and the upper end that of another, each missed by at most half of
        what the interval may miss.
        """
        if len(self.sizes) > 1:
            return self._boxes(table, confidence)
        (kind,) = table.kinds
        starts, stops = stretches(kind, self.partition.size)
        cells = self.parts.cells(0)
        sums = np.concatenate([[0.0], np.cumsum(cells)])
        values = self.partition.spread_evenly(sums, stops) - self.partition.spread_evenly(sums, starts)
        low = self._end(sums, *self.partition.inner(starts, stops), confidence, -1)
        high = self._end(sums, *self.partition.outer(starts, stops), confidence, 1)
        return values, np.minimum(low, values), np.maximum(high, values)

    def _end(
        self, sums: Floats, first: np.typing.NDArray[np.int64], last: np.typing.NDArray[np.int64],
        confidence: float, side: int,
    ) -> Floats:  # fmt: skip
        width = self.parts.stretch_widths(first, last, confidence)
        found: Floats = sums[last] - sums[first] + side * np.where(first < last, width, 0.0)
        return found

    def _boxes(self, table: AskedTable, confidence: float) -> Ends:
        """The same for boxes: of every part whether it is within a box, or touched by it."""
        asked = dict(zip(table.columns, table.kinds, strict=True))
        kinds: list[Kind] = [asked.get(column, "total") for column in range(len(self.sizes))]
        ends = [stretches(kind, size) for kind, size in zip(kinds, self.sizes, strict=True)]
        shape = [len(starts) for starts, _ in ends]
        values = self._spread(kinds).reshape(-1)
        cells = self.parts.cells(0)
        low, high = np.empty(len(values)), np.empty(len(values))
        for chosen in _pieces(shape, max(1, _AT_ONCE // len(cells))):
            own = [(starts[places], stops[places]) for (starts, stops), places in zip(ends, chosen, strict=True)]
            within, touched = self._parts_of(own)
            flat = np.ravel_multi_index(np.ix_(*chosen), shape).reshape(-1)
            low[flat] = within @ cells - self.parts.sum_widths(within, confidence)
            high[flat] = touched @ cells + self.parts.sum_widths(touched, confidence)
        shown = [count for count, column in zip(shape, range(len(shape)), strict=True) if column in asked]
        found = values, np.minimum(low, values), np.maximum(high, values)
        one, two, three = (own.reshape(shown) for own in found)
        return one, two, three

    def _spread(self, kinds: list[Kind]) -> Floats:
        """Every box from parts that are spread evenly."""
        widths = np.diff(np.array(self.partition.edges))
        cells = np.empty(self.partition.size)
        cells[self._grid.order] = np.repeat(self.parts.cells(0) / widths, widths)
        found = cells.reshape(self.sizes)
        for axis, kind in enumerate(kinds):
            found = answered(found, kind, axis)
        return found

    def _parts_of(self, ends: list[tuple[Integers, Integers]]) -> tuple[Truths, Truths]:
        """For boxes by their ends in every column: which parts are within, and which are touched."""
        within: Truths = np.ones((1, self.partition.parts), dtype=bool)
        touched = within
        for (starts, stops), begins, lasts in zip(ends, *self._grid.boxes(self.partition), strict=True):
            inside = (starts[:, None] <= begins) & (lasts <= stops[:, None])
            meets = (starts[:, None] < lasts) & (begins < stops[:, None])
            within = (within[:, None, :] & inside).reshape(-1, self.partition.parts)
            touched = (touched[:, None, :] & meets).reshape(-1, self.partition.parts)
        return within, touched

    def count(self, columns: tuple[int, ...], query: Floats, confidence: float) -> tuple[float, float, float] | None:
        """A count of cells, from the least to the largest that it can be for what the parts hold."""
        shape = [size if column in columns else 1 for column, size in enumerate(self.sizes)]
        flat = np.broadcast_to(query.reshape(shape), self.sizes).reshape(-1)[self._grid.order]
        least, mean, most = self.partition.of_query(np.ascontiguousarray(flat, dtype=np.float64))
        found = [self.parts.count((0,), weights, confidence) for weights in (least, mean, most)]
        (low, value, high) = found
        assert low is not None
        assert value is not None
        assert high is not None
        return value[0], min(low[1], value[0]), max(high[2], value[0])

    def to_bytes(self) -> bytes:
        head = {"partition": self.name, "edges": self.partition.edges, "sizes": self.sizes}
        return json.dumps(head).encode() + b"\n" + self.parts.to_bytes()

    @classmethod
    def from_bytes(cls, kept: bytes) -> "PartitionedDesign":
        head, rest = kept.split(b"\n", 1)
        facts = json.loads(head)
        partition = Partition(tuple(facts["edges"]))
        sizes = tuple(facts.get("sizes", (partition.size,)))  # of one column they were not kept at first
        return cls(facts["partition"], partition, MeasuredDesign.from_bytes(rest), sizes)


def _pieces(shape: list[int], most: int) -> Iterator[tuple[Integers, ...]]:
    """Places of a table in pieces of about so many."""
    lengths = list(shape)
    while prod(lengths) > most and max(lengths) > 1:
        longest = lengths.index(max(lengths))
        lengths[longest] = -(-lengths[longest] // 2)
    ranges = [
        [np.arange(begin, min(begin + length, size)) for begin in range(0, size, length)]
        for size, length in zip(shape, lengths, strict=True)
    ]
    yield from product(*ranges)


def read_measured(kept: bytes) -> MeasuredDesign | PartitionedDesign | ChosenTable:
    """What was measured, as it was kept."""
    if kept.startswith(MARK):
        return ChosenTable.from_bytes(kept)
    return PartitionedDesign.from_bytes(kept) if kept.startswith(b"{") else MeasuredDesign.from_bytes(kept)

"""Answers from parts of a column that were found privately: whole parts have exact laws, their cells have bounds."""

import json
from dataclasses import dataclass

import numpy as np

from confide.release.workload.measured_design import Ends, MeasuredDesign
from confide.release.workload.noise import BlockNoise
from confide.workload.asked import AskedTable
from confide.workload.strategy.line import Floats, stretches
from confide.workload.strategy.partition import Partition


@dataclass(frozen=True, eq=False)
class PartitionedDesign:
    """A partition of one column, and what was measured of its parts."""

    name: str
    partition: Partition
    parts: MeasuredDesign

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

    def count(self, columns: tuple[int, ...], query: Floats, confidence: float) -> tuple[float, float, float] | None:
        """A count of cells, from the least to the largest that it can be for what the parts hold."""
        flat = np.broadcast_to(query, (self.partition.size,)) if not columns else query
        least, mean, most = self.partition.of_query(np.ascontiguousarray(flat, dtype=np.float64))
        found = [self.parts.count((0,), weights, confidence) for weights in (least, mean, most)]
        (low, value, high) = found
        assert low is not None
        assert value is not None
        assert high is not None
        return value[0], min(low[1], value[0]), max(high[2], value[0])

    def to_bytes(self) -> bytes:
        head = {"partition": self.name, "edges": self.partition.edges}
        return json.dumps(head).encode() + b"\n" + self.parts.to_bytes()

    @classmethod
    def from_bytes(cls, kept: bytes) -> "PartitionedDesign":
        head, rest = kept.split(b"\n", 1)
        facts = json.loads(head)
        return cls(facts["partition"], Partition(tuple(facts["edges"])), MeasuredDesign.from_bytes(rest))


def read_measured(kept: bytes) -> MeasuredDesign | PartitionedDesign:
    """What was measured, as it was kept."""
    return PartitionedDesign.from_bytes(kept) if kept.startswith(b"{") else MeasuredDesign.from_bytes(kept)

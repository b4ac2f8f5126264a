"""Answers from one table of the net that was chosen: every count of it, and how far that is from the exact one."""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, comb, inf, log
from typing import Final

import numpy as np

from confide.release.block_noise import BlockNoise
from confide.release.workload.measured_design import Ends
from confide.workload.asked import AskedTable
from confide.workload.strategy.line import Floats, Integers, Kind, count_of, stretches

MARK: Final = b"net\n"
"""What begins one that is kept."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False)
class ChosenTable:
    """The counts of the cells of the table that was chosen, and public facts alone beside them.

    Where the number of all rows is public and the net has tables of as many, that of the data is among them, with no
    error at all: then a table with an error of t or more is chosen with a chance of at most |net|·exp(−t·rate)
    ([BlumLigettRoth2013]), whatever the data are. Else nothing is known but that counts are between none and all rows.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    asked: tuple[tuple[Kind, ...], ...]
    """By what kinds of stretches of every column the counts are made whose largest error was looked at."""
    most: int
    """Rows of the largest tables of the net."""
    rate: Fraction
    """Of the exponential mechanism, for each row of error."""
    rows: int | None
    """How many rows there are, where that is public."""

    @property
    def tables(self) -> int:
        return comb(len(self.counts) + self.most, self.most)

    @property
    def strategy(self) -> str:
        return f"net ({self.tables:,} tables)"

    @property
    def noises(self) -> tuple[BlockNoise, ...]:
        """There is no noise: chance decides which table it is."""
        return ()

    def error(self, confidence: float) -> float:
        """What no count that was asked for is off by more than, so surely; infinite where nothing bounds it."""
        if self.rows is None or self.rows > self.most:
            return inf
        return largest_error(self.tables, self.rate, confidence)

    def answers(self, table: AskedTable, place: int, confidence: float) -> Ends:
        queries = cells_counted(self.sizes, kinds_of(self.sizes, table))
        shape = [count_of(kind, self.sizes[column]) for column, kind in zip(table.columns, table.kinds, strict=True)]
        values, low, high = (own.reshape(shape) for own in self._ends(queries.astype(np.float64), confidence))
        return values, low, high

    def count(self, columns: tuple[int, ...], query: Floats, confidence: float) -> tuple[float, float, float]:
        """Any count of cells: `query` has an axis for each of the columns."""
        shape = [size if column in columns else 1 for column, size in enumerate(self.sizes)]
        flat = np.broadcast_to(query.reshape(shape), self.sizes).reshape(1, -1)
        values, low, high = self._ends(flat.astype(np.float64), confidence)
        return float(values[0]), float(low[0]), float(high[0])

    def _ends(self, queries: Floats, confidence: float) -> Ends:
        """What was asked for has the bound of all that was; another count has it for each row of a cell that it takes,
        if cells were asked for one by one. No count is outside of what so many rows can have.
        """
        values: Floats = queries @ np.array(self.counts, dtype=np.float64)
        least, most = np.minimum(queries.min(axis=1), 0.0), np.maximum(queries.max(axis=1), 0.0)
        total = inf if self.rows is None else float(self.rows)
        below, above = (np.where(own == 0, 0.0, total * np.where(own == 0, 1.0, own)) for own in (least, most))
        error = self.error(confidence)
        if error == inf:
            return values, below, above
        each = error * np.abs(queries).sum(axis=1) if self._cells_asked else np.full(len(queries), inf)
        named = np.array([query.tobytes() in self._queries for query in queries])
        width = np.where(named, error, each)
        return values, np.maximum(values - width, below), np.minimum(values + width, above)

    @cached_property
    def _queries(self) -> frozenset[bytes]:
        """All counts that were asked for, as the cells that they take."""
        return frozenset(query.astype(np.float64).tobytes() for query in queries_of(self.sizes, self.asked))

    @cached_property
    def _cells_asked(self) -> bool:
        return all(cell.tobytes() in self._queries for cell in np.eye(len(self.counts)))

    def to_bytes(self) -> bytes:
        facts = {
            "sizes": self.sizes,
            "counts": self.counts,
            "asked": self.asked,
            "most": self.most,
            "rate": str(self.rate),
            "rows": self.rows,
        }
        return MARK + json.dumps(facts).encode()

    @classmethod
    def from_bytes(cls, kept: bytes) -> "ChosenTable":
        facts = json.loads(kept[len(MARK) :])
        asked = tuple(tuple(own) for own in facts["asked"])
        return cls(
            tuple(facts["sizes"]), tuple(facts["counts"]), asked, facts["most"], Fraction(facts["rate"]), facts["rows"]
        )


def largest_error(tables: int, rate: Fraction, confidence: float) -> float:
    """The least e with |net|·exp(−(e + 1)·rate) ≤ 1 − confidence: errors are whole, so that above e are from e + 1."""
    beyond = ceil(log(tables / (1 - confidence)) / float(rate) * (1 + _ROUNDING))
    return float(max(beyond - 1, 0))


def kinds_of(sizes: tuple[int, ...], table: AskedTable) -> tuple[Kind, ...]:
    """How a table counts every column of a domain: one cell is all of its column in any case."""
    asked = dict(zip(table.columns, table.kinds, strict=True))
    return tuple(asked.get(column, "total") if size > 1 else "total" for column, size in enumerate(sizes))


def cells_counted(sizes: tuple[int, ...], kinds: tuple[Kind, ...]) -> Integers:
    """A row of zeros and ones for every choice of a stretch in each column: the cells that it counts."""
    found: Integers = np.ones((1, 1), dtype=np.int64)
    for size, kind in zip(sizes, kinds, strict=True):
        starts, stops = stretches(kind, size)
        places = np.arange(size)
        within = (starts[:, None] <= places) & (places < stops[:, None])
        found = np.kron(found, within.astype(np.int64))
    return found


def queries_of(sizes: tuple[int, ...], asked: tuple[tuple[Kind, ...], ...]) -> Integers:
    """All counts of some tables, each once."""
    return np.unique(np.concatenate([cells_counted(sizes, kinds) for kinds in asked]), axis=0)

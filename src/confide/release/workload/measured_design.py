"""What was measured of a workload, and every answer that follows from it, each with its half-width."""

import json
import math
import zlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import DiscreteGaussian, DiscreteLaplace
from confide.release.block_noise import BlockNoise
from confide.release.workload.noise import powers, widths
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.design import mean_lengths
from confide.workload.strategy.line import Floats, Integers, Kind, stretches
from confide.workload.strategy.stored import read_line, spelled_line

FORMAT: Final = 1
Ends = tuple[Floats, Floats, Floats]
"""Estimates with the lower and the upper ends of their intervals."""
ROUNDING: Final = 1e-10
"""Of all estimated cells together: more than what doubles lose where cells are estimated and added up."""


@dataclass(frozen=True, eq=False)
class MeasuredDesign:
    """Blocks, the noise of each and what was released: whole numbers. Nothing here reads data."""

    sizes: tuple[int, ...]
    strategy: str
    blocks: tuple[ProductBlock, ...]
    noises: tuple[BlockNoise, ...]
    values: tuple[NDArray[Any], ...]
    sources: tuple[tuple[int, ...], ...]
    coarse: float = 0.0
    """Where numbers are kept without their low bits: by how much each is off at most, in deviations of its noise."""

    @property
    def gaussian(self) -> bool:
        return isinstance(self.noises[0].law, DiscreteGaussian)

    @cached_property
    def _cells(self) -> dict[int, Floats]:
        return {}

    def cells(self, number: int) -> Floats:
        """The estimated cells of a block's columns."""
        if number not in self._cells:
            self._cells[number] = self.blocks[number].estimate(self.values[number].astype(np.float64))
        return self._cells[number]

    def rounding(self, numbers: tuple[int, ...]) -> float:
        return ROUNDING * sum(float(np.abs(self.cells(number)).sum()) for number in numbers) + ROUNDING

    def table(self, table: AskedTable, numbers: tuple[int, ...]) -> Floats:
        """The answers of a table as sums over blocks, shaped by its columns."""
        asked = dict(zip(table.columns, table.kinds, strict=True))
        total: Floats = np.zeros(())
        for number in numbers:
            block = self.blocks[number]
            own = self.cells(number)
            gone = tuple(axis for axis, column in enumerate(block.columns) if column not in asked)
            own = own.sum(axis=gone) if gone else own
            kept = [column for column in block.columns if column in asked]
            for axis, column in enumerate(kept):
                own = answered(own, asked[column], axis)
            for axis, column in enumerate(table.columns):
                if column not in kept:
                    lengths = mean_lengths(asked[column], self.sizes[column])
                    own = np.expand_dims(own, axis) * lengths.reshape(
                        [-1 if a == axis else 1 for a in range(own.ndim + 1)]
                    )
            total = total + own
        return total

    def half_widths(self, table: AskedTable, numbers: tuple[int, ...], confidence: float) -> Floats:
        """Of every answer of a table, with what rounding may add."""
        return self.widths_alone(table, numbers, confidence) + self.rounding(numbers)

    def widths_alone(self, table: AskedTable, numbers: tuple[int, ...], confidence: float) -> Floats:
        """What the noise alone makes them: known before anything is measured."""
        used = [self.noises[number] for number in numbers]
        found = widths(*self.moments(table, numbers), used, confidence)
        return found + self._left_out(table, numbers) if self.coarse else found

    def moments(self, table: AskedTable, numbers: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Σc²σ² of Gaussian noise, or Σ(cb)² and Σ(cb)⁴ of Laplace noise, of every answer of a table."""
        second: Floats = np.zeros(())
        fourth: Floats = np.zeros(())
        for number in numbers:
            own, fourths = self._moments_of(table, number)
            second, fourth = second + own, fourth + fourths
        return second, fourth

    def _moments_of(self, table: AskedTable, number: int) -> tuple[Floats, Floats]:
        """What one block has of them."""
        asked = dict(zip(table.columns, table.kinds, strict=True))
        block, noise = self.blocks[number], self.noises[number]
        wants_fourth = isinstance(noise.law, DiscreteLaplace)
        lines = dict(zip(block.columns, block.lines, strict=True))
        parts = [np.ones(()), np.ones(())]
        for column, kind in asked.items():
            if column in lines:
                pair = lines[column].spread(*stretches(kind, self.sizes[column]), fourth=wants_fourth)
            else:
                lengths = mean_lengths(kind, self.sizes[column])
                pair = lengths**2, lengths**4
            parts = [np.multiply.outer(part, own) for part, own in zip(parts, pair, strict=True)]
        for column, line in lines.items():
            if column not in asked:
                pair = line.spread(*stretches("total", self.sizes[column]), fourth=wants_fourth)
                parts = [part * own[0] for part, own in zip(parts, pair, strict=True)]
        square, quad = powers(noise, block.fineness)
        return square * parts[0], quad * parts[1]

    def _left_out(self, table: AskedTable, numbers: tuple[int, ...]) -> Floats:
        """What low bits that are not kept add to every answer of a table at most."""
        found: Floats = np.zeros(())
        for number in numbers:
            found = found + self._cut(self.blocks[number], self._moments_of(table, number)[0])
        return found

    def _cut(self, block: ProductBlock, second: Floats) -> Floats:
        """The same of one block: Σ|c|·σ/2ᵏ ≤ √rows · √(Σc²σ²)/2ᵏ."""
        found: Floats = self.coarse * math.sqrt(block.rows) * np.sqrt(second)
        return found

    def stretch_widths(self, starts: Integers, stops: Integers, confidence: float) -> Floats:
        """Half-widths of stretches of the cells of the only block, which has one column."""
        (block,), (noise,) = self.blocks, self.noises
        second, fourth = block.lines[0].spread(starts, stops, fourth=isinstance(noise.law, DiscreteLaplace))
        square, quad = powers(noise, block.fineness)
        return widths(square * second, quad * fourth, [noise], confidence) + self.rounding((0,))

    def sum_widths(self, chosen: NDArray[np.bool_], confidence: float) -> Floats:
        """Half-widths of sums of some cells of the only block, one for each row of `chosen`; 0 of none."""
        (block,), (noise,) = self.blocks, self.noises
        scaled = block.lines[0].coefficients(np.ascontiguousarray(chosen.T, dtype=np.float64))
        square, quad = powers(noise, block.fineness)
        found = widths(square * (scaled**2).sum(axis=0), quad * (scaled**4).sum(axis=0), [noise], confidence)
        return np.where(chosen.any(axis=1), found + self.rounding((0,)), 0.0)

    def answers(self, table: AskedTable, place: int, confidence: float) -> Ends:
        """The answers of a table, and the ends of their intervals."""
        numbers = self.sources[place]
        values = self.table(table, numbers)
        width = self.half_widths(table, numbers, confidence)
        return values, values - width, values + width

    def count(self, columns: tuple[int, ...], query: Floats, confidence: float) -> tuple[float, float, float] | None:
        """A count of the cells of some columns, with the ends of its interval; None if it does not follow.

        `query` has an axis for each of the columns.
        """
        numbers = self.covering(columns)
        if numbers is None:
            return None
        value, second, fourth, cut = 0.0, 0.0, 0.0, 0.0
        for number in numbers:
            block, noise = self.blocks[number], self.noises[number]
            own = self._handed(block, columns, query)
            value += float((own * self.cells(number)).sum())
            coefficients = block.coefficients(own)
            factors = block.factors
            fine = block.fineness
            scaled = coefficients * fine
            square, quad = powers(noise, fine)
            own_second = square * float((scaled**2 * (1 if factors is None else factors)).sum())
            second += own_second
            cut += float(self._cut(block, np.array(own_second)))
            fourth += quad * float((scaled**4).sum())
        used = [self.noises[number] for number in numbers]
        width = float(widths(np.array([second]), np.array([fourth]), used, confidence)[0])
        width += cut + self.rounding(numbers)
        return value, value - width, value + width

    def _handed(self, block: ProductBlock, columns: tuple[int, ...], query: Floats) -> Floats:
        """A query of some columns on the cells of a block: means where the block lacks a column, all of it where the
        query does."""
        gone = tuple(axis for axis, column in enumerate(columns) if column not in block.columns)
        share = prod(self.sizes[columns[axis]] for axis in gone)
        own = query.sum(axis=gone) / share if gone else query
        kept = [column for column in columns if column in block.columns]
        order = [kept.index(column) for column in block.columns if column in kept]
        own = own.transpose(order) if order else own
        shape = [self.sizes[column] if column in kept else 1 for column in block.columns]
        return np.broadcast_to(own.reshape(shape), [self.sizes[column] for column in block.columns])

    def covering(self, columns: tuple[int, ...]) -> tuple[int, ...] | None:
        """The blocks from which counts of these columns follow, by what is narrowest for their total."""
        wanted = set(columns)
        if self.strategy == "residual":
            known = {block.columns: number for number, block in enumerate(self.blocks)}
            if not any(wanted <= set(block.columns) for block in self.blocks):
                sized = {column for column in wanted if self.sizes[column] > 1}
                if not any(sized <= set(block.columns) for block in self.blocks):
                    return None
            return tuple(number for part, number in known.items() if set(part) <= wanted)
        holding = [number for number, block in enumerate(self.blocks) if wanted <= set(block.columns)]
        if not holding:
            return None

        def spread(number: int) -> float:
            block = self.blocks[number]
            kinds: list[Kind] = ["each" if column in wanted else "total" for column in block.columns]
            each = [
                line.spread(*stretches(kind, line.size), fourth=False)[0].mean()
                for line, kind in zip(block.lines, kinds, strict=True)
            ]
            return float(powers(self.noises[number], block.fineness)[0] * prod(each))

        return (min(holding, key=spread),)

    # --- keeping it ---------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """A line of JSON, then arrays: what an answer needs, whatever a later version would choose to measure."""
        arrays: list[bytes] = []
        lines: dict[int, int] = {}
        spelled: list[Any] = []
        for line in (line for block in self.blocks for line in block.lines):
            if id(line) not in lines:
                lines[id(line)] = len(spelled)
                spelled.append(spelled_line(line, arrays))
        head = {
            "format": FORMAT,
            "strategy": self.strategy,
            "sizes": self.sizes,
            "lines": spelled,
            "blocks": [[block.columns, [lines[id(line)] for line in block.lines]] for block in self.blocks],
            "laws": [_spelled_law(noise) for noise in self.noises],
            "sources": self.sources,
            "values": [_packed(values, arrays) for values in self.values],
        }
        text = json.dumps(head).encode()
        return b"%d\n" % len(text) + text + zlib.compress(b"".join(arrays), 6)

    @classmethod
    def from_bytes(cls, kept: bytes) -> "MeasuredDesign":
        size, rest = kept.split(b"\n", 1)
        head = json.loads(rest[: int(size)])
        if head["format"] != FORMAT:
            raise ValueError(f"format {head['format']}")
        arrays = memoryview(zlib.decompress(rest[int(size) :]))
        lines = [read_line(own, arrays) for own in head["lines"]]
        return cls(
            tuple(head["sizes"]),
            head["strategy"],
            tuple(
                ProductBlock(tuple(columns), tuple(lines[place] for place in own)) for columns, own in head["blocks"]
            ),
            tuple(_read_law(own) for own in head["laws"]),
            tuple(_unpacked(own, arrays) for own in head["values"]),
            tuple(tuple(own) for own in head["sources"]),
        )


def answered(cells: Floats, kind: Kind, axis: int) -> Floats:
    """Cells along an axis as the stretches of a kind."""
    if kind == "each":
        return cells
    if kind == "total":
        total: Floats = cells.sum(axis=axis, keepdims=True)
        return total
    sums = np.cumsum(cells, axis=axis)
    if kind == "prefix":
        return sums
    starts, stops = stretches(kind, cells.shape[axis])
    before = np.concatenate([np.zeros_like(np.take(sums, [0], axis=axis)), sums], axis=axis)
    found: Floats = np.take(before, stops, axis=axis) - np.take(before, starts, axis=axis)
    return found


def _spelled_law(noise: BlockNoise) -> list[str]:
    law = noise.law
    if isinstance(law, DiscreteGaussian):
        return ["gaussian", str(law.variance)]
    return ["laplace", str(law.scale)]


def _read_law(own: list[str]) -> BlockNoise:
    kind, amount = own
    return BlockNoise(DiscreteGaussian(Fraction(amount)) if kind == "gaussian" else DiscreteLaplace(Fraction(amount)))


def _packed(values: NDArray[Any], arrays: list[bytes]) -> Any:
    """Where an array stands among the bytes; numbers beyond 64 bits as they are."""
    if values.dtype == object:
        return [str(value) for value in values.tolist()]
    begin = sum(map(len, arrays))
    arrays.append(values.astype("<i8").tobytes())
    return {"begin": begin, "count": len(values)}


def _unpacked(own: Any, arrays: memoryview) -> NDArray[Any]:
    if isinstance(own, list):
        return np.array([int(value) for value in own], dtype=object)
    begin, count = own["begin"], own["count"]
    return np.frombuffer(arrays[begin : begin + 8 * count], dtype="<i8").astype(np.int64)

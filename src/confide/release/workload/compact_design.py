"""What was measured of very many marginals, kept in few bytes: every answer is put together when it is asked for.

The low bits of a noisy number tell of noise alone. So each number is kept as a whole number of steps, of which a
deviation of its noise is 2ᵏ or more, and what that can be off by is part of every interval: half a step for each
number. k is chosen before anything is measured, so that a ledger has room; where what was measured is far larger than
its noise, so that it takes more room than that, a bit less of every number is kept, and intervals say so too.
"""

import json
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from confide.mechanism import DiscreteGaussian
from confide.mechanism.noise.handful import LARGEST_SCALE
from confide.privacy.limits import LONGEST_ANSWER
from confide.release.block_noise import BlockNoise
from confide.release.workload.measured_design import Ends, MeasuredDesign
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import FINE_BITS, ProductBlock
from confide.workload.strategy.design import Design
from confide.workload.strategy.helmert import HelmertLine
from confide.workload.strategy.line import Floats, Integers, LineStrategy

MARK: Final = b"compact 1\n"
MANY_BLOCKS: Final = 1_000
MANY_NUMBERS: Final = 2**21
"""From so many blocks or numbers on, a design is kept in this way."""
MOST_BITS: Final = 11
LEAST_BITS: Final = 5
ROOM: Final = LONGEST_ANSWER * 9 // 10
"""Bytes of an answer that numbers may take."""
CHUNK: Final = 1 << 17
"""Numbers that are measured, packed and unpacked together, or those of one block."""
_NOISE_BITS: Final = 3.1
"""Of a number beside its k bits: 2.05 for a normal law of deviation 2ᵏ, up to one for its step, some for packing."""
_HELD: Final = 48
"""Chunks that are held unpacked."""


def compact_bits(design: Design, noises: Sequence[BlockNoise]) -> int | None:
    """How many bits of a deviation are kept of each number; None where a design is kept as it is. Public facts only."""
    plain = all(isinstance(line, HelmertLine) for line in {line for block in design.blocks for line in block.lines})
    many = len(design.blocks) > MANY_BLOCKS or design.numbers > MANY_NUMBERS
    if design.strategy != "residual" or design.noise != "gaussian" or not plain or not many:
        return None
    if any(block.norms.largest >= 1 << FINE_BITS for block in design.blocks):
        return None  # what is measured then takes more than 64 bits
    if not all(_drawn_together(*own) for own in {(b.lines, n) for b, n in zip(design.blocks, noises, strict=True)}):
        return None
    return max(LEAST_BITS, min(MOST_BITS, int(8 * ROOM / design.numbers - _NOISE_BITS)))


def compact_size(numbers: int, bits: int) -> int:
    """About how many bytes an answer of so many numbers takes: what fits has less than a byte for each in `ROOM`, so
    that leaving out bits comes to an end."""
    return int(numbers * (bits + _NOISE_BITS) / 8 * LONGEST_ANSWER / ROOM)


def _drawn_together(lines: Sequence[LineStrategy], noise: BlockNoise) -> bool:
    """Whether `gaussians` draws the noise of every number of a block: found out before anything is charged."""
    variance = noise.law.variance
    largest = math.prod(line.size * (line.size - 1) for line in lines if line.size > 1)
    return variance >= 1 and variance * largest <= LARGEST_SCALE**2


@dataclass(frozen=True, eq=False)
class CompactDesign:
    """Residuals of sets of columns, by size and then in order, with their laws, and packed chunks of numbers."""

    sizes: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    laws: tuple[Fraction, ...]
    """The different variances, in the numbers' own unit."""
    which: tuple[int, ...]
    """The law of each set."""
    chunks: tuple[bytes | memoryview, ...]
    bits: int
    strategy: str = "residual"

    @property
    def gaussian(self) -> bool:
        return True

    @property
    def noises(self) -> tuple[BlockNoise, ...]:
        """The different ones."""
        return tuple(BlockNoise(DiscreteGaussian(variance)) for variance in self.laws)

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        return {columns: place for place, columns in enumerate(self.sets)}

    @cached_property
    def _runs(self) -> list[range]:
        return list(runs(self.sizes, self.sets))

    @cached_property
    def _run_of(self) -> Integers:
        return np.repeat(np.arange(len(self._runs)), [len(run) for run in self._runs])

    @cached_property
    def _held(self) -> dict[int, list[Floats]]:
        return {}

    def block(self, place: int) -> ProductBlock:
        return residual_block(self.sizes, self.sets[place])

    def values(self, place: int) -> Floats:
        """What was measured of a set, each number in the middle of its step."""
        run = int(self._run_of[place])
        if run not in self._held:
            while len(self._held) >= _HELD:
                del self._held[next(iter(self._held))]
            own = self._runs[run]
            blocks = [self.block(number) for number in own]
            shifts = steps(variances(blocks, [self.laws[self.which[number]] for number in own]), self.bits)
            whole = unpacked(self.chunks[run])
            middle = np.ldexp(whole.astype(np.float64), shifts) + (np.ldexp(1.0, shifts) - 1) / 2
            self._held[run] = np.split(middle, np.cumsum([block.rows for block in blocks])[:-1])
        return self._held[run][place - self._runs[run].start]

    def within(self, columns: tuple[int, ...]) -> MeasuredDesign | None:
        """What was measured of some columns and their parts; None if they were not measured together."""
        sized = tuple(column for column in columns if self.sizes[column] > 1)
        if sized not in self._places:
            return None
        parts = [part for size in range(len(sized) + 1) for part in combinations(sized, size)]
        places = [self._places[part] for part in parts]
        return MeasuredDesign(
            self.sizes,
            self.strategy,
            tuple(map(self.block, places)),
            tuple(BlockNoise(DiscreteGaussian(self.laws[self.which[place]])) for place in places),
            tuple(map(self.values, places)),
            (tuple(range(len(places))),),
            coarse=2.0 ** -(self.bits + 1),
        )

    def answers(self, table: AskedTable, place: int, confidence: float) -> Ends:
        """The answers of a table, and the ends of their intervals."""
        own = self.within(table.columns)
        if own is None:
            raise KeyError(f"{table.columns} were not measured together")
        return own.answers(table, 0, confidence)

    def count(self, columns: tuple[int, ...], query: Floats, confidence: float) -> tuple[float, float, float] | None:
        own = self.within(columns)
        return None if own is None else own.count(columns, query, confidence)

    # --- keeping it ---------------------------------------------------------------------------------------------------

    def to_parts(self) -> list[bytes | memoryview]:
        """What is kept, in pieces: together they are long."""
        flat = np.array([column for own in self.sets for column in own], dtype="<i4")
        lengths = np.array([len(own) for own in self.sets], dtype="<i4")
        head = {
            "sizes": self.sizes,
            "bits": self.bits,
            "laws": [str(variance) for variance in self.laws],
            "sets": len(self.sets),
            "chunks": [len(chunk) for chunk in self.chunks],
        }
        public = [zlib.compress(own.tobytes(), 6) for own in (lengths, flat, np.array(self.which, dtype="<i4"))]
        text = json.dumps(head | {"public": [len(own) for own in public]}).encode()
        return [MARK, struct.pack("<Q", len(text)), text, *public, *self.chunks]

    @classmethod
    def from_bytes(cls, kept: bytes | memoryview) -> "CompactDesign":
        view = memoryview(kept)[len(MARK) :]
        (length,) = struct.unpack("<Q", view[:8])
        head = json.loads(bytes(view[8 : 8 + length]))
        pieces, begin = [], 8 + length
        for size in (*head["public"], *head["chunks"]):
            pieces.append(view[begin : begin + size])
            begin += size
        if begin != len(view):
            raise ValueError("an answer is not as long as it says")
        lengths, flat, which = (np.frombuffer(zlib.decompress(own), dtype="<i4").tolist() for own in pieces[:3])
        columns = iter(flat)
        sets = tuple(tuple(next(columns) for _ in range(own)) for own in lengths)
        laws = tuple(Fraction(own) for own in head["laws"])
        return cls(tuple(head["sizes"]), sets, laws, tuple(which), tuple(pieces[3:]), head["bits"])


def residual_block(sizes: Sequence[int], columns: tuple[int, ...]) -> ProductBlock:
    return ProductBlock(columns, tuple(HelmertLine(sizes[column]) for column in columns))


def runs(sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> Iterator[range]:
    """Sets whose numbers are packed together."""
    first, numbers = 0, 0
    for place, columns in enumerate(sets):
        own = residual_block(sizes, columns).rows
        if numbers and numbers + own > CHUNK:
            yield range(first, place)
            first, numbers = place, 0
        numbers += own
    yield range(first, len(sets))


def variances(blocks: Sequence[ProductBlock], laws: Sequence[Fraction]) -> Floats:
    """Of the noise of every number, block after block, within 2⁻⁵² relatively; products of doubles are the same on all
    machines."""
    one = np.ones(1)
    parts = [
        float(law) * (one if block.factors is None else block.factors.astype(np.float64))
        for block, law in zip(blocks, laws, strict=True)
    ]
    return np.concatenate(parts)


def steps(own: Floats, bits: int) -> Integers:
    """The binary logarithm of each number's step: 2ᵏ steps are at most a deviation; never below one."""
    _, exponents = np.frexp(own)
    return np.maximum((exponents.astype(np.int64) - 1) // 2 - bits, 0)


def packed(whole: Integers) -> bytes:
    """Whole numbers, byte by byte: the lowest bytes as they are, of the others what they tell."""
    low, high = int(whole.min(initial=0)), int(whole.max(initial=0))
    width = next(size for size in range(1, 9) if -(1 << (8 * size - 1)) <= low and high < 1 << (8 * size - 1))
    planes = np.ascontiguousarray(whole.astype("<i8")).view(np.uint8).reshape(-1, 8)
    parts = [planes[:, 0].tobytes()]
    for plane in range(1, width):
        press = zlib.compressobj(6, zlib.DEFLATED, 15, 9, zlib.Z_RLE)
        parts.append(press.compress(planes[:, plane].tobytes()) + press.flush())
    return struct.pack(f"<B{len(parts)}I", width, *map(len, parts)) + b"".join(parts)


def unpacked(kept: bytes | memoryview) -> Integers:
    width = kept[0]
    lengths = struct.unpack(f"<{width}I", kept[1 : 1 + 4 * width])
    begin = 1 + 4 * width
    planes = np.empty((lengths[0], 8), dtype=np.uint8)
    for plane, length in enumerate(lengths):
        own = kept[begin : begin + length]
        planes[:, plane] = np.frombuffer(own if plane == 0 else zlib.decompress(own), dtype=np.uint8)
        begin += length
    planes[:, width:] = np.where(planes[:, width - 1 : width] >= 1 << 7, 255, 0)
    return planes.reshape(-1).view("<i8").astype(np.int64)


def within_room(
    chunks: Sequence[bytes], bits: int, further: Callable[[int, int], Integers], room: int = ROOM
) -> tuple[tuple[bytes, ...], int]:
    """The chunks with as many bits as a ledger has room for: of what is noisy already, so nothing is told by it.

    `further` says of each number of a chunk how many of its bits go where so many are left of a deviation.
    """
    kept = list(chunks)
    while sum(map(len, kept)) > room and any(own[0] > 1 for own in kept):  # no number takes less than a byte
        bits -= 1
        for place, own in enumerate(kept):
            kept[place] = packed(unpacked(own) >> further(place, bits))
    return tuple(kept), bits

"""What was measured for synthetic data, kept with it: noisy counts of whole marginals, and the law of their noise.

It was released with the rest, so whatever is computed of it is free: intervals of counts, and how well the table that
was fitted keeps what was measured.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import Law
from confide.release.law_facts import law_facts, law_of
from confide.release.synthetic.kept_effects import NO_EFFECTS, KeptEffects, effects_bytes, effects_facts, kept_effects

LARGEST: Final = 2**31
"""Bytes of all counts together, at most."""

Merged = NDArray[np.int64] | None
"""For each place of a column which measured place it belongs to; None where every place is one of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptMarginal:
    """Noisy counts of a marginal, an axis for each of its columns, of places that may stand for several."""

    columns: tuple[int, ...]
    counts: NDArray[np.int64]
    law: Law
    merged: tuple[Merged, ...]
    turn: int = 0
    """0 if it was certain from the start to be measured like this; else the step: what was released before decided."""
    fineness: int = 1
    """The counts are so many times those of rows, and the law is that of their noise."""

    @property
    def variance(self) -> float:
        """Of the noise of one count of rows."""
        return float(self.law.variance) / self.fineness**2

    def half_width(self, confidence: float) -> int:
        """Of the interval of one count of rows."""
        return -(-self.law.half_width(confidence) // self.fineness)

    @property
    def noisy(self) -> NDArray[np.float64]:
        """Noisy counts of rows."""
        return self.counts / self.fineness

    def counts_of(self, table: NDArray[Any]) -> NDArray[np.float64]:
        """Counts of all places of the columns, as those that were measured."""
        found = table.astype(np.float64)
        for axis, own in enumerate(self.merged):
            if own is not None:
                summed = np.zeros((int(own.max()) + 1, *np.delete(found.shape, axis)))
                np.add.at(summed, own, np.moveaxis(found, axis, 0))
                found = np.moveaxis(summed, 0, axis)
        return found

    def spread(self, sizes: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
        """For each column, the measured place of each of its places."""
        return tuple(
            np.arange(sizes[column]) if own is None else own
            for column, own in zip(self.columns, self.merged, strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class KeptMeasurements:
    """All that is kept: whole marginals, of bins and of single columns value by value, and parts of marginals.

    A column of values has a place beyond those of the model's columns.
    """

    marginals: tuple[KeptMarginal, ...] = ()
    effects: KeptEffects = NO_EFFECTS

    def of_bins(self, columns: int) -> tuple[KeptMarginal, ...]:
        """Marginals of the columns of the model, which are so many."""
        return tuple(own for own in self.marginals if max(own.columns) < columns)

    def of_values(self, columns: int) -> tuple[KeptMarginal, ...]:
        """Those of single columns value by value, in their order."""
        return tuple(own for own in self.marginals if max(own.columns) >= columns)

    def facts(self) -> dict[str, Any]:
        """All but the counts, as plain values."""
        return {"marginals": kept_facts(self.marginals), "effects": effects_facts(self.effects)}

    def to_bytes(self) -> bytes:
        """The counts: the same bytes for the same counts."""
        counts, effects = kept_bytes(self.marginals), effects_bytes(self.effects)
        return struct.pack("<Q", len(counts)) + counts + effects

    @classmethod
    def of(cls, facts: Mapping[str, Any], stored: bytes, sizes: Sequence[int]) -> "KeptMeasurements":
        """What `facts` and `to_bytes` say; an error where they do not fit each other, or the columns."""
        end = 8 + struct.unpack_from("<Q", stored)[0]
        return cls(
            kept_marginals(facts["marginals"], stored[8:end], sizes),
            kept_effects(facts["effects"], stored[end:], sizes, LARGEST),
        )


NOTHING_KEPT: Final = KeptMeasurements()


def kept_facts(kept: Iterable[KeptMarginal]) -> list[dict[str, Any]]:
    """All but the counts, as plain values."""
    return [
        {
            "columns": list(own.columns),
            "shape": list(own.counts.shape),
            "law": law_facts(own.law),
            "turn": own.turn,
            "fineness": own.fineness,
            "merged": [None if places is None else places.tolist() for places in own.merged],
        }
        for own in kept
    ]


def kept_bytes(kept: Sequence[KeptMarginal]) -> bytes:
    """The counts of all of them: the same bytes for the same counts."""
    flat = [own.counts.reshape(-1) for own in kept] or [np.zeros(0, dtype=np.int64)]
    return zlib.compress(np.concatenate(flat).astype("<i8").tobytes(), 6)


def kept_marginals(facts: Sequence[Mapping[str, Any]], stored: bytes, sizes: Sequence[int]) -> tuple[KeptMarginal, ...]:
    """What `kept_facts` and `kept_bytes` say; an error where they do not fit each other, or the columns."""
    if not facts:
        return ()
    shapes = [tuple(int(size) for size in own["shape"]) for own in facts]
    ends = np.cumsum([prod(shape) for shape in shapes])
    engine = zlib.decompressobj()
    content = engine.decompress(stored, LARGEST)
    if not engine.eof or len(content) != 8 * int(ends[-1]):
        raise ValueError("counts that are not those of the marginals")
    parts = np.split(np.frombuffer(content, dtype="<i8").astype(np.int64), ends[:-1])
    found = []
    for own, part, shape in zip(facts, parts, shapes, strict=True):
        merged = tuple(None if places is None else np.array(places, dtype=np.int64) for places in own["merged"])
        columns = tuple(int(column) for column in own["columns"])
        made = KeptMarginal(
            columns, part.reshape(shape), law_of(own["law"]), merged, int(own["turn"]), int(own["fineness"])
        )
        places = made.spread(sizes)
        if (
            made.fineness < 1
            or [len(one) for one in places] != [sizes[column] for column in columns]
            or any(one.min() < 0 or int(one.max()) + 1 != size for one, size in zip(places, shape, strict=True))
        ):
            raise ValueError("marginals of other columns")
        found.append(made)
    return tuple(found)

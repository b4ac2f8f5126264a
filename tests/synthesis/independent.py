"""A second method, as one would add it: columns measured one by one, and taken for independent."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.host.progress import tell
from confide.synthesis.curator import Curator, MeasureSets, Model, SynthesisStep, Synthesized, total_of
from confide.synthesis.method import SynthesisMethod
from confide.workload import BoundWorkload


@dataclass(frozen=True)
class IndependentTable:
    sizes: tuple[int, ...]
    shares: tuple[NDArray[np.float64], ...]

    @property
    def words(self) -> str:
        return f"{len(self.sizes)} laws"

    def marginal(self, columns: tuple[int, ...], start: int, stop: int) -> NDArray[np.float32]:
        cells: Any = self.shares[columns[0]][start:stop]
        for column in columns[1:]:
            cells = np.multiply.outer(cells, self.shares[column])
        return np.asarray(cells, dtype=np.float32)

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        drawn = [generator.choice(len(own), count, p=own) for own in self.shares]
        return np.column_stack(drawn).astype(np.int64)

    def to_bytes(self) -> bytes:
        return np.concatenate(self.shares).astype("<f8").tobytes()


def load(stored: bytes, sizes: tuple[int, ...]) -> IndependentTable:
    parts = np.split(np.frombuffer(stored, dtype="<f8"), np.cumsum(sizes)[:-1])
    return IndependentTable(sizes, tuple(parts))


@dataclass(frozen=True)
class IndependentStrategy:
    floor: int

    @property
    def words(self) -> str:
        return f"independent: single columns, none below {self.floor}"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"floor": self.floor}

    def reads(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        return workload.closure(1)

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        return (MeasureSets("every count of single columns", workload.closure(1), Fraction(1)),)

    def room(self, workload: BoundWorkload) -> int:
        return 8 * sum(workload.domain.sizes)


def strategy(
    workload: BoundWorkload, cost: object, expected: int | None, unit_rows: int, **given: Any
) -> IndependentStrategy:
    if given.get("rounds") is not None:
        raise ParameterError("independent has no rounds")
    return IndependentStrategy(0)


def run(curator: Curator, workload: BoundWorkload, chosen: IndependentStrategy) -> Synthesized:
    tell("measuring", 0, 1)
    measured = curator.measure(workload.closure(1), Fraction(1))
    own = {part.columns[0]: np.maximum(part.counts, chosen.floor) + 1e-9 for part in measured}
    shares = tuple(own[column] / own[column].sum() for column in range(len(workload.domain.sizes)))
    table = IndependentTable(workload.domain.sizes, shares)
    assert prod(table.sizes) > 0
    return Synthesized(Model(table, total_of(measured, None)), 1.0, len(measured))


METHOD = SynthesisMethod(
    "independent",
    strategy,
    {IndependentStrategy: ("independent", lambda n: (n.floor,))},
    "tests.synthesis.independent",
    load,
    takes=("rounds",),
)

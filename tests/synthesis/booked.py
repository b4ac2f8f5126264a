"""A curator of public rows that keeps books: what was paid, and what the released numbers would cost by their noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import TestRandomness, gaussian
from confide.policy import Policy
from confide.synthesis.curator import MeasuredMarginal, Merging, Score, UnitReach, merged_counts
from confide.synthesis.selection import LargestError
from confide.workload import BoundWorkload, Domain, ExactTables, Threshold, Workload, domain_of, tables_of

CHANGE = UnitReach(1, 1)


def domain_with(sizes: Sequence[int]) -> Domain:
    """Columns c0, c1, … with so many places each."""
    columns = {f"c{place}": {"range": [0, size - 1]} for place, size in enumerate(sizes)}
    rules = {"confide": 1, "budget": {"epsilon": 1}, "unit": "row", "tables": {"t": {"columns": columns}}}
    return domain_of(Policy.parse(rules).tables["t"])


def every(sizes: Sequence[int], k: int) -> BoundWorkload:
    """All k-way marginals of such columns."""
    names = [f"c{place}" for place in range(len(sizes))]
    return Workload(tuple(Threshold(own, k) for own in combinations(names, k))).bound(domain_with(sizes))


def chain(count: int, sizes: Sequence[int], keep: float = 0.8, seed: int = 0) -> NDArray[np.int64]:
    """Rows of which each column follows the one before it, most of the time."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, sizes[0], count)]
    for size in sizes[1:]:
        follows = generator.random(count) < keep
        columns.append(np.where(follows, columns[-1] % size, generator.integers(0, size, count)))
    return np.stack(columns, axis=1)


@dataclass
class Booked:
    """ρ of every step, and of its noise."""

    codes: NDArray[np.int64]
    workload: BoundWorkload
    reads: Sequence[tuple[int, ...]]
    rho: Fraction = Fraction(1, 2)
    seed: int = 1
    paid: Fraction = Fraction(0)
    bought: float = 0.0
    choices: list[tuple[int, ...]] = field(default_factory=list)
    measured: list[tuple[int, ...]] = field(default_factory=list)
    noise: list[NDArray[np.int64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.randomness = TestRandomness(self.seed)
        self.exact: ExactTables = tables_of(self.codes, self.workload.domain.sizes, tuple(self.reads))

    def deviation(self, share: Fraction) -> float:
        return math.sqrt(float(gaussian(1, self.rho * share).law.variance))

    def measure(
        self, sets: Sequence[tuple[int, ...]], share: Fraction, merging: Merging | None = None
    ) -> tuple[MeasuredMarginal, ...]:
        self.paid += self.rho * share
        mechanism = gaussian(1, self.rho * share / len(sets))
        found = []
        for columns in sets:
            counts = self.exact.marginal(columns, 0, self.exact.sizes[columns[0]])
            if merging is not None:
                counts = merged_counts(counts, columns, merging)
            values = np.asarray(mechanism.measure(counts.reshape(-1), self.randomness).values)
            variance = float(mechanism.law.variance)
            self.bought += 1 / (2 * variance)
            self.noise.append(values - counts.reshape(-1))
            self.measured.append(columns)
            found.append(MeasuredMarginal(columns, values.astype(np.float64), variance))
        return tuple(found)

    def choose(self, candidates: Sequence[tuple[int, ...]], score: Score, share: Fraction) -> int:
        self.paid += self.rho * share
        self.bought += float(self.rho * share)
        scores = [
            score.of(place, self.exact.marginal(columns, 0, self.exact.sizes[columns[0]]))
            for place, columns in enumerate(candidates)
        ]
        epsilon = Fraction(math.isqrt(int(8 * self.rho * share * 10**24)), 10**12)
        place = LargestError(epsilon, score.sensitivity(CHANGE)).choose(np.array(scores), self.randomness)
        self.choices.append(candidates[place])
        return place


def mean_error(table: object, codes: NDArray[np.int64], workload: BoundWorkload) -> float:
    """The mean L1 error of the workload's marginals, as shares of the rows."""
    sizes = workload.domain.sizes
    exact = tables_of(codes, sizes, workload.sets)
    apart = [
        float(np.abs(table.marginal(own, 0, sizes[own[0]]) - exact.marginal(own, 0, sizes[own[0]]) / len(codes)).sum())  # type: ignore[attr-defined]
        for own in workload.sets
    ]
    return float(np.mean(apart))

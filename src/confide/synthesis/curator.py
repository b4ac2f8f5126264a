"""What a synthesizer asks of whoever holds the data, what it is told, and what it leaves behind.

A curator holds the data, and every answer of theirs is paid for before it is given: noisy counts, each with the
variance of its noise. What a method is going to ask, as far as that is known beforehand, is a list of steps, from which
a plan is priced. What it leaves behind, whatever the method, is a table of shares that can be asked, drawn from and
kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.workload import Tables
from confide.workload.strategy.design import Design


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginal:
    """Noisy counts of every cell of a marginal, in the order of the product of its columns."""

    columns: tuple[int, ...]
    counts: NDArray[np.float64]
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredQueries:
    """Noisy counts of single thresholds. `places` are columns of the relaxed table, −1 where a query has fewer."""

    places: NDArray[np.int64]
    need: NDArray[np.int64]
    counts: NDArray[np.float64]
    variance: float


Measured = MeasuredMarginal | MeasuredQueries

Merging = Sequence[NDArray[np.int64]]
"""For each column the number of the merged place that each of its places belongs to, from 0 on."""


def merged_sizes(merging: Merging) -> tuple[int, ...]:
    return tuple(int(own.max()) + 1 for own in merging)


def merged_counts(counts: NDArray[Any], columns: Sequence[int], merging: Merging) -> NDArray[Any]:
    """The counts of some columns, an axis each, summed over the places that are merged."""
    for axis, column in enumerate(columns):
        own = merging[column]
        found = np.zeros((int(own.max()) + 1, *np.delete(counts.shape, axis)), dtype=counts.dtype)
        np.add.at(found, own, np.moveaxis(counts, axis, 0))
        counts = np.moveaxis(found, 0, axis)
    return counts


@dataclass(frozen=True, slots=True)
class UnitReach:
    """What one unit can change in the counts of a set of columns."""

    rows: int
    """How many rows it has at most: so far a single count can move."""
    moved: int
    """How far all counts of one set can move together: its rows, or twice that where they may go elsewhere."""

    @property
    def replaced(self) -> bool:
        return self.moved > self.rows


class Score(Protocol):
    """How much there is to learn of a candidate, as a whole number, computed where the exact counts are held."""

    def sensitivity(self, change: UnitReach) -> int:
        """How far one unit can move the score of any candidate."""

    def of(self, place: int, counts: NDArray[np.int64]) -> int:
        """The score of the candidate at `place`, whose exact counts have an axis for each of its columns."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredEffect:
    """What some columns tell beside their parts: noisy counts of the cells of their marginal, without its means along
    each column. Of no columns it is the number of all rows. `variance` is that of every contrast of length 1.
    """

    columns: tuple[int, ...]
    counts: NDArray[np.float64]
    variance: float


def total_of(measured: tuple[Measured, ...], known: int | None) -> float:
    """How many rows there are: `known` where that is public, else the best average of what was measured.

    The cells of a marginal add up to all rows, with a variance of their number times that of a cell.
    """
    if known is not None:
        return float(known)
    marginals = [part for part in measured if isinstance(part, MeasuredMarginal)]
    if not marginals:
        return 1.0
    weights = np.array([1 / (len(part.counts) * part.variance) for part in marginals])
    sums = np.array([part.counts.sum() for part in marginals])
    return max(1.0, float(weights @ sums / weights.sum()))


class ShareTable(Tables, Protocol):
    """Shares of all rows in every cell, over a domain of finite columns. It was released: nothing of it is private."""

    @property
    def words(self) -> str:
        """How large it is, as people read it."""

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """So many records: a row for each, the place in each column."""

    def to_bytes(self) -> bytes:
        """What `SynthesisMethod.load` makes it of again; the same bytes for the same table."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What is believed so far: a table, and how many rows it stands for."""

    table: ShareTable
    total: float


@dataclass(frozen=True, slots=True, eq=False)
class Synthesized:
    """What a run leaves: the model, and how well it explains what was measured, in units of the noise."""

    model: Model
    loss: float
    measured: int
    """How many tables or queries were measured."""


@dataclass(frozen=True, slots=True)
class MeasureSets:
    """Every count of some sets of columns. Where a choice comes first, the largest stands for the chosen."""

    what: str
    sets: tuple[tuple[int, ...], ...]
    share: Fraction
    """Of the call's cost, for each time."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class ChooseAmong:
    """So many of some candidates, by the exponential mechanism."""

    what: str
    picks: int
    among: int
    share: Fraction
    times: int = 1
    errors: Literal["cells", "tables", "other"] = "cells"
    """Of what it looks for the largest: in one count, in all counts of a table together, or not in rows at all."""


@dataclass(frozen=True, slots=True)
class MeasureQueries:
    """Single counts, each with noise of its own."""

    what: str
    count: int
    share: Fraction
    times: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class MeasureDesign:
    """What a design measures, each of its blocks for its own part of the share."""

    what: str
    design: Design
    share: Fraction
    answers: int
    """How many counts follow from it."""
    tables: int
    """In how many tables they are."""


SynthesisStep = MeasureSets | MeasureDesign | ChooseAmong | MeasureQueries


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Single queries of a workload: the threshold of each, and its cell among those of the threshold."""

    thresholds: NDArray[np.int64]
    cells: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cells)


class Curator(Protocol):
    """Lends what a release may know. `share` is the part of the whole call's cost that a step pays.

    Each method is one step: a charge, then a private read, then a released answer. Nothing is measured twice for one
    payment, and nothing is learnt but through these methods.
    """

    @property
    def seed(self) -> int:
        """For the arithmetic on what was released: drawn at random with the first step, and kept with it."""

    def deviation(self, share: Fraction) -> float:
        """The standard deviation of the noise that a share buys for each count of one marginal. Free."""

    def measure(
        self, sets: Sequence[tuple[int, ...]], share: Fraction, merging: Merging | None = None
    ) -> tuple[MeasuredMarginal, ...]:
        """Noisy counts of whole marginals, of merged places if so wanted; the share is divided evenly among them."""

    def choose(self, candidates: Sequence[tuple[int, ...]], score: Score, share: Fraction) -> int:
        """The candidate whose score is about the largest."""

    def choose_table(self, queries: NDArray[np.int64], most: int, share: Fraction) -> NDArray[np.int64]:
        """The counts of all cells of a table of at most `most` rows whose answers are near those of the data."""

    def measure_design(self, design: Design, share: Fraction) -> tuple[MeasuredMarginal | MeasuredEffect, ...]:
        """What each block of a design tells; each block has its own part of the share."""

    def choose_set(self, candidates: Sequence[tuple[int, ...]], model: Model, share: Fraction) -> int:
        """The candidate whose largest cell error is about the largest."""

    def choose_queries(self, count: int, taken: Picked, model: Model, share: Fraction) -> Picked:
        """The queries of the workload, not taken before, whose errors are about the largest."""

    def ask(self, picked: Picked, share: Fraction) -> MeasuredQueries:
        """Noisy counts of single queries; the share is divided evenly among them."""

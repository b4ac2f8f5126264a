"""PrivBayes: a network of columns and their parents, chosen by mutual information, and the counts of each family.

[Zhang2017]. Column by column the network grows by the exponential mechanism: the next column and its parents among
those that are there, from all parents that a count can still be told from noise with. Then the counts of every family
are measured. How many parents, how many cells, how large a table: all of that follows from the policy and the cost,
never from data. The table is the product of the conditional shares as they were measured; or, as `privbayes+model`, the
Markov table that explains all families best.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np

from confide.host.progress import tell
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import (
    ChooseAmong,
    Curator,
    MeasuredMarginal,
    MeasureSets,
    Model,
    SynthesisStep,
    Synthesized,
    total_of,
)
from confide.synthesis.information import MOST_ROWS, Family, Information
from confide.synthesis.junction import BYTES_OF_A_CELL, tree_bytes
from confide.synthesis.markov import MarkovTable, Wide, product_of
from confide.synthesis.markov_fit import Evidence, fit_markov
from confide.synthesis.model_size import kept_bytes, megabytes_from, whole_from
from confide.synthesis.relaxed import cell_count
from confide.synthesis.strategy import MOST_CELLS, noise
from confide.workload import BoundWorkload
from confide.workload.tables import maximal

ROWS: Final = Fraction(1, 20)
"""Of the cost, for the column that is the root and tells how many rows there are."""
STRUCTURE: Final = Fraction(3, 10)
FAMILIES: Final = 1 - ROWS - STRUCTURE
USEFUL: Final = 4
"""A family has no more cells than leave a count of the mean so many times its noise."""
MOST_SETS: Final = 2_000
"""Sets of columns that may be looked at, unless `degree` says how many parents there are."""

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PrivBayesStrategy:
    """`degree` parents at most, `cells` of a family at most, `megabytes` of a table at most."""

    degree: int
    cells: int
    megabytes: int
    model: bool

    @property
    def words(self) -> str:
        held = "a model fitted to all families" if self.model else "their conditional shares"
        name = "privbayes+model" if self.model else "privbayes"
        return f"{name}: a network of at most {self.degree} parents by mutual information, {held}"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"degree": self.degree, "cells": self.cells, "megabytes": self.megabytes}

    def reads(self, workload: BoundWorkload) -> Sets:
        """Every set that may be a family."""
        sizes = workload.domain.sizes
        columns = range(len(sizes))
        singles = [(column,) for column in columns]
        families = [
            own
            for many in range(2, self.degree + 2)
            for own in combinations(columns, many)
            if cell_count(sizes, own) <= self.cells
        ]
        return maximal((*singles, *families))

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        sizes = workload.domain.sizes
        root, edges = (self.root(workload),), len(sizes) - 1
        if not edges:
            return (MeasureSets("every count of the column", (root,), Fraction(1)),)
        largest = max(self.reads(workload), key=lambda columns: cell_count(sizes, columns))
        among = max(sum(1 for _ in self.families(sizes, range(many))) for many in range(1, len(sizes)))
        words = f"a column and its parents, one of at most {among:,}"
        return (
            MeasureSets("every count of the smallest column", (root,), ROWS),
            ChooseAmong(words, 1, among, STRUCTURE / edges, edges, "other"),
            MeasureSets(f"every count of {edges} families", (largest,) * edges, FAMILIES),
        )

    def room(self, workload: BoundWorkload) -> int:
        return kept_bytes(self.megabytes, workload)

    def root(self, workload: BoundWorkload) -> int:
        sizes = workload.domain.sizes
        return min(range(len(sizes)), key=lambda column: (sizes[column], column))

    def families(self, sizes: tuple[int, ...], placed: Sequence[int]) -> Iterator[Family]:
        """Every column that is not placed with every largest set of placed parents that its cells allow."""
        for child in range(len(sizes)):
            if child in placed:
                continue
            found: list[set[int]] = []
            for many in range(min(self.degree, len(placed)), -1, -1):
                for parents in combinations(sorted(placed), many):
                    cells = cell_count(sizes, (child, *parents))
                    if (cells <= self.cells or not parents) and not any(set(parents) <= own for own in found):
                        found.append(set(parents))
                        yield Family(child, parents)


PRIVBAYES_SPELLING: Final[Spelling] = {
    PrivBayesStrategy: ("privbayes", lambda n: (n.degree, n.cells, n.megabytes, n.model)),
}


def privbayes_strategy(
    workload: BoundWorkload,
    cost: PureDP | ZCDP,
    expected: int | None,
    unit_rows: int,
    *,
    degree: int | None = None,
    megabytes: int | None = None,
    model: bool = False,
) -> PrivBayesStrategy:
    columns = len(workload.domain.sizes)
    most = 1
    while most < columns - 1 and math.comb(columns, most + 2) <= MOST_SETS:
        most += 1
    limit = megabytes_from(megabytes, workload)
    deviation = noise(cost, FAMILIES, max(1, columns - 1), unit_rows)
    cells = int((expected or 10_000) / (USEFUL * deviation))
    cells = max(1, min(cells, MOST_CELLS, limit * 2**20 // BYTES_OF_A_CELL // columns))
    return PrivBayesStrategy(whole_from("degree", degree, min(most, 4), 0, 6), cells, limit, model)


def model_strategy(
    workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int, **given: Any
) -> PrivBayesStrategy:
    return privbayes_strategy(workload, cost, expected, unit_rows, **given, model=True)


def run(curator: Curator, workload: BoundWorkload, strategy: PrivBayesStrategy) -> Synthesized:
    sizes, root = workload.domain.sizes, strategy.root(workload)
    edges = len(sizes) - 1
    tell("measuring the smallest column", 0, edges + 3)
    measured = curator.measure([(root,)], ROWS if edges else Fraction(1))
    families = _network(curator, workload, strategy, measured[0])
    if edges:
        tell(f"measuring {edges} families", edges + 1, edges + 3)
        measured += curator.measure([family.columns for family in families], FAMILIES)
    total = total_of(measured, None)
    evidence = [Evidence.of(part) for part in measured]
    if strategy.model:

        def watch(steps: int, loss: float) -> None:
            tell(f"fitting, loss {loss:.3f}", edges + 2, edges + 3)

        fit = fit_markov(sizes, evidence, total, watch=watch)
        return Synthesized(Model(fit.table, total), fit.loss, len(measured))
    children = [Family(root, ()), *families]
    factors = [_conditional(sizes, family, part) for family, part in zip(children, measured, strict=True)]
    table = product_of(sizes, factors)
    return Synthesized(Model(table, total), _loss(table, measured, total), len(measured))


def _network(
    curator: Curator, workload: BoundWorkload, strategy: PrivBayesStrategy, first: MeasuredMarginal
) -> list[Family]:
    """One column after the other, with its parents."""
    sizes, edges = workload.domain.sizes, len(workload.domain.sizes) - 1
    rows = min(MOST_ROWS, max(1, round(total_of((first,), None))))
    found: list[Family] = []
    placed = [strategy.root(workload)]
    for edge in range(edges):
        tell(f"choosing column {edge + 1} of {edges} and its parents", edge + 1, edges + 3)
        families = _admitted(sizes, strategy, placed, found)
        binary = all(sizes[family.child] == 2 for family in families)
        score = Information(families, rows, binary)
        place = curator.choose([family.columns for family in families], score, STRUCTURE / edges)
        found.append(families[place])
        placed.append(families[place].child)
    return found


def _admitted(
    sizes: tuple[int, ...], strategy: PrivBayesStrategy, placed: Sequence[int], found: Sequence[Family]
) -> list[Family]:
    """The families with which the table stays within its size; columns without parents always do."""
    families, most = list(strategy.families(sizes, placed)), strategy.megabytes * 2**20
    if BYTES_OF_A_CELL * math.prod(sizes) <= most:
        return families
    held = [family.columns for family in found]
    fitting = [family for family in families if tree_bytes(sizes, [*held, family.columns]) <= most]
    return fitting or [Family(child, ()) for child in range(len(sizes)) if child not in placed]


def _conditional(sizes: tuple[int, ...], family: Family, part: MeasuredMarginal) -> tuple[tuple[int, ...], Wide]:
    """The shares of a child given its parents: counts below nothing are nothing; where there is nothing, even."""
    counts = np.maximum(part.counts.reshape([sizes[column] for column in part.columns]), 0)
    axis = part.columns.index(family.child)
    sums = counts.sum(axis=axis, keepdims=True)
    even = 1 / sizes[family.child]
    return part.columns, np.where(sums > 0, counts / np.where(sums > 0, sums, 1), even)


def _loss(table: MarkovTable, measured: Sequence[MeasuredMarginal], total: float) -> float:
    squares = [
        np.square(table.marginal(part.columns, 0, table.sizes[part.columns[0]]).reshape(-1) * total - part.counts).sum()
        / part.variance
        for part in measured
    ]
    return float(sum(squares) / sum(len(part.counts) for part in measured))

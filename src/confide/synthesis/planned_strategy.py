"""What the method `planned` measures: the optimal design for all marginals of one order. From public facts alone.

A design that does not look at the data has an exact forecast. Where it says that the noise on the tables of the
workload is small, they are measured as they are; else those of their parts are. The rule was found on generated
populations (`bench/synthesis_rules.py`), never on the data at hand.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np

from confide.errors import ParameterError
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import MeasureDesign, SynthesisStep
from confide.synthesis.full import FullTable
from confide.synthesis.merged_strategy import MergedStrategy, choose_merged, spelled
from confide.synthesis.relaxed import RelaxedTable
from confide.synthesis.strategy import whole
from confide.workload import AskedTable, BoundWorkload
from confide.workload.strategy.design import Design, designs
from confide.workload.strategy.line import AskedLine, Kind, NoiseKind, noise_norm, total_spread

MOST_CELLS: Final = 2**20
"""Of all columns together: a table of all cells has at most so many."""
MOST_BLOCKS: Final = 5_000
TOO_NOISY: Final = (1.0, 0.28, 0.036)
"""Where tables of one, two, or three columns and more would be off by more than this share of the rows, their parts are
measured. Noise on pairs may be large and tell more than columns by themselves; triples are worth less beside pairs."""
NOTHING: Final = 2.0
"""Two laws differ by no more than this in sum: beyond, noise is all there would be."""
ORDERS: Final[Mapping[str, int | None]] = {"closure": 2, "all": None}


@dataclass(frozen=True, slots=True)
class PlannedStrategy:
    """All marginals of at most `order` columns that lie within the workload, by one design for all of them."""

    order: int
    design: str
    noise: NoiseKind
    cells: int
    """Of the table that is fitted."""

    @property
    def words(self) -> str:
        return f"planned: all {self.order}-way marginals at once ({self.design}), {self.cells:,} cells"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"select": self.design, "order": self.order, "cells": self.cells}

    def designed(self, workload: BoundWorkload) -> Design:
        return designs(workload.domain.sizes, tables_of_order(workload, self.order), self.design, self.noise)[0]

    def reads(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        blocks = (block.columns for block in self.designed(workload).blocks)
        return tuple(dict.fromkeys((*workload.sets, *(columns for columns in blocks if columns))))

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        design, tables = self.designed(workload), tables_of_order(workload, self.order)
        answers = sum(math.prod(workload.domain.sizes[column] for column in table.columns) for table in tables)
        what = f"all that {len(tables):,} table{'s' * (len(tables) > 1)} of {self.order} columns tell"
        return (MeasureDesign(what, design, Fraction(1), answers, len(tables)),)

    def room(self, workload: BoundWorkload) -> int:
        return 4 * self.cells


PLANNED_SPELLING: Final[Spelling] = {
    PlannedStrategy: ("planned", lambda n: (n.order, n.design, n.noise, n.cells)),
    MergedStrategy: ("planned, merged", spelled),
}


def choose_planned(
    workload: BoundWorkload,
    cost: PureDP | ZCDP,
    expected: int | None,
    unit_rows: int,
    *,
    select: str = "auto",
    rows: int | None = None,
) -> PlannedStrategy | MergedStrategy:
    """The rule, with what the caller sets taken as given. `expected` is roughly how many rows there are, if public."""
    if select not in ("auto", *ORDERS):
        raise ParameterError(
            f"select = {select!r} is not of method 'planned'; write auto, closure for pairs, all for whole sets"
        )
    cells = math.prod(workload.domain.sizes)
    given = whole("rows", rows, 10_000)
    if cells > MOST_CELLS:
        return choose_merged(workload, cost, expected, unit_rows, select, given)
    if given is not None:
        raise ParameterError(f"rows is for a relaxed table; all {cells:,} cells are held here, so leave it out")
    most = max(map(len, workload.sets))
    asked = ORDERS.get(select, 0)
    orders = [most if asked is None else min(asked, most)] if select != "auto" else list(range(most, 0, -1))
    orders = [order for order in orders if _blocks(workload, order) <= MOST_BLOCKS]
    if not orders:
        raise ParameterError(f"more than {MOST_BLOCKS:,} sets of columns would be measured; take a smaller k")
    noise: NoiseKind = "laplace" if isinstance(cost, PureDP) else "gaussian"
    for order in orders:
        design = best_of_order(workload, order, noise)
        if (
            order == orders[-1]
            or forecast(design, workload, order, cost, expected or 10_000, unit_rows) <= TOO_NOISY[min(order, 3) - 1]
        ):
            break
    if expected is not None and forecast(design, workload, order, cost, expected, unit_rows) > NOTHING:
        raise ParameterError(
            f"this epsilon buys nothing: the noise of {order}-way marginals exceeds the {expected:,} rows that the "
            "policy expects; give a larger one"
        )
    return PlannedStrategy(order, design.strategy, noise, cells)


def best_of_order(workload: BoundWorkload, order: int, noise: NoiseKind) -> Design:
    """The design of least error for all marginals of an order."""
    made = designs(workload.domain.sizes, tables_of_order(workload, order), "auto", noise)
    return min(made, key=lambda design: design.error())


def _blocks(workload: BoundWorkload, order: int) -> int:
    return len(workload.closure(order))


def tables_of_order(workload: BoundWorkload, order: int) -> tuple[AskedTable, ...]:
    """The sets of the workload, or of larger ones every part of so many columns."""
    found = {part for columns in workload.sets for part in combinations(columns, min(order, len(columns)))}
    return tuple(AskedTable(part, tuple[Kind, ...](["each"] * len(part))) for part in sorted(found))


def forecast(
    design: Design, workload: BoundWorkload, order: int, cost: PureDP | ZCDP, rows: int, unit_rows: int
) -> float:
    """The mean over tables of the sum of all cells' errors, as a share of `rows`, of the linear estimate: exact but for
    what rounding and neighbours add. For Gaussian noise E|error| = √(2/π)·σ, and very nearly so for sums of Laplace.
    """
    sizes = workload.domain.sizes
    unit = unit_rows / (float(cost.epsilon) / math.sqrt(2)) if isinstance(cost, PureDP) else 0.0
    if isinstance(cost, ZCDP):
        unit = unit_rows / math.sqrt(2 * float(cost.rho))
    power = 1 if design.noise == "gaussian" else 2
    variances = [
        noise_norm([line.norms for line in block.lines], design.noise) / float(share) ** power
        for block, share in zip(design.blocks, design.shares, strict=True)
    ]
    errors = []
    for table, sources in zip(tables_of_order(workload, order), design.sources, strict=True):
        cells, variance = math.prod(sizes[column] for column in table.columns), 0.0
        for number in sources:
            lines = dict(zip(design.blocks[number].columns, design.blocks[number].lines, strict=True))
            inside = [
                total_spread(line, AskedLine(sizes[column], ("each" if column in table.columns else "total",)))
                / (sizes[column] if column in table.columns else 1)
                for column, line in lines.items()
            ]
            outside = [sizes[column] ** -2 for column in table.columns if column not in lines]
            variance += variances[number] * math.prod(inside) * math.prod(outside)
        errors.append(cells * math.sqrt(variance))
    return math.sqrt(2 / math.pi) * unit * float(np.mean(errors)) / rows


def load(stored: bytes, sizes: tuple[int, ...]) -> FullTable | RelaxedTable:
    """What holds the shares follows from how many cells there are."""
    return (FullTable if math.prod(sizes) <= MOST_CELLS else RelaxedTable).from_bytes(stored, sizes)

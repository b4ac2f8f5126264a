"""Strategies that look at the data first: part of the cost finds parts of columns, the rest measures them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.selection.even_parts import MOST_CELLS, even_parts
from confide.mechanism.selection.privtree import privtree, split_codes
from confide.privacy.amount import root
from confide.privacy.budget import Currency
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, PureDP
from confide.release.block_noise import BlockNoise, block_noise, forecast, noises_for
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.workload.answers import WorkloadAnswers
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import powers, widths
from confide.release.workload.partitioned import PartitionedDesign
from confide.workload.asked import AskedTable
from confide.workload.strategy.asked_parts import line_for_parts, tree_of_parts
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.design import Design, designs
from confide.workload.strategy.line import Kind, LineStrategy, NoiseKind, stretches
from confide.workload.strategy.partition import CellGrid, Partition

if TYPE_CHECKING:
    from confide.release.workload.request import WorkloadRequest

TREE_SHARE: Final = Fraction(1, 5)
"""Of ε, for finding parts of one column."""
RHO_SHARE: Final = Fraction(1, 2)
"""Of √(2ρ) where ρ is added up, which is a quarter of it: finding parts has no Gaussian noise, and measuring has."""
BOX_SHARE: Final = Fraction(1, 3)
"""The same for parts of several columns, where there are more of them to find."""
HALVINGS: Final = {1: 1, 2: 4, 3: 3}
"""By the number of columns, how often a split halves a part: of two columns both twice, of three all once."""
MOST_BOX_CELLS: Final = 2**18
"""Of several columns together."""

AUTO_PARTS: Final = "privtree"
AUTO_CELLS: Final = 256
AUTO_PER_CELL: Final = 32
AUTO_PER_CELL_RHO: Final = 1
"""Where `auto` finds parts first: rows times ε, or times √(2ρ), for each cell of the column, and how many cells it has
at least."""

Edges = Callable[[NDArray[np.int64], Randomness], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Split:
    """A cost in two: ε for finding parts, and what is left to measure them."""

    finding: Fraction
    measuring: Currency

    @classmethod
    def of(cls, cost: Currency, columns: int = 1) -> "Split":
        """ε adds up; a pure loss of ε is one of ε²/2 where ρ does."""
        share = BOX_SHARE if columns > 1 else TREE_SHARE if isinstance(cost, PureDP) else RHO_SHARE
        if isinstance(cost, PureDP):
            finding = cost.epsilon * share
            return cls(finding, PureDP(cost.epsilon - finding))
        finding = root(2 * cost.rho) * share
        return cls(finding, ZCDP(cost.rho - finding**2 / 2, cost.delta))


def _privtree(epsilon: Fraction, changes: int, sizes: tuple[int, ...], later: Fraction) -> Edges:
    """At the floor a part is split with chance 1/2β: into fewer parts than 2β, so that empty ones die out."""
    if len(sizes) not in HALVINGS:
        raise ParameterError(
            "strategy='privtree' finds parts of one to three columns; ask for fewer, or write strategy='auto'"
        )
    if len(sizes) > 1 and prod(sizes) > MOST_BOX_CELLS:
        raise ParameterError(
            f"strategy='privtree' takes several columns of at most {MOST_BOX_CELLS:,} cells together; take wider bins"
        )
    halvings = HALVINGS[len(sizes)]
    tree, grid = privtree(epsilon, changes, 1 << halvings), CellGrid(sizes)
    return lambda counts, randomness: split_codes(tree, counts, grid.codes, halvings, randomness)


def _dawa(epsilon: Fraction, changes: int, sizes: tuple[int, ...], later: Fraction) -> Edges:
    if len(sizes) != 1:
        raise ParameterError(
            "strategy='dawa' finds parts of one column; ask for ranges or prefixes of one, or write strategy='auto'"
        )
    if sizes[0] > MOST_CELLS:
        raise ParameterError(f"strategy='dawa' takes columns of at most {MOST_CELLS:,} cells; take wider bins")
    return even_parts(epsilon, changes, sizes[0], later).edges


PARTITIONS: Final[Mapping[str, Callable[[Fraction, int, tuple[int, ...], Fraction], Edges]]] = {
    "privtree": _privtree,
    "dawa": _dawa,
}
"""How parts are found, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class PricedPartition:
    """A workload of one to three columns with how its parts are found, and the noise that whole parts get.

    `design` and `noises` are those of every cell as a part. Of one column no sum of whole parts is wider than there; of
    several columns parts are measured in another order, and these are what trees of every column would give.
    """

    request: "WorkloadRequest"
    edges: Edges
    split: Split
    design: Design
    noises: tuple[BlockNoise, ...]
    loss: Currency
    total: float

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self.total))

    @property
    def widths(self) -> tuple[float, ...]:
        return (self.deviation,)

    def measured(self) -> MeasuredDesign:
        """To look at widths."""
        design = self.design
        return MeasuredDesign(
            self.request.linear.domain.sizes, self.request.strategy, design.blocks, self.noises, (), design.sources
        )

    def measured_parts(self, partition: Partition) -> tuple[ProductBlock, BlockNoise]:
        """What is measured of parts that are released: what suits the answers best, if no promised width is passed."""
        linear, kind = self.request.linear, self.design.noise
        found = self._noised(line_for_parts(partition, linear.domain.sizes, linear.tables, kind))
        if len(linear.domain) == 1 and not self._within_plan(partition, *found):
            return self._noised(tree_of_parts(partition.parts, kind))
        return found

    def _noised(self, line: LineStrategy) -> tuple[ProductBlock, BlockNoise]:
        block = ProductBlock((0,), (line,))
        return block, block_noise(block, self.design.noise, Fraction(1), self.request.change, self.split.measuring)

    def _within_plan(self, partition: Partition, block: ProductBlock, noise: BlockNoise) -> bool:
        """Whether no sum of whole parts is wider than the widest answer of its kind by a tree of all cells."""
        level = self.request.confidence
        return all(
            widest(block, noise, kind, level) <= widest(self.design.blocks[0], self.noises[0], kind, level)
            for kind in dict.fromkeys(kind for table in self.request.linear.tables for kind in table.kinds)
        )

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Releases parts of the columns, then what their strategy measures.

        Neighbours: the policy's. Loss: that of finding parts and that of measuring them add up to the cost; the
        strategy follows from the parts, which are released.
        """
        request = self.request
        sizes = request.linear.domain.sizes
        columns = tuple(range(len(sizes)))
        tabulation = replace(request.counted.tabulation, sets=(columns,))
        exact = holdings.engine.tabulate(tabulation, charge, holdings.ledger.secret)
        counts = exact.marginal(columns, 0, exact.sizes[0]).reshape(-1)[CellGrid(sizes).order]
        edges = self.edges(counts, holdings.randomness)
        partition = Partition(tuple(edges.tolist()))
        block, noise = self.measured_parts(partition)
        values = noise.measure(block, np.add.reduceat(counts, edges[:-1]), holdings.randomness)
        parts = MeasuredDesign((partition.parts,), block.lines[0].name, (block,), (noise,), (values,), ((0,),))
        return WorkloadAnswers(
            request.table,
            request.linear,
            PartitionedDesign(request.strategy, partition, parts, sizes),
            Cost.of(request.epsilon, self.loss),
            request.confidence,
            request.counted.unit,
            request.counted.neighbours,
            test_noise=not holdings.randomness.kernel,
        ).to_bytes()


def widest(block: ProductBlock, noise: BlockNoise, kind: Kind, confidence: float) -> float:
    """The largest half-width of all stretches of a kind of the only column of a block."""
    square, quad = powers(noise, block.fineness)
    line = block.lines[0]
    second, fourth = line.spread(*stretches(kind, line.size), fourth=bool(quad))
    return float(widths(square * second, quad * fourth, [noise], confidence).max())


def rows_changed(change: UnitChange) -> int:
    """Rows in which neighbours differ, one after the other: a row that is replaced goes, and another comes."""
    return change.rows * (2 if change.replaced else 1)


def suits_parts(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...], rows: int | None, cost: Currency, changes: int = 1
) -> bool:
    """Whether `auto` finds parts first: stretches of one long column alone, and few rows · ε. Public facts only.

    `rows` is the policy's rough number; where there is none nothing says that rows are few. A unit changes at most so
    many rows, and noise is as large. The rule was found on generated data (`bench/workload_auto.py`).
    """
    if rows is None or len(sizes) != 1 or sizes[0] < AUTO_CELLS:
        return False
    if any(kind not in ("prefix", "range") for table in tables for kind in table.kinds):
        return False
    if isinstance(cost, PureDP):
        return rows * cost.epsilon <= AUTO_PER_CELL * sizes[0] * changes
    return rows * root(2 * cost.rho) <= AUTO_PER_CELL_RHO * sizes[0] * changes


def price_partition(request: "WorkloadRequest", cost: Currency) -> PricedPartition:
    """The price of a strategy that finds parts first, or a refusal."""
    linear, change = request.linear, request.change
    sizes = linear.domain.sizes
    split = Split.of(cost, len(sizes))
    kind: NoiseKind = "laplace" if isinstance(cost, PureDP) else "gaussian"
    (design,) = designs(sizes, linear.tables, "hierarchy", kind)
    noises = noises_for(design, change, split.measuring)
    changes = rows_changed(change)
    block, noise = design.blocks[0], noises[0]
    cell, _ = block.lines[0].spread(np.array([0]), np.array([1]), fourth=False)
    later = Fraction(float(noise.variance * cell[0]) ** 0.5 / block.fineness).limit_denominator(2**20)  # in rows
    edges = PARTITIONS[request.strategy](split.finding, changes, sizes, later)
    total = forecast(design, noises) / len(linear.tables)
    return PricedPartition(request, edges, split, design, noises, cost, total)

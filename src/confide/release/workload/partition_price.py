"""Strategies that look at the data first: part of the cost finds parts of a column, the rest measures them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.selection.even_parts import MOST_CELLS, even_parts
from confide.mechanism.selection.privtree import privtree, split_line
from confide.privacy.amount import root
from confide.privacy.budget import Currency
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, PureDP
from confide.release.cost import Cost
from confide.release.holdings import Holdings
from confide.release.workload.answers import WorkloadAnswers
from confide.release.workload.measured_design import MeasuredDesign
from confide.release.workload.noise import BlockNoise, block_noise
from confide.release.workload.partitioned import PartitionedDesign
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.design import Design, designs
from confide.workload.strategy.hierarchy import tree_for
from confide.workload.strategy.line import AskedLine, NoiseKind
from confide.workload.strategy.partition import Partition

if TYPE_CHECKING:
    from confide.release.workload.request import WorkloadRequest

TREE_SHARE: Final = Fraction(1, 4)
"""Of ε, for finding parts; where ρ is added up that is a sixteenth of it."""

Edges = Callable[[NDArray[np.int64], Randomness], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Split:
    """A cost in two: ε for finding parts, and what is left to measure them."""

    finding: Fraction
    measuring: Currency

    @classmethod
    def of(cls, cost: Currency) -> "Split":
        """ε adds up; a pure loss of ε is one of ε²/2 where ρ does."""
        if isinstance(cost, PureDP):
            finding = cost.epsilon * TREE_SHARE
            return cls(finding, PureDP(cost.epsilon - finding))
        finding = root(2 * cost.rho) * TREE_SHARE
        return cls(finding, ZCDP(cost.rho - finding**2 / 2, cost.delta))


def _privtree(epsilon: Fraction, changes: int, cells: int, later: Fraction) -> Edges:
    tree = privtree(epsilon, changes)
    return lambda counts, randomness: split_line(tree, counts, randomness)


def _dawa(epsilon: Fraction, changes: int, cells: int, later: Fraction) -> Edges:
    if cells > MOST_CELLS:
        raise ParameterError(f"strategy='dawa' takes columns of at most {MOST_CELLS:,} cells; take wider bins")
    return even_parts(epsilon, changes, cells, later).edges


PARTITIONS: Final[Mapping[str, Callable[[Fraction, int, int, Fraction], Edges]]] = {
    "privtree": _privtree,
    "dawa": _dawa,
}
"""How parts are found, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class PricedPartition:
    """A workload of one column with how its parts are found, and the noise that whole parts get.

    `design` and `noises` are those of every cell as a part: no sum of whole parts is wider than there.
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

    def measure(self, holdings: Holdings, charge: Charge) -> bytes:
        """Releases parts of a column, then what a tree over the parts measures.

        Neighbours: the policy's. Loss: that of finding parts and that of measuring them add up to the cost; the tree
        follows from the number of parts, which is released.
        """
        request = self.request
        exact = holdings.engine.tabulate(request.counted.tabulation, charge, holdings.ledger.secret)
        counts = exact.marginal((0,), 0, exact.sizes[0])
        edges = self.edges(counts, holdings.randomness)
        partition = Partition(tuple(edges.tolist()))
        kind = self.design.noise
        block = ProductBlock((0,), (tree_for(AskedLine(partition.parts, ("prefix",)), kind),))
        noise = block_noise(block, kind, Fraction(1), request.change, self.split.measuring)
        values = noise.measure(block, np.add.reduceat(counts, edges[:-1]), holdings.randomness)
        parts = MeasuredDesign((partition.parts,), "hierarchy", (block,), (noise,), (values,), ((0,),))
        return WorkloadAnswers(
            request.table,
            request.linear,
            PartitionedDesign(request.strategy, partition, parts),
            Cost.of(request.epsilon, self.loss),
            request.confidence,
            request.counted.unit,
            request.counted.neighbours,
            test_noise=not holdings.randomness.kernel,
        ).to_bytes()


def price_partition(request: "WorkloadRequest", cost: Currency) -> PricedPartition:
    """The price of a strategy that finds parts first, or a refusal."""
    linear = request.linear
    if len(linear.domain) != 1:
        raise ParameterError(
            f"strategy={request.strategy!r} finds parts of one column; ask for ranges or prefixes of one, or write "
            "strategy='auto'"
        )
    change: UnitChange = request.change
    split = Split.of(cost)
    kind: NoiseKind = "laplace" if isinstance(cost, PureDP) else "gaussian"
    (design,) = designs(linear.domain.sizes, linear.tables, "hierarchy", kind)
    (block,) = design.blocks
    noise = block_noise(block, kind, design.shares[0], change, split.measuring)
    changes = change.rows * (2 if change.replaced else 1)
    cell, _ = block.lines[0].spread(np.array([0]), np.array([1]), fourth=False)
    later = Fraction(float(noise.variance * cell[0]) ** 0.5 / block.fineness).limit_denominator(2**20)  # in rows
    edges = PARTITIONS[request.strategy](split.finding, changes, linear.domain.sizes[0], later)
    total = design.totals[0] * noise.variance / block.fineness**2 / len(linear.tables)
    return PricedPartition(request, edges, split, design, (noise,), cost, total)

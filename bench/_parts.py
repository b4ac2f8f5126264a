"""What finding parts first would give for the counts of one or two columns, in error rather than in one more draw.

Parts are found with noise as they would be. The error of what is measured of them then has a closed form: the square of
what spreading parts evenly misses, and the variance of noise. Of very many parts one draw is taken.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import KernelRandomness
from confide.privacy.budget import Currency
from confide.privacy.loss import PureDP
from confide.release.block_noise import block_noise
from confide.release.workload.partition_price import PARTITIONS, Split
from confide.workload.asked import AskedTable
from confide.workload.strategy.asked_parts import MOST_OPTIMISED, asked_of_parts, line_for_parts
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.line import NoiseKind
from confide.workload.strategy.partition import CellGrid, Partition

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoundParts:
    """Parts, how many rows they hold, and the mean variance of answers that comes from noise."""

    partition: Partition
    held: Floats
    variance: float


def found_parts(
    name: str, counts: NDArray[np.int64], sizes: tuple[int, ...], table: AskedTable, cost: Currency
) -> FoundParts:
    """Parts of counts, which are in the order of their grid."""
    split = Split.of(cost, len(sizes))
    edges = PARTITIONS[name](split.finding, 1, sizes, Fraction(60))(counts, KernelRandomness())
    partition = Partition(tuple(edges.tolist()))
    kind: NoiseKind = "laplace" if isinstance(cost, PureDP) else "gaussian"
    line = line_for_parts(partition, sizes, (table,), kind)
    block = ProductBlock((0,), (line,))
    noise = block_noise(block, kind, Fraction(1), UnitChange(1, False), split.measuring)
    held = np.add.reduceat(counts, edges[:-1])
    if partition.parts > MOST_OPTIMISED:  # matrices would be large: one draw
        drawn = block.estimate(noise.measure(block, held, KernelRandomness()).astype(float))
        return FoundParts(partition, drawn, 0.0)
    coefficients = line.coefficients(np.eye(partition.parts))
    asked = asked_of_parts(partition, sizes, (table,))
    variance = float(((coefficients @ asked.matrix) * coefficients).sum()) * noise.variance / block.fineness**2
    return FoundParts(partition, held.astype(float), variance)


def line_error(found: FoundParts, counts: NDArray[np.int64], kind: str) -> float:
    """The root mean square error of all prefixes, or of all ranges, of one column."""
    size = len(counts)
    sums = np.concatenate([[0.0], np.cumsum(found.held)])
    missed = found.partition.spread_evenly(sums, np.arange(size + 1)) - np.concatenate([[0], np.cumsum(counts)])
    if kind == "prefix":
        square = float((missed[1:] ** 2).mean())
    else:
        square = float(((size + 1) * (missed**2).sum() - missed.sum() ** 2) / (size * (size + 1) / 2))
    return (square + found.variance) ** 0.5


def box_error(found: FoundParts, counts: NDArray[np.int64], grid: CellGrid, corners: NDArray[np.int64]) -> float:
    """The root mean square error of rectangles of two columns; counts are in the order of the grid."""
    widths = np.diff(np.array(found.partition.edges))
    missed = np.zeros(len(counts))
    missed[grid.order] = np.repeat(found.held / widths, widths) - counts
    sums = np.zeros(tuple(size + 1 for size in grid.sizes))
    sums[1:, 1:] = missed.reshape(grid.sizes).cumsum(axis=0).cumsum(axis=1)
    (top, bottom), (left, right) = corners
    square = np.mean((sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]) ** 2)
    return float((square + found.variance) ** 0.5)

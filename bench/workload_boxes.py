"""Parts of two columns on the histograms of DPBench: error of 2,000 rectangles beside a weighted tree of quarters.

Run as `python -m bench.workload_boxes histograms.npz`. Every set is drawn anew at each scale; ε = 0.1, as pure noise.
Shown is the geometric mean over the two-dimensional sets of the root mean square error, relative to the tree, whose
levels have the best weights for these rectangles. What is known elsewhere of other methods is printed beside.
"""

import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from confide.mechanism import KernelRandomness
from confide.privacy.loss import PureDP
from confide.release.workload.noise import block_noise
from confide.release.workload.partition_price import BOX_SHARE, PARTITIONS, Split
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.hierarchy import tree_for
from confide.workload.strategy.line import AskedLine
from confide.workload.strategy.partition import CellGrid

EPSILON = Fraction(1, 10)
RUNS = 5
SIDE = 256
RECTANGLES = 2_000
BARS = {10**3: 0.13, 10**4: 0.32, 10**5: 0.50, 10**6: 0.59}
ELSEWHERE = {10**3: (0.82, 0.19), 10**4: (2.4, 0.49), 10**5: (10.0, 0.47), 10**6: (1.75, 0.79)}
"""A uniform and an adaptive grid, as they were measured outside of this project."""

Corners = NDArray[np.int64]


def main() -> None:
    if len(sys.argv) < 2 or not sys.argv[-1].endswith(".npz"):
        print("name the file of histograms: python -m bench.workload_boxes histograms.npz")
        return
    kept = np.load(sys.argv[-1])
    sets = {name: kept[name].astype(float) for name in kept if name.startswith("2D")}
    random = np.random.default_rng(7)
    corners = rectangles(random)
    whole = weighted_quarters(corners)
    for scaled, bar in BARS.items():
        logs = []
        for own in sets.values():
            shares = (own / own.sum()).reshape(-1)
            drawn = [random.multinomial(round(scaled / float(EPSILON)), shares) for _ in range(RUNS)]
            squares = [square_error(counts, corners) for counts in drawn]
            logs.append(np.log(np.sqrt(np.mean(squares)) / whole))
        relative = float(np.exp(np.mean(logs)))
        uniform, adaptive = ELSEWHERE[scaled]
        said = "holds" if relative <= bar else "MISSED"
        print(
            f"privtree   scale·ε = {scaled:>9,}: {relative:.3f}   {said}: at most {bar}   "
            f"(uniform grid {uniform}, adaptive grid {adaptive})",
            flush=True,
        )


def rectangles(random: np.random.Generator) -> Corners:
    """Each side is one of all stretches of a column, by equal chances."""
    first, last = np.triu_indices(SIDE)
    chosen = random.integers(0, len(first), (2, RECTANGLES))
    return np.stack([first[chosen], last[chosen] + 1], axis=1)


def weighted_quarters(corners: Corners) -> float:
    """The root mean square error of the tree of quarters, in closed form, with the best weights of its levels."""
    energies, cells = [], []
    for level in range(SIDE.bit_length()):
        side = SIDE >> level
        begins = np.arange(0, SIDE, side)
        overlaps = [
            np.maximum(np.minimum(stop[:, None], begins + side) - np.maximum(start[:, None], begins), 0.0)
            for start, stop in corners
        ]
        energies.append(float(np.prod([(own**2).sum(axis=1) for own in overlaps], axis=0).sum()) / side**2)
        cells.append(float(side**2))
    needs = np.diff(np.array(energies), prepend=0.0)

    def error(logs: NDArray[np.float64]) -> float:
        weights = np.exp(logs)
        precision = np.cumsum((weights**2 * np.array(cells))[::-1])[::-1]
        return float(2 * np.log(weights.sum()) + np.log((needs / precision).sum()))

    found = minimize(error, np.zeros(len(cells)), method="L-BFGS-B", bounds=[(-12, 3)] * len(cells))
    return float(np.sqrt(2 * np.exp(found.fun) / RECTANGLES) / float(EPSILON))


def square_error(counts: NDArray[np.int64], corners: Corners) -> float:
    """The mean square error of the rectangles of one measurement."""
    split, source, grid = Split.of(PureDP(EPSILON), BOX_SHARE), KernelRandomness(), CellGrid((SIDE, SIDE))
    ordered = counts[grid.order]
    edges = PARTITIONS["privtree"](split.finding, 1, grid.sizes, Fraction(60))(ordered, source)
    block = ProductBlock((0,), (tree_for(AskedLine(len(edges) - 1, ("prefix",)), "laplace"),))
    noise = block_noise(block, "laplace", Fraction(1), UnitChange(1, False), split.measuring)
    parts = block.estimate(noise.measure(block, np.add.reduceat(ordered, edges[:-1]), source).astype(float))
    widths = np.diff(edges)
    missed = -counts.astype(float)
    missed[grid.order] += np.repeat(parts / widths, widths)
    sums = np.zeros((SIDE + 1, SIDE + 1))
    sums[1:, 1:] = missed.reshape(SIDE, SIDE).cumsum(axis=0).cumsum(axis=1)
    (top, bottom), (left, right) = corners
    return float(np.mean((sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]) ** 2))


if __name__ == "__main__":
    main()

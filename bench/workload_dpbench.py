"""Strategies that look at the data first, on the histograms of DPBench: error of all prefixes beside a weighted tree.

Run as `python -m bench.workload_dpbench histograms.npz`. Every set is drawn anew at each scale; ε = 0.1, as pure noise.
Shown is the geometric mean over the one-dimensional sets of the root mean square error, relative to the weighted tree.
"""

import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import KernelRandomness
from confide.privacy.loss import PureDP
from confide.release.workload.noise import block_noise
from confide.release.workload.partition_price import PARTITIONS, Split
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.hierarchy import tree_for
from confide.workload.strategy.line import AskedLine, unit_error
from confide.workload.strategy.partition import Partition

EPSILON = Fraction(1, 10)
RUNS = 5
BARS = {"privtree": {10**2: 0.26, 10**3: 0.50, 10**4: 0.77}, "dawa": {}}


def main() -> None:
    if len(sys.argv) < 2 or not sys.argv[-1].endswith(".npz"):
        print("name the file of histograms: python -m bench.workload_dpbench histograms.npz")
        return
    kept = np.load(sys.argv[-1])
    sets = {name: kept[name].astype(float) for name in kept if name.startswith("1D")}
    asked = AskedLine(4096, ("prefix",))
    whole = (2 * unit_error(tree_for(asked, "laplace"), asked, "laplace") / asked.count) ** 0.5 / float(EPSILON)
    random = np.random.default_rng(7)
    for product in (10**2, 10**3, 10**4, 10**5, 10**6):
        scale = round(product / float(EPSILON))
        for name in PARTITIONS:
            logs = []
            for own in sets.values():
                errors = [error(name, random.multinomial(scale, own / own.sum())) for _ in range(RUNS)]
                logs.append(np.log(np.sqrt(np.mean(np.square(errors))) / whole))
            relative, bar = float(np.exp(np.mean(logs))), BARS[name].get(product)
            said = "" if bar is None else f"{'holds' if relative <= bar else 'MISSED'}: at most {bar}"
            print(f"{name:<10} scale·ε = {product:>9,}: {relative:.3f}   {said}", flush=True)


def error(name: str, counts: NDArray[np.int64]) -> float:
    """The root mean square error of all prefixes of one measurement."""
    split, change, source = Split.of(PureDP(EPSILON)), UnitChange(1, False), KernelRandomness()
    edges = PARTITIONS[name](split.finding, 1, (len(counts),), Fraction(60))(counts, source)
    partition = Partition(tuple(edges.tolist()))
    block = ProductBlock((0,), (tree_for(AskedLine(partition.parts, ("prefix",)), "laplace"),))
    noise = block_noise(block, "laplace", Fraction(1), change, split.measuring)
    cells = block.estimate(noise.measure(block, np.add.reduceat(counts, edges[:-1]), source).astype(float))
    sums = np.concatenate([[0.0], np.cumsum(cells)])
    found = partition.spread_evenly(sums, np.arange(1, len(counts) + 1))
    return float(np.sqrt(np.mean((found - np.cumsum(counts)) ** 2)))


if __name__ == "__main__":
    main()

"""Strategies that look at the data first, on the histograms of DPBench: error of all prefixes beside a weighted tree.

Run as `python -m bench.workload_dpbench histograms.npz`. Every set is drawn anew at each scale; ε = 0.1, as pure noise.
Shown is the geometric mean over the one-dimensional sets of the root mean square error, relative to the weighted tree,
and which of them `auto` takes, beside the best at that scale. Parts are found with noise; the error of what is measured
of them is the closed form (`_parts`).
"""

import sys
from fractions import Fraction

import numpy as np

from bench._parts import found_parts, line_error
from confide.privacy.loss import PureDP
from confide.release.workload.partition_price import PARTITIONS, suits_parts
from confide.workload.asked import AskedTable
from confide.workload.strategy.hierarchy import tree_for
from confide.workload.strategy.line import AskedLine, unit_error

EPSILON = Fraction(1, 10)
RUNS = {"privtree": 20, "dawa": 3}
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
    table = AskedTable((0,), ("prefix",))
    for product in (10**2, 10**3, 10**4, 10**5, 10**6):
        scale = round(product / float(EPSILON))
        reached = {"tree": 1.0}
        for name in PARTITIONS:
            logs = []
            for own in sets.values():
                squares = []
                for _ in range(RUNS[name] if product <= 10**4 else 2):
                    counts = random.multinomial(scale, own / own.sum())
                    squares.append(
                        line_error(found_parts(name, counts, (4096,), table, PureDP(EPSILON)), counts, "prefix") ** 2
                    )
                logs.append(np.log(np.sqrt(np.mean(squares)) / whole))
            relative, bar = float(np.exp(np.mean(logs))), BARS[name].get(product)
            reached[name] = relative
            said = "" if bar is None else f"{'holds' if relative <= bar else 'MISSED'}: at most {bar}"
            print(f"{name:<10} scale·ε = {product:>9,}: {relative:.3f}   {said}", flush=True)
        taken = "privtree" if suits_parts((4096,), (table,), scale, PureDP(EPSILON)) else "tree"
        beside = reached[taken] / min(reached.values())
        said = f"{taken}, {beside:.3f} of the best   {'holds' if beside <= 1.1 else 'MISSED'}: at most 1.1"
        print(f"auto       scale·ε = {product:>9,}: {said}", flush=True)


if __name__ == "__main__":
    main()

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

from bench._parts import box_error, found_parts
from confide.privacy.loss import PureDP
from confide.workload.asked import AskedTable
from confide.workload.strategy.partition import CellGrid

EPSILON = Fraction(1, 10)
RUNS = 5
SIDE = 256
RECTANGLES = 2_000
BARS = {10**3: 0.13, 10**4: 0.32, 10**5: 0.50, 10**6: 0.59}
ELSEWHERE = {10**3: (0.82, 0.19), 10**4: (2.4, 0.49), 10**5: (10.0, 0.47), 10**6: (1.75, 0.79)}
"""A uniform and an adaptive grid, as they were measured outside of this project."""

SIZES = (SIDE, SIDE)
ASKED = AskedTable((0, 1), ("range", "range"))

Corners = NDArray[np.int64]


def main() -> None:
    if len(sys.argv) < 2 or not sys.argv[-1].endswith(".npz"):
        print("name the file of histograms: python -m bench.workload_boxes histograms.npz")
        return
    kept = np.load(sys.argv[-1])
    sets = {name: kept[name].astype(float) for name in kept if name.startswith("2D")}
    random = np.random.default_rng(7)
    corners = rectangles(random)
    whole, grid = weighted_quarters(corners), CellGrid(SIZES)
    for scaled, bar in BARS.items():
        logs = []
        for histogram in sets.values():
            shares = (histogram / histogram.sum()).reshape(-1)
            drawn = [random.multinomial(round(scaled / float(EPSILON)), shares)[grid.order] for _ in range(RUNS)]
            squares = [
                box_error(found_parts("privtree", own, SIZES, ASKED, PureDP(EPSILON)), own, grid, corners) ** 2
                for own in drawn
            ]
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


if __name__ == "__main__":
    main()

"""MST (McKenna, Miklau and Sheldon 2021) on the graphical models of `mbi`, in an environment of its own.

`python _peer_mst.py FILE.npz EPSILON`: FILE holds codes, sizes and the sets of columns to answer. `mbi` has the models
and no mechanisms, so that the mechanism is written here, as published: a third of ρ for one-way marginals, rare values
merged into one; a third for the choice of a spanning tree of pairs by their L1 error; a third for those pairs.
"""

import json
import math
import sys
import time
import warnings
from itertools import combinations

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
warnings.simplefilter("ignore")

import mbi  # noqa: E402
import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402
from mbi.estimation import MirrorDescent  # noqa: E402
from scipy.optimize import brentq  # noqa: E402

ITERATIONS = 2_500


def rho_for(epsilon: float, delta: float) -> float:
    """The ρ whose (ε, δ) this is, by the minimum over α of Canonne, Kamath and Steinke."""
    alphas = 1 + np.exp(np.linspace(-8, 10, 20_000))

    def excess(rho: float) -> float:
        terms = rho * alphas + np.log1p(-1 / alphas) - (math.log(delta) + np.log(alphas)) / (alphas - 1)
        return float(terms.min()) - epsilon

    return float(brentq(excess, 1e-12, 100))


def mst(codes: np.ndarray, sizes: list[int], rho: float, generator: np.random.Generator) -> tuple[object, list]:
    names = [str(place) for place in range(len(sizes))]
    deviation = math.sqrt(len(names) / (2 * rho / 3))
    kept, maps, measured, totals = [], [], [], []
    for place, size in enumerate(sizes):
        noisy = np.bincount(codes[:, place], minlength=size) + generator.normal(0, deviation, size)
        totals.append((noisy.sum(), 1 / size))
        common = np.flatnonzero(noisy >= 3 * deviation)
        mapping = np.full(size, len(common))
        mapping[common] = np.arange(len(common))
        rare = size - len(common)
        small = np.append(noisy[common], noisy[mapping == len(common)].sum() / math.sqrt(rare)) if rare else noisy
        weights = np.append(np.ones(len(common)), 1 / math.sqrt(rare)) if rare else np.ones(size)
        kept.append(len(common) + (rare > 0))
        maps.append(mapping)
        query = mbi.WeightedQuery(weights)
        measured.append(mbi.LinearMeasurement(small, (names[place],), stddev=deviation, query=query))
    small_codes = np.stack([mapping[codes[:, place]] for place, mapping in enumerate(maps)], axis=1)
    domain = mbi.Domain(tuple(names), tuple(kept))
    # The library finds the total from plain counts only, and these are weighted.
    total = float(np.average([own for own, _ in totals], weights=[weight for _, weight in totals]))
    model = MirrorDescent().estimate(domain, measured, known_total=total, iters=ITERATIONS)
    chosen = _tree(model, small_codes, kept, math.sqrt(8 * (rho / 3) / (len(names) - 1)), generator)
    deviation = math.sqrt(len(chosen) / (2 * rho / 3))
    for one, two in chosen:
        counts = _pair(small_codes, kept, one, two).ravel()
        clique = (names[one], names[two])
        noisy = counts + generator.normal(0, deviation, len(counts))
        measured.append(mbi.LinearMeasurement(noisy, clique, stddev=deviation))
    return MirrorDescent().estimate(domain, measured, known_total=total, iters=ITERATIONS), maps


def _pair(codes: np.ndarray, sizes: list[int], one: int, two: int) -> np.ndarray:
    flat = codes[:, one] * sizes[two] + codes[:, two]
    return np.bincount(flat, minlength=sizes[one] * sizes[two]).reshape(sizes[one], sizes[two])


def _tree(model: object, codes: np.ndarray, sizes: list[int], epsilon: float, generator: np.random.Generator) -> list:
    """A spanning tree, edge by edge, by exponential mechanisms on the L1 error of the independent model."""
    pairs = list(combinations(range(len(sizes)), 2))
    errors = {}
    for one, two in pairs:
        guess = np.asarray(model.project((str(one), str(two))).values)
        errors[one, two] = float(np.abs(_pair(codes, sizes, one, two) - guess).sum())
    graph = nx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    chosen = []
    while len(chosen) < len(sizes) - 1:
        parts = {node: number for number, part in enumerate(nx.connected_components(graph)) for node in part}
        open_pairs = [pair for pair in pairs if parts[pair[0]] != parts[pair[1]]]
        scores = np.array([errors[pair] for pair in open_pairs]) * epsilon / 2
        place = int(np.argmax(scores + generator.gumbel(size=len(scores))))
        chosen.append(open_pairs[place])
        graph.add_edge(*open_pairs[place])
    return chosen


def errors_of(model: object, maps: list, codes: np.ndarray, sizes: list[int], sets: np.ndarray) -> tuple[float, float]:
    """The largest error of all counts as a share of the rows, and the mean total variation."""
    largest, halves, rows = 0.0, [], len(codes)
    for columns in sets:
        guess = np.asarray(model.project(tuple(str(column) for column in columns)).values) / float(model.total)
        for axis, column in enumerate(columns):
            merged = np.bincount(maps[column])
            guess = np.take(guess, maps[column], axis=axis)
            shape = [-1 if axis == place else 1 for place in range(len(columns))]
            guess = guess / merged[maps[column]].reshape(shape)
        own = [sizes[column] for column in columns]
        flat = np.ravel_multi_index([codes[:, column] for column in columns], own)
        apart = np.abs(guess.ravel() - np.bincount(flat, minlength=math.prod(own)) / rows)
        largest = max(largest, float(apart.max()))
        halves.append(float(apart.sum()) / 2)
    return largest, float(np.mean(halves))


def main() -> None:
    data = np.load(sys.argv[1])
    codes, sizes, sets = data["codes"], [int(size) for size in data["sizes"]], data["sets"]
    rho = rho_for(float(sys.argv[2]), 1 / len(codes) ** 2)
    start, used = time.perf_counter(), time.process_time()
    model, maps = mst(codes, sizes, rho, np.random.default_rng())
    seconds, processor = time.perf_counter() - start, time.process_time() - used
    print(json.dumps([*errors_of(model, maps, codes, sizes, sets), seconds, processor]))


if __name__ == "__main__":
    main()

"""Graphs to measure on: HepPh, where it is, and made-up ones that everybody can make again."""

import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("CONFIDE_DATA", "../shared/data")) / "hepph" / "hepph_undirected.npz"
CIRCLES = (1045, 792, 755, 547, 347, 294, 235, 190, 170, 159)


def hepph() -> np.ndarray | None:
    """12,008 authors, 118,489 pairs of them."""
    return np.load(DATA)["edges"].astype(np.int64) if DATA.exists() else None


def erdos_renyi(nodes: int, edges: int, seed: int) -> np.ndarray:
    """So many pairs, each as likely as any other."""
    random = np.random.default_rng(seed)
    found = _edges(random.integers(0, nodes, (edges + edges // 4 + 10, 2)))
    return random.permutation(found)[:edges]


def preferential(nodes: int, each: int, seed: int) -> np.ndarray:
    """Every node joins `each` others, by how many edges they have: some become hubs."""
    random = np.random.default_rng(seed)
    ends = [(a, b) for a in range(each + 1) for b in range(a)]
    flat = [node for pair in ends for node in pair]
    for node in range(each + 1, nodes):
        chosen: set[int] = set()
        while len(chosen) < each:
            chosen.add(flat[int(random.integers(len(flat)))])
        for other in chosen:
            ends.append((node, other))
            flat += [node, other]
    return _edges(np.array(ends))


def small_world(nodes: int, near: int, moved: float, seed: int) -> np.ndarray:
    """A ring in which every node knows the next `near`, and some edges lead elsewhere."""
    random = np.random.default_rng(seed)
    start = np.repeat(np.arange(nodes), near)
    end = (start + np.tile(np.arange(1, near + 1), nodes)) % nodes
    away = random.random(len(end)) < moved
    end[away] = random.integers(0, nodes, int(away.sum()))
    return _edges(np.column_stack([start, end]))


def star_forest(stars: int, leaves: int) -> np.ndarray:
    """Stars that share nothing: no triangle, and nobody knows two people but the middle of each."""
    middle = np.repeat(np.arange(stars) * (leaves + 1), leaves)
    return np.column_stack([middle, middle + 1 + np.tile(np.arange(leaves), stars)])


def social(seed: int = 1) -> np.ndarray:
    """4,039 people around ten who know everybody in their circle, and smaller circles that nearly all know each other.

    Made like a published graph of ten people's friends, which has 88,234 edges and 1,612,010 triangles.
    """
    random = np.random.default_rng(seed)
    pairs, start = [], 0
    for size in CIRCLES:
        members = np.arange(start, min(start + size, 4039))
        start = int(members[-1]) + 1 - size // 20
        pairs.append(np.column_stack([np.full(len(members), members[0]), members]))
        rest, begin = random.permutation(members[1:]), 0
        while begin < len(rest):
            circle = rest[begin : begin + int(min(300, 4 + random.pareto(1) * 5))]
            begin += len(circle)
            one, other = np.triu_indices(len(circle), 1)
            warm = 0.96 * random.random(len(circle)) ** 0.3
            there = random.random(len(one)) < warm[one] * warm[other]
            pairs.append(np.column_stack([circle[one[there]], circle[other[there]]]))
        pairs.append(random.choice(members, (len(members), 2)))
    return _edges(np.concatenate(pairs))


def _edges(pairs: np.ndarray) -> np.ndarray:
    apart = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(np.sort(apart, axis=1), axis=0)

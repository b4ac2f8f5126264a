"""Whole joint laws of a few columns, against which tables of cliques are held."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.junction import junction_tree
from confide.synthesis.markov import MarkovTable

Joint = NDArray[np.float64]


def random_table(sizes: tuple[int, ...], sets: list[tuple[int, ...]], seed: int = 0) -> MarkovTable:
    """A table of random shares along the junction tree of some sets."""
    generator = np.random.default_rng(seed)
    tree = junction_tree(sizes, sets)
    tables = []
    for node in tree:
        given = [sizes[column] for column in node.separator]
        own = [sizes[column] for column in node.own]
        drawn = generator.dirichlet(np.full(int(np.prod(own)), 0.7), int(np.prod(given, dtype=int)))
        tables.append(drawn.reshape([*given, *own]).astype(np.float32))
    return MarkovTable(sizes, tree, tuple(tables))


def joint_of(table: MarkovTable) -> Joint:
    """Every cell of all columns, by the definition."""
    found = np.ones(table.sizes)
    for places in product(*map(range, table.sizes)):
        for node, shares in zip(table.tree, table.shares, strict=True):
            found[places] *= shares[tuple(places[column] for column in node.columns)]
    return found


def marginal_of(joint: Joint, columns: tuple[int, ...]) -> Joint:
    away = tuple(axis for axis in range(joint.ndim) if axis not in columns)
    order = np.argsort(np.argsort(columns))
    return np.transpose(joint.sum(axis=away), order)

"""Cliques of an undirected graph: how many there are, and one by one.

Nodes are in order of their degree (`by_degree`), so that fewer than √(2 edges) follow any of them: in 31 bits of edges
fewer than 2^16. A clique is found at the first of its nodes, among those that follow it.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from confide.engine.read.network import Network, Places, joined, laid_out, runs
from confide.engine.read.triangle import by_degree

TRIANGLE: Final = 3
WORD: Final = 8
MANY: Final = 48  # nodes that follow one: from so many on rows of bits are faster than lists

Matrix = NDArray[np.bool_]


def clique_count(network: Network, size: int) -> int:
    """Sets of `size` nodes, three or more, that are all joined."""
    nodes = max(network.nodes, 1)
    _, codes = by_degree(network)
    first = codes // nodes
    following = np.bincount(first, minlength=nodes)
    few = codes[following[first] < MANY]
    listed = sum(len(found) for found in _grown(codes, nodes, np.column_stack([few // nodes, few % nodes]), size))
    ones = np.ones(len(codes), dtype=np.int8)
    matrix: Any = sparse.csr_array((ones, (first, codes % nodes)), shape=(nodes, nodes))
    for node in np.flatnonzero(following >= MANY).tolist():
        others = matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]]
        listed += _inside(matrix[others][:, others].toarray().astype(bool), size - 1)
    return listed


def clique_sets(network: Network, size: int) -> tuple[Places, Places]:
    """The nodes of every clique of that size, once, and how often it counts: once."""
    nodes = max(network.nodes, 1)
    order, codes = by_degree(network)
    found = list(_grown(codes, nodes, np.column_stack([codes // nodes, codes % nodes]), size))
    members = order[np.concatenate(found)] if found else np.empty((0, size), dtype=np.int64)
    return members, np.ones(len(members), dtype=np.int64)


def _grown(codes: Places, nodes: int, cliques: Places, size: int) -> Iterator[Places]:
    """Cliques of that size that begin with one of the given, whose members are in order; some at a time."""
    if cliques.shape[1] == size:
        if len(cliques):
            yield cliques
        return
    begins = np.searchsorted(codes, np.arange(nodes + 1) * nodes)
    last = cliques[:, -1]
    following = begins[last + 1] - begins[last]
    for begin, end in runs(following):
        which, steps = laid_out(following[begin:end])
        which += begin
        added = codes[begins[last[which]] + steps] % nodes
        there = np.ones(len(which), dtype=bool)
        for column in cliques[:, :-1].T:
            there &= joined(codes, column[which] * nodes + added)
        yield from _grown(codes, nodes, np.column_stack([cliques[which[there]], added[there]]), size)


def _inside(matrix: Matrix, size: int) -> int:
    """Cliques among nodes of which each row says which later ones it is joined to.

    A triangle is an edge and a later node that both ends are joined to: those are counted in rows of bits.
    """
    if len(matrix) < size:
        return 0
    if size > TRIANGLE:
        later = (np.flatnonzero(row) for row in matrix)
        return sum(_inside(matrix[np.ix_(own, own)], size - 1) for own in later)
    if size < TRIANGLE:
        return int(matrix.sum())
    packed = np.packbits(matrix, axis=1)
    wide: NDArray[np.uint8] = np.zeros((len(matrix), -(-packed.shape[1] // WORD) * WORD), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    bits = wide.view(np.uint64)
    first, second = np.nonzero(matrix)
    return int(np.bitwise_count(bits[first] & bits[second]).sum(dtype=np.int64))

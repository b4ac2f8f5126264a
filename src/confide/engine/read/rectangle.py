"""Rectangles of an undirected graph, cycles of four nodes: how many there are, what can change that, and one by one."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from confide.engine.read.network import Network, Places, adjacency, joined, laid_out, runs
from confide.engine.read.triangle import by_degree

FIRST_ROWS: Final = 16


@dataclass(frozen=True, slots=True)
class RectangleFacts:
    """The number of rectangles, and what it can change by (see `RectangleRungs`).

    `paths`: the most paths of three edges between two nodes, without an edge that joins them. `shared`: the most nodes
    that two have in common.
    """

    count: int
    paths: int
    shared: int


def rectangle_facts(network: Network) -> RectangleFacts:
    """Two nodes that have c others in common are opposite corners of c(c-1)/2 rectangles; each has two such pairs."""
    matrix = adjacency(network)
    degrees = np.diff(matrix.indptr).astype(np.int64)
    count, most = 0, np.zeros(network.nodes, dtype=np.int64)
    for begin, end in runs(matrix @ degrees):
        ways = (matrix[begin:end] @ matrix).tocoo()
        row, shared = ways.row.astype(np.int64) + begin, ways.data.astype(np.int64)
        apart = row != ways.col
        row, shared = row[apart], shared[apart]
        # Of all pairs in both orders together: four times the rectangles, of which two edges make fewer than 2^61.
        count += int((shared * (shared - 1) // 2).sum())
        np.maximum.at(most, row, shared)
    return RectangleFacts(count // 4, _most_paths(matrix, degrees, most), int(most.max(initial=0)))


def _most_paths(matrix: Any, degrees: Places, most: Places) -> int:
    """The most paths of three edges between two nodes, of which the edge between them is none.

    From a node to any other there are no more than its neighbours together share with their best: nodes come in falling
    order of that, and those that cannot have more than was found are left out. Every edge is in the middle of two paths
    at most, so that there are fewer than 2^33.
    """
    if not matrix.nnz:
        return 0
    wide = matrix.astype(np.int64)
    rows = np.repeat(np.arange(len(degrees)), degrees)
    edges = np.sort(rows * len(degrees) + matrix.indices)
    limits = wide @ most
    work = matrix @ (matrix @ degrees.astype(np.float64))
    order = np.argsort(-limits, kind="stable")
    best, begin, size = 0, 0, FIRST_ROWS
    while begin < len(order) and limits[order[begin]] > best:
        end = runs(work[order[begin : begin + size]])[0][1]
        rows = order[begin : begin + end]
        walks = (wide[rows] @ wide @ wide).tocoo()
        source, target = rows[walks.row], walks.col.astype(np.int64)
        # Walks that turn back at either end, or take the edge between the two, are no paths.
        beside = joined(edges, source * len(degrees) + target)
        paths = walks.data - beside * (degrees[source] + degrees[target] - 1)
        best = max(best, int(paths[source != target].max(initial=0)))
        begin, size = begin + end, 2 * size
    return best


def rectangle_sets(network: Network) -> tuple[Places, Places]:
    """The four nodes of every rectangle, in order, and how many rectangles they make: one, two, or three if all are
    joined. Each is found at the one of its corners that is joined to most.
    """
    nodes = max(network.nodes, 1)
    order, codes = by_degree(network)
    # Falling order of degrees: corners that come later have fewer edges to follow.
    low, high = nodes - 1 - codes // nodes, nodes - 1 - codes % nodes
    both = np.sort(np.concatenate([low * nodes + high, high * nodes + low]))
    starts = np.searchsorted(both, np.arange(nodes + 1) * nodes)
    source, beside = both // nodes, both % nodes
    later = np.flatnonzero(beside > source)  # edges from a corner to one that comes later
    corner, middle = source[later], beside[later]
    following = starts[middle + 1] - starts[middle]
    found = []
    for begin, end in runs(following):
        which, steps = laid_out(following[begin:end])
        which += begin
        opposite = beside[starts[middle[which]] + steps]
        kept = opposite > corner[which]
        found.append(np.column_stack([corner[which[kept]], opposite[kept], middle[which[kept]]]))
    ways = np.concatenate(found) if found else np.empty((0, 3), dtype=np.int64)
    members = _pairs_of_ways(ways, nodes)
    rows, weights = np.unique(np.sort(members, axis=1), axis=0, return_counts=True)
    return order[nodes - 1 - rows], weights.astype(np.int64)


def _pairs_of_ways(ways: Places, nodes: int) -> Places:
    """Corner, opposite corner and two middles, for every two ways between the same corners."""
    ends = ways[:, 0] * nodes + ways[:, 1]
    ways = ways[np.argsort(ends, kind="stable")]
    ends = np.sort(ends)
    last = np.searchsorted(ends, ends, side="right")
    later = last - np.arange(len(ends)) - 1
    found = []
    for begin, end in runs(later):
        which, steps = laid_out(later[begin:end])
        which += begin
        found.append(np.column_stack([ways[which], ways[which + 1 + steps, 2]]))
    return np.concatenate(found) if found else np.empty((0, 4), dtype=np.int64)

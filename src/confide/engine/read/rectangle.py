"""Rectangles of an undirected graph, cycles of four nodes: how many there are, what can change that, and one by one."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy import sparse

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
    matrix = adjacency(network)
    degrees = np.diff(matrix.indptr).astype(np.int64)
    shared, most = _most_shared(matrix, degrees)
    return RectangleFacts(rectangle_count(network), _most_paths(matrix, degrees, most), shared)


def rectangle_count(network: Network) -> int:
    """Two nodes that have c others in common are opposite corners of c(c-1)/2 rectangles.

    Each is found at the corner that is joined to most, from which only others that are joined to no more are followed:
    a hub costs as many steps as it has edges, and not as many as there are pairs of them.
    """
    nodes = max(network.nodes, 1)
    _, codes = by_degree(network)
    first, later = nodes - 1 - codes % nodes, nodes - 1 - codes // nodes  # falling order of degrees
    ones = np.ones(len(codes), dtype=np.int32)
    forward: Any = sparse.csr_array((ones, (first, later)), shape=(nodes, nodes))
    both = (forward + forward.T).tocsr()
    count = 0
    for begin, end in runs(forward @ np.diff(both.indptr).astype(np.int64)):
        ways = (forward[begin:end] @ both).tocoo()
        shared = ways.data[ways.col > ways.row + begin].astype(np.int64)
        count += int((shared * (shared - 1) // 2).sum())  # of fewer than 2^31 edges: below 2^61
    return count


def _most_shared(matrix: Any, degrees: Places) -> tuple[int, Places]:
    """The most nodes that two have in common, and of each node what it has in common with any other, or more.

    Two nodes have no more in common than either is joined to: nodes come in falling order of that, and the rest is left
    out once no two of them can have more than was found.
    """
    work = matrix @ degrees
    order = np.argsort(-degrees, kind="stable")
    most = np.zeros(len(degrees), dtype=np.int64)
    best, begin, size = 0, 0, FIRST_ROWS
    while begin < len(order) and degrees[order[begin]] > best:
        end = runs(work[order[begin : begin + size]])[0][1]
        rows = order[begin : begin + end]
        ways = (matrix[rows] @ matrix).tocoo()
        source, shared = rows[ways.row], ways.data.astype(np.int64)
        apart = source != ways.col
        np.maximum.at(most, source[apart], shared[apart])
        best = max(best, int(most[rows].max()))
        begin, size = begin + end, 2 * size
    rest = order[begin:]
    most[rest] = np.minimum(degrees[rest], best)
    return best, most


def _most_paths(matrix: Any, degrees: Places, most: Places) -> int:
    """The most paths of three edges between two nodes, of which the edge between them is none.

    From a node to any other there are no more than its neighbours together share with their best; and between two there
    are no more than the product of their degrees, the square of one of which is no less. Nodes come in falling order of
    the lesser, and once no two of the rest can have more than was found, they are left out. Every edge is in the middle
    of two paths at most, so that there are fewer than 2^33.
    """
    if not matrix.nnz:
        return 0
    wide = matrix.astype(np.int64)
    rows = np.repeat(np.arange(len(degrees)), degrees)
    edges = np.sort(rows * len(degrees) + matrix.indices)
    limits = np.minimum(wide @ most, degrees * degrees)
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

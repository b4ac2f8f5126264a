"""The triangles of a graph one by one, and which of its nodes are alike."""

import numpy as np
from numpy.typing import NDArray

from confide.engine.read.network import Network, Places, joined, laid_out, runs


def triangle_sets(network: Network) -> tuple[Places, Places]:
    """The three nodes of every triangle, once, and how often it counts.

    In an undirected graph once; in a directed one three times for each of the two ways round that is there.
    """
    nodes = max(network.nodes, 1)
    order, codes = by_degree(network)
    first, second = codes // nodes, codes % nodes
    ends = np.searchsorted(first, np.arange(nodes), side="right")
    later = ends[first] - np.arange(len(first)) - 1  # edges out of the same node, after this one
    found = [_closed(codes, second, later, nodes, begin, end) for begin, end in runs(later)]
    members = order[np.concatenate(found)] if found else np.empty((0, 3), dtype=np.int64)
    if not network.directed:
        return members, np.ones(len(members), dtype=np.int64)
    arrows = np.sort(network.source * nodes + network.target)
    one, two, three = members.T
    ways = np.zeros(len(members), dtype=np.int64)
    for round_trip in ((one, two, three), (one, three, two)):
        ways += _cycle(arrows, nodes, *round_trip)
    kept = ways > 0
    return members[kept], 3 * ways[kept]


def by_degree(network: Network) -> tuple[Places, Places]:
    """Nodes by how many they are joined to, fewest first, and all edges between places in that order, each from the
    lower place to the higher one and written as first × nodes + second: then no node has many edges out of it.
    """
    nodes = max(network.nodes, 1)
    low, high = np.minimum(network.source, network.target), np.maximum(network.source, network.target)
    codes = np.unique(low * nodes + high)
    low, high = codes // nodes, codes % nodes
    counts = np.bincount(np.concatenate([low, high]), minlength=nodes)
    order = np.lexsort((np.arange(nodes), counts))
    rank = np.empty(nodes, dtype=np.int64)
    rank[order] = np.arange(nodes)
    return order, np.sort(np.minimum(rank[low], rank[high]) * nodes + np.maximum(rank[low], rank[high]))


def alike(network: Network) -> Places:
    """A number for every node, the same for nodes that have the same neighbours, themselves included.

    Exchanging two such nodes changes no edge. Found by adding up fixed numbers of neighbours, and then compared.
    """
    nodes = np.arange(network.nodes)
    source, target = network.source, network.target
    if not network.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    else:  # neighbours that edges come from are counted apart
        source, target = np.concatenate([source, target]), np.concatenate([target, source + network.nodes])
        source, target = np.concatenate([source, nodes]), np.concatenate([target, nodes + network.nodes])
    source, target = np.concatenate([source, nodes]), np.concatenate([target, nodes])
    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    begins = np.searchsorted(source, nodes)
    lengths = np.diff(np.append(begins, len(source)))
    sums = np.add.reduceat(_scrambled(target), begins) if len(nodes) else np.empty(0, dtype=np.uint64)
    _, example, kinds = np.unique(sums, return_index=True, return_inverse=True)
    model = example[kinds]
    same = lengths == lengths[model]
    # Neighbour by neighbour beside those of the first node of the kind.
    beside = begins[model][source] + (np.arange(len(source)) - begins[source])
    equal = target == target[np.minimum(beside, len(target) - 1)]
    same &= np.bitwise_and.reduceat(equal, begins) if len(nodes) else same
    return np.where(same, kinds, network.nodes + nodes)


def _closed(codes: Places, second: Places, later: Places, nodes: int, begin: int, end: int) -> Places:
    edges, steps = laid_out(later[begin:end])
    edges += begin
    others = edges + 1 + steps
    there = joined(codes, second[edges] * nodes + second[others])
    edges, others = edges[there], others[there]
    return np.stack([codes[edges] // nodes, second[edges], second[others]], axis=1)


def _cycle(arrows: Places, nodes: int, one: Places, two: Places, three: Places) -> NDArray[np.bool_]:
    there = joined(arrows, one * nodes + two)
    there &= joined(arrows, two * nodes + three)
    there &= joined(arrows, three * nodes + one)
    return there


def _scrambled(numbers: Places) -> NDArray[np.uint64]:
    """Splitmix: sums of these are rarely equal by chance, and `alike` compares what they suggest."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))

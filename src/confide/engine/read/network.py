"""Edge tables as graphs: distinct edges, and the exact integers that patterns are counted by.

A row is an edge if both of its ends are known and differ: self-loops and NULL ends are no edges. Rows that say the same
edge are one edge; in an undirected graph (a, b) and (b, a) are the same. So one row changes at most one edge.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from confide.engine.protocol import Statements
from confide.engine.sql.agreement import text_order
from confide.engine.sql.expression_sql import RowWriter
from confide.engine.sql.syntax import cast, name
from confide.policy import Column, Identifier, Text
from confide.query.tree import Field, Scan

WORK: Final = 20_000_000  # paths of two edges that are looked at in one go

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Distinct edges between nodes 0, 1, ...; of an undirected graph each once, the smaller end first."""

    nodes: int
    source: Places
    target: Places
    directed: bool


@dataclass(frozen=True, slots=True)
class TriangleFacts:
    """The number of triangles, and the pairs of nodes that matter for how it can change (see `TriangleRungs`).

    Pairs of nodes that are in the graph, and of one that is and one that is not yet.
    """

    count: int
    shared: tuple[int, ...]
    reach: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GraphInquiry:
    """Which table holds the edges, and in which columns their ends are."""

    table: str
    source: Column
    target: Column
    directed: bool

    def read(self, statements: Statements) -> Network:
        scan = Scan(self.table, "s0", public=False)
        rows = RowWriter(statements.storages, scan)
        return network_of(statements.columns(statement(self, rows)), self.directed)


@dataclass(frozen=True, slots=True)
class EdgeCountInquiry:
    """How many distinct edges a graph has. Nothing else of it leaves the database."""

    graph: GraphInquiry

    def read(self, statements: Statements) -> int:
        edges = _distinct(self.graph, RowWriter(statements.storages, Scan(self.graph.table, "s0", public=False)))
        return int(statements.rows(f"SELECT COUNT(*) AS n FROM ({edges}) AS e")[0][0])


@dataclass(frozen=True, slots=True)
class DegreeInquiry:
    """How many nodes have degree 1, 2, ..., `up_to` or more. Nothing else of the graph leaves the database."""

    graph: GraphInquiry
    up_to: int

    def read(self, statements: Statements) -> Places:
        edges = _distinct(self.graph, RowWriter(statements.storages, Scan(self.graph.table, "s0", public=False)))
        ends = "SELECT a AS v FROM edges" + ("" if self.graph.directed else " UNION ALL SELECT b AS v FROM edges")
        counted = f"SELECT v, COUNT(*) AS d FROM ({ends}) AS e GROUP BY v"
        cut = f"SELECT LEAST(d, {self.up_to}) AS d FROM ({counted}) AS c"
        rows = statements.rows(
            f"WITH edges AS MATERIALIZED ({edges}) SELECT d, COUNT(*) AS n FROM ({cut}) AS h GROUP BY d"
        )
        result = np.zeros(self.up_to, dtype=np.int64)
        for degree, nodes in rows:
            result[int(degree) - 1] = int(nodes)
        return result


def statement(inquiry: GraphInquiry, rows: RowWriter) -> str:
    """SELECT the numbers of both ends of each row that is an edge, once per pair of ends.

    Numbers are in the order of the nodes themselves: which of two nodes comes first is the same in neighbours, however
    either is stored, and a graph may be cut in that order (`bounded_degree`).
    """
    ends = "SELECT a AS v FROM edges UNION SELECT b AS v FROM edges"
    order = ", ".join(_order(inquiry, rows))
    numbered = f"SELECT v, ROW_NUMBER() OVER (ORDER BY {order}) - 1 AS n FROM ({ends}) AS e"
    return (
        f"WITH edges AS MATERIALIZED ({_edges(inquiry, rows)}), nodes AS MATERIALIZED ({numbered}) "
        "SELECT x.n AS a, y.n AS b FROM edges JOIN nodes AS x ON edges.a = x.v JOIN nodes AS y ON edges.b = y.v"
    )


def _edges(inquiry: GraphInquiry, rows: RowWriter) -> str:
    """Both ends of each row that is an edge, once per pair of ends."""
    left, right = rows.common(*_ends(inquiry))
    rows_sql = f"SELECT DISTINCT {left} AS a, {right} AS b FROM main.{name(inquiry.table)} AS s0"
    return f"SELECT a, b FROM ({rows_sql}) AS r WHERE a IS NOT NULL AND b IS NOT NULL AND a <> b"


def _ends(inquiry: GraphInquiry) -> tuple[Field, Field]:
    return Field("s0", inquiry.source), Field("s0", inquiry.target)


def _order(inquiry: GraphInquiry, rows: RowWriter) -> tuple[str, ...]:
    """What nodes are ordered by: their canonical texts, or 64-bit integers, which are in the same order."""
    ends = _ends(inquiry)
    joined = [rows.joined(end) for end in ends]
    if not any(isinstance(end.column, Identifier | Text) for end in ends):
        return ("v",)  # of declared values, which are stored in one way
    if any(end.kind != "number" for end in joined):
        return text_order("v")
    return ("v",) if all(end.reach <= 1 << 64 for end in joined) else text_order(cast("v", "VARCHAR"))


def _distinct(inquiry: GraphInquiry, rows: RowWriter) -> str:
    """The same, in an undirected graph once for both directions."""
    edges = _edges(inquiry, rows)
    if inquiry.directed:
        return edges
    return f"SELECT DISTINCT LEAST(a, b) AS a, GREATEST(a, b) AS b FROM ({edges}) AS o"


def network_of(columns: dict[str, Any], directed: bool) -> Network:
    """The graph of the rows that `statement` gives."""
    first, second = (np.asarray(columns[end]).astype(np.int64) for end in ("a", "b"))
    nodes = int(max(first.max(initial=-1), second.max(initial=-1))) + 1
    if not directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    codes = np.unique(first * max(nodes, 1) + second)
    return Network(nodes, codes // max(nodes, 1), codes % max(nodes, 1), directed)


def degrees(network: Network) -> Places:
    """Of every node: how many edges it has, or how many go out of it in a directed graph."""
    counts = np.bincount(network.source, minlength=network.nodes)
    if not network.directed:
        counts = counts + np.bincount(network.target, minlength=network.nodes)
    return counts.astype(np.int64)


def triangle_facts(network: Network) -> TriangleFacts:
    """Triangles of an undirected graph; of a directed one ordered matches of (x, y), (y, z), (z, x)."""
    matrix = adjacency(network)
    out, into = (np.asarray(matrix.sum(axis=axis)).ravel().astype(np.int64) for axis in (1, 0))
    codes = np.repeat(np.arange(network.nodes), np.diff(matrix.indptr)) * network.nodes + matrix.indices
    codes.sort()
    # A node of the graph and a new one share nothing, and all edges of the first, in or out, are beside them.
    best: dict[int, int] = {0: max(int(out.max(initial=0)), int(into.max(initial=0)), _widest(matrix, out, into))}
    count = 0
    for begin, end in runs(matrix @ out):
        rows = matrix[begin:end]
        paths = (rows @ matrix).tocoo()
        row, column = paths.row.astype(np.int64) + begin, paths.col.astype(np.int64)
        apart = row != column
        row, column, shared = row[apart], column[apart], paths.data[apart].astype(np.int64)
        # A path from j to i closes with the edge from i to j; those that are there are triangles.
        back = joined(codes, column * network.nodes + row)
        count += int(shared[back].sum())
        ahead = back if not network.directed else joined(codes, row * network.nodes + column)
        reach = out[row] + into[column] - 2 * ahead
        _keep_largest(best, shared, reach)
    front: list[tuple[int, int]] = []
    for shared_nodes, reached in sorted(best.items(), reverse=True):
        if not front or reached > front[-1][1]:
            front.append((shared_nodes, reached))
    total = count if network.directed else count // 6
    return TriangleFacts(total, tuple(shared for shared, _ in front), tuple(reach for _, reach in front))


def star_count(network: Network, leaves: int) -> int:
    """Stars: sets of `leaves` neighbours of a node, or ordered tuples of them in a directed graph."""
    return stars_of(degrees(network), leaves, network.directed)


def stars_of(found: Places, leaves: int, ordered: bool) -> int:
    """The same from the degrees of all nodes."""
    count = math.perm if ordered else math.comb
    values, nodes = np.unique(found, return_counts=True)
    return sum(count(degree, leaves) * many for degree, many in zip(values.tolist(), nodes.tolist(), strict=True))


def histogram_of(found: Places, up_to: int) -> Places:
    """How many nodes have degree 1, 2, ..., `up_to` or more."""
    return np.bincount(np.minimum(found, up_to), minlength=up_to + 1)[1:].astype(np.int64)


def star_pairs(network: Network) -> tuple[tuple[int, int], ...]:
    """Degrees of the two ends of an edge that is or might be there, without it: those that no other pair exceeds.

    With degrees d1 >= d2 >= ..., the first two nodes give at least (d1 - 1, d2 - 1). What is not below that has d1 in
    it, and then the largest degree among those it is not joined to; or has two nodes of degree d2 that are not joined.
    """
    counts = degrees(network)
    if network.directed or network.nodes < 2:
        return ((int(counts.max(initial=0)), 0),)
    order = np.argsort(-counts, kind="stable")
    matrix = adjacency(network)
    first, second = int(counts[order[0]]), int(counts[order[1]])
    pairs = {(first, 0), (first - 1, second - 1)}
    for node in order[counts[order] == first]:
        joined = set(matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]].tolist()) | {int(node)}
        apart = next((int(other) for other in order if int(other) not in joined), None)
        if apart is not None:
            pairs.add((first, int(counts[apart])))
            if int(counts[apart]) == second:
                break
    if (first, second) not in pairs and second < first:
        seconds = order[counts[order] == second]
        # Were all of them joined, each would have the others as neighbours.
        if len(seconds) > second + 1 or matrix[seconds][:, seconds].nnz < len(seconds) * (len(seconds) - 1):
            pairs.add((second, second))
    return tuple(sorted(pairs))


def adjacency(network: Network) -> Any:
    source, target = network.source, network.target
    if not network.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    ones = np.ones(len(source), dtype=np.int32)
    return sparse.csr_array((ones, (source, target)), shape=(network.nodes, network.nodes))


def joined(codes: Places, wanted: Places) -> NDArray[np.bool_]:
    """Which of the wanted pairs are edges, all written as first × nodes + second."""
    places = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    found: NDArray[np.bool_] = codes[places] == wanted
    return found


def runs(paths: Any) -> list[tuple[int, int]]:
    """Runs of places whose paths of two edges together fit into memory."""
    work = np.cumsum(paths)
    cuts, begin = [], 0
    while begin < len(work):
        before = int(work[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(work, before + WORK, side="right")))
        cuts.append((begin, end))
        begin = end
    return cuts


def laid_out(counts: Places) -> tuple[Places, Places]:
    """Every place as often as it counts, and beside it 0, 1, ... up to that."""
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


def _keep_largest(best: dict[int, int], keys: Places, values: Places) -> None:
    if not len(keys):
        return
    largest = np.full(int(keys.max()) + 1, -1, dtype=np.int64)
    np.maximum.at(largest, keys, values)
    for key in np.flatnonzero(largest >= 0):
        best[int(key)] = max(best.get(int(key), -1), int(largest[key]))


def _widest(matrix: Any, out: Places, into: Places) -> int:
    """The largest out-degree + in-degree of two nodes, without the edge from the first to the second on both sides."""
    leaving, arriving = np.argsort(-out, kind="stable"), np.argsort(-into, kind="stable")
    best = 0
    for start in leaving:
        if int(out[start]) + int(into[arriving[0]]) <= best:
            break
        joined = set(matrix.indices[matrix.indptr[start] : matrix.indptr[start + 1]].tolist())
        for end in arriving:
            if int(out[start]) + int(into[end]) <= best:
                break
            if end != start:
                best = max(best, int(out[start]) + int(into[end]) - 2 * (int(end) in joined))
    return best

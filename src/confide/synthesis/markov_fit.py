"""The Markov table that explains noisy marginals best, and is as even as it can be otherwise ([McKenna2019]).

Entropic mirror descent over the tables that a junction tree can hold: each cell is multiplied by the exponential of
what its measurements call for, and one pass up and one down the tree make a table of shares of the products again. A
table is kept as shares given the separator, so that no number of it grows without bound. All of it is arithmetic on
what was released.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from confide.host.apart import apart
from confide.synthesis.curator import MeasuredMarginal
from confide.synthesis.junction import Tree, junction_tree
from confide.synthesis.markov import MarkovTable, Wide, shares_along

ROUGH_STEPS: Final = 100
"""A fit that only says what to measure next is not polished."""
MOST_STEPS: Final = 1_500
CHUNK: Final = 25
"""Steps between two looks at how far it is."""
STILL: Final = 1e-5
"""A loss that falls by less than this part of it in a chunk stands still."""
GROWN: Final = 1.4
SHRUNK: Final = 0.5
STEEPEST: Final = 40.0
"""No cell changes by more than this power of e in one step."""
_MOST_HALVINGS: Final = 60
_ADDED: Final = 2**22
"""Entries of a matrix that adds cells up."""
EVEN: Final = 1e-6
"""The share of even chances with which a fit goes on from another: what it held for impossible may be found again."""

Watch = Callable[[int, float], None]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy counts of every cell of some columns, and the variance of each count, or of all of them."""

    columns: tuple[int, ...]
    counts: NDArray[np.float64]
    variance: NDArray[np.float64] | float

    @classmethod
    def of(cls, measured: MeasuredMarginal) -> "Evidence":
        return cls(measured.columns, measured.counts, measured.variance)


@dataclass(frozen=True, slots=True, eq=False)
class MarkovFit:
    table: MarkovTable
    loss: float
    """Mean squared error in units of the noise."""
    steps: int


def fit_markov(
    sizes: tuple[int, ...],
    evidence: Sequence[Evidence],
    total: float,
    start: MarkovTable | None = None,
    most_steps: int = MOST_STEPS,
    watch: Watch | None = None,
) -> MarkovFit:
    """Fit to what was measured of `total` rows; `start` is the table to go on from.

    `watch` is told after each chunk of steps how many were made, and the loss; a Ctrl-C is answered between two chunks.
    """
    chunks = _chunks(sizes, evidence, total, start, most_steps)
    while not isinstance(told := apart(lambda: next(chunks)), MarkovFit):
        if watch is not None:
            watch(*told)
    return told


def _chunks(
    sizes: tuple[int, ...], evidence: Sequence[Evidence], total: float, start: MarkovTable | None, most_steps: int
) -> Iterator[tuple[int, float] | MarkovFit]:
    tree = junction_tree(sizes, [part.columns for part in evidence])
    groups = _groups(sizes, tree, evidence, total)
    cells = sum(len(group.shares) for group in groups.values())
    state = _State(tree, _beginning(sizes, tree, start), groups)
    # In shares: the sum of what all measurements weigh bounds the slope, so that this first step is a small one.
    rate, before = 1 / max(1e-300, sum(total**2 / float(np.min(part.variance)) for part in evidence)), math.inf
    for step in range(most_steps):
        if step and step % CHUNK == 0:
            yield step, 2 * state.loss / cells
            if before - state.loss <= STILL * state.loss:
                break
            before = state.loss
        for _ in range(_MOST_HALVINGS):
            ahead = state.moved(rate)
            if state.loss - ahead.loss >= 0.5 * state.promised(ahead):
                break
            rate *= SHRUNK
        else:
            break  # there is nothing left to gain that arithmetic could see
        rate, state = rate * GROWN, ahead
    table = MarkovTable(sizes, tree, tuple(shares.astype(np.float32) for shares in state.shares))
    yield MarkovFit(table, 2 * state.loss / cells, step + 1)


class _Group:
    """All evidence that one clique holds: as shares, one after the other, each by the axes of the clique.

    Few cells are added up by one sparse matrix, which is much faster than sums over many short axes; many cells as sums
    over axes, for which nothing is kept.
    """

    def __init__(
        self, sizes: tuple[int, ...], clique: tuple[int, ...], parts: Sequence[Evidence], total: float
    ) -> None:
        self._shape = tuple(sizes[column] for column in clique)
        self._kept = [tuple(sizes[c] if c in part.columns else 1 for c in clique) for part in parts]
        self._away = [tuple(axis for axis, c in enumerate(clique) if c not in part.columns) for part in parts]
        self.shares = np.concatenate([_turned(sizes, clique, part, part.counts / total) for part in parts])
        precision = [total**2 / np.broadcast_to(np.asarray(part.variance), part.counts.shape) for part in parts]
        turned = zip(parts, precision, strict=True)
        self.weights = np.concatenate([_turned(sizes, clique, part, own) for part, own in turned])
        self._ends = np.cumsum([math.prod(kept) for kept in self._kept])
        self._matrix = self._adding() if len(parts) * math.prod(self._shape) <= _ADDED else None

    def answers(self, joint: Wide) -> Wide:
        """What the shares of the clique come to in each cell of the evidence."""
        if self._matrix is not None:
            found: Wide = self._matrix[0] @ joint.reshape(-1)
            return found
        return np.concatenate([joint.sum(axis=away).reshape(-1) for away in self._away])

    def pull(self, slopes: Wide) -> Wide:
        """The slopes of the evidence, added up in each cell of the clique; in one where none tells them apart."""
        if self._matrix is not None:
            found: Wide = self._matrix[1] @ slopes
            return found.reshape(self._shape)
        parts = np.split(slopes, self._ends[:-1])
        added = parts[0].reshape(self._kept[0])
        for part, kept in zip(parts[1:], self._kept[1:], strict=True):
            added = added + part.reshape(kept)
        return added

    def _adding(self) -> tuple[csr_array, csr_array]:
        """A row for each cell of the evidence, a column for each of the clique; and the same turned over."""
        starts = np.concatenate([[0], self._ends[:-1]])
        rows = [
            np.broadcast_to(start + np.arange(math.prod(kept)).reshape(kept), self._shape).reshape(-1)
            for start, kept in zip(starts, self._kept, strict=True)
        ]
        cells = math.prod(self._shape)
        places = (np.concatenate(rows), np.tile(np.arange(cells), len(rows)))
        matrix = csr_array((np.ones(len(places[0])), places), shape=(int(self._ends[-1]), cells))
        return matrix, csr_array(matrix.T)


def _turned(sizes: tuple[int, ...], clique: tuple[int, ...], part: Evidence, values: Wide) -> Wide:
    """Values of the cells of some evidence, in the order of the axes of a clique."""
    order = [part.columns.index(column) for column in clique if column in part.columns]
    return np.transpose(values.reshape([sizes[column] for column in part.columns]), order).reshape(-1)


def _groups(sizes: tuple[int, ...], tree: Tree, evidence: Sequence[Evidence], total: float) -> dict[int, _Group]:
    """Of each clique the evidence that no smaller one holds."""
    held: dict[int, list[Evidence]] = {}
    for part in evidence:
        holders = [place for place, node in enumerate(tree) if set(part.columns) <= set(node.columns)]
        place = min(holders, key=lambda own: (math.prod(sizes[column] for column in tree[own].columns), own))
        held.setdefault(place, []).append(part)
    return {place: _Group(sizes, tree[place].columns, parts, total) for place, parts in sorted(held.items())}


def _beginning(sizes: tuple[int, ...], tree: Tree, start: MarkovTable | None) -> list[Wide]:
    """Even shares, or those of another table."""
    found = []
    for node in tree:
        given = math.prod(sizes[column] for column in node.separator)
        own = math.prod(sizes[column] for column in node.own)
        shares = np.full((given, own), 1 / own)
        if start is not None:
            cells = start.marginal(node.columns, 0, sizes[node.columns[0]]).reshape(given, own).astype(np.float64)
            sums = cells.sum(axis=1, keepdims=True)
            held = np.divide(cells, sums, out=shares.copy(), where=sums > 0)
            shares = (1 - EVEN) * held + EVEN * shares
        found.append(shares.reshape([sizes[column] for column in node.columns]))
    return found


class _State:
    """Shares along a tree, what they say of all evidence, and how far off that is."""

    def __init__(self, tree: Tree, shares: list[Wide], groups: Mapping[int, _Group]) -> None:
        self.tree, self.shares, self.groups = tree, shares, groups
        joints: list[Wide] = []
        for node, own in zip(tree, shares, strict=True):
            if node.parent < 0:
                joints.append(own)
                continue
            above = tree[node.parent].columns
            away = tuple(axis for axis, column in enumerate(above) if column not in node.separator)
            given = joints[node.parent].sum(axis=away)
            joints.append(own * given.reshape(given.shape + (1,) * len(node.own)))
        self.answers = {place: group.answers(joints[place]) for place, group in groups.items()}
        off = {place: self.answers[place] - group.shares for place, group in groups.items()}
        self.slopes = {place: group.weights * off[place] for place, group in groups.items()}
        self.loss = 0.5 * sum(float(slope @ off[place]) for place, slope in self.slopes.items())

    def promised(self, ahead: "_State") -> float:
        """How far the loss would fall on the way to another state if it went on falling as it does here."""
        return sum(float(slope @ (self.answers[own] - ahead.answers[own])) for own, slope in self.slopes.items())

    def moved(self, rate: float) -> "_State":
        """Each cell times the exponential of minus its slopes, made shares again from the leaves up."""
        tables = list(self.shares)
        for place, group in self.groups.items():
            pull = -rate * group.pull(self.slopes[place])
            tables[place] = tables[place] * np.exp(np.clip(pull, -STEEPEST, STEEPEST))
        return _State(self.tree, shares_along(self.tree, tables), self.groups)

"""The Markov table that explains noisy marginals best, and is as even as it can be otherwise ([McKenna2019]).

Entropic mirror descent over the tables that a junction tree can hold: each cell is multiplied by the exponential of
what its measurements call for, and one pass up and one down the tree make a table of shares of the products again. A
table is kept as shares given the separator, so that no number of it grows without bound. All of it is arithmetic on
what was released.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
    targets = [_target(sizes, tree, part, total) for part in evidence]
    cells = sum(target.shares.size for target in targets)
    state = _State(tree, _beginning(sizes, tree, start), targets)
    # In shares: the sum of what all measurements weigh bounds the slope, so that this first step is a small one.
    rate, before = 1 / max(1e-300, sum(float(np.max(target.weights)) for target in targets)), math.inf
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


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """Evidence as shares, by the axes of the clique that holds it."""

    clique: int
    away: tuple[int, ...]
    shape: tuple[int, ...]
    """Of the clique, with one place where a column is not measured."""
    shares: Wide
    weights: Wide | float


def _target(sizes: tuple[int, ...], tree: Tree, part: Evidence, total: float) -> _Target:
    holders = [place for place, node in enumerate(tree) if set(part.columns) <= set(node.columns)]
    place = min(holders, key=lambda own: (math.prod(sizes[column] for column in tree[own].columns), own))
    columns = tree[place].columns
    order = [part.columns.index(column) for column in columns if column in part.columns]
    away = tuple(axis for axis, column in enumerate(columns) if column not in part.columns)
    shape = tuple(sizes[column] if column in part.columns else 1 for column in columns)
    by_own = [sizes[column] for column in part.columns]
    shares = np.transpose(part.counts.reshape(by_own) / total, order)
    weights = total**2 / np.asarray(part.variance, dtype=np.float64)
    if weights.ndim:
        return _Target(place, away, shape, shares, np.transpose(weights.reshape(by_own), order))
    return _Target(place, away, shape, shares, float(weights))


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
    """Shares along a tree, what they say of each target, and how far off that is."""

    def __init__(self, tree: Tree, shares: list[Wide], targets: Sequence[_Target]) -> None:
        self.tree, self.shares, self.targets = tree, shares, targets
        joints: list[Wide] = []
        for node, own in zip(tree, shares, strict=True):
            if node.parent < 0:
                joints.append(own)
                continue
            above = tree[node.parent].columns
            away = tuple(axis for axis, column in enumerate(above) if column not in node.separator)
            given = joints[node.parent].sum(axis=away)
            joints.append(own * given.reshape(given.shape + (1,) * len(node.own)))
        self.answers = [joints[target.clique].sum(axis=target.away) for target in targets]
        self.slopes = [
            target.weights * (answer - target.shares) for target, answer in zip(targets, self.answers, strict=True)
        ]
        self.loss = 0.5 * sum(
            float(np.sum(slope * (answer - target.shares)))
            for target, slope, answer in zip(targets, self.slopes, self.answers, strict=True)
        )

    def promised(self, ahead: "_State") -> float:
        """How far the loss would fall on the way to another state if it went on falling as it does here."""
        pairs = zip(self.slopes, self.answers, ahead.answers, strict=True)
        return sum(float(np.sum(slope * (here - there))) for slope, here, there in pairs)

    def moved(self, rate: float) -> "_State":
        """Each cell times the exponential of minus its slopes, made shares again from the leaves up."""
        tables = list(self.shares)
        pulls: dict[int, Wide] = {}
        for target, slope in zip(self.targets, self.slopes, strict=True):
            pull = -rate * slope.reshape(target.shape)
            pulls[target.clique] = pulls[target.clique] + pull if target.clique in pulls else pull
        for place, pull in pulls.items():
            tables[place] = tables[place] * np.exp(np.clip(pull, -STEEPEST, STEEPEST))
        return _State(self.tree, shares_along(self.tree, tables), self.targets)

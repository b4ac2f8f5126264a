"""MST: single columns, then the pairs of a tree that spans them, then the Markov table of all that ([McKenna2021]).

A third of the cost each: one-way marginals; the choice of the pairs, edge by edge, by how far their counts are from
those of independent columns; the pairs. Places too rare to be told from noise are merged into one before pairs are
looked at, and come out alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np

from confide.host.progress import tell
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import (
    ChooseAmong,
    Curator,
    MeasuredMarginal,
    MeasureSets,
    Merging,
    Model,
    SynthesisStep,
    Synthesized,
    merged_counts,
    merged_sizes,
    total_of,
)
from confide.synthesis.markov import MarkovTable, Shares
from confide.synthesis.markov_fit import Evidence, fit_markov
from confide.synthesis.relaxed import cell_count
from confide.synthesis.scores import TotalDistance
from confide.synthesis.strategy import MOST_CELLS, MOST_MEASURED
from confide.workload import BoundWorkload

_RARE: Final = 3
"""A place whose noisy count is below so many deviations of the noise is merged with the others like it."""

Pair = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MstStrategy:
    """Thirds of the cost, of any number of columns."""

    @property
    def words(self) -> str:
        return "mst: single columns, and the pairs of a tree that spans them"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {}

    def reads(self, workload: BoundWorkload) -> tuple[Pair, ...]:
        return (*workload.sets, *self.singles(workload), *self.pairs(workload))

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        singles, pairs, edges = self.singles(workload), self.pairs(workload), self.edges(workload)
        ones = MeasureSets(f"every count of {len(singles)} columns", singles, self.third(workload))
        if not edges:
            return (ones,)
        largest = max(pairs, key=lambda pair: cell_count(workload.domain.sizes, pair))
        words = f"one of {len(pairs):,} pairs of columns"
        choice = ChooseAmong(words, 1, len(pairs), self.choice(workload), edges, "tables")
        return ones, choice, MeasureSets(f"every count of {edges} pairs", (largest,) * edges, Fraction(1, 3))

    def room(self, workload: BoundWorkload) -> int:
        """One clique for each pair of a tree, in single precision."""
        sizes = sorted((cell_count(workload.domain.sizes, pair) for pair in self.pairs(workload)), reverse=True)
        return 4 * (sum(sizes[: self.edges(workload)]) + sum(workload.domain.sizes))

    def singles(self, workload: BoundWorkload) -> tuple[Pair, ...]:
        return tuple((column,) for column in range(len(workload.domain)))

    def pairs(self, workload: BoundWorkload) -> tuple[Pair, ...]:
        """Those that are not too large to be measured with as many others as a tree has."""
        sizes = workload.domain.sizes
        most = min(MOST_CELLS, MOST_MEASURED // len(sizes))
        return tuple(pair for pair in combinations(range(len(sizes)), 2) if cell_count(sizes, pair) <= most)

    def edges(self, workload: BoundWorkload) -> int:
        """How many pairs a tree has, or several trees where some pairs are too large."""
        parts = list(range(len(workload.domain)))
        for one, two in self.pairs(workload):
            _join(parts, one, two)
        return len(parts) - len(set(parts))

    def third(self, workload: BoundWorkload) -> Fraction:
        return Fraction(1, 3) if self.edges(workload) else Fraction(1)

    def choice(self, workload: BoundWorkload) -> Fraction:
        """What one edge's choice costs: under ρ an ε of √(8(ρ/3)/(d − 1))."""
        return Fraction(1, 3 * self.edges(workload))


MST_SPELLING: Final[Spelling] = {MstStrategy: ("mst", lambda n: ())}


def mst_strategy(workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int) -> MstStrategy:
    return MstStrategy()


def run(curator: Curator, workload: BoundWorkload, strategy: MstStrategy) -> Synthesized:
    edges = strategy.edges(workload)
    tell("measuring single columns", 0, edges + 3)
    ones = curator.measure(strategy.singles(workload), strategy.third(workload))
    total = total_of(ones, None)
    merging = _merging(ones)
    sizes = merged_sizes(merging)
    evidence = [_merged(one, merging) for one in ones]
    fit = fit_markov(sizes, evidence, total)
    chosen: list[Pair] = []
    if edges:
        chosen = _tree(curator, workload, strategy, Model(fit.table, total), merging)
        tell(f"measuring {edges} pairs", edges + 1, edges + 3)
        measured = curator.measure(chosen, Fraction(1, 3), merging)
        evidence += [Evidence.of(pair) for pair in measured]

        def watch(steps: int, loss: float) -> None:
            tell(f"fitting, loss {loss:.3f}", edges + 2, edges + 3)

        fit = fit_markov(sizes, evidence, total, watch=watch)
    table = spread(fit.table, merging)
    return Synthesized(Model(table, total), fit.loss, len(ones) + len(chosen))


def _tree(
    curator: Curator, workload: BoundWorkload, strategy: MstStrategy, model: Model, merging: Merging
) -> list[Pair]:
    """Kruskal's algorithm with a private choice of each edge."""
    edges, pairs = strategy.edges(workload), strategy.pairs(workload)
    parts = list(range(len(workload.domain)))
    chosen: list[Pair] = []
    for edge in range(edges):
        tell(f"choosing pair {edge + 1} of {edges}", edge + 1, edges + 3)
        open_pairs = [(one, two) for one, two in pairs if parts[one] != parts[two]]
        score = TotalDistance(open_pairs, model, merging=merging)
        pair = open_pairs[curator.choose(open_pairs, score, strategy.choice(workload))]
        _join(parts, *pair)
        chosen.append(pair)
    return chosen


def _join(parts: list[int], one: int, two: int) -> None:
    old, new = parts[one], parts[two]
    parts[:] = [new if part == old else part for part in parts]


def _merging(ones: Sequence[MeasuredMarginal]) -> Merging:
    found = []
    for one in ones:
        rare = one.counts < _RARE * one.variance**0.5
        if rare.sum() < 2:
            found.append(np.arange(len(rare)))
            continue
        places = np.cumsum(~rare) - 1
        places[rare] = len(rare) - rare.sum()
        found.append(places)
    return found


def _merged(one: MeasuredMarginal, merging: Merging) -> Evidence:
    counts = merged_counts(one.counts, one.columns, merging)
    many = np.bincount(merging[one.columns[0]])
    return Evidence(one.columns, counts, one.variance * many.astype(np.float64))


def spread(table: MarkovTable, merging: Merging) -> MarkovTable:
    """The same table of all places: those that were merged share alike what they have together."""
    sizes = tuple(len(own) for own in merging)
    found: list[Shares] = []
    for node, shares in zip(table.tree, table.shares, strict=True):
        whole = shares[np.ix_(*(merging[column] for column in node.columns))]
        for axis, column in enumerate(node.columns):
            if column in node.own:
                many = np.bincount(merging[column])[merging[column]].astype(np.float32)
                whole = whole / many.reshape([-1 if place == axis else 1 for place in range(whole.ndim)])
        found.append(whole.astype(np.float32))
    return MarkovTable(sizes, table.tree, tuple(found))

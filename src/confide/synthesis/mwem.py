"""MWEM: multiplicative weights on what the exponential mechanism chooses, over the whole history ([Hardt2012]).

Rounds of one marginal of the workload each, all alike: a tenth of what a round pays is for the choice of the one whose
counts lie furthest from the model's, the rest for its counts. Every cell of the table is then multiplied by the
exponential of what all that was measured so far calls for, until that stands still. Up to 10⁶ cells that is the whole
histogram, which may be kept as it is or along a junction tree: the table is the same, since nothing but what was
measured moves it from even shares. Beyond, it is the table of a junction tree of bounded size. The number of rows is
not known: it comes from a column that is measured first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from confide.errors import ParameterError
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import ChooseAmong, Curator, MeasureSets, SynthesisStep, Synthesized
from confide.synthesis.junction import tree_bytes
from confide.synthesis.marginal_rounds import CHOOSING, MarginalRounds
from confide.synthesis.model_size import kept_bytes, megabytes_from, whole_from
from confide.synthesis.relaxed import cell_count
from confide.synthesis.strategy import MOST_CELLS
from confide.workload import BoundWorkload

HISTOGRAM: Final = 10**6
"""A table of so many cells may be held whole."""
ROWS: Final = Fraction(1, 20)
"""Of the cost, for the column that tells how many rows there are."""

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class MwemStrategy:
    """`rounds` of equal cost; `megabytes` of a model at most, where the histogram is larger than 10⁶ cells."""

    rounds: int
    megabytes: int
    pure: bool

    @property
    def words(self) -> str:
        return f"mwem: {self.rounds} rounds of one marginal of the workload, multiplicative weights over all of them"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"rounds": self.rounds, "megabytes": self.megabytes}

    def reads(self, workload: BoundWorkload) -> Sets:
        return workload.sets

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        candidates, share = self.candidates(workload), (1 - ROWS) / self.rounds
        first = MeasureSets("every count of the smallest column", (self.first(workload),), ROWS)
        largest = max(candidates, key=lambda columns: cell_count(workload.domain.sizes, columns))
        words = f"one of {len(candidates):,} tables"
        choice = ChooseAmong(words, 1, len(candidates), share * CHOOSING, self.rounds, "tables")
        return first, choice, MeasureSets("every count of it", (largest,), share * (1 - CHOOSING), self.rounds)

    def room(self, workload: BoundWorkload) -> int:
        return kept_bytes(self.megabytes, workload, HISTOGRAM)

    def first(self, workload: BoundWorkload) -> tuple[int, ...]:
        return min(workload.closure(1), key=lambda columns: cell_count(workload.domain.sizes, columns))

    def candidates(self, workload: BoundWorkload) -> Sets:
        """The sets of the workload that can be measured whole, and held."""
        sizes, whole = workload.domain.sizes, math.prod(workload.domain.sizes) <= HISTOGRAM
        return tuple(
            columns
            for columns in workload.sets
            if whole or (cell_count(sizes, columns) <= MOST_CELLS and self._fits(sizes, columns))
        )

    def _fits(self, sizes: tuple[int, ...], columns: tuple[int, ...]) -> bool:
        return tree_bytes(sizes, [columns]) <= self.megabytes * 2**20


MWEM_SPELLING: Final[Spelling] = {MwemStrategy: ("mwem", lambda n: (n.rounds, n.megabytes, n.pure))}


def mwem_strategy(
    workload: BoundWorkload,
    cost: PureDP | ZCDP,
    expected: int | None,
    unit_rows: int,
    *,
    rounds: int | None = None,
    megabytes: int | None = None,
) -> MwemStrategy:
    """As many rounds as there are columns, unless they are given."""
    turns = whole_from("rounds", rounds, len(workload.closure(1)), 1, 10_000)
    strategy = MwemStrategy(turns, megabytes_from(megabytes, workload), isinstance(cost, PureDP))
    if not strategy.candidates(workload):
        raise ParameterError(
            f"mwem measures whole marginals of the workload, of at most {MOST_CELLS:,} cells and "
            f"{strategy.megabytes:,} megabytes, and there is none; take wider bins or a smaller k"
        )
    return strategy


def run(curator: Curator, workload: BoundWorkload, strategy: MwemStrategy) -> Synthesized:
    candidates = strategy.candidates(workload)
    weights = [1] * len(candidates)
    rounds = MarginalRounds(curator, workload, candidates, weights, strategy.megabytes, strategy.pure, HISTOGRAM)
    rounds.begin([strategy.first(workload)], ROWS)
    for turn in range(strategy.rounds):
        rounds.turn((1 - ROWS) / strategy.rounds, turn == strategy.rounds - 1)
    return rounds.found()

"""AIM: rounds that choose the marginal of the workload's closure that is explained worst, and measure it.

[McKenna2022]. Of T rounds at first each has a T-th of the cost, a tenth of it for the choice. A candidate's score is
how far its counts are from the model's, less what the noise would add, times how much of the workload it speaks of.
Where a round changed no more than its noise, the next ones are fewer and more exact. Everything that is measured is
paid from the same cost, what comes before the first round too. Only candidates are looked at with which the model stays
within its size.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import (
    ChooseAmong,
    Curator,
    MeasureSets,
    SynthesisStep,
    Synthesized,
)
from confide.synthesis.junction import BYTES_OF_A_CELL
from confide.synthesis.marginal_rounds import CHOOSING, MarginalRounds
from confide.synthesis.model_size import kept_bytes, megabytes_from, whole_from
from confide.synthesis.relaxed import cell_count
from confide.synthesis.strategy import MOST_CELLS
from confide.workload import BoundWorkload

ROUNDS_OF_A_COLUMN: Final = 16
MOST_CANDIDATES: Final = 20_000

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class AimStrategy:
    """`rounds` at most as the first ones are; `megabytes` of the model at most."""

    rounds: int
    megabytes: int
    pure: bool
    """Whether the cost is in ε: then noise of half the size costs twice as much, else four times."""

    @property
    def words(self) -> str:
        return f"aim: single columns, then rounds of one marginal, a model of {self.megabytes:,} MB at most"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"rounds": self.rounds, "megabytes": self.megabytes}

    def reads(self, workload: BoundWorkload) -> Sets:
        return workload.sets

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        singles, candidates, sizes = workload.closure(1), self.candidates(workload), workload.domain.sizes
        ones = MeasureSets(f"every count of {len(singles)} columns", singles, self.ones(workload))
        turns = max(1, math.floor((1 - self.ones(workload)) * self.rounds))
        share = (1 - self.ones(workload)) / turns
        most = self.megabytes * 2**20 // BYTES_OF_A_CELL
        fitting = [columns for columns in candidates if cell_count(sizes, columns) <= most] or singles
        largest = max(fitting, key=lambda columns: cell_count(sizes, columns))
        words = f"one of {len(candidates):,} tables, or fewer times and less noise"
        choice = ChooseAmong(words, 1, len(candidates), share * CHOOSING, turns, "tables")
        return ones, choice, MeasureSets("every count of it", (largest,), share * (1 - CHOOSING), turns)

    def room(self, workload: BoundWorkload) -> int:
        return kept_bytes(self.megabytes, workload)

    def ones(self, workload: BoundWorkload) -> Fraction:
        """What single columns cost: each as much as the measurement of a first round."""
        return len(workload.closure(1)) * (1 - CHOOSING) / self.rounds

    def candidates(self, workload: BoundWorkload) -> Sets:
        """Every set of columns within one of the workload; of as many columns as keeps them few enough to look at."""
        order, many = 0, 0
        while order < max(map(len, workload.sets)) and many <= MOST_CANDIDATES:
            order += 1
            many += sum(math.comb(len(own), order) for own in workload.sets)
        order = order if many <= MOST_CANDIDATES else max(1, order - 1)
        sizes = workload.domain.sizes
        return tuple(columns for columns in workload.closure(order) if cell_count(sizes, columns) <= MOST_CELLS)


AIM_SPELLING: Final[Spelling] = {AimStrategy: ("aim", lambda n: (n.rounds, n.megabytes, n.pure))}


def aim_strategy(
    workload: BoundWorkload,
    cost: PureDP | ZCDP,
    expected: int | None,
    unit_rows: int,
    *,
    rounds: int | None = None,
    megabytes: int | None = None,
) -> AimStrategy:
    singles = len(workload.closure(1))
    turns = whole_from("rounds", rounds, ROUNDS_OF_A_COLUMN * singles, 2 * singles, 10_000)
    limit = megabytes_from(megabytes, workload)
    return AimStrategy(turns, limit, isinstance(cost, PureDP))


def run(curator: Curator, workload: BoundWorkload, strategy: AimStrategy) -> Synthesized:
    """Rounds until all is spent; the last one has what is left."""
    candidates = strategy.candidates(workload)
    weights = [sum(len(set(own) & set(columns)) for own in workload.sets) for columns in candidates]
    rounds = MarginalRounds(curator, workload, candidates, weights, strategy.megabytes, strategy.pure)
    rounds.begin(workload.closure(1), strategy.ones(workload))
    share, last = Fraction(1, strategy.rounds), False
    while not last:
        last = rounds.left <= 2 * share
        share = rounds.left if last else share
        changed, noise = rounds.turn(share, last)
        if changed <= noise:
            share *= 2 if strategy.pure else 4
    return rounds.found()

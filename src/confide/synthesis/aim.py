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

import numpy as np

from confide.errors import ParameterError
from confide.host.progress import tell
from confide.privacy.amount import shown_value, whole_number
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import (
    ChooseAmong,
    Curator,
    MeasuredMarginal,
    MeasureSets,
    Model,
    SynthesisStep,
    Synthesized,
    total_of,
)
from confide.synthesis.junction import BYTES_OF_A_CELL, tree_bytes
from confide.synthesis.markov_fit import MOST_STEPS, ROUGH_STEPS, Evidence, MarkovFit, fit_markov
from confide.synthesis.relaxed import cell_count
from confide.synthesis.scores import TotalDistance
from confide.synthesis.strategy import MOST_CELLS
from confide.workload import BoundWorkload

ROUNDS_OF_A_COLUMN: Final = 16
MEGABYTES: Final = 80
CHOOSING: Final = Fraction(1, 10)
"""Of a round."""
MOST_CANDIDATES: Final = 20_000
TABLES_AT_ONCE: Final = 6
"""So many arrays of a model's size are there at once while it is fitted."""

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
        whole = BYTES_OF_A_CELL * math.prod(workload.domain.sizes)
        return TABLES_AT_ONCE * min(self.megabytes * 2**20, whole)

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
    limit = whole_from("megabytes", megabytes, MEGABYTES, 1, 100_000)
    return AimStrategy(turns, limit, isinstance(cost, PureDP))


def whole_from(name: str, value: object, default: int, least: int, most: int) -> int:
    """What a caller sets, a whole number."""
    number = default if value is None else whole_number(value)
    if number is None or not least <= number <= most:
        raise ParameterError(f"{name} = {shown_value(value)} must be a whole number from {least:,} to {most:,}")
    return number


def run(curator: Curator, workload: BoundWorkload, strategy: AimStrategy) -> Synthesized:
    return _Run(curator, workload, strategy).go()


class _Run:
    def __init__(self, curator: Curator, workload: BoundWorkload, strategy: AimStrategy) -> None:
        self._curator, self._workload, self._strategy = curator, workload, strategy
        self._sizes = workload.domain.sizes
        self._candidates = strategy.candidates(workload)
        self._weights = [sum(len(set(own) & set(columns)) for own in workload.sets) for columns in self._candidates]
        self._measured: list[MeasuredMarginal] = []
        self._left = Fraction(1)
        self._round = 0
        self._fit: MarkovFit | None = None

    def go(self) -> Synthesized:
        strategy, singles = self._strategy, self._workload.closure(1)
        self._say("measuring single columns")
        self._measured += self._curator.measure(singles, strategy.ones(self._workload))
        self._left -= strategy.ones(self._workload)
        share, last = Fraction(1, strategy.rounds), False
        self._refit(ROUGH_STEPS)
        while not last:
            self._round += 1
            last = self._left <= 2 * share
            share = self._left if last else share
            changed, noise = self._turn(share, last)
            if changed <= noise:
                share *= 2 if strategy.pure else 4
        assert self._fit is not None
        return Synthesized(self._model(), self._fit.loss, len(self._measured))

    def _turn(self, share: Fraction, last: bool) -> tuple[float, float]:
        """One round; how far what was measured moved the model there, and how far its noise alone would lie apart."""
        places = self._admitted()
        sets = [self._candidates[place] for place in places]
        measuring = share * (1 - CHOOSING)
        noise = [cell_count(self._sizes, columns) * self._noise_of_a_cell(measuring) for columns in sets]
        self._say(f"choosing one of {len(sets):,} tables")
        score = TotalDistance(sets, self._model(), [self._weights[place] for place in places], noise)
        place = self._curator.choose(sets, score, share * CHOOSING)
        columns = sets[place]
        self._say(f"measuring {', '.join(self._workload.domain.names[column] for column in columns)}")
        before = self._counts(columns)
        self._measured += self._curator.measure([columns], measuring)
        self._left -= share
        self._refit(MOST_STEPS if last else ROUGH_STEPS)
        return float(np.abs(self._counts(columns) - before).sum()), noise[place]

    def _admitted(self) -> list[int]:
        """The candidates with which the model stays within its size: as large a part of it as was spent of the cost."""
        most = float(self._strategy.megabytes * 2**20 * (1 - self._left))
        if BYTES_OF_A_CELL * math.prod(self._sizes) <= most:
            return list(range(len(self._candidates)))
        measured = [part.columns for part in self._measured]
        assert self._fit is not None
        cliques = [set(node.columns) for node in self._fit.table.tree]
        held = [any(set(columns) <= clique for clique in cliques) for columns in self._candidates]
        return [
            place
            for place, columns in enumerate(self._candidates)
            if held[place] or tree_bytes(self._sizes, [*measured, columns]) <= most
        ]

    def _noise_of_a_cell(self, share: Fraction) -> float:
        """The mean distance of a noisy count from the exact one."""
        factor = math.sqrt(1 / 2) if self._strategy.pure else math.sqrt(2 / math.pi)
        return factor * self._curator.deviation(share)

    def _refit(self, steps: int) -> None:
        def watch(done: int, loss: float) -> None:
            self._say(f"fitting, loss {loss:.3f}")

        start = None if self._fit is None else self._fit.table
        parts = [Evidence.of(part) for part in self._measured]
        self._fit = fit_markov(self._sizes, parts, self._total(), start, steps, watch)

    def _total(self) -> float:
        return total_of(tuple(self._measured), None)

    def _model(self) -> Model:
        assert self._fit is not None
        return Model(self._fit.table, self._total())

    def _counts(self, columns: tuple[int, ...]) -> Any:
        model = self._model()
        return model.table.marginal(columns, 0, self._sizes[columns[0]]) * model.total

    def _say(self, what: str) -> None:
        tell(f"round {self._round}: {what}", round(100 * float(1 - self._left), 1), 100)

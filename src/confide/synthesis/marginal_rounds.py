"""Rounds of which each chooses the marginal that a model explains worst, measures it, and fits the model to all of it.

What every such method shares: which candidates a model has room for, the score, the fit. How the cost is divided among
rounds is the method's own. Nothing is measured but what is paid from the cost, and what was measured is kept as it was
released: every fit goes over the whole history of it, which costs nothing.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from confide.host.progress import tell
from confide.synthesis.curator import Curator, MeasuredMarginal, Model, Synthesized, total_of
from confide.synthesis.junction import BYTES_OF_A_CELL, tree_bytes
from confide.synthesis.markov_fit import MOST_STEPS, ROUGH_STEPS, Evidence, MarkovFit, fit_markov
from confide.synthesis.relaxed import cell_count
from confide.synthesis.scores import TotalDistance
from confide.workload import BoundWorkload

CHOOSING: Final = Fraction(1, 10)
"""Of what a round pays."""

FEW: Final = 4_096
"""A marginal of so many cells may always be measured, as far as its own size goes."""

Sets = Sequence[tuple[int, ...]]


class MarginalRounds:
    """`left` is the part of the cost that is not spent; `pure` says whether the cost is in ε.

    A model may have `megabytes` in the end, and before as large a part of it as was spent of the cost. With
    `free_cells` it may have them from the start, and whatever a table of so many cells of all columns takes.
    """

    def __init__(
        self,
        curator: Curator,
        workload: BoundWorkload,
        candidates: Sets,
        weights: Sequence[int],
        megabytes: int,
        pure: bool,
        free_cells: int = 0,
    ) -> None:
        self._curator, self._workload, self._sizes = curator, workload, workload.domain.sizes
        self._candidates, self._weights = candidates, weights
        self._most, self._pure, self._free_cells = megabytes * 2**20, pure, free_cells
        self._measured: list[MeasuredMarginal] = []
        self._fit: MarkovFit | None = None
        self._round = 0
        self.left = Fraction(1)

    def begin(self, sets: Sets, share: Fraction) -> None:
        """What is measured before the first round."""
        self._say("measuring single columns")
        self._measured += self._curator.measure(sets, share)
        self.left -= share
        self._refit(ROUGH_STEPS)

    def turn(self, share: Fraction, last: bool) -> tuple[float, float]:
        """One round; how far what was measured moved the model there, and how far its noise alone would lie apart."""
        self._round += 1
        places = self._admitted()
        sets = [self._candidates[place] for place in places]
        measuring = share * (1 - CHOOSING)
        each = self._noise_of_a_cell(measuring)
        noise = [cell_count(self._sizes, columns) * each for columns in sets]
        self._say(f"choosing one of {len(sets):,} tables")
        score = TotalDistance(sets, self._model(), [self._weights[place] for place in places], noise)
        place = self._curator.choose(sets, score, share * CHOOSING)
        columns = sets[place]
        self._say(f"measuring {', '.join(self._workload.domain.names[column] for column in columns)}")
        before = self._counts(columns)
        self._measured += self._curator.measure([columns], measuring)
        self.left -= share
        self._refit(MOST_STEPS if last else ROUGH_STEPS)
        return float(np.abs(self._counts(columns) - before).sum()), noise[place]

    def found(self) -> Synthesized:
        assert self._fit is not None
        return Synthesized(self._model(), self._fit.loss, len(self._measured))

    def _admitted(self) -> list[int]:
        """The candidates with which the model stays within its size, and all that was measured within as many cells."""
        whole = math.prod(self._sizes)
        most = self._most if self._free_cells else float(self._most * (1 - self.left))
        left = max(most / BYTES_OF_A_CELL - sum(len(part.counts) for part in self._measured), FEW)
        small = [place for place, own in enumerate(self._candidates) if cell_count(self._sizes, own) <= left]
        measured = [part.columns for part in self._measured]
        if small and (whole <= self._free_cells or BYTES_OF_A_CELL * whole <= most):
            return small
        assert self._fit is not None
        cliques = [set(node.columns) for node in self._fit.table.tree]
        held = [any(set(columns) <= clique for clique in cliques) for columns in self._candidates]
        places = [
            place
            for place in small
            if held[place] or tree_bytes(self._sizes, [*measured, self._candidates[place]]) <= most
        ]
        # Where there is room for nothing else, what was measured is measured again.
        return places or [place for place, columns in enumerate(self._candidates) if columns in measured]

    def _noise_of_a_cell(self, share: Fraction) -> float:
        """The mean distance of a noisy count from the exact one."""
        factor = math.sqrt(1 / 2) if self._pure else math.sqrt(2 / math.pi)
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
        tell(f"round {self._round}: {what}", round(100 * float(1 - self.left), 1), 100)

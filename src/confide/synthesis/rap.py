"""Relaxed adaptive projection: measure, fit a relaxed table, find what it gets wrong, measure that ([Aydore2021];
[AventKorolova2023]).

Everything it learns of the data comes from a curator, one paid step at a time. The rest is arithmetic on what was
released. `loss` of a fit is in units of the noise, so 1 is as good as noisy counts can be explained.
"""

from collections.abc import Sequence
from typing import Final, assert_never

import numpy as np

from confide.host.progress import tell
from confide.synthesis.curator import Curator, Measured, Model, Picked, Synthesized, total_of
from confide.synthesis.projection import MOST_STEPS, TableFit, project
from confide.synthesis.strategy import Strategy
from confide.workload import BoundWorkload

ROUGH_STEPS: Final = 150
"""A fit that only says what to measure next is not polished."""


def run(curator: Curator, workload: BoundWorkload, strategy: Strategy) -> Synthesized:
    """One run, from nothing known to a fitted table."""
    return _Run(curator, workload, strategy).go()


class _Run:
    def __init__(self, curator: Curator, workload: BoundWorkload, strategy: Strategy) -> None:
        self._curator, self._workload, self._strategy = curator, workload, strategy
        self._measured: list[Measured] = []
        self._sizes = workload.domain.sizes
        self._fit: TableFit | None = None
        self._round = 0

    def go(self) -> Synthesized:
        strategy, workload = self._strategy, self._workload
        self._say("measuring single columns")
        self._measured += self._curator.measure(workload.closure(1), strategy.ones)
        match strategy.select:
            case "closure" | "all":
                self._at_once(strategy.at_once(workload))
            case "marginals":
                self._choose_marginals()
            case "queries":
                self._choose_queries()
            case _:
                assert_never(strategy.select)
        assert self._fit is not None
        return Synthesized(Model(self._fit.table, self._total()), self._fit.loss, len(self._measured))

    def _at_once(self, sets: Sequence[tuple[int, ...]]) -> None:
        self._round = 1
        if sets:
            self._say(f"measuring {len(sets)} tables")
            self._measured += self._curator.measure(sets, self._strategy.left)
        self._project()

    def _choose_marginals(self) -> None:
        """Each round: the worst of the candidates, not chosen before, by its largest cell error; then all its cells."""
        strategy, candidates = self._strategy, list(self._strategy.candidates(self._workload))
        self._project()
        for turn in range(min(strategy.rounds, len(candidates))):
            self._round = turn + 1
            self._say("choosing a table")
            place = self._curator.choose_set(candidates, self._model(), strategy.choice)
            chosen = candidates.pop(place)
            self._say(f"measuring {', '.join(self._workload.domain.names[column] for column in chosen)}")
            self._measured += self._curator.measure([chosen], strategy.measurement)
            self._project()

    def _choose_queries(self) -> None:
        """Each round: the worst `picks` single queries, not chosen before, in one shot; then each of them."""
        strategy, rounds, picks = self._strategy, self._strategy.rounds, self._strategy.picks
        taken = Picked(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._project()
        for turn in range(rounds):
            self._round = turn + 1
            self._say(f"choosing {picks} queries")
            picked = self._curator.choose_queries(picks, taken, self._model(), strategy.choice)
            if not len(picked):
                break
            self._say(f"measuring {len(picked)} queries")
            self._measured.append(self._curator.ask(picked, strategy.measurement))
            taken = Picked(
                np.concatenate([taken.thresholds, picked.thresholds]), np.concatenate([taken.cells, picked.cells])
            )
            self._project(rounds * picks)

    def _project(self, room: int = 0) -> None:
        """Fit all that was measured so far; a later fit goes on from the one before."""

        def watch(steps: int, loss: float) -> None:
            del steps
            self._say("fitting", loss)

        self._fit = project(
            self._sizes,
            tuple(self._measured),
            self._total(),
            self._strategy.rows,
            self._curator.seed + self._round,
            None,
            watch,
            room,
            MOST_STEPS if self._round == self._strategy.rounds else ROUGH_STEPS,
        )

    def _total(self) -> float:
        return total_of(tuple(self._measured), None)

    def _model(self) -> Model:
        assert self._fit is not None
        return Model(self._fit.table, self._total())

    def _say(self, what: str, loss: float | None = None) -> None:
        rounds = self._strategy.rounds
        done = max(0, self._round - (0 if what == "fitting" else 1))
        fitted = "" if loss is None else f", loss {loss:.3f}"
        tell(f"round {self._round} of {rounds}: {what}{fitted}", done, rounds + 1)

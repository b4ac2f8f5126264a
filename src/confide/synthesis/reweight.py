"""Rows that were there before, with new weights: a public table, or an earlier release, as what is believed at first.

What is measured, and what of it is chosen, goes as it does for a relaxed table. The rows get weights that explain the
noisy counts, as public rows do in [Liu2021]. Some rows are added that the beginning lacks: no weight makes a row that
is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.host.progress import tell
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.privacy.public_randomness import public_generator
from confide.synthesis.curator import Curator, MeasuredMarginal, Model, SynthesisStep, Synthesized, total_of
from confide.synthesis.inside import onto_simplex
from confide.synthesis.strategy import STRATEGY_SPELLING, Strategy, choose_strategy
from confide.synthesis.weighted_rows import reweighted
from confide.workload import BoundWorkload

MOST_ROWS: Final = 30_000
"""So many rows of the beginning are taken, evenly drawn if there are more."""
ADDED: Final = 1
"""Rows that are added, to one of the beginning."""
ADDED_SHARE: Final = 0.1
"""The weight of all of them together at first."""
CHANGED: Final = 0.25
"""How likely a value is another in half of the rows that are added; in the other half every value is."""


@dataclass(frozen=True, slots=True)
class StartingRows:
    """Rows to begin with: the place of each in each column, −1 where that is not known, and its weight.

    `name` stands for what they hold in an identity: made under a secret, for nobody says whose rows they are.
    """

    name: str
    words: str
    places: NDArray[np.int64] = field(compare=False)
    weights: NDArray[np.float64] = field(compare=False)


@dataclass(frozen=True, slots=True)
class ReweightStrategy:
    """Measures what `measuring` says, and fits weights of rows to it."""

    measuring: Strategy
    start: StartingRows

    @property
    def words(self) -> str:
        how = self.measuring.words.removeprefix("rap: ").rpartition(", ")[0]
        return f"reweight: {how}, by new weights of {self.start.words}"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"select": self.measuring.select, "rounds": self.measuring.rounds, "start": self.start.words}

    def reads(self, workload: BoundWorkload) -> tuple[tuple[int, ...], ...]:
        return self.measuring.reads(workload)

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        return self.measuring.steps(workload)

    def room(self, workload: BoundWorkload) -> int:
        rows = len(self.start.weights) * (1 + ADDED)
        return 8 * rows * (len(workload.domain) + 4)


REWEIGHT_SPELLING: Final[Spelling] = {
    **STRATEGY_SPELLING,
    StartingRows: ("start", lambda n: (n.name,)),
    ReweightStrategy: ("reweight", lambda n: (n.measuring, n.start)),
}


def reweight_strategy(
    workload: BoundWorkload,
    cost: PureDP | ZCDP,
    expected: int | None,
    unit_rows: int,
    *,
    start: StartingRows | None = None,
    select: str = "auto",
    rounds: int | None = None,
) -> ReweightStrategy:
    if start is None:
        raise ParameterError(
            "method = 'reweight' begins with rows that are there: start=frame, an earlier release, or the name of a "
            "public table"
        )
    if select == "queries":
        raise ParameterError("method = 'reweight' measures whole tables; write select = 'closure', 'marginals', 'all'")
    return ReweightStrategy(choose_strategy(workload, cost, expected, unit_rows, select=select, rounds=rounds), start)


def run(curator: Curator, workload: BoundWorkload, strategy: ReweightStrategy) -> Synthesized:
    measuring, sizes = strategy.measuring, workload.domain.sizes
    candidates = list(measuring.candidates(workload)) if measuring.select == "marginals" else []
    turns = min(measuring.rounds, len(candidates))
    tell("measuring single columns", 0, turns + 2)
    measured = list(curator.measure(workload.closure(1), measuring.ones))
    total = total_of(tuple(measured), None)
    generator = public_generator(curator.seed)
    places, prior = with_more_rows(strategy.start, sizes, measured, total, generator)
    sets = measuring.at_once(workload)
    if sets:
        tell(f"measuring {len(sets)} tables", 1, turns + 2)
        measured += curator.measure(sets, measuring.left)
    for turn in range(turns):
        table, _ = reweighted(sizes, places, prior, measured, total, generator)
        tell("choosing a table", turn + 1, turns + 2)
        chosen = candidates.pop(curator.choose_set(candidates, Model(table, total), measuring.choice))
        measured += curator.measure([chosen], measuring.measurement)
        total = total_of(tuple(measured), None)
    tell("fitting", turns + 1, turns + 2)
    total = total_of(tuple(measured), None)
    table, loss = reweighted(sizes, places, prior, measured, total, generator)
    return Synthesized(Model(table, total), loss, len(measured))


def with_more_rows(
    start: StartingRows,
    sizes: tuple[int, ...],
    ones: Sequence[MeasuredMarginal],
    total: float,
    generator: np.random.Generator,
) -> tuple[NDArray[np.uint16], NDArray[np.float64]]:
    """The rows of the beginning and as many again: half of them with some values that others have by the
    noisy counts of single columns, half with all of them. What is not known of a row is drawn by these counts as well.
    """
    shares = [np.full(size, 1 / size) for size in sizes]
    for one in ones:
        if len(one.columns) == 1:
            shares[one.columns[0]] = onto_simplex(one.counts / total, 1.0)
    rows = len(start.weights)
    added = rows * ADDED
    drawn = np.stack([generator.choice(len(own), added + rows, p=own) for own in shares], axis=1)
    known = np.where(start.places >= 0, start.places, drawn[:rows])
    near = known[generator.choice(rows, added, p=start.weights / start.weights.sum())]
    chance = np.where(np.arange(added) % 2 == 0, CHANGED, 1.0)[:, None]
    more = np.where(generator.random(near.shape) < chance, drawn[rows:], near)
    weights = start.weights / start.weights.sum() * (1 - ADDED_SHARE)
    places = np.concatenate([known, more]).astype(np.uint16)
    return places, np.concatenate([weights, np.full(added, ADDED_SHARE / added)])

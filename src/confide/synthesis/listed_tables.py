"""The net of tiny domains: of all tables of few rows one, whose answers to the workload are near those of the data.

[BlumLigettRoth2013]. One step, and the choice has exact chances: what other methods are compared with where all tables
can be listed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.host.progress import tell
from confide.mechanism.selection.net import MOST_CELLS, MOST_ROWS
from confide.privacy.identity import Spelling
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import ChooseAmong, Curator, Model, SynthesisStep, Synthesized
from confide.synthesis.markov import product_of
from confide.workload import BoundWorkload, counting_answer, tables_of, threshold_blocks

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class NetStrategy:
    """`rows` at most."""

    rows: int

    @property
    def words(self) -> str:
        return f"net: one of all tables of at most {self.rows} rows"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"rows": self.rows}

    def reads(self, workload: BoundWorkload) -> Sets:
        return (tuple(range(len(workload.domain))),)

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        return (ChooseAmong("one of all tables of few rows", 1, self.tables(workload), Fraction(1)),)

    def room(self, workload: BoundWorkload) -> int:
        return 4 * math.prod(workload.domain.sizes)

    def tables(self, workload: BoundWorkload) -> int:
        return math.comb(math.prod(workload.domain.sizes) + self.rows, self.rows)


NET_SPELLING: Final[Spelling] = {NetStrategy: ("net", lambda n: (n.rows,))}


def net_strategy(
    workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int, *, rows: int | None = None
) -> NetStrategy:
    """As many rows as are given, or as the policy says there are."""
    cells, most = math.prod(workload.domain.sizes), expected if rows is None else rows
    if cells > MOST_CELLS:
        raise ParameterError(
            f"method = 'net' lists every table of few rows: it takes columns of at most {MOST_CELLS} cells together, "
            f"and these have {cells:,}; take wider bins or fewer columns"
        )
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_ROWS:
        said = "the policy has no size" if most is None else f"there would be {most!r}"
        raise ParameterError(
            f"method = 'net' lists every table of at most {MOST_ROWS} rows, and {said}; write rows = {MOST_ROWS} or "
            "less, if that is how many there are"
        )
    return NetStrategy(most)


def run(curator: Curator, workload: BoundWorkload, strategy: NetStrategy) -> Synthesized:
    tell("choosing a table", 0, 1)
    sizes = workload.domain.sizes
    counts = curator.choose_table(asked_cells(workload), strategy.rows, Fraction(1))
    total = int(counts.sum())
    shares = counts.reshape(sizes) / total if total else np.full(sizes, 1 / math.prod(sizes))
    return Synthesized(Model(product_of(sizes, [(tuple(range(len(sizes))), shares)]), float(total)), 0.0, 1)


def asked_cells(workload: BoundWorkload) -> NDArray[np.int64]:
    """For each count of the workload which cells of all columns it adds up: what a table of one row there answers."""
    sizes = workload.domain.sizes
    found = []
    for cell in range(math.prod(sizes)):
        place = np.array(np.unravel_index(cell, sizes), dtype=np.int64)[None]
        one = tables_of(place, sizes, (tuple(range(len(sizes))),))
        answers = [block for marks in workload.thresholds for _, block in threshold_blocks(one, marks)]
        singles = [counting_answer(one, workload.domain, count) for count in workload.counts]
        found.append(np.concatenate([*answers, singles]).astype(np.int64))
    return np.unique(np.array(found).T, axis=0)

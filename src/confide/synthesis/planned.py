"""Measure once by the optimal design for all marginals of one order, then fit a table of all cells to everything.

The design is the residual planner's ([Xiao2023]) for Gaussian noise. What comes out is the table of maximum entropy
that explains it: not negative, and its marginals agree with each other.
"""

from fractions import Fraction
from importlib import import_module
from typing import Final, cast

from confide.host.apart import apart
from confide.host.progress import tell
from confide.synthesis.curator import Curator, MeasuredEffect, MeasuredMarginal, Model, Synthesized, total_of
from confide.synthesis.entropy import fit_entropy
from confide.synthesis.extra import require
from confide.synthesis.merged_strategy import MergedStrategy
from confide.synthesis.planned_strategy import PlannedStrategy
from confide.workload import BoundWorkload

NEEDED: Final = "jax"
"""Where a relaxed table is fitted."""


def run(curator: Curator, workload: BoundWorkload, strategy: PlannedStrategy | MergedStrategy) -> Synthesized:
    """One measurement, one fit; where there are too many cells to hold, see `merged`."""
    if isinstance(strategy, MergedStrategy):
        require(NEEDED)
        merged = apart(lambda: import_module("confide.synthesis.merged"))  # heavy, and loaded when used
        return cast(Synthesized, merged.run(curator, workload, strategy))
    tell(f"measuring {strategy.order}-way marginals", 0, 2)
    measured = curator.measure_design(strategy.designed(workload), Fraction(1))
    total = _total(measured)

    def watch(done: int, most: int) -> None:
        tell(f"fitting: {done} of at most {most}", 1 + done / most, 2)

    fit = fit_entropy(workload.domain.sizes, measured, total, curator.seed, watch)
    return Synthesized(Model(fit.table, total), fit.loss, len(measured))


def _total(measured: tuple[MeasuredMarginal | MeasuredEffect, ...]) -> float:
    """How many rows there are: as it was measured by itself, else as the marginals have it."""
    for part in measured:
        if isinstance(part, MeasuredEffect) and not part.columns:
            return max(1.0, float(part.counts[0]))
    return total_of(tuple(part for part in measured if isinstance(part, MeasuredMarginal)), None)

"""Single columns, then pairs and sets of three of merged places, and a relaxed table of many rows that explains them.

Which places are merged follows from released counts, so that what is measured of two columns together stands out of its
noise. The relaxed table is fitted to merged places, which are few, and taken apart by what single columns told.
"""

from typing import Final

import numpy as np

from confide.host.progress import tell
from confide.synthesis.curator import (
    Curator,
    MeasuredMarginal,
    Merging,
    Model,
    Synthesized,
    merged_counts,
    merged_sizes,
    total_of,
)
from confide.synthesis.merged_strategy import MergedStrategy, Sets
from confide.synthesis.merging import merged_places, shares_within, taken_apart
from confide.synthesis.projection import project
from confide.synthesis.relaxed import cell_count
from confide.workload import Binned, BoundWorkload

CLEAR: Final = 8
"""A merged place holds so many deviations of the noise on a cell of a pair."""
MOST_FITTED: Final = 2**17
"""Merged cells of all sets of three: more would take long to fit, so places are merged further."""
_FURTHER: Final = 1.5


def run(curator: Curator, workload: BoundWorkload, strategy: MergedStrategy) -> Synthesized:
    pairs, triples = strategy.pairs(workload), strategy.triples(workload)
    alone, twos, threes = strategy.shares(workload)
    tell("measuring single columns", 0, 4)
    ones = curator.measure(workload.closure(1), alone)
    measured: list[MeasuredMarginal] = []
    least = CLEAR * curator.deviation(twos / len(pairs)) if pairs else 0.0
    merging = merged(workload, ones, least, triples)
    if pairs:
        tell(f"measuring {len(pairs)} pairs", 1, 4)
        measured += curator.measure(pairs, twos, merging)
    if triples:
        tell(f"measuring {len(triples)} sets of three", 2, 4)
        measured += curator.measure(triples, threes, merging)
    total = total_of((*ones, *measured), None)

    def watch(steps: int, loss: float) -> None:
        tell(f"fitting, loss {loss:.3f}", 3, 4)

    sums = [_merged(one, merging) for one in ones]
    fit = project(merged_sizes(merging), (*sums, *measured), total, strategy.rows, curator.seed, None, watch)
    counts = {one.columns[0]: one.counts for one in ones}
    within = [
        shares_within(counts[column], places) if column in counts else np.full(len(places), 1 / len(places))
        for column, places in enumerate(merging)
    ]
    table = taken_apart(fit.table, merging, within)
    return Synthesized(Model(table, total), fit.loss, len(ones) + len(measured))


def merged(workload: BoundWorkload, ones: tuple[MeasuredMarginal, ...], least: float, triples: Sets) -> Merging:
    """The merged places of all columns; of a column that was not measured all are one."""
    counts = {one.columns[0]: one.counts for one in ones}
    while True:
        found = [
            merged_places(counts[column], least, isinstance(attribute, Binned))
            if column in counts
            else np.zeros(attribute.size, dtype=np.int64)
            for column, attribute in enumerate(workload.domain.attributes)
        ]
        sizes = merged_sizes(found)
        if sum(cell_count(sizes, columns) for columns in triples) <= MOST_FITTED:
            return found
        least = max(1.0, _FURTHER * least)


def _merged(one: MeasuredMarginal, merging: Merging) -> MeasuredMarginal:
    """The counts of merged places; their noise is that of so many counts, on the average."""
    counts = merged_counts(one.counts, one.columns, merging)
    return MeasuredMarginal(one.columns, counts, one.variance * len(one.counts) / len(counts))

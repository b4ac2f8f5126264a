"""Scores of sets of columns, by which one of them is chosen: whole numbers, whose changes are known.

A count of a model is no whole number. On a grid of 1/1024 of a row it is one, and so is its distance from an exact
count; one row moves that distance by 1024 steps. Rounding a model's count moves no score with the data: the model was
released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.curator import Merging, Model, UnitReach, merged_counts

STEPS: Final = 1024
"""To a row."""
_LARGEST: Final = 2**38
"""A distance beyond this, of one cell in steps, counts as this much: a sum of 2²⁴ of them fits 64 bits."""
_FURTHEST: Final = 2**60


@dataclass(frozen=True, slots=True, eq=False)
class TotalDistance:
    """weight × (Σ|count − model's count| − offset), in steps of a row.

    Neighbours: a unit of at most r rows moves the counts of a set by at most `moved` in L1, and so their distance from
    counts that do not depend on the data; cutting a distance off at a public number moves it no further. Times the
    largest weight of a candidate.
    """

    candidates: Sequence[tuple[int, ...]]
    model: Model
    weights: Sequence[int] = ()
    offsets: Sequence[float] = ()
    merging: Merging | None = None

    def sensitivity(self, change: UnitReach) -> int:
        return STEPS * change.moved * max(self.weights, default=1)

    def of(self, place: int, counts: NDArray[np.int64]) -> int:
        columns = self.candidates[place]
        if self.merging is not None:
            counts = merged_counts(counts, columns, self.merging)
        shares = self.model.table.marginal(columns, 0, counts.shape[0])
        exact = np.minimum(counts, _LARGEST // STEPS) * STEPS
        away = np.minimum(np.abs(exact - in_steps(shares, self.model.total)), _LARGEST)
        offset = round(min(self.offsets[place] * STEPS, float(_FURTHEST))) if self.offsets else 0
        weight = self.weights[place] if self.weights else 1
        return max(-_FURTHEST, min(_FURTHEST, weight * (int(away.sum()) - offset)))


def in_steps(shares: NDArray[Any], total: float) -> NDArray[np.int64]:
    """A model's counts on the grid, whatever it says, also where that is no number."""
    wide = np.fmin(np.fmax(shares.astype(np.float64) * total * STEPS, 0.0), float(_LARGEST))
    return np.rint(wide).astype(np.int64)

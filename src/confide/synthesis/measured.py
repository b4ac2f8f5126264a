"""What is known of the private data: noisy counts, each with the variance of its noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginal:
    """Noisy counts of every cell of a marginal, in the order of the product of its columns."""

    columns: tuple[int, ...]
    counts: NDArray[np.float64]
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredQueries:
    """Noisy counts of single thresholds. `places` are columns of the relaxed table, −1 where a query has fewer."""

    places: NDArray[np.int64]
    need: NDArray[np.int64]
    counts: NDArray[np.float64]
    variance: float


Measured = MeasuredMarginal | MeasuredQueries


def total_of(measured: tuple[Measured, ...], known: int | None) -> float:
    """How many rows there are: `known` where that is public, else the best average of what was measured.

    The cells of a marginal add up to all rows, with a variance of their number times that of a cell.
    """
    if known is not None:
        return float(known)
    marginals = [part for part in measured if isinstance(part, MeasuredMarginal)]
    if not marginals:
        return 1.0
    weights = np.array([1 / (len(part.counts) * part.variance) for part in marginals])
    sums = np.array([part.counts.sum() for part in marginals])
    return max(1.0, float(weights @ sums / weights.sum()))

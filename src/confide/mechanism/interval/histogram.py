"""In which cells of a noised histogram a quantile lies, with an interval that holds whatever the data are.

Counted are rows by cells in order, c_1 to c_K, each with independent noise of one law. The q-quantile is the smallest
value that at least a share q of the rows do not exceed, for 0 < q < 1; it is in the first cell j for which

    S_j = (1 - q)(c_1 + ... + c_j) - q(c_(j+1) + ... + c_K)

is not negative. Of noised counts S_j has noise of a known law, and exceeds h_j on either side with half of the miss
rate. The lower end walks from the first cell as long as S_j < -h_j: it passes the true cell only if S_j is so low
there, where it is not negative. One cell decides, so one cell's miss rate is enough. The upper end walks from the last
cell down as long as S_(j-1) > h_(j-1), and passes the true cell only if that is so there, where S_(j-1) is negative.
Where the lower end walks, the upper one stops: the interval is never empty. Without rows there is no quantile, and
whatever is said holds.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.linear import dominating_half_width
from confide.mechanism.noise.law import Confidence, Law

BLOCKS: Final = 12
"""Cells share widths, each taken where it is largest."""


def quantile_cells(
    counts: NDArray[np.int64], law: Law, share: Fraction, confidence: Confidence
) -> tuple[float, int, int]:
    """Where the quantile is estimated to be, in cells from the start of the first; and the first and last cell of its
    interval.
    """
    cells = len(counts)
    noised = counts.astype(np.float64)
    before = np.cumsum(noised)
    q = float(share)
    excess = before - q * before[-1]
    widths = np.array(quantile_widths(law, cells, share, confidence)) * (1 + 1e-12) + 1e-9 * np.abs(before).max(
        initial=0.0
    )
    low = 0
    while low < cells - 1 and excess[low] < -widths[low]:
        low += 1
    high = cells - 1
    while high > 0 and excess[high - 1] > widths[high - 1]:
        high -= 1
    place = int(np.argmax(excess >= 0)) if (excess >= 0).any() else cells - 1
    place = min(max(place, low), high)
    inside = (q * before[-1] - (before[place] - noised[place])) / noised[place] if noised[place] > 0 else 0.5
    return place + min(max(float(inside), 0.0), 1.0), low, high


@lru_cache(maxsize=256)
def quantile_widths(law: Law, cells: int, share: Fraction, confidence: Confidence) -> tuple[float, ...]:
    """For each cell a bound of the noise of S_j, on both sides together."""
    size = -(-cells // BLOCKS)
    widths: list[float] = []
    for start in range(0, cells, size):
        end = min(start + size, cells)
        # Of the cells of a block those with the larger coefficient are most numerous at one of its ends.
        first = end if 1 - share >= share else start + 1
        terms = [(1 - share, law)] * first + [(share, law)] * (cells - first)
        widths += [float(dominating_half_width(terms, confidence))] * (end - start)
    return tuple(widths)

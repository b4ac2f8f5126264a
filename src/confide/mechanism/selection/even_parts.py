"""Parts of a line that look even, chosen by noisy costs: the first step of DAWA, in the version that is private.

The cost of a part of k cells is Σ|x − mean|, what is lost by spreading it evenly, and a constant for every part. Every
part of 1, 2, 4, … cells gets noise on its cost, and of all ways to cover the line the cheapest is released. Costs are
whole numbers of 1/n, n the longest part, so that they and the noise are exact.

Take a way and its part b that holds a certain row. Ways that hold b too change only by b's cost, alike, and do not
change in any other: so, whatever the other noises are, the way is the cheapest if and only if b's noise is at most some
number. One row more moves the cost of b by at most 2(1 − 1/k) and that of any other way by at most 2(1 − 1/n): so the
number moves by at most 4 − 2/k − 2/n, and noise of that scale over ε is enough. It needs noise on every part, single
cells too, and costs as they are: where singles have no noise, or costs are raised to a floor, ways that hold b no
longer change alike. Published code does both ([Li2014]; docs/errata/survey.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.noise.law import LARGEST_WALK, DiscreteLaplace, keep_scale
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.loss import PureDP

MOST_CELLS: Final = 4_096
"""Of a line: costs of counts below 2⁴⁴ stay below 2⁵⁸."""
_AT_ONCE: Final = 1 << 22

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EvenParts:
    """Releases a way to cover a line of cells by parts of 1, 2, 4, … cells.

    Neighbours: those that differ in `changes` rows at most, one after the other. Loss: ε-DP.
    Theorem: as above, [Li2014] with noise on every part. Source: that paper, corrected.
    """

    epsilon: Fraction
    """For one row."""
    lengths: tuple[int, ...]
    extra: int
    """The constant of every part, in 1/n."""
    loss: PureDP

    def law(self, length: int) -> DiscreteLaplace:
        longest = self.lengths[-1]
        scale = (4 - Fraction(2, length) - Fraction(2, longest)) * longest / self.epsilon
        return DiscreteLaplace(max(scale, Fraction(1, self.epsilon)))

    def edges(self, counts: Integers, randomness: Randomness) -> Integers:
        noisy = {}
        for length in self.lengths:
            exact = deviations(counts, length) * (self.lengths[-1] // length)
            noisy[length] = exact + draw(self.law(length), exact.shape, randomness) + self.extra
        return cheapest(noisy, len(counts))


def even_parts(epsilon: Fraction, changes: int, cells: int, later: Fraction) -> EvenParts:
    """The mechanism of a loss ε. `later` is the deviation of the noise that every part gets afterwards, in rows."""
    if not 1 <= cells <= MOST_CELLS:
        raise ValueError(f"a line of {cells:,} cells")
    lengths = tuple(1 << power for power in range(cells.bit_length()) if 1 << power <= cells)
    each = Fraction(epsilon) / changes
    keep_scale(4 * lengths[-1] / each, LARGEST_WALK, "the noise of costs")
    extra = min(round(later * lengths[-1]), 2**56)
    return EvenParts(each, lengths, extra, PureDP(Fraction(epsilon)))


def deviations(counts: Integers, length: int) -> Integers:
    """`length` × Σ|x − mean| of every stretch of so many cells, exactly."""
    if length == 1:
        return np.zeros(len(counts), dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(counts)])
    windows = np.lib.stride_tricks.sliding_window_view(counts, length)
    totals = sums[length:] - sums[:-length]
    found = np.empty(len(windows), dtype=np.int64)
    step = max(1, _AT_ONCE // length)
    for begin in range(0, len(windows), step):
        part = slice(begin, begin + step)
        found[part] = np.abs(windows[part] * length - totals[part, None]).sum(axis=1)
    return found


def cheapest(costs: dict[int, Integers], cells: int) -> Integers:
    """The edges of the cheapest way to cover the line; of equal ones the one whose last parts are shortest."""
    best, last = [0] * (cells + 1), [0] * (cells + 1)
    listed = {length: own.tolist() for length, own in costs.items()}
    for end in range(1, cells + 1):
        chosen = None
        for length, own in listed.items():
            if length <= end:
                total = best[end - length] + own[end - length]
                if chosen is None or total < chosen:
                    chosen, last[end] = total, length
        assert chosen is not None
        best[end] = chosen
    edges, end = [cells], cells
    while end:
        end -= last[end]
        edges.append(end)
    return np.array(edges[::-1], dtype=np.int64)

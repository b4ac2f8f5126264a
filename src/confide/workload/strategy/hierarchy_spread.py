"""How the noise of a tree enters any stretch of cells, for many stretches at once.

Let α(v) be what an answer asks of node v by way of its leaves, and A(v) the coefficient on v's upward estimate. Then
A(child) = (α(child) − α(v)) + (1 − own(v))·A(v). A subtree that is wholly inside, or wholly outside, asks the same of
all its nodes, so below it coefficients only shrink: their powers are summed beforehand.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from confide.workload.strategy.line import Floats, Integers

if TYPE_CHECKING:
    from confide.workload.strategy.hierarchy import TreeLine

_AT_ONCE = 1 << 18


def tree_spread(tree: "TreeLine", starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
    second, quads = np.empty(len(starts)), np.empty(len(starts) if fourth else 0)
    for begin in range(0, len(starts), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        found = _Walk(tree, starts[part], stops[part], fourth)
        second[part] = found.second
        if fourth:
            quads[part] = found.fourth
    return second, quads if fourth else second


class _Walk:
    """From the root down the ways to both ends of stretches; the ways part where the ends do."""

    def __init__(self, tree: "TreeLine", starts: Integers, stops: Integers, fourth: bool) -> None:
        self._tree, self._wants_fourth = tree, fourth
        self._levels = tree._levels
        self._sums = [
            [np.concatenate([[0.0], np.cumsum(powers)]) for powers in (level.second, level.fourth)]
            for level in self._levels
        ]
        self.second, self.fourth = np.zeros(len(starts)), np.zeros(len(starts))
        begin, end = self._asked(starts), self._asked(stops)
        root = end[0] - begin[0]
        self._add(0, root, np.zeros(len(starts), dtype=np.int64), None)
        reach = root.copy()
        apart = np.zeros(len(starts), dtype=bool)
        other = reach.copy()
        last = len(self._levels) - 1
        for place in range(last):
            first, final = self._nodes(starts, place), self._nodes(stops, place)
            below_first, below_final = self._nodes(starts, place + 1), self._nodes(stops, place + 1)
            whole = end[place] - begin[place]
            outside, inside = self._passed(place, first, np.where(apart, 1 - begin[place], whole), reach)
            outside_2, inside_2 = self._passed(place, final, np.where(apart, end[place], whole), other)
            low, high = self._children(first, place)
            low_2, high_2 = self._children(final, place)
            parts = ~apart & (below_first != below_final)
            same = ~apart & ~parts
            # Before the first end nothing is asked, between the ends all, after the last end nothing.
            self._range(place + 1, outside, low, below_first)
            self._range(place + 1, inside, below_first + 1, np.where(apart, high, np.where(parts, below_final, 0)))
            self._range(place + 1, outside, below_first + 1, np.where(same, high, 0))
            self._range(place + 1, outside_2, below_final + 1, np.where(same, 0, high_2))
            self._range(place + 1, inside_2, low_2, np.where(apart, below_final, 0))
            apart = apart | parts
            ask = np.where(apart, 1 - begin[place + 1], end[place + 1] - begin[place + 1])
            reach = outside + ask
            other = np.where(apart, outside_2 + end[place + 1], reach)
            self._add(place + 1, reach, below_first, None)
            self._add(place + 1, other, below_final, apart)

    def _asked(self, cuts: Integers) -> list[Floats]:
        """Of every level what the cells before a cut ask of the node that the cut is in."""
        tree, levels = self._tree, self._levels
        found = [np.where(cuts >= tree.size, 1.0, 0.0)]
        for place in range(len(levels) - 1, 0, -1):
            child = self._nodes(cuts, place)
            found.append(levels[place].before[child] + levels[place].share[child] * found[-1])
        found.reverse()
        return found

    def _nodes(self, cuts: Integers, place: int) -> Integers:
        return np.minimum(cuts // self._tree.widths[place], self._tree.counts[place] - 1)

    def _children(self, nodes: Integers, place: int) -> tuple[Integers, Integers]:
        low = nodes * self._tree.branching
        return low, np.minimum(low + self._tree.branching, self._tree.counts[place + 1])

    def _passed(self, place: int, nodes: Integers, asked: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """The coefficient of a child that is wholly outside, and of one that is wholly inside."""
        outside = (1 - self._levels[place].own[nodes]) * reach - asked
        return outside, outside + 1

    def _range(self, place: int, reach: Floats, low: Integers, high: Integers) -> None:
        """Whole subtrees from child `low` up to `high`, none if that is before."""
        high = np.maximum(low, high)
        second, fourth = self._sums[place]
        self.second += reach**2 * (second[high] - second[low])
        if self._wants_fourth:
            self.fourth += reach**4 * (fourth[high] - fourth[low])

    def _add(self, place: int, reach: Floats, nodes: Integers, where: NDArray[np.bool_] | None) -> None:
        """The node itself."""
        level = self._levels[place]
        if not level.weight:
            return
        own = reach * level.own[nodes] / level.weight
        if where is not None:
            own = np.where(where, own, 0.0)
        self.second += own**2
        if self._wants_fourth:
            self.fourth += own**4

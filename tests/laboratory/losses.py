"""What choices by chance really cost: the loss between two neighbours, computed from what each of them chooses by."""

import math
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from confide.mechanism.selection import even_parts, privtree

Numbers = np.typing.NDArray[Any]


# --- candidates that are drawn by their weights -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Weights:
    """Candidates in segments: `sizes` of them from each start on, each of weight exp(-rate × exponent)."""

    rate: float
    starts: Numbers
    sizes: Numbers
    exponents: Numbers


def drawn_loss(one: Weights, two: Weights) -> tuple[float, float]:
    """The largest log-ratio of the chances of a candidate, and the range of log-ratios over all of them."""
    cuts = np.unique(np.concatenate([own.starts[own.sizes > 0] for own in (one, two)]))
    ratios = _logarithms(one, cuts) - _logarithms(two, cuts)
    return float(np.abs(ratios).max()), float(ratios.max() - ratios.min())


def _logarithms(own: Weights, cuts: Numbers) -> Numbers:
    held = own.sizes > 0
    order = np.argsort(own.starts[held], kind="stable")
    starts = own.starts[held][order]
    each = -own.rate * (own.exponents[held][order] - own.exponents[held].min()).astype(np.float64)
    masses = each + np.log(own.sizes[held][order].astype(np.float64))
    total = masses.max() + math.log(float(np.exp(masses - masses.max()).sum()))
    found: Numbers = (each - total)[np.searchsorted(starts, cuts, side="right") - 1]
    return found


# --- the first that reaches a threshold -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Walk:
    """Queries in order, in runs of one margin, and the noise of the threshold and of each query."""

    threshold_scale: float
    query_scale: float
    tops: int
    margins: Numbers
    lengths: Numbers


def walked_loss(one: Walk, two: Walk) -> float:
    """By the proof of the sparse vector, for how far the margins of these two really are apart."""
    ends = [np.cumsum(own.lengths) for own in (one, two)]
    last = np.unique(np.concatenate(ends))
    last = last[last <= min(own[-1] if len(own) else 0 for own in ends)]
    if not len(last):
        return 0.0
    here, there = (own.margins[np.searchsorted(end, last)] for own, end in zip((one, two), ends, strict=True))
    changes = here - there
    rise, fall = max(0, int(changes.max())), max(0, -int(changes.min()))
    return max(rise, fall) / one.threshold_scale + one.tops * (rise + fall) / one.query_scale


# --- parts that are split ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tree:
    """What a private tree splits: counts of cells with growing codes."""

    mechanism: Any
    counts: Numbers
    codes: Numbers
    halvings: int


def split_loss(one: Tree, two: Tree) -> float:
    """The largest log-ratio of the chances of a whole tree, exactly: over all trees there can be, either way."""
    return max(_worst_tree(one, two), _worst_tree(two, one))


def _worst_tree(one: Tree, two: Tree) -> float:
    sums = [np.concatenate([[0], np.cumsum(own.counts)]) for own in (one, two)]
    codes = one.codes

    def worst(begin: int, bits: int, depth: int) -> float:
        first, last = (int(np.searchsorted(codes, place)) for place in (begin, begin + (1 << bits)))
        counts = [int(own[last] - own[first]) for own in sums]
        same = not np.any(one.counts[first:last] != two.counts[first:last])
        if bits <= 0 or last - first <= 1 or same:
            return 0.0
        chances = [_split_chance(own.mechanism, count, depth) for own, count in zip((one, two), counts, strict=True)]
        (yes, no), (also, neither) = chances
        fewer = min(one.halvings, bits)
        children = [begin + (part << (bits - fewer)) for part in range(1 << fewer)]
        return max(no - neither, yes - also + sum(worst(child, bits - fewer, depth + 1) for child in children))

    return worst(0, int(codes[-1]).bit_length(), 0)


class _Asked:
    """In the place of noise: sees what noise is added to."""

    __array_ufunc__ = None
    seen: Any = None

    def __radd__(self, exact: Any) -> Any:
        self.seen = exact
        return exact


def _split_chance(mechanism: Any, count: int, depth: int) -> tuple[float, float]:
    """The logarithms of the chances that a part is split, and that it is not."""
    asked = _Asked()
    with patch.object(privtree, "draw", lambda *_: asked):
        mechanism.splits(np.array([count], dtype=np.int64), depth, None)
    least, scale = 1 - int(asked.seen[0]), float(mechanism.law.scale)
    beyond = -math.log1p(math.exp(-1 / scale)) - (least if least >= 1 else 1 - least) / scale
    rest = math.log1p(-math.exp(beyond))
    return (beyond, rest) if least >= 1 else (rest, beyond)


# --- parts that look even ---------------------------------------------------------------------------------------------


def covered_loss(mechanism: Any, counts: Numbers, other: Numbers) -> float:
    """By the proof of even parts: for each row that differs, how far the costs of a part and of any other really move
    apart, over the scale of that part's noise.
    """
    total, here = 0.0, np.array(counts)
    for cell in np.flatnonzero(counts != other):
        for _ in range(abs(int(other[cell] - counts[cell]))):
            after = here.copy()
            after[cell] += 1 if other[cell] > counts[cell] else -1
            moved = {
                length: np.abs(_cost(mechanism, after, length) - _cost(mechanism, here, length)).max()
                for length in mechanism.lengths
            }
            most = max(moved.values())
            total += max(float((own + most) / mechanism.law(length).scale) for length, own in moved.items())
            here = after
    return total


def _cost(mechanism: Any, counts: Numbers, length: int) -> Numbers:
    found: Numbers = even_parts.deviations(counts, length) * (mechanism.lengths[-1] // length)
    return found

"""From a weighted table to whole records: controlled rounding, which keeps the totals that matter.

Totals that can be nested (one partition, or a hierarchy such as country, region, district) are kept exactly, from the
top down: each gets a whole number next to its fitted value, and its parts get theirs so that they add up; the parts
with the largest remainders are rounded up. For two crossing partitions such a rounding exists as well ([Cox1987]); it
is a vertex of a linear program. For three or more there may be none: what can be had is found by a Lagrangian search,
and the result says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from confide.errors import ParameterError
from confide.fit.fitted import Fit
from confide.fit.group import TOTAL, CellDomain, Floats, Group, Marginal
from confide.fit.linear_systems import linear_program

Integers = NDArray[np.int64]

MOST_PROGRAMMED: Final = 30_000  # cells to decide by a linear program
ROUNDS: Final = 60
STEP: Final = 0.7
WHOLE: Final = 1e-6  # numbers this close to a whole one are it
MOST_RECORDS: Final = 200_000_000


@dataclass(frozen=True, slots=True, eq=False)
class RoundedFit:
    """Whole counts for all cells. `kept[i]` says whether every total of the i-th group is the fitted one, rounded up or
    down; `misses[i]` is how far the worst of them is from it.
    """

    domain: CellDomain
    counts: Integers
    kept: tuple[bool, ...]
    misses: tuple[float, ...]

    def records(self) -> Integers:
        """One row for each record, one column for each attribute, each value by its number in the domain."""
        total = int(self.counts.sum())
        if total > MOST_RECORDS:
            raise ParameterError(f"{total:,} records are more than can be listed; write the counts instead")
        filled = np.flatnonzero(self.counts)
        places = np.stack(np.unravel_index(filled, self.domain.sizes), axis=1)
        return np.repeat(places, self.counts[filled], axis=0).astype(np.int64)


def round_controlled(fit: Fit, keep: Sequence[Group] = (TOTAL,)) -> RoundedFit:
    """Whole counts near a fitted table that keep the totals of some groups, the first of them before the later."""
    if (fit.cells < -WHOLE).any():
        raise ParameterError(f"a table fitted by {fit.method} may have negative counts, of which there are no records")
    cells = np.maximum(_whole(fit.cells), 0)
    for place, group in enumerate(keep):
        if not group.disjoint(fit.domain):
            raise ParameterError(f"only totals of disjoint queries can be kept; those of group {place} overlap")
    chain, crossing = _chain(fit.domain, keep)
    counts, base, budget, leaf = _top_down(cells, chain)
    if crossing:
        labels = [_labels(fit.domain, group) for group in keep]
        programmed = _programmed(cells, [*chain, *(_labels(fit.domain, group) for group in crossing)])
        if programmed is not None:
            counts = programmed
        else:
            counts = _searched(cells, base, budget, leaf, [_labels(fit.domain, group) for group in crossing])
    else:
        labels = [_labels(fit.domain, group) for group in keep]
    misses = tuple(_miss(cells, counts, label) for label in labels)
    return RoundedFit(fit.domain, counts, tuple(miss < 1 - WHOLE / 2 for miss in misses), misses)


def _chain(domain: CellDomain, keep: Sequence[Group]) -> tuple[list[Integers], list[Group]]:
    """Labels of the groups that nest, coarse to fine, beginning with the total; and the groups that cross one of
    them.
    """
    chain = [np.zeros(domain.cells, dtype=np.int64)]
    crossing = []
    for group in keep:
        label = _labels(domain, group)
        fits = [_refines(label, other) for other in chain]
        first = fits.index(False) if False in fits else len(chain)
        if all(_refines(other, label) for other in chain[first:]):
            chain.insert(first, label)
        else:
            crossing.append(group)
    return chain, crossing


def _labels(domain: CellDomain, group: Group) -> Integers:
    """For each cell the number of the query that counts it, and one number more for cells that none counts."""
    count = group.count(domain)
    if isinstance(group, Marginal):
        return group.spread(domain, np.arange(count, dtype=np.float64)).astype(np.int64)
    labels = group.spread(domain, np.arange(1, count + 1, dtype=np.float64)).astype(np.int64)
    return np.where(labels == 0, count, labels - 1)


def _refines(fine: Integers, coarse: Integers) -> bool:
    """Whether cells with one label of the first always have one label of the second."""
    first = np.full(int(fine.max()) + 1, -1, dtype=np.int64)
    first[fine] = coarse
    return bool((first[fine] == coarse).all())


def _top_down(cells: Floats, chain: Sequence[Integers]) -> tuple[Integers, Integers, Integers, Integers]:
    """Rounded cells; and for a later search: the rounded-down cells, how many more each last part gets, and the
    parts.
    """
    part = np.zeros(len(cells), dtype=np.int64)
    totals = np.array([int(np.rint(cells.sum()))], dtype=np.int64)
    for label in chain[1:]:
        values = _whole(_sums(label, cells))
        parent = np.zeros(len(values), dtype=np.int64)
        parent[label] = part
        totals = _shared(values, parent, totals)
        part = label
    counts = _shared(cells, part, totals)
    down = np.floor(cells).astype(np.int64)
    budget = totals - np.bincount(part, weights=down, minlength=len(totals)).astype(np.int64)
    return counts, down, budget, part


def _shared(values: Floats, parent: Integers, totals: Integers, prices: Floats | None = None) -> Integers:
    """Whole numbers next to the values that add up to the totals of their parents; the largest remainders are rounded
    up.
    """
    down = np.floor(values).astype(np.int64)
    more = totals - np.bincount(parent, weights=down, minlength=len(totals)).astype(np.int64)
    remainder = values - down
    score = remainder if prices is None else np.where(remainder > 0, remainder + prices, -np.inf)
    order = np.lexsort((-score, parent))
    starts = np.searchsorted(parent[order], np.arange(len(totals)))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - starts[parent[order]]
    shared = down + (rank < more[parent])
    if (more < 0).any():  # only where rounding made a total one too small: the largest part gives one back
        for place in np.flatnonzero(more < 0):
            members = np.flatnonzero(parent == place)
            for member in members[np.argsort(-shared[members])][: -more[place]]:
                shared[member] -= 1
    return shared


def _programmed(cells: Floats, labels: Sequence[Integers]) -> Integers | None:
    """By a linear program over what to round up, with every total rounded up or down; None if its vertex is not
    whole.
    """
    down = np.floor(cells)
    open_cells = np.flatnonzero(cells > down)
    if len(open_cells) == 0 or len(open_cells) > MOST_PROGRAMMED:
        return None if len(open_cells) else down.astype(np.int64)
    matrices, lows, highs = [], [], []
    for label in labels:
        totals, rounded_down = _whole(_sums(label, cells)), _sums(label, down)
        matrices.append(
            sparse.csr_array(
                (np.ones(len(open_cells)), (label[open_cells], np.arange(len(open_cells)))),
                shape=(len(totals), len(open_cells)),
            )
        )
        single = label is labels[0]  # the total itself goes to the nearest
        lows.append((np.rint(totals) if single else np.floor(totals)) - rounded_down)
        highs.append((np.rint(totals) if single else np.ceil(totals)) - rounded_down)
    remainders = (cells - down)[open_cells]
    up, solved = linear_program(
        1 - 2 * remainders,
        (np.zeros(len(open_cells)), np.ones(len(open_cells))),
        sparse.csc_array(sparse.vstack(matrices)),
        (np.concatenate(lows), np.concatenate(highs)),
    )
    if not solved:
        return None
    if np.abs(up - np.rint(up)).max() > WHOLE:
        return None
    counts = down.astype(np.int64)
    counts[open_cells] += np.rint(up).astype(np.int64)
    return counts


def _searched(
    cells: Floats, down: Integers, budget: Integers, part: Integers, crossing: Sequence[Integers]
) -> Integers:
    """Prices on the crossing totals that are missed, until they are missed less; the best rounding met on the way."""
    goals = [np.rint(np.bincount(label, weights=cells)) for label in crossing]
    prices = [np.zeros(len(goal)) for goal in goals]
    undecided = (cells > down).astype(np.float64)
    sizes = [np.maximum(np.bincount(label, weights=undecided), 1) for label in crossing]
    totals = budget + np.bincount(part, weights=down, minlength=len(budget)).astype(np.int64)
    best, least = None, np.inf
    for _ in range(ROUNDS):
        price = sum(each[label] for each, label in zip(prices, crossing, strict=True))
        counts = _shared(cells, part, totals, np.asarray(price))
        missed = [
            goal - np.bincount(label, weights=counts, minlength=len(goal))
            for goal, label in zip(goals, crossing, strict=True)
        ]
        miss = sum(float(np.abs(each).sum()) for each in missed)
        if miss < least:
            best, least = counts, miss
        if miss == 0:
            break
        # Remainders are spread over 0 to 1, so a price p on n undecided cells moves about n·p of them.
        moves = zip(prices, missed, sizes, strict=True)
        prices = [each + STEP * off / size for each, off, size in moves]
    assert best is not None
    return best


def _sums(label: Integers, cells: Floats) -> Floats:
    return np.bincount(label, weights=cells).astype(np.float64)


def _miss(cells: Floats, counts: Integers, label: Integers) -> float:
    return float(np.abs(np.bincount(label, weights=cells) - np.bincount(label, weights=counts)).max())


def _whole(values: Floats) -> Floats:
    """Values that are whole but for rounding made whole."""
    nearest = np.rint(values)
    return np.where(np.abs(values - nearest) <= WHOLE, nearest, values)

"""Places that are too rare to be told from noise, merged before columns are looked at together; and taken apart again.

All of it is arithmetic on released counts of single columns. What the merged places of a column have among themselves
is then as in the column alone, whatever the other columns are.
"""

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.curator import Merging
from confide.synthesis.relaxed import RelaxedTable

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_APART = 3
"""What has gathered so far is a place of its own before a frequent one, if it has a third of what a place needs."""


def merged_places(counts: Floats, least: float, ordered: bool) -> Places:
    """For each place the number of its merged one: neighbours together until they hold `least` rows. Places of a column
    without an order are taken from the most frequent on.
    """
    order = np.arange(len(counts)) if ordered else np.argsort(-counts, kind="stable")
    found = np.zeros(len(counts), dtype=np.int64)
    number, held = 0, 0.0
    for turn, place in enumerate(order):
        own = max(0.0, float(counts[place]))
        if turn and (held >= least or (own >= least and held > least / _APART)):
            number, held = number + 1, 0.0
        found[place] = number
        held += own
    if number and held < least / _APART:
        found[found == number] = number - 1
    return found


def shares_within(counts: Floats, places: Places) -> Floats:
    """Of each place its share of the merged one. Noise is taken off as a whole: the nearest counts that are not
    negative and add up to the same. Where nothing is left, all alike.
    """
    total = max(1.0, float(counts.sum()))
    falling = np.sort(counts)[::-1]
    cuts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    kept = np.maximum(counts - cuts[falling > cuts][-1], 0.0)
    whole, many = np.bincount(places, weights=kept), np.bincount(places)
    even = whole[places] <= 1e-9 * total
    return np.where(even, 1 / many[places], kept / np.where(even, 1.0, whole[places]))


def taken_apart(table: RelaxedTable, merging: Merging, within: list[Floats]) -> RelaxedTable:
    """The same table of all places."""
    columns = [table.column(column)[:, places] * within[column] for column, places in enumerate(merging)]
    weights = np.concatenate(columns, axis=1).astype(np.float32)
    return RelaxedTable(tuple(map(len, merging)), weights)

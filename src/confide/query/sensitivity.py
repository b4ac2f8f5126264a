"""How much one unit can change a measure. The only place where sensitivities are computed.

A unit has at most `rows` rows in the relation, each adding a value in [low, high] (or nothing, if `optional`) to one
group. Add-remove: a unit comes or goes. Replace-one: a unit's rows become another's, so two groups may change at once.
"""

from dataclasses import dataclass, replace

from confide.query.question import Neighbours


@dataclass(frozen=True, slots=True)
class Stability:
    """What one unit can do to a relation."""

    rows: int
    groups: int
    neighbours: Neighbours
    grouped: bool


@dataclass(frozen=True, slots=True)
class Sensitivity:
    l1: int
    l2_squared: int


def of_total(low: int, high: int, optional: bool, stability: Stability) -> Sensitivity:
    """A sum over rows of values in [low, high].

    Add-remove: L1 ≤ rows × M with M = max(|low|, |high|), and L2 ≤ L1, reached when all rows fall into one group.
    Replace-one: what a unit adds is rows × a point of the hull of the vectors value × group, and the norm of a
    difference is convex, so it is largest between two corners: within one group a value moves by w = high − low (with
    0 counted in if a row may be absent), across two groups by M in each. So L1 ≤ rows × max(w, 2M) and
    L2² ≤ rows² × max(w², 2M²); without groups both are rows × w.
    """
    rows, largest = stability.rows, max(abs(low), abs(high))
    if stability.neighbours == "add-remove":
        return Sensitivity(rows * largest, (rows * largest) ** 2)
    width = max(high, 0) - min(low, 0) if optional or stability.grouped else high - low
    if not stability.grouped:
        return Sensitivity(rows * width, (rows * width) ** 2)
    return Sensitivity(rows * max(width, 2 * largest), rows**2 * max(width**2, 2 * largest**2))


def of_histogram(stability: Stability) -> Sensitivity:
    """Counts of rows by group and by value, all of them together.

    A row is in one group and has one value, so the values only make more groups: what holds for a count in groups holds
    here, even where nothing is grouped by.
    """
    return of_total(1, 1, True, replace(stability, grouped=True))


def of_distinct(values: int | None, per_unit: int | None, stability: Stability) -> Sensitivity:
    """A number of distinct values: `values` there are in all, `per_unit` one unit can have in a group.

    Add-remove: a unit's rows add at most one value each, so L1 ≤ rows, and in one group at most min(rows, values). If
    a unit has only one value (its own key), it adds at most 1 in each of its groups: L1 ≤ groups, L2² ≤ groups.
    Replace-one: the old rows take away and the new rows add; in one group the difference of two numbers in [0, m] is at
    most m, over several groups both happen: twice.
    """
    rows = stability.rows
    in_group = min(count for count in (rows, values, per_unit) if count is not None)
    groups = min(stability.groups, rows) if stability.grouped else 1
    l1 = min(rows, groups * in_group)
    # Σ c_i² with Σ c_i ≤ l1 and every c_i ≤ in_group is at most in_group × l1.
    l2_squared = in_group * l1
    if stability.neighbours == "replace-one" and stability.grouped:
        return Sensitivity(2 * l1, 2 * l2_squared)
    return Sensitivity(l1, l2_squared)

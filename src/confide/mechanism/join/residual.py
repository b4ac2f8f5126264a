"""Residual sensitivity: a smooth bound on how much one row can change the size of a join, from a few GROUP BYs.

For a set R of private occurrences let T_R be the most joined rows of the other occurrences that agree on the columns
they share with R (1 where nothing is left). A row that enters a table takes the place of some of its copies E and of
others after s_j more rows have entered table j:

    LS(s) <= P_i(s) = Σ over E ⊆ copies of i, E not empty, Σ over E' ⊆ the rest of T_(E ∪ E') Π over E' of s_j

and RS = max over i and s of exp(-α Σ s_j) P_i(s) is α-smooth, because one more row shifts s by one.
([DongYi2021], [DongYi2022]; the second for copies of one table.)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from confide.mechanism.smooth.smooth import log_largest

Places = frozenset[int]
MOST_SPLITS: Final = 3_000_000
ENLARGED: Final = 1e-10

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Residual:
    """`copies`: the private occurrences, those of one table together. `residuals`: T by occurrences taken away."""

    copies: tuple[tuple[int, ...], ...]
    residuals: Mapping[Places, int]

    def polynomials(self) -> list[dict[tuple[int, ...], int]]:
        """P_i by table i: coefficients by the powers of s_1, s_2, ...."""
        table = {place: index for index, places in enumerate(self.copies) for place in places}
        result = []
        for own in self.copies:
            terms: dict[tuple[int, ...], int] = {}
            for entered in _subsets(own, least=1):
                for others in _subsets(tuple(place for place in table if place not in entered)):
                    powers = [0] * len(self.copies)
                    for place in others:
                        powers[table[place]] += 1
                    value = self.residuals[frozenset((*entered, *others))]
                    if value:
                        terms[tuple(powers)] = terms.get(tuple(powers), 0) + value
            result.append(terms)
        return result

    def local(self, added: tuple[int, ...]) -> int:
        """The bound after `added` rows have entered each table: exact, for checking."""
        return max(_value(terms, added) for terms in self.polynomials())

    def smooth(self, alpha: float) -> float:
        """RS, enlarged by 10^-10."""
        largest = max(_log_largest(terms, len(self.copies), alpha) for terms in self.polynomials())
        return math.exp(min(largest, 700.0)) * (1 + ENLARGED)


def _value(terms: dict[tuple[int, ...], int], added: tuple[int, ...]) -> int:
    total = 0
    for powers, value in terms.items():
        for rows, power in zip(added, powers, strict=True):
            value *= rows**power  # noqa: PLW2901
        total += value
    return total


def _log_largest(terms: dict[tuple[int, ...], int], tables: int, alpha: float) -> float:
    """ln max over s of exp(-α Σ s) P(s).

    P has degree q, so beyond Σ s = q/α some s_j can be lowered with profit; 5/4 of that is looked at, for s_j are whole
    numbers. Of one table that occurs once the best s is found in closed form, as a real number: (A + Bs) exp(-αs)
    peaks at 1/α - A/B. All tables are given as many rows as are given to all together where splits are too many
    to look at; whether they are follows from α and the query alone.
    """
    if not terms:
        return -math.inf
    used = [place for place in range(tables) if any(powers[place] for powers in terms)]
    degree = max(sum(powers) for powers in terms)
    farthest = math.ceil(1.25 * degree / alpha) + 10
    linear = next((place for place in used if all(powers[place] <= 1 for powers in terms)), None)
    walked = [place for place in used if place != linear]
    if math.comb(farthest + len(walked), len(walked)) > MOST_SPLITS:
        by_degree = [0.0] * (degree + 1)
        for powers, value in terms.items():
            by_degree[sum(powers)] += value
        return log_largest(lambda steps: np.asarray(polyval(steps, by_degree), np.float64), farthest, alpha)
    splits = _splits(len(walked), farthest)
    constant, slope = np.zeros(len(splits)), np.zeros(len(splits))
    for powers, value in terms.items():
        product = np.full(len(splits), float(value))
        for column, place in enumerate(walked):
            product *= splits[:, column] ** powers[place]
        if linear is not None and powers[linear]:
            slope += product
        else:
            constant += product
    best = np.zeros(len(splits))
    np.divide(constant, slope, out=best, where=slope > 0)
    best = np.where(slope > 0, np.maximum(1 / alpha - best, 0.0), 0.0)
    with np.errstate(divide="ignore"):
        logarithms = np.log(constant + slope * best) - alpha * (splits.sum(axis=1) + best)
    return float(logarithms.max())


def _splits(parts: int, total: int) -> Floats:
    """All ways to give at most `total` to so many parts."""
    splits = np.zeros((1, 0))
    left = np.full(1, total)
    for _ in range(parts):
        counts = left + 1
        begins = np.cumsum(counts) - counts
        given = np.arange(counts.sum()) - np.repeat(begins, counts)
        splits = np.column_stack([np.repeat(splits, counts, axis=0), given])
        left = np.repeat(left, counts) - given
    return splits


def _subsets(items: tuple[int, ...], least: int = 0) -> list[tuple[int, ...]]:
    return [chosen for size in range(least, len(items) + 1) for chosen in combinations(items, size)]

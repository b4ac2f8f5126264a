"""Selection by error, exactly: from whole marginals, or the top K of any number of single queries.

Scores are integers: the distance between an exact count and the model's count rounded to an integer. One unit changes
each exact count by at most `rows`, so each score by at most that, under add-remove and replace-one alike.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import Randomness
from confide.mechanism.selection.exponential import Exponential
from confide.privacy.loss import ZCDP, PureDP

Integers = NDArray[np.int64]
Scores = Callable[[], Iterable[tuple[int, Integers]]]
"""Every time it is called: all scores, in runs; each with the number of its first query."""

DENSE: Final = 2**22
"""Scores below this are counted in a table of their own."""

_GRID: Final = 10**30


def selection_epsilon(loss: PureDP | ZCDP, picks: int) -> Fraction:
    """The ε of each of `picks` exponential mechanisms that together cost at most `loss`.

    Pure: ε/K each. zCDP: ε₀²/8 each ([CesarRogers2021]), so ε₀ = √(8ρ/K), rounded down.
    """
    if isinstance(loss, PureDP):
        return loss.epsilon / picks
    square = 8 * loss.rho / picks
    return Fraction(math.isqrt(square.numerator * _GRID**2 // square.denominator), _GRID)


@dataclass(frozen=True, slots=True)
class LargestError:
    """Releases which of a few candidates has about the largest score.

    Neighbours: those between which each score changes by at most `sensitivity`.
    Loss: ε-DP, and ε²/8-zCDP; an exponential mechanism with exponents −score, the law of report-noisy-max with Gumbel
    noise ([McSherryTalwar2007]; [CesarRogers2021]).
    """

    epsilon: Fraction
    sensitivity: int

    def choose(self, scores: Integers, randomness: Randomness) -> int:
        mechanism = Exponential(self.epsilon, 2 * self.sensitivity)
        chosen, _ = mechanism.select(-scores, np.ones(len(scores), dtype=np.int64), randomness)
        return int(chosen[0])


@dataclass(frozen=True, slots=True)
class TopErrors:
    """Releases K different queries whose scores are about the largest, from any number of them.

    Neighbours: those between which each score changes by at most `sensitivity`.
    Loss: K exponential mechanisms at `epsilon` one after another, each among the queries that are left: the law of the
    top K of score + Gumbel noise in one shot ([DurfeeRogers2019], Lemma 4.2).
    Queries of one score are one segment, so a draw costs the number of distinct scores; two passes find them.
    """

    epsilon: Fraction
    sensitivity: int

    def choose(self, scores: Scores, taken: Integers, count: int, randomness: Randomness) -> Integers:
        """The numbers of `count` queries, none of them in `taken`; fewer if there are not so many."""
        values, left = _histogram(scores, taken)
        wanted: dict[int, list[int]] = {}
        mechanism = Exponential(self.epsilon, 2 * self.sensitivity)
        for _ in range(min(count, int(left.sum()))):
            segment, place = mechanism.select(-values, left, randomness)
            wanted.setdefault(int(values[segment[0]]), []).append(int(place[0]))
            left[segment[0]] -= 1
        return _located(scores, taken, {score: _ranks(places) for score, places in wanted.items()})


def _ranks(places: list[int]) -> list[int]:
    """Places among those that were left at each draw, as places among all of them."""
    ranks: list[int] = []
    for place in places:
        rank = place
        for before in sorted(ranks):
            if before <= rank:
                rank += 1
        ranks.append(rank)
    return ranks


def _histogram(scores: Scores, taken: Integers) -> tuple[Integers, Integers]:
    """The distinct scores, and how many queries have each; those taken left out.

    Small scores are counted one by one. Large ones are sorted: memory must not grow with how large a score is.
    """
    small, large, many = np.zeros((3, 0), dtype=np.int64)
    for start, run in scores():
        free = run[_free(taken, start, len(run))]
        beyond = free >= DENSE
        if beyond.any():
            large, places = np.unique(np.concatenate([large, free[beyond]]), return_inverse=True)
            weights = np.concatenate([many, np.ones(len(places) - len(many), dtype=np.int64)])
            many = np.zeros(len(large), dtype=np.int64)
            np.add.at(many, places, weights)
            free = free[~beyond]
        counts = np.bincount(free, minlength=len(small))
        counts[: len(small)] += small
        small = counts
    values = np.flatnonzero(small)
    return np.concatenate([values, large]), np.concatenate([small[values], many])


def _located(scores: Scores, taken: Integers, wanted: dict[int, list[int]]) -> Integers:
    """The numbers of the queries that stand at the wanted ranks of the wanted scores."""
    found: dict[tuple[int, int], int] = {}
    if not wanted:
        return np.zeros(0, dtype=np.int64)
    seen = dict.fromkeys(wanted, 0)
    listed = np.array(sorted(wanted))
    for start, run in scores():
        inside = _free(taken, start, len(run)) & (run >= listed[0]) & (run <= listed[-1])
        places = np.flatnonzero(inside)
        places = places[np.isin(run[places], listed)]
        own = run[places]
        for score in np.unique(own):
            here = places[own == score]
            for rank in wanted[int(score)]:
                if seen[int(score)] <= rank < seen[int(score)] + len(here):
                    found[int(score), rank] = start + int(here[rank - seen[int(score)]])
            seen[int(score)] += len(here)
    return np.array([found[score, rank] for score, ranks in wanted.items() for rank in ranks], dtype=np.int64)


def _free(taken: Integers, start: int, length: int) -> NDArray[np.bool_]:
    free = np.ones(length, dtype=bool)
    own = taken[(taken >= start) & (taken < start + length)] - start
    free[own] = False
    return free

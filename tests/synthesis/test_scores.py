"""Scores: integers that move no further than they say, by brute force; and a choice by them, audited."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from confide.mechanism import TestRandomness
from confide.privacy.loss import PureDP
from confide.synthesis.curator import Merging, Model, UnitReach
from confide.synthesis.junction import junction_tree
from confide.synthesis.markov import MarkovTable
from confide.synthesis.scores import STEPS, TotalDistance, in_steps
from confide.synthesis.selection import LargestError
from confide.workload import tables_of
from tests.conformance.audit import audit
from tests.synthesis.whole import random_table

CANDIDATES = [(0, 1), (1, 2)]
SIZES = (2, 2, 2)
ADDED = UnitReach(1, 1)
REPLACED = UnitReach(1, 2)
MERGED: Merging = [np.array([0, 0]), np.array([0, 1]), np.array([0, 1])]


def scored(merging: Merging | None = None) -> TotalDistance:
    sizes = SIZES if merging is None else (1, 2, 2)
    model = Model(random_table(sizes, CANDIDATES), 7.3)
    return TotalDistance(CANDIDATES, model, (1, 3), (0.4, 2.2), merging)


@pytest.mark.parametrize("merging", [None, MERGED], ids=["places", "merged"])
def test_a_row_moves_no_score_further_than_is_said(merging: Merging | None) -> None:
    """Every pair of columns with up to two rows in each cell; every row that comes, and every row that is replaced."""
    score = scored(merging)
    furthest = {ADDED: 0, REPLACED: 0}
    for place in range(2):
        every = {
            cells: score.of(place, np.array(cells, dtype=np.int64).reshape(2, 2))
            for cells in product(range(4), repeat=4)
        }
        for cells, value in every.items():
            more = [tuple(cells[i] + (i == own) for i in range(4)) for own in range(4)]
            for neighbour in more:
                if neighbour in every:
                    furthest[ADDED] = max(furthest[ADDED], abs(every[neighbour] - value))
            for one, two in product(more, more):
                if one in every and two in every:
                    furthest[REPLACED] = max(furthest[REPLACED], abs(every[one] - every[two]))
    for change, far in furthest.items():
        assert far == score.sensitivity(change)  # and there is a pair that reaches it


def test_a_score_is_the_distance_from_the_model_in_steps() -> None:
    score = scored()
    counts = np.array([[5, 0], [1, 9]], dtype=np.int64)
    expected = np.abs(counts - 7.3 * score.model.table.marginal((1, 2), 0, 2)).sum() - 2.2
    assert score.of(1, counts) / STEPS == pytest.approx(3 * expected, abs=0.01)


@pytest.mark.parametrize("total", [float("nan"), float("inf"), 1e300, -5.0])
def test_whatever_the_model_says_a_row_moves_a_score_by_a_row(total: float) -> None:
    score = TotalDistance([(0, 1)], Model(random_table((2, 2), [(0, 1)]), total))
    counts = np.array([[3, 0], [2**61, 1]], dtype=np.int64)
    more = counts + np.array([[1, 0], [0, 0]])
    assert abs(score.of(0, counts) - score.of(0, more)) <= STEPS
    assert in_steps(np.array([np.nan, np.inf, -1.0]), 1.0).tolist() == [0, 2**38, 0]


@dataclass(frozen=True)
class Halved(TotalDistance):
    """The mutant: a row is replaced at the price of one that comes."""

    def sensitivity(self, change: UnitReach) -> int:
        return super().sensitivity(change) // 2


def chosen(score: TotalDistance, rows: list[tuple[int, int, int]], runs: int, seed: int) -> NDArray[np.int64]:
    """A choice among one table and ten that are alike; 1 where it is the first."""
    mechanism = LargestError(Fraction(2), score.sensitivity(REPLACED))
    exact = tables_of(np.array(rows), SIZES, tuple(CANDIDATES))
    first, other = (score.of(place, exact.marginal(columns, 0, 2)) for place, columns in enumerate(CANDIDATES))
    randomness = TestRandomness(seed)
    scores = np.array([first, *[other] * 10])
    return np.array([[int(mechanism.choose(scores, randomness) == 0)] for _ in range(runs)])


def test_a_choice_on_neighbours_stays_within_its_loss_and_half_the_sensitivity_is_caught() -> None:
    """One row becomes another, so that the first score rises by two rows and all others fall by two."""
    half = np.full((2, 2), 0.5, np.float32)
    model = Model(MarkovTable(SIZES, junction_tree(SIZES, CANDIDATES), (half / 2, half)), 4.0)
    one = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1)]
    two = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 1, 1)]
    for kind, broken in ((TotalDistance, False), (Halved, True)):
        score = kind(CANDIDATES, model)
        sides = [chosen(score, rows, 20_000, seed) for seed, rows in enumerate((one, two))]
        assert audit(*sides, PureDP(Fraction(2))).violated == broken

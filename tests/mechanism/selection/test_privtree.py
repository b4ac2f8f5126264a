"""PrivTree: its exact loss over all ways down, against controls that lose more, and what it splits."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.noise.law import DiscreteLaplace
from confide.mechanism.selection.privtree import FINE, PrivTree, privtree, split_line
from confide.privacy.loss import PureDP


def chances(law: DiscreteLaplace, point: int) -> tuple[float, float]:
    """The logarithms of P(L > −point) and of P(L <= −point), each without cancelling."""
    rate = 1 / float(law.scale)
    if point > 0:
        stays = -point * rate - math.log1p(math.exp(-rate))
        return math.log1p(-math.exp(stays)), stays
    splits = (point - 1) * rate - math.log1p(math.exp(-rate))
    return splits, math.log1p(-math.exp(splits))


def worst_loss(tree: PrivTree, counts: list[int], floor: bool = True) -> float:
    """The largest log-ratio over all outcomes along the way of one row; counts are with it, from the top down."""
    worst, total = 0.0, 0.0
    for depth, count in enumerate(counts):
        with_row, without = ((count - less) * FINE - depth * tree.step for less in (0, 1))
        if floor:
            with_row, without = max(with_row, -tree.step), max(without, -tree.step)
        (split, stay), (other, stayed) = chances(tree.law, with_row), chances(tree.law, without)
        worst = max(worst, abs(total + stay - stayed))
        total += split - other
        worst = max(worst, abs(total))
    return worst


def ways(step: float, levels: int) -> list[list[int]]:
    """Counts along a way: constant, falling by a level's step, by half of it, and all at the floor."""
    rows = max(1, math.ceil(step))
    falls = [0, 1, rows // 2, rows - 1, rows, rows + 1, 2 * rows]
    found = []
    for last in (1, 2, rows, 3 * rows):
        for fall in falls:
            found.append([last + fall * (levels - 1 - level) for level in range(levels)])
            found.append([last + max(0, fall * (levels - 1 - level) - rows) for level in range(levels)])
    return found


@pytest.mark.parametrize("ratio", [2, 4, 8])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20)])
def test_no_way_loses_more_than_epsilon(epsilon: Fraction, ratio: int) -> None:
    tree = privtree(epsilon, 1, ratio)
    for counts in ways(tree.step / FINE, 40):
        assert worst_loss(tree, counts) <= epsilon


def test_most_of_the_loss_is_used() -> None:
    tree = privtree(Fraction(1, 2), 1)
    assert max(worst_loss(tree, counts) for counts in ways(tree.step / FINE, 40)) > 0.6 * 0.5


def test_without_the_floor_every_level_adds_to_the_loss() -> None:
    """The control: counts that are not clamped from below."""
    tree = privtree(Fraction(1, 2), 1)
    assert worst_loss(tree, [1] * 40, floor=False) > 3 * 0.5


def test_noise_for_half_the_scale_is_caught() -> None:
    right = privtree(Fraction(1, 2), 1)
    wrong = PrivTree(DiscreteLaplace(right.law.scale / 2), right.step // 2, PureDP(Fraction(1, 2)))
    assert max(worst_loss(wrong, counts) for counts in ways(wrong.step / FINE, 40)) > 0.5


def test_units_of_several_rows_have_more_noise() -> None:
    assert privtree(Fraction(1), 5).law.scale == privtree(Fraction(1, 5), 1).law.scale


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100])
def test_parts_cover_the_line(size: int) -> None:
    counts = np.random.default_rng(1).poisson(300, size)
    edges = split_line(privtree(Fraction(1), 1), counts, TestRandomness(3))
    assert edges[0] == 0
    assert edges[-1] == size
    assert (np.diff(edges) > 0).all()


def test_dense_cells_are_told_apart_and_empty_ones_are_not() -> None:
    counts = np.zeros(1024, dtype=np.int64)
    counts[100:104] = 50_000
    edges = split_line(privtree(Fraction(1), 1), counts, TestRandomness(5))
    assert {100, 101, 102, 103, 104} <= set(edges.tolist())
    assert len(edges) < 60


def test_the_largest_counts_do_not_wrap() -> None:
    """2⁴⁴ rows in units of 2⁻¹⁶ rows are 2⁶⁰, and noise and depths are far below 2⁶¹."""
    counts = np.array([2**44 - 1, 0])
    assert split_line(privtree(Fraction(1), 1), counts, TestRandomness(1)).tolist() == [0, 1, 2]


def test_counts_far_below_are_all_alike() -> None:
    """At the floor a part is split with chance 1/2β, however deep it is: 1/8 of 40,000 is 5,000 within 5σ = 330."""
    tree = privtree(Fraction(1), 1)
    for depth in (2, 50):
        assert abs(int(tree.splits(np.zeros(40_000, dtype=np.int64), depth, TestRandomness(9)).sum()) - 5_000) < 330

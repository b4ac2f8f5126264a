"""PrivTree: its exact loss over all ways down, against controls that lose more, and what it splits."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.noise.law import DiscreteLaplace
from confide.mechanism.selection.privtree import FINE, PrivTree, privtree, split_codes, split_line
from confide.privacy.loss import PureDP
from confide.workload.strategy.partition import CellGrid, Partition


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


@pytest.mark.parametrize("ratio", [2, 4, 8, 16])
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


@dataclass
class Watched:
    """A tree that splits as it is told, and keeps what it is asked."""

    choose: Any
    asked: list[tuple[int, np.ndarray]] = field(default_factory=list)

    def splits(self, counts: np.ndarray, depth: int, randomness: Any) -> np.ndarray:
        self.asked.append((depth, counts))
        return np.array([self.choose(depth, place) for place in range(len(counts))], dtype=bool)


GRIDS = (((7,), 1), ((4, 4), 2), ((4, 4), 4), ((3, 5), 4), ((2, 8), 2), ((2, 3, 4), 3), ((3, 3, 3), 3))


@pytest.mark.parametrize(("sizes", "halvings"), GRIDS)
def test_one_row_is_in_one_part_of_each_depth(sizes: tuple[int, ...], halvings: int) -> None:
    """The sensitivity that the loss is proven for, by brute force: every cell, and every sort of splits."""
    grid = CellGrid(sizes)
    cells = math.prod(sizes)
    for choose in (lambda d, p: True, lambda d, p: p % 2 == 0, lambda d, p: d < 1, lambda d, p: (d + p) % 3 > 0):
        for cell in range(cells):
            counts = np.zeros(cells, dtype=np.int64)
            without, with_row = Watched(choose), Watched(choose)
            split_codes(without, counts, grid.codes, halvings, TestRandomness(1))  # type: ignore[arg-type]
            counts[cell] = 1
            split_codes(with_row, counts, grid.codes, halvings, TestRandomness(1))  # type: ignore[arg-type]
            assert [depth for depth, _ in with_row.asked] == list(range(len(with_row.asked)))
            for (_, one), (_, other) in zip(with_row.asked, without.asked, strict=True):
                assert int(np.abs(one - other).sum()) <= 1


@pytest.mark.parametrize(("sizes", "halvings"), GRIDS)
def test_parts_are_boxes_that_cover_every_cell_once(sizes: tuple[int, ...], halvings: int) -> None:
    grid = CellGrid(sizes)
    assert sorted(grid.order.tolist()) == list(range(math.prod(sizes)))
    assert (np.diff(grid.codes) > 0).all()
    for choose in (lambda d, p: True, lambda d, p: d < 1, lambda d, p: (d + p) % 3 > 0):
        counts = np.zeros(math.prod(sizes), dtype=np.int64)
        edges = split_codes(Watched(choose), counts, grid.codes, halvings, TestRandomness(1))  # type: ignore[arg-type]
        seen = np.zeros(sizes, dtype=np.int64)
        begins, ends = grid.boxes(Partition(tuple(edges.tolist())))
        for place in range(len(edges) - 1):
            box = tuple(slice(a, b) for a, b in zip(begins[:, place], ends[:, place], strict=True))
            seen[box] += 1
        assert (seen == 1).all()


def exact_law(tree: PrivTree, counts: np.ndarray) -> dict[tuple[bool, ...], float]:
    """Of four by four cells halved twice: the logarithm of the chance of every outcome, root and quarters."""
    root = chances(tree.law, max(int(counts.sum()) * FINE, -tree.step))
    found = {(False,): root[1]}
    quarters = [chances(tree.law, max(int(q) * FINE - tree.step, -tree.step)) for q in counts.reshape(4, 4).sum(axis=1)]
    for splits in product((True, False), repeat=4):
        found[True, *splits] = root[0] + sum(q[0 if s else 1] for q, s in zip(quarters, splits, strict=True))
    return found


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_the_exact_loss_of_squares_is_at_most_epsilon(epsilon: Fraction) -> None:
    """An audit without chance: all outcomes of four by four cells, for every neighbour of some tables."""
    tree = privtree(epsilon, 1)
    wrong = PrivTree(DiscreteLaplace(tree.law.scale / 3), tree.step // 3, tree.loss)
    worst = {"right": 0.0, "wrong": 0.0}
    large = round(tree.step / FINE)
    for base in (0, 1, large // 4, large):
        counts = np.full(16, base, dtype=np.int64)
        for cell in range(16):
            more = counts.copy()
            more[cell] += 1
            for name, own in (("right", tree), ("wrong", wrong)):
                one, other = exact_law(own, counts), exact_law(own, more)
                worst[name] = max(worst[name], *(abs(one[outcome] - other[outcome]) for outcome in one))
    assert worst["right"] <= epsilon
    assert worst["wrong"] > epsilon


def test_squares_are_found_with_the_chances_of_their_law() -> None:
    """4,000 runs: the root is split as often as its law says, within 5σ, and so is a quarter of a split root."""
    tree, grid = privtree(Fraction(1), 1), CellGrid((4, 4))
    counts = np.array([3, 0, 1, 0] + [0] * 12, dtype=np.int64)
    law = exact_law(tree, counts)
    expected = [1 - math.exp(law[False,]), sum(math.exp(own) for key, own in law.items() if len(key) > 1 and key[1])]
    source, seen = TestRandomness(4), np.zeros(2)
    for _ in range(4_000):
        edges = set(split_codes(tree, counts, grid.codes, 2, source).tolist())
        seen += [4 in edges, 1 in edges]
    assert np.abs(seen / 4_000 - expected).max() < 5 * math.sqrt(0.25 / 4_000)

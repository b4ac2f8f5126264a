"""Mutual information: what it is, how far a row moves it by brute force, and a choice by it, audited."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from confide.mechanism import TestRandomness
from confide.privacy.loss import PureDP
from confide.synthesis import information
from confide.synthesis.curator import UnitReach
from confide.synthesis.information import STEPS, Family, Information, grown, growth
from confide.synthesis.selection import LargestError
from tests.conformance.audit import audit

PAIR = Family(0, (1,))
ADDED, REPLACED = UnitReach(1, 1), UnitReach(1, 2)


def score(rows: int, binary: bool = False) -> Information:
    return Information([PAIR], rows, binary)


def tables(shape: tuple[int, int], most: int) -> dict[tuple[int, ...], NDArray[np.int64]]:
    size = shape[0] * shape[1]
    return {cells: np.array(cells, dtype=np.int64).reshape(shape) for cells in product(range(most + 1), repeat=size)}


def furthest(own: Information, shape: tuple[int, int], most: int) -> tuple[int, int]:
    """How far a row that comes moves the score, and one that is replaced: every table, every row."""
    every = {cells: own.of(0, counts) for cells, counts in tables(shape, most).items()}
    added = replaced = 0
    for cells, value in every.items():
        more = [tuple(count + (place == at) for place, count in enumerate(cells)) for at in range(len(cells))]
        held = [every[other] for other in more if other in every]
        added = max([added, *(abs(other - value) for other in held)])
        replaced = max([replaced, *(max(held) - min(held) for _ in held)])
    return added, replaced


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(("shape", "most"), [((2, 2), 4), ((2, 3), 2), ((3, 2), 2), ((3, 3), 1)])
def test_a_row_moves_it_no_further_than_is_said(shape: tuple[int, int], most: int, rows: int) -> None:
    own = score(rows, binary=shape[0] == 2)
    added, replaced = furthest(own, shape, most)
    assert added <= own.sensitivity(ADDED)
    assert replaced <= own.sensitivity(REPLACED)


def test_there_are_rows_that_move_it_so_far() -> None:
    """A first row of its own kind beside n of another; a row that leaves a kind of its own for the common one."""
    n = 50
    own = score(n)
    alone, joined = np.array([[n, 0], [0, 0]]), np.array([[n, 0], [0, 1]])
    assert own.of(0, joined) - own.of(0, alone) == own.sensitivity(ADDED)
    half = n // 2
    apart = np.array([[half, 0, 0], [0, 0, 0], [0, half, 0]])
    one, two = apart.copy(), apart.copy()
    one[1, 2] += 1  # of its own
    two[0, 1] += 1  # x of the one half, π of the other
    moved = own.of(0, one) - own.of(0, two)
    exact = 2 * ((half + 1) * math.log(half + 1) - half * math.log(half))
    assert moved / STEPS == pytest.approx(exact, abs=1e-3)
    assert 0.85 * own.sensitivity(REPLACED) < moved <= own.sensitivity(REPLACED)


def test_it_is_the_information_of_the_table_in_nats() -> None:
    counts = np.random.default_rng(1).integers(0, 300, (4, 2, 3))
    rows = int(counts.sum())
    own = Information([Family(1, (0, 2))], rows, binary=False)
    shares = counts / rows
    given, child = shares.sum(axis=1, keepdims=True), shares.sum(axis=(0, 2), keepdims=True)
    inside = shares > 0
    expected = float((shares[inside] * np.log((shares / (given * child))[inside])).sum())
    assert own.of(0, counts) / STEPS / rows == pytest.approx(expected, abs=1e-5)
    assert Information([Family(0, ())], rows, binary=False).of(0, counts.sum(axis=(1, 2))) == 0


def test_the_published_sensitivities_are_these_over_n() -> None:
    """[Zhang2017], Lemma 4.1, in nats: of n·I, with n known, for replaced rows."""
    for n in (3, 11, 1_001):
        general = 2 * math.log((n + 1) / 2) + (n - 1) * math.log((n + 1) / (n - 1))
        binary = math.log(n) + (n - 1) * math.log(n / (n - 1))
        g = growth(n) / STEPS
        assert 2 * g[(n - 1) // 2] == pytest.approx(general, abs=1e-3)
        assert g[n - 1] == pytest.approx(binary, abs=1e-3)


def test_growth_never_falls_starts_at_nothing_and_ends() -> None:
    steps = growth(2_000)
    assert steps[0] == 0
    assert (np.diff(steps) >= 0).all()
    counts = np.array([0, 1, 2, 5, 6, 7, 10**12])
    np.testing.assert_array_equal(np.diff(grown(np.arange(10), 5)), growth(5)[np.minimum(np.arange(9), 5)])
    assert grown(counts, 5)[-1] == grown(np.array([6]), 5)[0] + (10**12 - 6) * growth(5)[5]


def test_a_score_in_bits_at_a_sensitivity_in_nats_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published mistake: scores 1.44 times as large as their sensitivity says."""
    real = information.grown

    def bits(counts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        return np.rint(real(counts, most) / math.log(2)).astype(np.int64)

    monkeypatch.setattr(information, "grown", bits)
    own = score(3, binary=True)
    added, replaced = furthest(own, (2, 2), 3)
    assert added > own.sensitivity(ADDED)
    assert replaced > own.sensitivity(REPLACED)


@dataclass(frozen=True)
class InBits(Information):
    """The mutant itself: nats where bits are scored."""

    def sensitivity(self, reach: UnitReach) -> int:
        return round(super().sensitivity(reach) * math.log(2) ** 3)


def test_a_choice_on_neighbours_stays_within_its_loss_and_too_little_noise_is_caught() -> None:
    """A row of its own kind comes: the first score rises as far as it can, and of the others nothing is changed."""
    before, after = np.array([[400, 0], [0, 0]]), np.array([[400, 0], [0, 1]])
    for kind, broken in ((Information, False), (InBits, True)):
        own = kind([PAIR], 400, binary=True)
        mechanism = LargestError(Fraction(4), own.sensitivity(ADDED))
        sides = []
        for seed, counts in enumerate((before, after)):
            # Twelve others that fall as far as the first one rises.
            rise = own.of(0, after) - own.of(0, before)
            value = own.of(0, counts)
            scores = np.array([value, *[rise - value] * 12])
            randomness = TestRandomness(seed)
            sides.append(np.array([[int(mechanism.choose(scores, randomness) == 0)] for _ in range(20_000)]))
        assert audit(*sides, PureDP(Fraction(4))).violated == broken

"""The ladder: its law by enumeration, its interval by the worst growth, its cost by an audit that can fail."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.graph.ladder import (
    FEWEST,
    MOST,
    REACH,
    Ladder,
    PowerGrowth,
    SteadyGrowth,
    cut_rungs,
    log_width,
    rung_ends,
)
from confide.mechanism.graph.pattern import StarRungs, TriangleRungs
from tests.conformance.audit import audit

ONE = Fraction(1)


def _rungs(ladder, first=40, step=1):
    return first + step * np.arange(ladder.length)


@pytest.mark.parametrize("growth", [SteadyGrowth(1), SteadyGrowth(3), PowerGrowth(1), PowerGrowth(2), PowerGrowth(4)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), ONE, Fraction(4)])
def test_no_ladder_of_the_kind_has_a_heavier_tail(growth, epsilon):
    ladder = Ladder(epsilon, 0.1, growth)
    rate, wide = float(ladder.draw_epsilon / 2), ladder.width_rungs
    places = np.arange(wide + math.ceil(120 / rate))
    kinds = []
    if isinstance(growth, SteadyGrowth):
        for first in (FEWEST, FEWEST + 3, 50):
            # flat for a while, then as steep as may be
            kinds += [growth.step * (first + np.maximum(0, places - wait)) for wait in (0, wide // 2, wide)]
    else:
        for first in (growth.first, growth.first + 5, 200):
            for beside in (0, 10**6):
                falling = np.array([math.perm(first + int(place), growth.power) for place in places], dtype=float)
                kinds.append(falling + beside)
    for rungs in kinds:
        weights = rungs * np.exp(-rate * places)
        assert weights[wide:].sum() / weights.sum() <= 0.06 * (1 + 1e-9)
        assert _beyond(rungs, rungs[:wide].sum(), rate) <= 0.06 * (1 + 1e-9)


def _beyond(rungs, width, rate):
    """The chance of a draw further away than a width, from the law itself."""
    ends = rung_ends(rungs)
    begins = np.concatenate([[0], ends[:-1]])
    weights = np.exp(-rate * np.arange(len(rungs)))
    outside = (ends - np.clip(width, begins, ends)) @ weights
    return 2 * outside / (1 + 2 * ((ends - begins) @ weights))


def test_the_draw_has_its_law():
    """Rungs by frequency, 20,000 draws; a false alarm once in 10,000 were the seed drawn."""
    ladder, source = Ladder(ONE, 0.1, SteadyGrowth(1)), TestRandomness(4)
    rungs = np.maximum(_rungs(ladder), FEWEST)
    ends = rung_ends(rungs)
    drawn = np.array([ladder.select(1_000, rungs, source) for _ in range(6_000)]) - 1_000
    rung = np.searchsorted(ends, np.abs(drawn))
    rate = float(ladder.draw_epsilon / 2)
    weights = 2 * np.diff(ends[:400], prepend=0) * np.exp(-rate * np.arange(400))
    weights[0] += 1
    expected = weights / weights.sum() * len(drawn)
    observed = np.bincount(rung, minlength=30)[:14]
    statistic = float(((observed - expected[:14]) ** 2 / expected[:14]).sum())
    assert statistic < 40  # 13 degrees of freedom
    assert abs(int((drawn > 0).sum()) - int((drawn < 0).sum())) < 450


def test_neighbours_are_not_told_apart_by_more_than_the_loss():
    """Exact probabilities of every number near the counts, on two counts whose ladders are as far apart as may be."""
    ladder = Ladder(ONE, 0.1, SteadyGrowth(1))
    here = np.maximum(_rungs(ladder, 6), FEWEST)
    there = here + 1  # r_t(D') = r_(t+1)(D)
    first, second = _scores(ladder, 100, here), _scores(ladder, 106, there)
    assert all(abs(first[y] - second[y]) <= 1 for y in range(-200, 400))


@pytest.mark.parametrize("seed", range(40))
def test_neighbours_move_a_number_by_one_rung_at_most(seed):
    """Ladders with any rungs, odd ones among them, and counts as far apart as they allow."""
    generator = np.random.default_rng(seed)
    ladder = Ladder(ONE, 0.1, SteadyGrowth(1))
    here = 1 + np.cumsum(generator.integers(0, 4, ladder.length + 1))
    there = generator.integers(np.append(1, here[:-2]), here[1:] + 1)
    there = np.maximum.accumulate(there)
    count = 100 + int(generator.choice([-1, 1])) * int(min(here[0], there[0]))
    first, second = _scores(ladder, 100, here[:-1]), _scores(ladder, count, there)
    assert all(abs(first[y] - second[y]) <= 1 for y in range(-200, 400))


def _scores(ladder, count, rungs):
    ends = rung_ends(rungs[: ladder.last_rung])
    return {y: int(np.searchsorted(ends, abs(y - count))) for y in range(-200, 400)}


@pytest.mark.parametrize("first", [1, 30, 2_000])
def test_the_interval_holds_as_often_as_it_says(first):
    ladder, source = Ladder(ONE, 0.1, SteadyGrowth(1)), TestRandomness(first)
    rungs = _rungs(ladder, first)
    hits = 0
    for _ in range(400):
        drawn, half = ladder.measure(10_000, rungs, source)
        hits += abs(drawn - 10_000) <= half
    assert hits >= 360 - 20  # 0.9 of 400, less three and a bit standard deviations


def test_the_width_is_smooth():
    """ln V moves by at most α between neighbours, and V is at least the width that is needed."""
    for rungs in (np.arange(5_000) + 7, 3 * (np.arange(5_000) + 4) ** 2, np.full(5_000, 12)):
        one, other = log_width(rungs[:-1], 9, 0.002), log_width(rungs[1:], 9, 0.002)
        assert abs(one - other) <= 0.002 + 1e-9
        assert math.exp(one) >= rungs[:9].sum()


@pytest.mark.audit
def test_an_audit_finds_nothing_and_catches_a_ladder_without_growth():
    """The mutant keeps r_0 as every rung on both sides, so that a neighbour moves numbers by more than a rung."""
    source, runs = TestRandomness(11), 20_000
    ladder = Ladder(Fraction(1, 2), 0.1, SteadyGrowth(1))
    here = np.maximum(TriangleRungs((5,), (30,), 1).rungs(ladder.length), ladder.growth.floor)
    there = np.maximum(TriangleRungs((6,), (31,), 1).rungs(ladder.length), ladder.growth.floor)
    first = np.array([ladder.measure(20, here, source) for _ in range(runs)])
    second = np.array([ladder.measure(25, there, source) for _ in range(runs)])
    assert not audit(first, second, ladder.loss).violated
    flat = np.full(ladder.length, 1)
    broken = [np.array([[ladder.select(count, flat, source)] for _ in range(runs)]) for count in (20, 25)]
    assert audit(broken[0], broken[1], ladder.loss).violated


def test_what_is_too_small_is_refused():
    with pytest.raises(ParameterError, match=r"0\.001"):
        Ladder(Fraction(1, 10_000), 0.1, SteadyGrowth(1))


@pytest.mark.parametrize("leaves", [2, 3])
@pytest.mark.parametrize("degree", [2**20, 2**20 + 1, 2**26, 2**40, 2**63])
def test_no_hub_is_too_large(degree, leaves):
    """A star in a directed table: the count is there, and nothing is cut, up to 2^63 rows."""
    ladder, source = Ladder(ONE, 0.1, PowerGrowth(leaves - 1)), TestRandomness(5)
    count, rungs = math.perm(degree, leaves), StarRungs(((degree, 0),), leaves, ordered=True)
    assert count < MOST
    drawn, half = ladder.measure(count, rungs.rungs(ladder.length), source)
    assert abs(drawn - count) <= half < 100 * leaves * degree ** (leaves - 1)


def test_what_passes_every_bound_is_cut_and_stays_a_ladder():
    """Counts and rungs of any size are drawn for, and the largest and smallest ε make room for them."""
    for epsilon in (Fraction(1, 1000), ONE, Fraction(1000)):
        ladder = Ladder(epsilon, 0.1, PowerGrowth(2))
        assert (ladder.last_rung + 1) * MOST < REACH // 2
    ladder, source = Ladder(ONE, 0.1, PowerGrowth(2)), TestRandomness(6)
    huge = [2**300 + place for place in range(ladder.length)]
    assert abs(ladder.measure(2**400, huge, source)[0]) <= REACH
    here, there = cut_rungs([2**191, *huge], 1), cut_rungs([3, *huge], 1)
    assert here.max() == there.max() == MOST
    assert (there[:-1] <= here[1:]).all()
    assert min(2**400, MOST) - min(5, MOST) <= MOST  # a cut count moves by no more than the largest rung


@pytest.mark.parametrize("first", [10, 2**61 // 2_000])
def test_python_integers_draw_what_64_bits_draw(first):
    ladder = Ladder(ONE, 0.1, SteadyGrowth(1))
    rungs = _rungs(ladder, first)
    one = ladder.measure(2**59, rungs, TestRandomness(7))
    two = ladder.measure(2**59, rungs.astype(object), TestRandomness(7))
    assert one == two


def test_stars_have_the_growth_they_state():
    rungs = StarRungs(((3, 1),), 3, ordered=False)
    steps = rungs.rungs(20)
    assert steps[0] >= math.comb(rungs.growth.first, 2)
    assert steps == sorted(steps)

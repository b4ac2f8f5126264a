"""What an ε too small for exact arithmetic ends in: a refusal before anything is read, for every mechanism."""

from fractions import Fraction

import numpy as np
import pytest

from confide.errors import EpsilonTooSmall
from confide.mechanism import TestRandomness, gaussian, laplace
from confide.mechanism.join.truncation import Levels, Race, Truncation
from confide.mechanism.noise.largest import LARGEST_SCALE, LARGEST_WALK, MOST_ROWS
from confide.mechanism.quantile.choice import MAKERS, quantile_plan
from confide.mechanism.selection.sparse_vector import SparseVector
from confide.mechanism.statistic import Setting
from confide.mechanism.tally import REACH, Tally
from confide.mechanism.total.choice import SUMMERS, mean_plan, total_plan

TINY = Fraction(1, 10**30)
WIDEST = (-REACH, REACH)
QUANTILES = [Fraction(1, 2), Fraction(123457, 10**6), Fraction(0), Fraction(999_999, 10**6)]
EPSILONS = [Fraction(1, 10**exponent) for exponent in (0, 3, 6, 9, 12, 15, 18, 24, 30)]
ROWS_OF_A_UNIT = [1, 1000, 10**9]
TALLIES = [
    Tally(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)),
    Tally(np.array([-REACH, 0, REACH]), np.array([1, 2, 1])),
    Tally(np.array([0]), np.array([5])),
    Tally(np.array([-REACH, -1, REACH]), np.array([MOST_ROWS // 2, 1, MOST_ROWS // 4])),
]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_quantile_that_can_be_planned_can_be_measured(name, neighbours):
    """Whatever the rows of a unit, and however many rows there are: nothing wraps, nothing raises."""
    refused = 0
    for q in QUANTILES:
        for epsilon in EPSILONS[:: 2 if name == "smooth" else 1]:
            for rows in ROWS_OF_A_UNIT:
                try:
                    plan = quantile_plan(q, (-1000, 1000), epsilon, 0.999999, neighbours, rows, name)
                except EpsilonTooSmall:
                    refused += 1
                    continue
                _ = plan.forecast
                # em counts every row by itself, so it is not given 2^44 of them
                for tally in TALLIES[:-1] if name == "em" else TALLIES:
                    result = plan.measure(tally, TestRandomness(1))
                    assert -1000 <= result.interval.low <= result.estimate <= result.interval.high <= 1000
    assert refused


@pytest.mark.parametrize("plan_of", [total_plan, mean_plan])
@pytest.mark.parametrize("name", SUMMERS)
def test_a_sum_that_can_be_planned_can_be_measured(name, plan_of):
    for neighbours in ("add-remove", "replace-one"):
        for domain in (WIDEST, (-10, 30), (REACH - 7, REACH)):
            # Noise of more than 50 bits takes tables, and r2t one for each power of two: few of those.
            for epsilon in (1, TINY) if domain == WIDEST or name == "svt" else (Fraction(1, 10**9),):
                if name in ("r2t", "tail") and domain == WIDEST and (epsilon == TINY or neighbours == "replace-one"):
                    continue
                try:
                    plan = plan_of(domain, Fraction(epsilon), 0.95, neighbours, 1, name)
                except EpsilonTooSmall:
                    assert epsilon < Fraction(1, 10**12)
                    continue
                _ = plan.forecast, plan.condition
                for tally in TALLIES[3:]:
                    result = plan.measure(tally.clipped(*domain), TestRandomness(1))
                    assert result.interval.low <= result.estimate <= result.interval.high


def test_ranks_of_2_44_rows_are_those_of_big_integers():
    """d·rank passes 2^63 for the finest quantiles of so many rows; exponents and margins are those of exact numbers."""
    q = Fraction(123457, 10**6)
    values = np.arange(9, dtype=np.int64)
    counts = np.array([1, MOST_ROWS // 3, 5, MOST_ROWS // 5, 1, 1, MOST_ROWS // 7, 2, 3])
    tally = Tally(values, counts)
    setting = Setting((0, 8), Fraction(1), 0.95, "add-remove")
    end = MAKERS["pair"](setting, q).lower(q, Fraction(1, 2), 0.01)
    starts, _, exponents = end.segments(tally.condensed(*end.window(tally.rows)), (0, 8))
    below = {int(v): sum(counts.tolist()[: int(v)]) for v in values}
    upto = {int(v): sum(counts.tolist()[: int(v) + 1]) for v in values}
    peak = 16 * (q.numerator * (tally.rows - 1) + 1) - end.shift
    for start, exponent in zip(starts.tolist(), exponents.tolist(), strict=True):
        if 0 < start <= 8:
            high = max(0, below[start] * 16 * q.denominator - peak)
            low = max(0, peak - upto[start] * 16 * q.denominator)
            assert exponent == min(end.most, end.steepness * high + low) or exponent in (0, end.most)
    stream = MAKERS["svt"](setting, q).lower(q, Fraction(1, 2), 0.01).stream(tally, (0, 8))
    assert int(stream.lengths.sum()) == 9
    assert (np.diff(stream.margins) >= 0).all()


@pytest.mark.parametrize("kind", [Race, Truncation])
@pytest.mark.parametrize("owners", [1, 2, 3])
def test_totals_of_units_are_refused_before_they_are_read(kind, owners):
    with pytest.raises(EpsilonTooSmall, match="too small"):
        kind(Levels(2**20, owners), TINY, 0.05)
    least = kind(Levels(2**58, owners), Fraction(1, 10**9), 0.05)
    assert least.measure([2**100] * len(least.levels.edges), TestRandomness(1)).low >= 0


def test_the_limits_themselves():
    assert laplace(2**90, Fraction(1, 2**100)).law.scale == LARGEST_SCALE
    with pytest.raises(EpsilonTooSmall, match="too small"):
        laplace(2**91, Fraction(1, 2**100))
    with pytest.raises(EpsilonTooSmall, match="too small"):
        gaussian(2**200, Fraction(1, 2**400))
    assert SparseVector(Fraction(4, LARGEST_WALK), 1, 1).query_scale <= LARGEST_WALK
    with pytest.raises(EpsilonTooSmall, match="too small"):
        SparseVector(Fraction(1, LARGEST_WALK), 1, 1)

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, TestRandomness, draw
from confide.mechanism.interval.ratio import _quantile, ratio_estimates, ratio_intervals
from tests.conformance.exact_law import probability, tails

SMALL = [
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(Fraction(2)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(20)),
]


def _exceeded(first, second, ratio, width):
    """P(|X - ratio·Y| > width), by enumeration."""
    reach = min(len(tails(second)) - 1, 200)
    beyond = [float(tail) for tail in tails(first)]

    def above(threshold):  # P(X > threshold) for a real threshold
        place = math.floor(threshold)
        if place >= 0:
            return beyond[place] if place < len(beyond) else 0.0
        return 1 - (beyond[-place - 1] if -place - 1 < len(beyond) else 0.0)

    total = 0.0
    for value in range(-reach, reach + 1):
        shift = ratio * value
        total += float(probability(second, value)) * (above(shift + width) + above(width - shift))
    return total


@pytest.mark.parametrize("miss", [0.3, 0.05, 0.001])
@pytest.mark.parametrize("second", SMALL, ids=str)
@pytest.mark.parametrize("first", SMALL, ids=str)
def test_the_quantile_bounds_every_ratio_up_to_its_node(first, second, miss):
    quantile = _quantile(first, second, miss, 30.0)
    generator = np.random.default_rng(1)
    starts = np.append(0, quantile.nodes[:-1])
    for place in generator.choice(len(quantile.nodes), 12, replace=False):
        start, end, width = starts[place], quantile.nodes[place], quantile.widths[place]
        for ratio in (end, start, generator.uniform(start, end), generator.uniform(0, end)):
            assert _exceeded(first, second, ratio, width * (1 - 1e-12)) <= miss
        tight = width - 1 - 0.03 * width - end  # one step of each lattice and the grids
        assert tight < 0 or _exceeded(first, second, end, tight) > miss


def test_beyond_the_last_node_the_noises_are_bounded_apart():
    for first in SMALL:
        for second in SMALL:
            quantile = _quantile(first, second, 0.05, math.inf)
            for ratio in (quantile.nodes[-1], 1e3, 1e4):
                assert _exceeded(first, second, ratio, quantile.intercept + quantile.slope * ratio) <= 0.05


@pytest.mark.parametrize("scale", [10**6, 10**15])
def test_wide_laws_have_the_quantile_of_their_limit(scale):
    """For two equal Laplace laws P(|X - Y| > t) = (1 + t/2s) exp(-t/s), here 0.05 at t = 4.1131 s."""
    law = DiscreteLaplace(Fraction(scale))
    quantile = _quantile(law, law, 0.05, 1.0)
    width = quantile.widths[-1] / scale
    assert (1 + width / 2) * math.exp(-width) <= 0.05
    assert width < 4.1131 * 1.01


def _members(quantile, top, bottom, candidates):
    """The ratios among the candidates that the definition of the set admits."""
    places = np.searchsorted(quantile.nodes, np.abs(candidates))
    widths = np.append(quantile.widths, 0)[places]
    widths = np.where(places == len(quantile.nodes), quantile.intercept + quantile.slope * np.abs(candidates), widths)
    return candidates[np.abs(top - candidates * bottom) <= widths]


@pytest.mark.parametrize("limit", [0.7, 5.0, math.inf])
def test_the_interval_is_the_hull_of_the_set(limit):
    first, second = DiscreteLaplace(Fraction(4)), DiscreteLaplace(Fraction(3))
    generator = np.random.default_rng(2)
    quantile = _quantile(first, second, math.nextafter(1 - 0.9, 0), limit)
    span = min(limit, 60)
    steps = np.concatenate([np.linspace(0, span, 100_001), quantile.nodes * (1 + 1e-9)])
    steps = np.sort(steps[steps <= span])
    candidates = np.concatenate([-steps[::-1], steps])
    step = span / 100_000
    for _ in range(60):
        bottom = int(generator.integers(8, 40))
        top = int(generator.integers(-3 * bottom, 3 * bottom))
        interval = ratio_intervals(
            np.array([top]),
            np.array([bottom]),
            first,
            second,
            0.9,
            low=-limit,
            high=limit,
            denominator_nonnegative=True,
        )[0]
        # What noise took beyond the largest ratio counts as if it were there, so that the set is never empty.
        members = _members(quantile, min(max(top, -limit * bottom), limit * bottom), bottom, candidates)
        assert interval.low < interval.high
        assert interval.low <= members.min()
        assert interval.high >= members.max()
        if interval.low > -span:
            assert interval.low >= members.min() - 2 * step
        if interval.high < span:
            assert interval.high <= members.max() + 2 * step


@pytest.mark.parametrize("limit", [2.0, 60.0, math.inf])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (DiscreteLaplace(Fraction(4)), DiscreteLaplace(Fraction(3))),
        (DiscreteLaplace(Fraction(400)), DiscreteLaplace(Fraction(20))),
        (DiscreteGaussian(Fraction(10**6)), DiscreteGaussian(Fraction(100))),
        (DiscreteLaplace(Fraction(400)), DiscreteGaussian(Fraction(100))),
    ],
    ids=str,
)
def test_the_steps_that_are_reached_are_enough(first, second, limit, monkeypatch):
    """The set of the whole table, but for widths that a step may borrow from steps which were left out."""
    generator = np.random.default_rng(4)
    bottom = generator.integers(1, 2000, 400)
    top = np.rint(bottom * generator.uniform(-2, 2, 400)).astype(np.int64)

    def one_by_one():
        """Each ratio by itself, so that each has the fewest steps."""
        parts = [ratio_intervals(top[[i]], bottom[[i]], first, second, 0.9, low=-limit, high=limit) for i in range(400)]
        return np.concatenate([part.low for part in parts]), np.concatenate([part.high for part in parts])

    low, high = one_by_one()
    cut = _quantile.cache_info().misses
    monkeypatch.setattr("confide.mechanism.interval.ratio._steps", lambda *_: 10**9)
    whole_low, whole_high = one_by_one()
    assert cut > _quantile.cache_info().misses - cut  # the first had several tables, the second one
    assert (low <= whole_low).all()
    assert (high >= whole_high).all()
    scale = np.maximum(whole_high - whole_low, 1e-300)
    finite = np.isfinite(scale)
    assert ((high - low)[finite] <= 1.02 * scale[finite]).all()
    assert ((high - low)[finite] == scale[finite]).mean() > 0.8
    assert np.isinf((high - low)[~finite]).all()


def test_too_few_steps_would_be_seen(monkeypatch):
    """What the test above is for: cutting the table before the set ends narrows it."""
    law = DiscreteLaplace(Fraction(40))
    arguments = (np.array([150_000]), np.array([1000]), law, law, 0.9)
    whole = ratio_intervals(*arguments)[0]
    monkeypatch.setattr("confide.mechanism.interval.ratio._steps", lambda *_: 8)
    assert ratio_intervals(*arguments)[0].high < whole.high


def test_large_groups_have_the_width_of_their_noise():
    """With n = 10⁶ and the mean in the middle only the numerator's noise counts: its exact quantile over n."""
    law = DiscreteLaplace(Fraction(2000))
    interval = ratio_intervals(
        np.array([0]), np.array([10**6]), law, DiscreteLaplace(Fraction(2)), 0.95, low=-1000, high=1000
    )[0]
    ideal = law.half_width(0.95) / 10**6
    assert ideal <= interval.high <= 1.02 * ideal


def test_empty_groups_get_the_whole_range():
    counts, sums = DiscreteLaplace(Fraction(2)), DiscreteLaplace(Fraction(200))
    source = TestRandomness(5)
    noised_counts, noised_sums = draw(counts, 20_000, source), draw(sums, 20_000, source)
    for nonnegative in (True, False):
        intervals = ratio_intervals(
            noised_sums, noised_counts, sums, counts, 0.9, low=-100, high=100, denominator_nonnegative=nonnegative
        )
        whole = (intervals.low == -100) & (intervals.high == 100)
        assert whole.mean() > 0.9


def test_a_denominator_of_either_sign():
    law = DiscreteLaplace(Fraction(2))
    one = ratio_intervals(np.array([300]), np.array([-100]), law, law, 0.95)[0]
    other = ratio_intervals(np.array([-300]), np.array([100]), law, law, 0.95)[0]
    assert (one.low, one.high) == (other.low, other.high)
    assert -3 in one
    assert ratio_intervals(np.array([300]), np.array([-2]), law, law, 0.95)[0].high == math.inf


def test_exact_numbers_on_either_side():
    law = DiscreteLaplace(Fraction(2))
    numerator, denominator = np.array([500]), np.array([100])
    exact = ratio_intervals(numerator, denominator, NoNoise(), NoNoise(), 0.95)[0]
    assert 5 in exact
    assert exact.high - exact.low < 1e-12
    known_count = ratio_intervals(numerator, denominator, law, NoNoise(), 0.95)[0]
    assert known_count.low == pytest.approx(4.94)
    assert known_count.high == pytest.approx(5.06)
    known_sum = ratio_intervals(numerator, denominator, NoNoise(), law, 0.95)[0]
    assert known_sum.low == pytest.approx(500 / 106)
    assert known_sum.high == pytest.approx(500 / 94)
    whole_number = ratio_intervals(np.array([500]), np.array([7]), NoNoise(), law, 0.95)[0]
    assert (whole_number.low, whole_number.high) == (pytest.approx(500 / 13), pytest.approx(500 / 1))
    empty = ratio_intervals(np.array([0]), np.array([0]), law, NoNoise(), 0.95, low=0, high=7)[0]
    assert (empty.low, empty.high) == (0, 7)


def test_sums_beyond_64_bits_round_outward():
    sums, counts = DiscreteLaplace(Fraction(2**45)), DiscreteLaplace(Fraction(2))
    numerator = np.array([2**80 + 1, -(2**80) - 1], dtype=object)
    denominator = np.array([2**38, 2**38])
    intervals = ratio_intervals(numerator, denominator, sums, counts, 0.95, low=-(2**43), high=2**43)
    for place in range(2):
        exact = Fraction(int(numerator[place]), 2**38)
        width = Fraction(sums.half_width(0.95), 2**38)
        assert Fraction(intervals[place].low) <= exact - width
        assert Fraction(intervals[place].high) >= exact + width
        assert Fraction(intervals[place].high) <= exact + 60 * width  # here the count's noise rules


def test_ends_near_zero_of_large_numbers_round_outward():
    """The numerator and its half-width nearly cancel: the end must not lie inside by what their doubles are off."""
    law = DiscreteLaplace(Fraction(2**80, 3))
    width = law.half_width(0.95)
    for rest in (-(10**6), -1, 0, 1, 12345, 10**6):
        interval = ratio_intervals(np.array([rest - width], dtype=object), np.array([7]), law, NoNoise(), 0.95)[0]
        assert Fraction(interval.high) >= Fraction(rest, 7)
        interval = ratio_intervals(np.array([rest + width], dtype=object), np.array([7]), law, NoNoise(), 0.95)[0]
        assert Fraction(interval.low) <= Fraction(rest, 7)


def test_very_high_confidence_is_bounded_apart():
    law = DiscreteLaplace(Fraction(2))
    confidence = 1 - 1e-12
    wide = ratio_intervals(np.array([5000]), np.array([1000]), law, law, confidence)[0]
    assert wide.low < 4.8
    assert wide.high > 5.2
    assert np.isfinite([wide.low, wide.high]).all()


def test_estimates_lie_in_their_intervals():
    law = DiscreteLaplace(Fraction(3))
    generator = np.random.default_rng(3)
    numerator, denominator = generator.integers(-400, 400, 5000), generator.integers(-20, 50, 5000)
    for low, high in ((-10, 10), (-math.inf, math.inf), (0, math.inf), (3, 3)):
        for nonnegative in (True, False):
            intervals = ratio_intervals(
                numerator, denominator, law, law, 0.9, low=low, high=high, denominator_nonnegative=nonnegative
            )
            estimates = ratio_estimates(numerator, denominator, intervals, denominator_nonnegative=nonnegative)
            assert intervals.contains(estimates).all()
            assert np.isfinite(estimates).all()
    intervals = ratio_intervals(np.array([90]), np.array([-4]), law, law, 0.9, low=-10, high=10)
    assert ratio_estimates(np.array([90]), np.array([-4]), intervals, denominator_nonnegative=True).tolist() == [0]


def test_shapes_are_kept_and_many_cells_are_chunked():
    law = DiscreteLaplace(Fraction(3))
    numbers = np.arange(60_000).reshape(200, 300)
    intervals = ratio_intervals(numbers, numbers + 100, law, law, 0.9, low=0, high=1)
    assert intervals.low.shape == (200, 300)
    alone = ratio_intervals(numbers[150, 10:11], numbers[150, 10:11] + 100, law, law, 0.9, low=0, high=1)
    assert intervals[150, 10] == alone[0]


def test_a_range_of_one_number():
    law = DiscreteLaplace(Fraction(300))
    for only in (0, 3):
        interval = ratio_intervals(np.array([5000]), np.array([9000]), law, law, 0.9, low=only, high=only)[0]
        assert (interval.low, interval.high) == (only, only)


def test_an_empty_range_is_an_error():
    law = DiscreteLaplace(Fraction(3))
    with pytest.raises(ValueError, match="possible"):
        ratio_intervals(np.array([1]), np.array([1]), law, law, 0.9, low=1, high=0)

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.quantile.rank import TwoEnds, order_statistics, parse_quantile, rank_forecast, target
from confide.mechanism.statistic import NOTHING_EXPECTED, Expectation, Setting
from confide.mechanism.tally import Tally

quantiles = st.fractions(0, 1, max_denominator=20)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), quantiles)
def test_every_definition_lies_between_the_two_order_statistics(values, q):
    ordered, rows = sorted(values), len(values)
    low, high = (ordered[place - 1] for place in order_statistics(q, rows))
    assert low <= ordered[max(1, math.ceil(q * rows)) - 1] <= high
    position = q * (rows - 1)
    below, above = ordered[math.floor(position)], ordered[math.ceil(position)]
    assert low <= below + (position - math.floor(position)) * (above - below) <= high
    assert low <= float(np.quantile(ordered, float(q))) + 1e-9
    if 0 < q < 1:
        either = [y for y in range(31) if sum(x < y for x in values) <= q * rows <= sum(x <= y for x in values)]
        assert low <= min(either)
        assert max(either) <= high


@given(st.integers(1, 200), quantiles)
def test_the_target_is_the_most_that_the_lower_order_statistic_allows(rows, q):
    lower, upper = order_statistics(q, rows)
    assert target(q, rows) <= lower * q.denominator
    assert rows + 1 - order_statistics(1 - q, rows)[0] == upper  # an upper end is a lower end of the mirrored data


@pytest.mark.parametrize(
    ("given", "exact"),
    [(0.5, Fraction(1, 2)), (0.1, Fraction(1, 10)), ("1/3", Fraction(1, 3)), (1, 1), (Decimal("0.25"), Fraction(1, 4))],
)
def test_a_quantile_is_the_number_that_was_written(given, exact):
    assert parse_quantile(given) == exact


@pytest.mark.parametrize("given", [-0.1, 1.5, math.nan, math.inf, "half", None, True, "1/0", [0.5]])
def test_what_is_no_quantile_is_refused(given):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        parse_quantile(given)


def test_a_quantile_with_too_many_digits_is_refused():
    with pytest.raises(ParameterError, match="six decimals"):
        parse_quantile(0.12345678)


class _Fixed:
    """Ends that are told, and what was asked for them."""

    def __init__(self, *ends):
        self.ends, self.asked = list(ends), []

    def lower(self, q, epsilon, miss):
        self.asked.append((q, epsilon, miss))
        return _End(self.ends)


class _End:
    def __init__(self, ends):
        self.ends = ends

    def __call__(self, tallies, domain, randomness):
        return [self.ends.pop(0) for _ in tallies]

    def window(self, rows):
        return None


@pytest.mark.parametrize(
    ("ends", "estimate", "interval"),
    [
        ((20, -40), 30, (20, 40)),  # the middle
        ((0, -40), 40, (0, 40)),  # one end is only that of the domain
        ((20, -100), 20, (20, 100)),
        ((0, -100), 50, (0, 100)),
        ((60, -40), 50, (40, 60)),  # crossed
    ],
)
def test_the_estimate_is_inside_its_interval(ends, estimate, interval):
    setting = Setting((0, 100), Fraction(1), 0.9, "add-remove", rows=2)
    maker = _Fixed(*ends)
    (result,) = TwoEnds(maker, setting, Fraction(1, 4)).measure_each([Tally.of([1])], TestRandomness(1))
    assert (result.interval.low, result.interval.high) == interval
    assert result.estimate == estimate
    assert result.whole == (interval == (0, 100))
    assert [asked[:2] for asked in maker.asked] == [
        (Fraction(1, 4), Fraction(1, 4)),
        (Fraction(3, 4), Fraction(1, 4)),
    ]
    assert maker.asked[0][2] == pytest.approx(0.05)


@pytest.mark.parametrize(("q", "interval"), [(0, (0, 30)), (1, (30, 100))])
def test_an_extreme_has_one_end_which_gets_everything(q, interval):
    setting = Setting((0, 100), Fraction(1), 0.9, "add-remove")
    maker = _Fixed(30 if q else -30)
    (result,) = TwoEnds(maker, setting, Fraction(q)).measure_each([Tally.of([1])], TestRandomness(1))
    assert (result.interval.low, result.interval.high) == interval
    assert result.estimate == 30
    assert maker.asked[0][:2] == (1, Fraction(1))
    assert maker.asked[0][2] == pytest.approx(0.1)


def test_values_outside_of_the_domain_are_moved_into_it():
    seen = []

    class Watching(_Fixed):
        def lower(self, q, epsilon, miss):
            return lambda tallies, domain, randomness: [seen.append((tally, domain)) or domain[0] for tally in tallies]

    setting = Setting((0, 10), Fraction(1), 0.9, "add-remove")
    TwoEnds(Watching(), setting, Fraction(1, 2)).measure_each([Tally.of([-7, 3, 900])], TestRandomness(1))
    assert [(tally.values.tolist(), domain) for tally, domain in seen] == [
        ([0, 3, 10], (0, 10)),
        ([-10, -3, 0], (-10, 0)),
    ]


def test_a_forecast_says_what_it_rests_on():
    setting = Setting((0, 1000), Fraction(1), 0.9, "add-remove")
    known = rank_forecast(10, setting, Expectation(1000, 500), Fraction(1, 2))
    assert known.half_width == 5
    assert "guess" not in known.basis
    assert "guess" in rank_forecast(10, setting, NOTHING_EXPECTED, Fraction(1, 2)).basis
    assert rank_forecast(600, setting, Expectation(1000, 500), Fraction(1, 2)).half_width >= 250
    assert rank_forecast(10**9, setting, Expectation(1000, 500), Fraction(1, 2)).half_width <= 500

import math
from fractions import Fraction

import pytest

from confide.mechanism import TestRandomness
from confide.mechanism.statistic import NOTHING_EXPECTED, Setting
from confide.mechanism.tally import Tally
from confide.mechanism.total.summation import Summed, SumSpan, centre_of, sensitivity, shifted


class _Told:
    """A summer that says what it is told."""

    name, assumes, count_share = "told", "always", Fraction(1, 4)

    def __init__(self, span):
        self.answer, self.asked = span, []

    def condition(self, epsilon, miss, centred):
        return ""

    def prepare(self, epsilon, miss, centred):
        pass

    def expected(self, epsilon, miss, centred, expectation):
        return 100.0

    def off_centre(self, expectation):
        return 2.0

    def span(self, tally, epsilon, miss, centred, randomness):
        self.asked.append((epsilon, miss, centred))
        return self.answer


def _measure(span, statistic, neighbours, data, domain=(-50, 50), epsilon=Fraction(1)):
    summer = _Told(span)
    plan = Summed(Setting(domain, epsilon, 0.9, neighbours), statistic, summer)
    return plan.measure(Tally.of(data), TestRandomness(1)), summer.asked[0] if summer.asked else None


def test_a_total_with_public_rows_adds_its_centre_back():
    result, asked = _measure(SumSpan(10, 4, -6, 14), "total", "replace-one", [9, 12, 13])
    assert (result.interval.low, result.estimate, result.interval.high) == (24, 34, 44)
    assert asked == (1, pytest.approx(0.1), True)


def test_a_total_with_private_rows_is_taken_about_zero():
    result, asked = _measure(SumSpan(0, 4, -6, 14), "total", "add-remove", [9, 12, 13])
    assert (result.interval.low, result.estimate, result.interval.high) == (-6, 4, 14)
    assert asked == (1, pytest.approx(0.1), False)


def test_a_total_is_cut_to_what_is_possible():
    assert _measure(SumSpan(0, -3, -9, 14), "total", "add-remove", [1], (0, 9))[0].interval.low == 0
    assert _measure(SumSpan(0, 3, -9, 14), "total", "add-remove", [-1], (-9, 0))[0].estimate == 0
    result, _ = _measure(SumSpan(0, 3, -9, 99), "total", "replace-one", [1, 2], (1, 9))
    assert (result.interval.low, result.interval.high) == (2, 18)
    unbounded, _ = _measure(SumSpan(0, 3, -(10**30), 10**30), "total", "add-remove", [1], None)
    assert unbounded.interval.high == 10**30


def test_a_mean_with_public_rows():
    result, _ = _measure(SumSpan(10, 4, -6, 14), "mean", "replace-one", [9, 12, 13, 20])
    assert result.estimate == 11
    assert result.interval.low == pytest.approx(8.5)
    assert result.interval.high == pytest.approx(13.5)
    assert Fraction(result.interval.low) <= Fraction(17, 2)


def test_a_mean_with_private_rows_measures_them():
    result, asked = _measure(SumSpan(10, 400, -600, 1400), "mean", "add-remove", [9] * 1000, epsilon=Fraction(100))
    assert asked == (75, pytest.approx(0.08), True)
    assert result.estimate == pytest.approx(10.4, abs=0.01)
    assert result.interval.low == pytest.approx(9.4, abs=0.01)
    assert result.interval.high == pytest.approx(11.4, abs=0.01)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_mean_of_no_rows_leaves_the_whole_domain(neighbours):
    result, _ = _measure(SumSpan(0, 3, 1, 5), "mean", neighbours, [])
    assert result.whole
    assert (result.interval.low, result.interval.high) == (-50, 50)
    unbounded, _ = _measure(SumSpan(0, 3, 1, 5), "mean", neighbours, [], None)
    assert (unbounded.interval.low, unbounded.interval.high) == (-math.inf, math.inf)
    assert unbounded.whole


def test_the_count_is_part_of_the_forecast():
    total = Summed(Setting((0, 99), Fraction(1), 0.9, "add-remove"), "total", _Told(None))
    mean = Summed(Setting((0, 99), Fraction(1), 0.9, "add-remove"), "mean", _Told(None))
    known = Summed(Setting((0, 99), Fraction(1), 0.9, "replace-one"), "mean", _Told(None))
    assert total.forecast.half_width == 100
    assert known.forecast.half_width == 100 / 10_000
    assert mean.forecast.half_width > known.forecast.half_width
    assert total.zcdp.rho == Fraction(1, 2)
    assert "spread" in total.forecast.basis
    assert NOTHING_EXPECTED.rows is None


@pytest.mark.parametrize(("domain", "centre"), [((0, 9), 0), ((5, 9), 5), ((-9, -5), -5), ((-3, 4), 0)])
def test_the_public_centre_is_the_value_nearest_to_zero(domain, centre):
    assert centre_of(domain, True) == centre
    assert centre_of(domain, False) == 0
    assert shifted(Tally.of([5, 9]), 5).values.tolist() == [0, 4]


@pytest.mark.parametrize("rows", range(4))
def test_how_much_one_row_changes_a_sum(rows):
    """Over all data sets: under replace-one by the width of the range, under add-remove by the largest magnitude."""
    for low, high in ((0, 3), (-3, 3), (-5, -2)):
        assert sensitivity(low, high, Setting((0, 1), Fraction(1), 0.9, "replace-one")) == high - low
        assert sensitivity(low, high, Setting((0, 1), Fraction(1), 0.9, "add-remove")) == max(
            abs(value) for value in range(low, high + 1)
        )

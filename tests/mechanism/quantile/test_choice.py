from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.quantile.choice import MAKERS, quantile_plan
from confide.mechanism.statistic import Expectation
from confide.mechanism.tally import REACH, Tally

RELATIONS = ("add-remove", "replace-one")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-20, 30), max_size=60),
    st.sampled_from([0, 0.1, 0.5, "1/3", 1]),
    st.sampled_from(sorted(MAKERS)),
    st.sampled_from(RELATIONS),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(30)]),
    st.integers(1, 3),
)
def test_every_mechanism_on_any_data(values, q, name, neighbours, epsilon, rows):
    """Values outside the domain are moved into it; the estimate is an integer in its interval."""
    plan = quantile_plan(q, (-10, 20), epsilon, 0.9, neighbours, rows, name)
    assert plan.name == name
    for found in plan.measure_each([Tally.of(values), Tally.of([])], TestRandomness(1)):
        assert isinstance(found.estimate, int)
        assert found.estimate in found.interval
        assert -10 <= found.interval.low <= found.interval.high <= 20
        assert found.interval.assumes == "always"
        assert found.interval.confidence == 0.9


@pytest.mark.parametrize("name", sorted(MAKERS))
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_large_epsilon_gives_the_quantile_itself(name, neighbours):
    values = np.random.default_rng(1).integers(0, 1000, 2001)
    plan = quantile_plan(0.5, (0, 1000), Fraction(1000), 0.9, neighbours, mechanism=name)
    found = plan.measure(Tally.of(values), TestRandomness(1))
    assert abs(found.estimate - np.median(values)) <= 2
    assert found.interval.high - found.interval.low <= 10


def test_auto_goes_by_public_facts():
    expected = Expectation(50_000, 200_000)
    assert quantile_plan(0.5, (0, 10**7), Fraction(1), 0.9, "add-remove", expectation=expected).name == "svt"
    assert quantile_plan(0.5, None, Fraction(1), 0.9, "replace-one").name == "svt"
    for domain in ((0, 1), (0, 99), (0, 10**12)):
        plans = [
            quantile_plan(0.5, domain, Fraction(1), 0.9, "replace-one", 1, n, expected)
            for n in ("pair", "svt", "smooth")
        ]
        best = quantile_plan(0.5, domain, Fraction(1), 0.9, "replace-one", expectation=expected)
        assert best.forecast.half_width == min(plan.forecast.half_width for plan in plans)


def test_forecasts_are_near_what_happens():
    """Even values, so the forecast's own assumption holds."""
    tally = Tally(np.arange(0, 200_000, 10), np.ones(20_000, dtype=np.int64))
    for name in MAKERS:
        plan = quantile_plan(0.5, (0, 10**6), Fraction(1), 0.9, "replace-one", 1, name, Expectation(20_000, 200_000))
        source = TestRandomness(4)
        widths = [plan.measure(tally, source).interval for _ in range(20)]
        mean = np.mean([(interval.high - interval.low) / 2 for interval in widths])
        assert 0.6 < mean / plan.forecast.half_width < 1.5, name


def test_more_rows_per_unit_make_wider_intervals():
    tally = Tally(np.arange(10_000), np.ones(10_000, dtype=np.int64))
    for name in MAKERS:
        widths = []
        for rows in (1, 8):
            source = TestRandomness(2)
            plan = quantile_plan(0.5, (0, 10_000), Fraction(2), 0.9, "add-remove", rows, name)
            assert plan.loss.epsilon == 2
            results = [plan.measure(tally, source).interval for _ in range(10)]
            widths.append(np.mean([interval.high - interval.low for interval in results]))
        assert widths[1] > 4 * widths[0], name


def test_unbounded_columns_name_what_works():
    for name in ("pair", "em", "smooth"):
        with pytest.raises(ParameterError, match="svt"):
            quantile_plan(0.5, None, Fraction(1), 0.9, "add-remove", mechanism=name)
    found = quantile_plan(0.5, None, Fraction(1), 0.99, "add-remove").measure(Tally.of([]), TestRandomness(1))
    assert (found.interval.low, found.interval.high) == (-REACH, REACH)


@pytest.mark.parametrize("q", [-0.1, 1.1, "x", None])
def test_what_is_no_quantile_is_refused(q):
    with pytest.raises(ParameterError, match="quantile"):
        quantile_plan(q, (0, 9), Fraction(1), 0.9, "add-remove")


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_what_is_degenerate_is_answered(name):
    for neighbours in RELATIONS:
        for domain in ((7, 7), (0, 1), (-(2**29), 2**29)):
            for epsilon in (Fraction(1, 10**4), Fraction(10**5)):
                plan = quantile_plan(0.5, domain, epsilon, 0.9, neighbours, 3, name)
                found = plan.measure_each([Tally.of([7]), Tally.of([])], TestRandomness(1))
                assert all(each.estimate in each.interval for each in found)

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.statistic import Expectation
from confide.mechanism.tally import Tally
from confide.mechanism.total.choice import SUMMERS, mean_plan, total_plan


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-20, 30), max_size=60),
    st.sampled_from(sorted(SUMMERS)),
    st.sampled_from(["add-remove", "replace-one"]),
    st.sampled_from([(-10, 20), (0, 20), (5, 20), (-10, 0), (7, 7)]),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(30)]),
    st.integers(1, 3),
)
def test_every_mechanism_on_any_data(values, name, neighbours, domain, epsilon, rows):
    tallies = [Tally.of(values), Tally.of([])]
    total, mean = (make(domain, epsilon, 0.9, neighbours, rows, name) for make in (total_plan, mean_plan))
    assert total.name == mean.name == name
    for found in total.measure_each(tallies, TestRandomness(1)):
        assert isinstance(found.estimate, int)
        assert found.estimate in found.interval
        assert found.interval.assumes == ("density" if name == "svt" else "always")
    for found in mean.measure_each(tallies, TestRandomness(1)):
        assert isinstance(found.estimate, float)
        assert found.estimate in found.interval
        assert domain[0] <= found.interval.low <= found.interval.high <= domain[1]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", sorted(SUMMERS))
def test_a_large_epsilon_gives_the_sum_and_the_mean_themselves(name, neighbours):
    tally = Tally(np.arange(1, 1001), np.full(1000, 20))
    for make, exact in ((total_plan, tally.total()), (mean_plan, 500.5)):
        plan = make((0, 10**5), Fraction(10**4), 0.9, neighbours, mechanism=name)
        found = plan.measure(tally, TestRandomness(1))
        assert exact in found.interval
        assert found.estimate == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", sorted(SUMMERS))
def test_values_outside_of_the_domain_count_as_its_ends(name, neighbours):
    tally = Tally(np.array([-500, 5, 900]), np.full(3, 100))
    plan = total_plan((0, 10), Fraction(10**4), 0.9, neighbours, mechanism=name)
    assert plan.measure(tally, TestRandomness(1)).estimate == pytest.approx(1500, abs=2)


def test_auto_goes_by_public_facts():
    loose, expected = (0, 10**12), Expectation(10_000, 5000)
    for plan in (total_plan, mean_plan):
        assert plan(loose, Fraction(1), 0.9, "replace-one", expectation=expected).name == "svt"
        assert plan(None, Fraction(1), 0.9, "add-remove").name == "svt"
        assert plan((0, 100), Fraction(1), 0.9, "replace-one").name == "laplace"
        assert plan((0, 100), Fraction(1), 0.9, "replace-one").assumes == "always"


def test_mechanisms_that_need_a_bound_name_one_that_does_not():
    for name in ("laplace", "r2t", "tail"):
        with pytest.raises(ParameterError, match="svt"):
            total_plan(None, Fraction(1), 0.9, "add-remove", mechanism=name)
    with pytest.raises(ParameterError, match="laplace, svt, r2t, tail"):
        mean_plan((0, 9), Fraction(1), 0.9, "add-remove", mechanism="pair")


def test_many_rows_per_unit_widen_the_interval_as_often():
    for name in SUMMERS:
        one, ten = (
            total_plan((0, 10**6), Fraction(1), 0.9, "add-remove", rows, name, Expectation(None, 1000))
            for rows in (1, 10)
        )
        assert ten.forecast.half_width == pytest.approx(10 * one.forecast.half_width, rel=0.02)
        assert ten.loss == one.loss


def test_the_base_of_the_radii_is_a_choice():
    fine, coarse = (
        total_plan(None, Fraction(1), 0.9, "add-remove", 1, "svt", Expectation(None, 1000), b) for b in (2**0.25, 2)
    )
    assert fine.forecast.half_width < coarse.forecast.half_width
    with pytest.raises(ParameterError, match="base"):
        total_plan(None, Fraction(1), 0.9, "add-remove", mechanism="svt", base=1.0)


def test_what_is_degenerate_is_answered():
    for neighbours in ("add-remove", "replace-one"):
        for domain in ((7, 7), (0, 1), (-(2**12), 2**12)):
            for name in SUMMERS:
                for make in (total_plan, mean_plan):
                    for epsilon in (Fraction(1, 10**4), Fraction(10**5)):
                        plan = make(domain, epsilon, 0.9, neighbours, 3, name)
                        found = plan.measure_each([Tally.of([7]), Tally.of([])], TestRandomness(1))
                        assert all(each.estimate in each.interval for each in found)

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.mechanism import TestRandomness
from confide.mechanism.quantile.rank import order_statistics
from confide.mechanism.quantile.smooth_noise import SmoothQuantile, quantile, smooth_sensitivity
from confide.mechanism.smooth.gaussian import SmoothGaussian, Tuning
from confide.mechanism.smooth.smooth import SMALLEST_SCALE
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Tally
from confide.privacy.loss import ZCDP
from tests.conformance.audit import audit
from tests.mechanism.small_data import RELATIONS, data_sets, neighbours, tallied

DOMAIN = (0, 3)
QUANTILES = [Fraction(1, 2), Fraction(1, 4), Fraction(1), Fraction(0)]


def _distances(data, everything, relation):
    """How many changes lead from one data set to each other."""
    reached, frontier, distance = {data: 0}, [data], 0
    links = everything
    while frontier:
        distance += 1
        following = []
        for here in frontier:
            for there in links[here]:
                if there not in reached:
                    reached[there] = distance
                    following.append(there)
        frontier = following
    return reached


def _links(relation, rows):
    links = {data: set() for size in range(rows + 1) for data in data_sets(range(4), size)}
    for one, two in neighbours(range(4), rows, relation):
        links[one].add(two)
        links[two].add(one)
    return links


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("alpha", [0.05, 0.7])
def test_replace_one_is_the_smooth_sensitivity_by_its_definition(q, alpha):
    """max over D' of exp(-α d(D, D')) LS(D'), over all data sets of up to 4 values."""
    links = _links("replace-one", 4)
    answers = {data: quantile(tallied(data), q, DOMAIN) for data in links}
    local = {data: max((abs(answers[data] - answers[other]) for other in links[data]), default=0) for data in links}
    for rows in range(1, 5):
        for data in data_sets(range(4), rows):
            reached = _distances(data, links, "replace-one")
            exact = max(math.exp(-alpha * steps) * local[other] for other, steps in reached.items())
            found = smooth_sensitivity(tallied(data), q, DOMAIN, alpha, "replace-one")
            assert found == pytest.approx(max(exact, SMALLEST_SCALE), rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("alpha", [0.05, 0.7])
def test_the_bound_is_smooth_and_above_the_local_sensitivity(q, alpha, relation):
    bounds = {
        data: smooth_sensitivity(tallied(data), q, DOMAIN, alpha, relation)
        for rows in range(6)
        for data in data_sets(range(4), rows)
    }
    answers = {data: quantile(tallied(data), q, DOMAIN) for data in bounds}
    for one, two in neighbours(range(4), 5, relation):
        assert abs(answers[one] - answers[two]) <= min(bounds[one], bounds[two])
        assert abs(math.log(bounds[one] / bounds[two])) <= alpha + 1e-9


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=60),
    st.fractions(0, 1, max_denominator=9),
    st.sampled_from([0.001, 0.03, 0.5, 3.0]),
)
def test_divide_and_conquer_misses_no_pair(values, q, alpha):
    values = [value // 1000 * 1000 if value % 3 else value for value in values]  # ties
    ordered = [0, *sorted(values), 10**6]
    place = max(1, math.ceil(q * len(values)))
    exact = max(
        (ordered[j] - ordered[i]) * math.exp(-alpha * (j - i - 1))
        for i in range(place + 1)
        for j in range(max(place, i + 1), len(ordered))
    )
    found = smooth_sensitivity(Tally.of(values), q, (0, 10**6), alpha, "replace-one")
    assert found == pytest.approx(max(exact, SMALLEST_SCALE), rel=1e-9)


def test_it_is_never_cut_early():
    """At a small α the best pair is the two ends of the domain, 6,000 places apart: a cut at 500 would miss it."""
    values = np.repeat([5 * 10**6, 5 * 10**6 + 1], 3000)
    found = smooth_sensitivity(Tally.of(values), Fraction(1, 2), (0, 10**7), 1e-4, "replace-one")
    assert found == pytest.approx(10**7 * math.exp(-1e-4 * 6000), rel=1e-9)


def test_a_million_values_at_a_small_alpha():
    tally = Tally(np.arange(10**6) * 3, np.ones(10**6, dtype=np.int64))
    found = smooth_sensitivity(tally, Fraction(1, 2), (0, 3 * 10**6), 1e-4, "replace-one")
    assert found == pytest.approx(3 * 10**4 * math.exp(-1 + 1e-4), rel=1e-3)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 2), Fraction(1)])
def test_estimates_lie_in_their_intervals_and_in_the_domain(q, relation):
    plan, source = SmoothQuantile(Setting((0, 50), Fraction(1), 0.9, relation), q), TestRandomness(3)
    for data in ([], [7], [0, 50], list(range(51)) * 20):
        result = plan.measure(Tally.of(data), source)
        assert 0 <= result.interval.low <= result.estimate <= result.interval.high <= 50
        assert isinstance(result.estimate, int)


def test_a_domain_of_one_value():
    plan = SmoothQuantile(Setting((4, 4), Fraction(1), 0.9, "add-remove"), Fraction(1, 2))
    result = plan.measure(Tally.of([4, 4]), TestRandomness(1))
    assert (result.interval.low, result.estimate, result.interval.high) == (4, 4, 4)


def test_the_plan_is_known_before_it_runs():
    plan = SmoothQuantile(
        Setting((0, 10**7), Fraction(1), 0.9, "replace-one"), Fraction(1, 2), Expectation(48_842, 208_000)
    )
    assert plan.loss.epsilon == 1
    assert plan.zcdp.rho == Fraction(1, 2)
    assert (plan.name, plan.assumes, plan.condition) == ("smooth", "always", "")
    assert 300 < plan.forecast.half_width < 1000
    assert "guess" not in plan.forecast.basis
    with pytest.raises(ParameterError, match="svt"):
        SmoothQuantile(Setting(None, Fraction(1), 0.9, "replace-one"), Fraction(1, 2))
    with pytest.raises(ParameterError, match="epsilon"):
        SmoothQuantile(Setting((0, 9), Fraction(1, 10**6), 0.9, "replace-one"), Fraction(1, 2))


def test_many_rows_at_a_small_epsilon_take_no_more_memory(monkeypatch):
    tally = Tally(np.array([3, 7], dtype=np.int64), np.array([10**6, 2 * 10**6], dtype=np.int64))
    tracemalloc.start()
    whole = smooth_sensitivity(tally, Fraction(1, 3), (0, 2**40), 1e-5, "add-remove")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20  # of 3.6 million steps
    monkeypatch.setattr("confide.mechanism.quantile.smooth_noise.BLOCK", 999_983)
    assert smooth_sensitivity(tally, Fraction(1, 3), (0, 2**40), 1e-5, "add-remove") == whole


# --- with a δ ---------------------------------------------------------------------------------------------------------

HURTING = {
    "empty": [],
    "one row": [7],
    "all equal": [40] * 300,
    "at the clamp": [0] * 150 + [100] * 151,
    "two points": [10] * 150 + [90] * 151,
    "even": list(range(101)) * 4,
    "a heavy tail": [1] * 200 + [2, 3, 5, 9, 17, 33, 65, 100] * 12,
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", HURTING)
def test_with_a_delta_the_interval_covers_data_made_to_hurt(name, relation):
    """Nine in ten of 60 for each of two quantiles; fewer than 41 would happen once in 10^6 at 0.9."""
    data, source = sorted(HURTING[name]), TestRandomness(8)
    for q in (Fraction(1, 2), Fraction(9, 10)):
        setting = Setting((0, 100), Fraction(2), 0.9, relation, 2, Fraction(1, 10**7))
        plan = SmoothQuantile(setting, q)
        assert plan.zcdp == plan.loss == ZCDP(Fraction(2), Fraction(1, 10**7))
        low, high = (0, 100)
        if data:
            low, high = (data[place - 1] for place in order_statistics(q, len(data)))
        results = [plan.measure(Tally.of(data), source) for _ in range(60)]
        assert sum(r.interval.low <= low and high <= r.interval.high for r in results) >= 41 or not data
        assert all(r.interval.low <= r.estimate <= r.interval.high for r in results)


def test_a_delta_narrows_what_the_same_cost_gives():
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(10)):
        wide, narrow = (
            SmoothQuantile(
                Setting((0, 10**7), epsilon, 0.9, "replace-one", 1, delta), Fraction(1, 2), Expectation(48_842, 208_000)
            )
            for delta in (Fraction(0), Fraction(1, 10**9))
        )
        assert wide.zcdp.rho == narrow.zcdp.rho
        assert narrow.forecast.half_width < 0.8 * wide.forecast.half_width


@pytest.mark.audit
@pytest.mark.parametrize("noise", [1.0, 0.5])
def test_an_audit_of_a_median_with_a_delta_catches_half_of_the_noise(noise):
    """A row replaced, from one end of the domain to the other, moves the median over a gap of all of S.

    S is raised little, so that nearly all of ρ is used and half of the noise is too little by half.
    """
    tight = Tuning(Fraction(1, 10), Fraction(1, 20))
    mechanism, sides = SmoothGaussian(Fraction(1, 2), Fraction(1, 10**4), 1, tight), []
    for data in ([0] * 51 + [60] * 50, [0] * 50 + [60] * 51):
        tally, source = Tally.of(data), TestRandomness(9)
        bound = smooth_sensitivity(tally, Fraction(1, 2), (0, 60), float(mechanism.alpha), "replace-one")
        exact = quantile(tally, Fraction(1, 2), (0, 60))
        runs = [mechanism.release([exact], bound * noise, 0.1, source) for _ in range(8_000)]
        sides.append(np.array([(run.values[0], run.half_width) for run in runs]))
    assert audit(sides[0], sides[1], mechanism.loss).violated == (noise < 1)

"""MODE: what is said to be possible holds, whatever the counts are, and no more is said than the noise lets."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise, TestRandomness
from confide.mechanism.commonest import commonest_plan, counts_at, largest_of_nothing, rows_apart
from confide.mechanism.statistic import Setting, StatisticPlan
from confide.mechanism.tally import Tally

RUNS = 4_000
CONFIDENCE = 0.9
COUNTS = {
    "a tie of all": [40, 40, 40, 40, 40],
    "a tie of two": [40, 3, 40, 0, 0],
    "one ahead": [40, 41, 40, 40, 40],
    "near ties below": [38, 41, 39, 40, 37],
    "one row": [0, 0, 1, 0, 0],
    "far ahead": [0, 900, 3, 2, 1],
    "many": [10**12, 10**12 - 1, 5, 0, 0],
}
NOISES = [("laplace", Fraction(0)), ("laplace", Fraction(1, 10**6)), ("gaussian", Fraction(1, 10**6))]


def plan(values: int = 5, noise: str = "laplace", delta: Fraction = Fraction(0), l1: int = 2) -> StatisticPlan:
    setting = Setting((0, 3 * values), Fraction(1, 2), CONFIDENCE, "add-remove", delta=delta)
    return commonest_plan(setting, tuple(range(1, 3 * values, 3)), l1, l1**2, noise)


def tally(counts: list[int]) -> Tally:
    held = [(3 * place + 1, count) for place, count in enumerate(counts) if count]
    values, numbers = zip(*held, strict=True) if held else ((), ())
    return Tally(np.array(values, dtype=np.int64), np.array(numbers, dtype=np.int64))


def misses(own: StatisticPlan, counts: list[int]) -> Iterator[list[bool]]:
    """For every value that is commonest, in how many runs it is not said to be possible."""
    found = own.measure_each([tally(counts)] * RUNS, TestRandomness(7))
    for place, count in enumerate(counts):
        if count == max(counts):
            yield [3 * place + 1 not in result.possible for result in found]


@pytest.mark.parametrize(("noise", "delta"), NOISES)
@pytest.mark.parametrize("counts", list(COUNTS.values()), ids=list(COUNTS))
def test_the_commonest_value_is_possible(noise: str, delta: Fraction, counts: list[int]) -> None:
    """An exact test at 1e-4 for each of some fifty cells: by chance one run in two hundred fails."""
    for missed in misses(plan(noise=noise, delta=delta), counts):
        assert binom.sf(sum(missed) - 1, RUNS, 1 - CONFIDENCE) > 1e-4


@pytest.mark.parametrize(("noise", "delta"), NOISES)
def test_half_of_the_distance_would_not_do(noise: str, delta: Fraction) -> None:
    """The control: with many values that are as common the bound is needed nearly whole."""
    own = plan(40, noise, delta)
    counts = np.full((RUNS, 40), 50, dtype=np.int64)
    noised = own.additive.measure(counts, TestRandomness(3)).values  # type: ignore[attr-defined]
    behind = noised.max(axis=1) - noised[:, 0]
    assert np.mean(behind > own.apart) <= 1 - CONFIDENCE  # type: ignore[attr-defined]
    assert np.mean(behind > own.apart * 0.6) > 1 - CONFIDENCE  # type: ignore[attr-defined]


@pytest.mark.parametrize(("noise", "delta"), NOISES)
def test_nothing_is_said_of_a_group_without_rows(noise: str, delta: Fraction) -> None:
    found = plan(noise=noise, delta=delta).measure_each([tally([])] * RUNS, TestRandomness(5))
    said = sum(not result.whole for result in found)
    assert binom.sf(said - 1, RUNS, 1 - CONFIDENCE) > 1e-4
    assert all(len(result.possible) == 5 for result in found if result.whole)


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(16))])
@pytest.mark.parametrize("values", [2, 3, 50])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_distance_is_that_of_the_law(law: Any, values: int, confidence: float) -> None:
    """By adding up the probabilities one by one."""
    reach = 400
    weights = {
        DiscreteLaplace: lambda k: np.exp(-np.abs(k) / 3),
        DiscreteGaussian: lambda k: np.exp(-(k**2) / 32),
    }[type(law)](np.arange(-reach, reach + 1).astype(float))
    chances = weights / weights.sum()
    apart = np.convolve(chances, chances[::-1])
    beyond = np.append(np.cumsum(apart[::-1])[::-1], 0.0)  # beyond[i]: from place i on
    t = rows_apart(law, values, confidence)
    centre = 2 * reach
    assert (values - 1) * beyond[centre + t + 1] <= (1 - confidence) * (1 + 1e-6)
    assert t == 0 or (values - 1) * beyond[centre + t] > (1 - confidence) * (1 - 1e-6)


def test_one_value_is_told_from_none() -> None:
    assert rows_apart(DiscreteLaplace(Fraction(3)), 1, 0.9) == 0
    own = plan(1)
    few, many = own.measure_each([tally([0]), tally([500])], TestRandomness(1))
    assert few.whole
    assert not many.whole
    assert many.possible == (1,)


def test_of_equal_counts_the_first_is_shown() -> None:
    found = plan(5, l1=1).measure_each([tally([9, 9, 9, 9, 9])] * 50, TestRandomness(2))
    assert len({result.estimate for result in found}) > 1  # the noise decides
    assert largest_of_nothing(NoNoise(), 5, 0.9) == 0
    exact = counts_at([tally([9, 0, 9])], (1, 4, 7))
    assert int(exact.argmax(axis=1)[0]) == 0


def test_what_lies_beside_the_places_is_not_counted() -> None:
    found = Tally(np.array([0, 1, 2, 99]), np.array([5, 6, 7, 8]))
    assert counts_at([found, Tally.of([])], (1, 4, 98)).tolist() == [[6, 0, 0], [0, 0, 0]]


def test_counts_in_parts_are_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.mechanism.commonest.MOST_AT_ONCE", 7)
    found = plan().measure_each([tally([0, 900, 3, 2, 1])] * 20, TestRandomness(2))
    assert [result.possible for result in found] == [(4,)] * 20


def test_noise_without_bound_ends_in_an_answer() -> None:
    setting = Setting((0, 2), Fraction(1, 2**185), CONFIDENCE, "add-remove")
    found = commonest_plan(setting, (0, 1, 2), 1, 1).measure(Tally.of([1, 1]), TestRandomness(2))
    assert found.whole
    assert found.possible == (0, 1, 2)


def test_what_it_costs() -> None:
    own, normal = plan(), plan(noise="gaussian", delta=Fraction(1, 10**6))
    assert own.loss.epsilon == Fraction(1, 2)  # type: ignore[union-attr]
    assert normal.zcdp.rho == own.zcdp.rho == Fraction(1, 8)
    assert normal.loss.rho <= Fraction(1, 8)  # type: ignore[union-attr]
    assert own.name == "discrete laplace"
    assert own.forecast.half_width == own.apart  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="there is no mechanism"):
        plan(noise="em")
    with pytest.raises(ParameterError, match="there is no mechanism"):
        plan(noise="gaussian")

"""The trade-off between a sum and its parts: what exists respects it, and the paper's statement needs whole counts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import ParameterError
from confide.fit import price
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace


def cut_at_zero(law: DiscreteLaplace | DiscreteGaussian, d: int) -> tuple[float, float]:
    """Exact worst errors of adding noise to each count and cutting at zero, for counts from 0 to 200."""
    reach = law.half_width(1 - Fraction(1, 10**15))
    places = np.arange(-reach, reach + 1)
    right = -np.diff(law.tails(np.arange(reach + 1, dtype=np.float64)))
    masses = np.concatenate([right[::-1], [1 - 2 * law.tails(np.zeros(1))[0]], right])
    point = total = 0.0
    for count in range(201):
        errors = np.maximum(places, -count)
        mean, square = float(masses @ errors), float(masses @ errors**2)
        point = max(point, square)
        total = max(total, d * (square - mean**2) + (d * mean) ** 2)
    return math.sqrt(point), math.sqrt(total)


@pytest.mark.parametrize("d", [2, 10, 216, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 5.0, 20.0])
def test_cutting_at_zero_respects_the_bound_under_pure_privacy(d: int, epsilon: float) -> None:
    point, total = cut_at_zero(DiscreteLaplace(1 / Fraction(epsilon)), d)
    found = price(d, epsilon=epsilon)
    assert found.least_sum_error(point) <= total
    assert found.least_point_error(total) <= point + 1e-9
    assert price(d, epsilon=epsilon, delta=1e-9).least_sum_error(point) <= total
    cells = next(each for each in found.guarantees if each.method == "cells cut at zero")
    assert cells.point is not None
    assert cells.total is not None
    assert point <= cells.point * (1 + 1e-9)
    assert total <= cells.total * (1 + 1e-9)


@pytest.mark.parametrize("d", [2, 216, 10**6])
@pytest.mark.parametrize("rho", [0.005, 0.125, 0.5, 10.0])
def test_cutting_at_zero_respects_the_bound_under_concentrated_privacy(d: int, rho: float) -> None:
    point, total = cut_at_zero(DiscreteGaussian(1 / (2 * Fraction(rho))), d)
    found = price(d, rho=rho)
    assert found.least_sum_error(point) <= total
    assert found.least_point_error(total) <= point + 1e-9


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(2, 10**6), st.floats(0.01, 3.0), st.floats(0.0, 100.0))
def test_the_curve_falls_and_its_inverse_inverts_it(d: int, epsilon: float, point: float) -> None:
    found = price(d, epsilon=epsilon)
    assert (np.diff(found.least) <= 1e-9 * found.least[:-1]).all()
    total = found.least_sum_error(point)
    if 1e-6 < total < 1e12:
        assert found.least_point_error(total) == pytest.approx(point, rel=1e-4, abs=1e-6)


def test_it_grows_as_theorem_3_says() -> None:
    """With the sum as good as its own noise, the squared error of a part grows like ln²(d)/ε², or ln(d)/ρ."""
    epsilon, rho = 0.5, 0.125
    points = [price(d, epsilon=epsilon).least_point_error(math.sqrt(8) / epsilon) for d in (10**3, 10**6, 10**9)]
    assert np.diff(points) == pytest.approx(math.log(1000) / epsilon, rel=0.05)
    squares = [price(d, rho=rho).least_point_error(1 / math.sqrt(rho)) ** 2 for d in (10**6, 10**9, 10**12)]
    assert (np.diff(squares) > 0.5 * math.log(1000) / rho).all()
    assert (np.diff(squares) < math.log(1000) / rho).all()


def test_it_is_stronger_than_the_theorem_as_stated() -> None:
    for d in (216, 10**6):
        for budget in ({"epsilon": 0.5}, {"epsilon": 1.0, "delta": 1e-9}):
            found = price(d, **budget)
            assert (found.least >= found.stated).all()
    assert price(10**6, epsilon=0.5).stated.max() > 0


def test_the_theorem_as_stated_fails_where_2c_plus_k_is_not_whole() -> None:
    """Erratum: with ε = 20 and 1,000 counts, cutting at zero breaks the stated inequality for k = 0.01."""
    epsilon, d, k = 20.0, 1000, 0.01
    point, total = cut_at_zero(DiscreteLaplace(1 / Fraction(epsilon)), d)
    stated = k * (d - 1) / (16 * point + 8 * total + 4 * k)
    assert math.exp(2 * epsilon * (2 * point + k)) < stated
    whole = 1 - 2 * point  # with 2C + k = 1 it holds
    assert math.exp(2 * epsilon) >= whole * (d - 1) / (16 * point + 8 * total + 4 * whole)


def test_the_guarantees_hold_in_simulation() -> None:
    """Sequential fitting on the hard data set of Remark 2 stays within what is guaranteed for it."""
    generator = np.random.default_rng(4)
    d, epsilon, runs = 100, 1.0, 2000
    truth = np.zeros(d)
    truth[0] = round(math.log(d) / epsilon)
    noisy = truth + np.rint(generator.laplace(0, 2 / epsilon, (runs, d)))
    sums = np.maximum(truth.sum() + np.rint(generator.laplace(0, 2 / epsilon, runs)), 0)
    ordered = -np.sort(-noisy, axis=1)
    excess = (np.cumsum(ordered, axis=1) - sums[:, None]) / np.arange(1, d + 1)
    last = (ordered > excess).sum(axis=1) - 1
    fitted = np.maximum(noisy - excess[np.arange(runs), last][:, None], 0)
    fitted[sums == 0] = 0
    promised = next(each for each in price(d, epsilon=epsilon).guarantees if each.method.startswith("sequential"))
    assert promised.point is not None
    assert promised.total is not None
    errors = np.sqrt(((fitted - truth) ** 2).mean(axis=0))
    assert errors.max() <= promised.point
    assert np.sqrt(((fitted.sum(axis=1) - truth.sum()) ** 2).mean()) <= promised.total * 1.05


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"d": 1, "epsilon": 1}, "from 2"),
        ({"d": True, "epsilon": 1}, "from 2"),
        ({"d": 10}, "one of epsilon and rho"),
        ({"d": 10, "epsilon": 1, "rho": 1}, "one of epsilon and rho"),
        ({"d": 10, "rho": 1, "delta": 0.1}, "goes with epsilon"),
        ({"d": 10, "epsilon": 0}, "epsilon must be"),
        ({"d": 10, "epsilon": -1}, "epsilon must be"),
        ({"d": 10, "epsilon": math.nan}, "epsilon must be"),
        ({"d": 10, "epsilon": math.inf}, "epsilon must be"),
        ({"d": 10, "epsilon": "1"}, "epsilon must be"),
        ({"d": 10, "rho": 0}, "rho must be"),
        ({"d": 10, "epsilon": 1, "delta": 1}, "delta must lie"),
        ({"d": 10, "epsilon": 1, "share": 1}, "share"),
    ],
)
def test_what_is_no_budget_is_refused(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        price(**arguments)  # type: ignore[arg-type]


def test_errors_that_are_none_are_refused() -> None:
    found = price(10, epsilon=1)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ParameterError):
            found.least_sum_error(wrong)
        with pytest.raises(ParameterError):
            found.least_point_error(wrong)
    with pytest.raises(ParameterError, match="cannot be exact"):
        found.least_point_error(0)


def test_very_small_budgets_take_no_time_or_memory() -> None:
    assert price(1000, epsilon=1e-6).least_sum_error(1.0) > 1e6
    assert price(1000, rho=1e-6).guarantees[0].point == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"rho": 0.125}, {"epsilon": 1.0, "delta": 1e-6}])
def test_it_is_shown_in_print_and_as_a_chart(budget: dict[str, float]) -> None:
    found = price(216, **budget)
    text = str(found)
    assert "one sum of 216 parts" in text
    assert "sequential, pinned" in text
    chart = found.plot().to_dict()
    assert "216" in chart["title"]
    assert len(chart["layer"]) == 3

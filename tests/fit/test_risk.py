"""Reports of risk, from noisy numbers only."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.fit import (
    TOTAL,
    CellDomain,
    FitProblem,
    Marginal,
    MeasuredGroup,
    adaptive,
    nnls,
    pinned,
    report,
    sequential,
)
from confide.fit.group import Floats
from confide.fit.risk import mean_above_zero
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from tests.fit.conftest import measure


def test_the_difficult_data_set_is_at_risk_and_the_easy_one_is_not() -> None:
    """Remark 2: one visible part among many empty ones, against parts that are all large."""
    domain = CellDomain(("a",), (200,))
    law = DiscreteLaplace(Fraction(4))
    generator = np.random.default_rng(7)
    difficult, easy = np.zeros(200), np.full(200, 500.0)
    difficult[3] = round(math.log(200) * 2)
    reports = []
    for truth in (difficult, easy):
        noisy = [
            MeasuredGroup(
                group, group.answer(domain, truth) + np.rint(generator.laplace(0, 4, group.count(domain))), law
            )
            for group in (TOTAL, Marginal(("a",)))
        ]
        reports.append(report(FitProblem(domain, tuple(noisy))))
    (risk,) = reports[0].risks
    assert (risk.marginal, risk.over, risk.parts) == ((), ("a",), 200)
    assert risk.low >= 190
    assert risk.excess == pytest.approx(risk.low * 2)
    assert risk.pressure > 50
    assert reports[1].at_risk == 0
    assert reports[1].risks == ()


def test_places_are_those_of_the_marginal(truth: Floats, table_problem: FitProblem) -> None:
    found = report(table_problem, most=100)
    assert found.judged > 0
    pressures = [risk.pressure for risk in found.risks]
    assert pressures == sorted(pressures, reverse=True)
    for risk in found.risks:
        if risk.marginal == ("race",) and risk.over == ("race", "origin"):
            assert risk.parts == 24
            assert risk.answer == table_problem.measured[1].answers[risk.place[0]]
    assert len(report(table_problem, most=3).risks) == 3
    assert report(table_problem, most=3).at_risk == found.at_risk


def test_each_fit_gives_up_what_it_is_known_for(truth: Floats) -> None:
    """Least squares gives up the total; keeping the total costs the visible parts."""
    problem = measure(truth, DiscreteLaplace(Fraction(8)), seed=2)
    fits = (nnls(problem), pinned(problem), sequential(problem), adaptive(problem))
    by_name = {each.method: each for each in report(problem, fits).sacrifices}
    assert by_name["nnls"].total > 1
    assert by_name["pinned"].total == pytest.approx(0, abs=1e-6)
    assert abs(by_name["adaptive"].total) < 0.5
    assert by_name["pinned"].parts > 0
    assert all(each.cut > 100 for each in by_name.values())  # half the noise of two hundred empty cells


def test_the_mean_above_zero_is_that_of_the_law() -> None:
    generator = np.random.default_rng(1)
    draws = np.maximum(generator.laplace(0, 8, 10**6), 0).mean()
    assert mean_above_zero(DiscreteLaplace(Fraction(8))) == pytest.approx(draws, rel=0.01)
    draws = np.maximum(generator.normal(0, 4, 10**6), 0).mean()
    assert mean_above_zero(DiscreteGaussian(Fraction(16))) == pytest.approx(draws, rel=0.01)

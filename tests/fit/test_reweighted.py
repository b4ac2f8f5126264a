"""ReWeighted fitting, against a slow and literal version of the published algorithm."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import nnls as reference

from confide.errors import ParameterError
from confide.fit import CellDomain, Fit, FitProblem, MeasuredGroup, SparseGroup, reweighted
from confide.fit.group import Floats
from confide.fit.reweighted import log_cdf, low_answers, median_of_largest
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from tests.fit.conftest import measure


def literal(problem: FitProblem, gamma: float) -> Floats:
    """The published procedure, one query at a time, solved by Lawson and Hanson's method."""
    rows, targets, weights = [], [], []
    for item in problem.measured:
        if isinstance(item.law, DiscreteLaplace):
            law = stats.laplace(scale=float(item.law.scale))
        else:
            law = stats.norm(scale=math.sqrt(item.law.variance))
        ordered = sorted(item.answers)
        cutoff = math.inf
        for count, answer in enumerate(ordered, start=1):
            if law.cdf(answer) ** count >= gamma:
                cutoff = answer
                break
        low = [place for place, answer in enumerate(item.answers) if answer < cutoff]
        matrix = item.group.matrix(problem.domain).toarray()
        down = max(1.0, law.ppf(0.5 ** (1 / len(low)))) if low else 1.0
        for place, answer in enumerate(item.answers):
            rows.append(matrix[place])
            targets.append(answer)
            weights.append(1 / law.var() / (2 * down**2 if place in low else 1))
        if low:
            rows.append(matrix[low].sum(axis=0))
            targets.append(sum(item.answers[place] for place in low))
            weights.append(1 / (2 * len(low) * law.var()))
    root = np.sqrt(weights)
    return np.asarray(reference(np.array(rows) * root[:, None], np.array(targets) * root, maxiter=10_000)[0])


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(8)), DiscreteGaussian(Fraction(16))])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_published_procedure(truth: Floats, law: DiscreteLaplace | DiscreteGaussian, seed: int) -> None:
    problem = measure(truth, law, seed)
    scale = abs(law.variance / (128 if isinstance(law, DiscreteLaplace) else 16))  # discrete and continuous variance
    assert 0.99 < scale <= 1
    fit: Fit = reweighted(problem)
    assert fit.cells == pytest.approx(literal(problem, 0.99), abs=1e-3)


def test_the_cutoff_is_where_noise_ends() -> None:
    law = DiscreteLaplace(Fraction(8))
    domain = CellDomain(("a",), (6,))
    group = SparseGroup(sparse.csr_array(np.eye(6)))
    answers = np.array([-20.0, 90.0, 5.0, 12.0, 400.0, -1.0])
    assert low_answers(MeasuredGroup(group, answers, law)).tolist() == [True, False, True, True, False, True]
    assert low_answers(MeasuredGroup(group, np.full(6, -3.0), law)).all()
    assert not low_answers(MeasuredGroup(group, np.full(6, 1e4), law)).any()
    assert reweighted(FitProblem(domain, (MeasuredGroup(group, np.full(6, -3.0), law),))).cells == pytest.approx(
        np.zeros(6)
    )


def test_the_laws_are_those_of_scipy() -> None:
    values = np.linspace(-60, 60, 41)
    assert log_cdf(DiscreteLaplace(Fraction(8)), values) == pytest.approx(stats.laplace(scale=8).logcdf(values))
    assert log_cdf(DiscreteGaussian(Fraction(16)), values) == pytest.approx(stats.norm(scale=4).logcdf(values))
    for count in (1, 2, 7, 1000):
        level = 0.5 ** (1 / count)
        assert median_of_largest(DiscreteLaplace(Fraction(8)), count) == pytest.approx(
            stats.laplace(scale=8).ppf(level)
        )
        assert median_of_largest(DiscreteGaussian(Fraction(16)), count) == pytest.approx(stats.norm(scale=4).ppf(level))


def test_overlapping_queries_and_wrong_confidence_are_refused(table_problem: FitProblem) -> None:
    domain = CellDomain(("a",), (3,))
    overlapping = MeasuredGroup(
        SparseGroup(sparse.csr_array(np.ones((2, 3)))), np.zeros(2), DiscreteLaplace(Fraction(1))
    )
    with pytest.raises(ParameterError, match="disjoint"):
        reweighted(FitProblem(domain, (overlapping,)))
    for gamma in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ParameterError, match="gamma"):
            reweighted(table_problem, gamma)


@pytest.mark.parametrize("scale", [40, 400])
def test_it_is_solved_however_far_low_answers_are_down_weighted(truth: Floats, scale: int) -> None:
    """The down-weight grows with the noise (docs/errata/microdata.md), and so cells are hardly pulled at all."""
    for seed in range(4):
        certificate = reweighted(measure(truth, DiscreteLaplace(Fraction(scale)), seed)).certificate
        assert certificate.distance < 1e-4
        assert certificate.steps < 100

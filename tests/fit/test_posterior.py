"""What noisy counts say of every cell, taken together. The prior that noisy counts teach."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from confide.fit import TOTAL, CellDomain, FitProblem, Marginal, MeasuredGroup, Public
from confide.fit import posterior as module
from confide.fit.posterior import REACH, CountPrior, expected, measured_cells, posterior_means
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from tests.fit.conftest import measure

LAPLACE = DiscreteLaplace(Fraction(8))
GAUSS = DiscreteGaussian(Fraction(16))
LEVEL = np.full((10, 10), 16.0)
LEVEL[0, 0] = 10_000


@pytest.mark.parametrize("law", [LAPLACE, GAUSS])
def test_counts_that_are_alike_are_found_to_be(law: DiscreteLaplace | DiscreteGaussian) -> None:
    """Ninety-nine cells of 16: a third of the error of the noisy counts, on average over ten runs."""
    found, plain = [], []
    for seed in range(10):
        problem = measure(LEVEL, law, seed)
        means = posterior_means(problem, LEVEL.ravel())
        found.append(np.square(means - LEVEL.ravel()).sum())
        plain.append(np.square(problem.measured[-1].answers - LEVEL.ravel()).sum())
    assert np.mean(found) < np.mean(plain) / 3


def test_a_lone_cell_of_one_attribute_is_what_it_and_the_total_say() -> None:
    """All else is empty, so the total and the cell are two measurements of one count: their mean is the posterior."""
    domain = CellDomain(("a",), (60,))
    noisy = np.where(np.arange(60) == 7, 1_006.0, 0.0)
    items = (MeasuredGroup(TOTAL, np.array([994.0]), GAUSS), MeasuredGroup(Marginal(("a",)), noisy, GAUSS))
    means = posterior_means(FitProblem(domain, items), np.maximum(noisy, 0))
    assert means[7] == pytest.approx(1_000, abs=1.0)
    assert np.delete(means, 7).max() < 0.2


def test_public_zeros_stay() -> None:
    problem = measure(LEVEL, LAPLACE, 1)
    zeros = np.zeros(100, dtype=bool)
    zeros[50:] = True
    means = posterior_means(replace(problem, public=Public(zeros=zeros)), LEVEL.ravel())
    assert (means[50:] == 0).all()
    assert np.isfinite(means).all()


def test_it_does_not_matter_how_cells_are_written_or_cut_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = measure(LEVEL, LAPLACE, 2)
    means = posterior_means(problem, LEVEL.ravel())
    turned = MeasuredGroup(
        Marginal(tuple(reversed(problem.domain.attributes))),
        problem.measured[-1].answers.reshape(10, 10).T.ravel(),
        LAPLACE,
    )
    other = FitProblem(problem.domain, (*problem.measured[:-1], turned))
    assert posterior_means(other, LEVEL.ravel()) == pytest.approx(means)
    monkeypatch.setattr(module, "BLOCK", 7)
    assert posterior_means(problem, LEVEL.ravel()) == pytest.approx(means)


def test_only_counts_of_single_cells_count_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = measure(LEVEL, LAPLACE, 3)
    assert measured_cells(problem) == [problem.measured[-1]]
    assert measured_cells(FitProblem(problem.domain, problem.measured[:-1])) == []
    monkeypatch.setattr(module, "MOST_CELLS", 99)
    assert measured_cells(problem) == []


def test_cells_alone_are_enough() -> None:
    problem = measure(LEVEL, GAUSS, 4)
    alone = FitProblem(problem.domain, problem.measured[-1:])
    assert np.square(posterior_means(alone, LEVEL.ravel()) - LEVEL.ravel()).sum() < 0.5 * 16 * 100


def test_what_is_expected_is_what_independence_says() -> None:
    domain = CellDomain(("a", "b"), (2, 3))
    cells = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    product = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / cells.sum()
    assert expected(domain, cells.ravel()) == pytest.approx(product.ravel())
    assert (expected(CellDomain(("a",), (3,)), np.ones(3)) == 0).all()
    assert (expected(domain, np.zeros(6)) == 0).all()


def test_where_rounds_do_not_settle_nothing_is_said() -> None:
    """A hundred small cells to a row: what sums say swings further with every round."""
    table = np.random.default_rng(1).poisson(3, (100, 100)).astype(np.float64)
    problem = measure(table, DiscreteLaplace(Fraction(4)), 1)
    near = np.maximum(problem.measured[-1].answers, 0)
    assert posterior_means(problem, near) is near


NONE = np.zeros(1, dtype=np.int64)


def _likelihoods(prior: CountPrior, noisy: np.ndarray, deviation: float) -> np.ndarray:
    return np.asarray(np.exp(-(((noisy[:, None] - prior.points) / deviation) ** 2) / 2))


def _taught(truth: float, deviation: float, count: int) -> CountPrior:
    prior = CountPrior(deviation, 1)
    noisy = truth + deviation * np.random.default_rng(1).normal(size=count)
    for _ in range(25):
        prior.learn(prior.evidence(_likelihoods(prior, noisy, deviation), np.zeros(count, dtype=np.int64)))
    return prior


@pytest.mark.parametrize("deviation", [0.5, 3.0, 100.0])
def test_it_learns_what_counts_are_like_on_any_scale(deviation: float) -> None:
    """A hundred counts are four deviations large, or none: a noisy count that is off is drawn back most of the way."""
    for truth in (0.0, 4.0):
        prior = _taught(truth * deviation, deviation, 100)
        noisy = np.array([truth + 1.0]) * deviation
        mean, variance = prior.moments(_likelihoods(prior, noisy, deviation), NONE)
        assert abs(mean[0] - truth * deviation) < 0.6 * deviation
        assert variance[0] < 0.5 * deviation**2


def test_a_count_that_lies_alone_is_hardly_drawn_anywhere() -> None:
    prior = _taught(0.0, 1.0, 100)
    noisy = np.array([7.3, 11.8, 20.4])
    mean, variance = prior.moments(_likelihoods(prior, noisy, 1.0), np.zeros(3, dtype=np.int64))
    assert np.abs(mean - noisy).max() < 0.3
    assert variance == pytest.approx(1.0, abs=0.2)


def test_evidence_counts_every_count_once_in_its_class() -> None:
    prior = CountPrior(1.0, 3)
    classes = np.array([0, 0, 2, 2, 2], dtype=np.int64)
    evidence = prior.evidence(_likelihoods(prior, np.arange(5.0), 1.0), classes)
    assert evidence.shape == prior.shape
    assert evidence.sum(axis=1) == pytest.approx([2, 0, 3])


def test_a_class_without_counts_has_the_prior_of_all() -> None:
    prior = CountPrior(1.0, 2)
    few = np.full(200, 4.0)
    for _ in range(25):
        prior.learn(prior.evidence(_likelihoods(prior, few, 1.0), np.zeros(200, dtype=np.int64)))
    likelihoods = _likelihoods(prior, np.array([2.0, 2.0]), 1.0)
    means, _ = prior.moments(likelihoods, np.array([0, 1], dtype=np.int64))
    assert means[1] == pytest.approx(means[0], rel=0.05)
    assert means[1] > 2.5


def test_its_points_reach_as_far_as_said() -> None:
    prior = CountPrior(2.0, 1)
    assert prior.points[0] == 0
    assert (np.diff(prior.points) > 0).all()
    assert prior.top >= REACH * 2.0 > prior.points[-1] / 2

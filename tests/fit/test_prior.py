"""The prior that noisy counts teach."""

import numpy as np
import pytest

from confide.fit.prior import REACH, CountPrior

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

"""Baselines on public rows."""

from fractions import Fraction

import numpy as np
import pytest

from confide.mechanism import TestRandomness
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.baselines import noisy_answers, zero_answers
from confide.workload import tables_of, thresholds
from tests.workload.samples import domain, rows

SIZES = (2, 4, 6, 4)
WORKLOAD = thresholds(2, 3).bound(domain())


def test_zero_is_wrong_by_the_largest_count() -> None:
    exact = tables_of(rows(SIZES), SIZES, WORKLOAD.sets)
    errors = [np.abs(zero.answers - truth.answers).max() for zero, truth in zero_answers(WORKLOAD, exact)]
    assert max(errors) == max(block.answers.max() for _, block in zero_answers(WORKLOAD, exact))
    assert len(errors) == len(WORKLOAD.thresholds)


@pytest.mark.parametrize("loss", [ZCDP(Fraction(1, 2)), PureDP(Fraction(1))])
def test_noise_is_that_of_one_count_among_all(loss: PureDP | ZCDP) -> None:
    """The variance of the noise within a fifth of what ρ/m and ε/m mean (m = 304; false alarm below 1e-3, seeded)."""
    exact = tables_of(rows(SIZES), SIZES, WORKLOAD.sets)
    noise = np.concatenate(
        [noisy.answers - truth.answers for noisy, truth in noisy_answers(WORKLOAD, exact, loss, 1, TestRandomness(2))]
    )
    assert len(noise) == WORKLOAD.size
    count = WORKLOAD.size
    expected = count / (2 * 0.5) if isinstance(loss, ZCDP) else 2 * count**2
    assert noise.var() == pytest.approx(expected, rel=0.25)

"""A table like those of the benchmarks: one large cell, some small ones, many empty ones."""

from fractions import Fraction

import numpy as np
import pytest

from confide.fit import TOTAL, CellDomain, FitProblem, Marginal, MeasuredGroup
from confide.fit.group import Floats
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace


@pytest.fixture
def truth() -> Floats:
    """Counts of 9 × 24 cells: 8 are filled."""
    table = np.zeros((9, 24))
    table[1, 0], table[0, 0], table[7, 1], table[8, 0] = 720, 62, 17, 7
    table[0, 6], table[7, 15], table[7, 2], table[5, 0] = 2, 2, 1, 1
    return table


def measure(truth: Floats, law: DiscreteLaplace | DiscreteGaussian, seed: int) -> FitProblem:
    """Total, both one-way marginals and all cells, with rounded noise from a fixed seed."""
    generator = np.random.default_rng(seed)
    domain = CellDomain(("race", "origin"), truth.shape)
    measured = []
    for group in (TOTAL, Marginal(("race",)), Marginal(("origin",)), Marginal(("race", "origin"))):
        answers = group.answer(domain, truth.ravel())
        if isinstance(law, DiscreteLaplace):
            noise = generator.laplace(0, float(law.scale), len(answers))
        else:
            noise = generator.normal(0, float(law.variance) ** 0.5, len(answers))
        measured.append(MeasuredGroup(group, answers + np.rint(noise), law))
    return FitProblem(domain, tuple(measured))


@pytest.fixture
def table_problem(truth: Floats) -> FitProblem:
    """ε = 0.5 shared by four groups."""
    return measure(truth, DiscreteLaplace(Fraction(8)), seed=1)

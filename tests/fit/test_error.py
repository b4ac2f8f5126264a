"""Intervals of linear queries: exact variances, true coverage, refusals outside the span."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from confide.errors import ParameterError
from confide.fit import (
    TOTAL,
    CellDomain,
    FitProblem,
    Marginal,
    MeasuredGroup,
    Public,
    SparseGroup,
    Subtotal,
    error,
    estimates,
)
from confide.fit.error import combinations
from confide.fit.group import Floats
from confide.mechanism import TestRandomness, draw
from confide.mechanism.noise.law import DiscreteGaussian, DiscreteLaplace
from tests.fit import oracle
from tests.fit.strategies import problems


def row(weights: Floats) -> SparseGroup:
    return SparseGroup(sparse.csr_array(weights[None, :]))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems(), st.integers(0, 2**32 - 1))
def test_variance_and_value_are_those_of_dense_algebra(problem: FitProblem, seed: int) -> None:
    """A random query of the span: value and variance by the pseudo-inverse, with what is public eliminated."""
    rows, answers, weights = oracle.stacked(problem)
    equal, right = oracle.equalities(problem)
    generator = np.random.default_rng(seed)
    query = generator.integers(-2, 3, len(rows)) @ rows
    if not query.any():
        return
    _, values, basis = np.linalg.svd(equal) if len(right) else (None, np.zeros(0), np.eye(rows.shape[1]))
    free = basis[(values > 1e-9).sum() :].T
    left = rows @ free
    left[np.abs(left) < 1e-9] = 0.0
    normal = (left.T * weights) @ left
    inverse = np.linalg.pinv(normal, rcond=1e-9, hermitian=True)
    inner = free.T @ query
    particular = np.linalg.lstsq(equal, right, rcond=None)[0] if len(right) else np.zeros(len(query))
    expected = query @ particular + inner @ inverse @ (left.T @ (weights * (answers - rows @ particular)))
    found = error(problem, row(query))
    size = 1 + np.abs(answers).max() * np.abs(query).sum()
    assert found.value == pytest.approx(expected, abs=1e-6 * size)
    assert found.variance == pytest.approx(inner @ inverse @ inner, abs=1e-6 * size)


def test_one_marginal_is_answered_as_measured() -> None:
    law = DiscreteLaplace(Fraction(8))
    problem = FitProblem(
        CellDomain(("a",), (4,)), (MeasuredGroup(Marginal(("a",)), np.array([5.0, 40.0, 90.0, 3.0]), law),)
    )
    found = error(problem, Subtotal(Marginal(("a",)), np.array([False, True, False, False])))
    assert found.value == pytest.approx(40)
    assert found.variance == pytest.approx(law.variance)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (40 - law.half_width(0.95), 40 + law.half_width(0.95))
    )
    low = error(problem, Subtotal(Marginal(("a",)), np.array([True, False, False, False])))
    assert low.interval.low == 0.0  # counts are not negative
    assert low.interval.high > 0.0  # and no measurement below zero makes them certain


def test_what_was_not_measured_is_refused(table_problem: FitProblem) -> None:
    rough = FitProblem(table_problem.domain, table_problem.measured[:3])
    with pytest.raises(ParameterError, match="do not determine this query"):
        error(rough, Subtotal(Marginal(("race", "origin")), np.arange(216) == 7))
    with pytest.raises(ParameterError, match="do not determine this query"):
        estimates(rough, Marginal(("race", "origin")))
    with pytest.raises(ParameterError, match="for one query, these are 9"):
        error(table_problem, Marginal(("race",)))


def test_a_large_table_is_answered_without_a_matrix() -> None:
    """Structural zeros rule out the closed form; conjugate gradients give the same as without them, nearly."""
    domain = CellDomain(("a", "b", "c", "d"), (12, 12, 12, 12))
    law = DiscreteGaussian(Fraction(25))
    groups = [Marginal(pair) for pair in itertools.combinations(domain.attributes, 2)]
    measured = tuple(MeasuredGroup(group, np.full(144, 50.0), law) for group in groups)
    zeros = np.zeros(domain.cells, dtype=bool)
    zeros[5] = True
    query = Subtotal(Marginal(("a", "b")), np.arange(144) < 30)
    closed = error(FitProblem(domain, measured), query)
    general = error(FitProblem(domain, measured, Public(zeros)), query)
    assert general.variance == pytest.approx(closed.variance, rel=0.02)
    assert general.value == pytest.approx(closed.value, rel=0.02)
    assert general.interval.high - general.interval.low == pytest.approx(
        closed.interval.high - closed.interval.low, rel=0.35
    )


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(8)), DiscreteGaussian(Fraction(16))])
def test_intervals_cover(truth: Floats, law: DiscreteLaplace | DiscreteGaussian) -> None:
    """Coverage of 95 % intervals in 2,000 runs: below 93.5 % by chance with probability under 0.002 for each query."""
    domain = CellDomain(("race", "origin"), (9, 24))
    groups = (TOTAL, Marginal(("race",)), Marginal(("origin",)), Marginal(("race", "origin")))
    queries = [TOTAL, Subtotal(groups[1], np.arange(9) < 4), Subtotal(groups[3], np.arange(216) % 5 == 0)]
    randomness = TestRandomness(5)
    exact = [group.answer(domain, truth.ravel()) for group in groups]
    base = FitProblem(
        domain, tuple(MeasuredGroup(group, answers, law) for group, answers in zip(groups, exact, strict=True))
    )
    noises = [draw(law, (2000, len(answers)), randomness) for answers in exact]
    for query in queries:
        found = error(base, query)
        (combination,) = combinations(base, query)
        off = np.abs(sum(noise @ each for each, noise in zip(combination.coefficients, noises, strict=True)))
        covered = float(np.mean(off <= found.interval.high - found.value))
        assert 0.935 <= covered <= 0.99  # and not wastefully wide
        assert float(np.mean(off**2)) == pytest.approx(found.variance, rel=0.15)

"""Certificates hold for any table and any multipliers, not only for good ones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.fit import TOTAL, FitProblem, nnls
from confide.fit.program import build, certify, fixed, measured_terms
from tests.fit import oracle
from tests.fit.strategies import problems


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems(public=False), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.01, 1.0]))
def test_the_gap_is_never_too_small(problem: FitProblem, seed: int, size: float) -> None:
    program = build(problem, measured_terms(problem))
    generator = np.random.default_rng(seed)
    best = nnls(problem)
    cells = np.maximum(best.cells + size * generator.normal(0, 10, problem.domain.cells), 0)
    multipliers = best.multipliers + size * generator.normal(0, 1, program.rows.count)
    worse = oracle.value(problem, cells) - oracle.value(problem, best.cells)
    certificate = certify(program, cells, multipliers, 0)
    assert certificate.gap >= worse - 1e-9 * max(1.0, oracle.value(problem, cells))
    rows, _, weights = oracle.stacked(problem)
    apart = float(weights @ (rows @ (cells - best.cells)) ** 2) ** 0.5
    assert apart <= certificate.distance + best.certificate.distance + 1e-6


def test_violations_are_reported(table_problem: FitProblem) -> None:
    terms = [*measured_terms(table_problem)[1:], fixed(TOTAL, np.array([800.0]))]
    program = build(table_problem, terms)
    cells = np.full(table_problem.domain.cells, 1.0)
    assert certify(program, cells, np.zeros(program.rows.count), 0).violation == 800 - table_problem.domain.cells

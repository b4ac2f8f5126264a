"""Problems refuse what cannot be fitted."""

from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.fit import METHODS, TOTAL, CellDomain, FitProblem, Marginal, MeasuredGroup, Method, Public, fit, nnls
from confide.mechanism.noise.law import DiscreteLaplace, NoNoise

DOMAIN = CellDomain(("age", "sex"), (3, 2))
LAW = DiscreteLaplace(Fraction(2))
CELLS = MeasuredGroup(Marginal(("age", "sex")), np.arange(6.0), LAW)


def test_a_marginal_measured_twice_is_pooled() -> None:
    """Two independent answers to one query are the mean of both."""
    twice = FitProblem(
        DOMAIN, (CELLS, MeasuredGroup(Marginal(("sex", "age")), np.arange(6.0)[[0, 2, 4, 1, 3, 5]] + 2, LAW))
    )
    assert nnls(twice).cells == pytest.approx(np.arange(6.0) + 1)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (np.zeros(5), "needs 6 numbers; got 5"),
        (np.array([np.nan, *range(5)]), "not a number"),
        (np.array([np.inf, *range(5)]), "not a number"),
        (np.full(6, 1e16), "below 10¹⁵"),
    ],
)
def test_answers_that_are_none_are_refused(answers: np.ndarray, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        FitProblem(DOMAIN, (MeasuredGroup(Marginal(("age", "sex")), answers, LAW),))


def test_nothing_measured_and_no_noise_are_refused() -> None:
    with pytest.raises(ParameterError, match="nothing to fit"):
        FitProblem(DOMAIN, ())
    with pytest.raises(ParameterError, match="Laplace or Gaussian"):
        FitProblem(DOMAIN, (MeasuredGroup(TOTAL, np.zeros(1), NoNoise()),))  # type: ignore[arg-type]


def test_what_is_public_is_checked() -> None:
    with pytest.raises(ParameterError, match="one flag for each of 6 cells"):
        FitProblem(DOMAIN, (CELLS,), Public(np.zeros(5, dtype=bool)))
    with pytest.raises(ParameterError, match="every cell is a structural zero"):
        FitProblem(DOMAIN, (CELLS,), Public(np.ones(6, dtype=bool)))
    with pytest.raises(ParameterError, match="negative count"):
        FitProblem(DOMAIN, (CELLS,), Public(totals=((TOTAL, np.array([-1.0])),)))


@pytest.mark.parametrize("method", ["ols", "nnls", "maxfit", "sequential", "reweighted", "pinned", "adaptive"])
def test_public_facts_hold_exactly_in_every_method(method: str) -> None:
    zeros = np.array([True, False, False, False, False, False])
    ages = (Marginal(("age",)), np.array([4.0, 0.0, 9.0]))
    problem = FitProblem(DOMAIN, (CELLS, MeasuredGroup(TOTAL, np.array([10.0]), LAW)), Public(zeros, (ages,)))
    cells = fit(problem, method).cells  # type: ignore[arg-type]
    assert cells[0] == 0
    assert ages[0].answer(DOMAIN, cells) == pytest.approx(ages[1], abs=1e-7)


@pytest.mark.parametrize("method", ["ols", "nnls", "maxfit", "sequential", "reweighted", "pinned", "adaptive"])
@pytest.mark.parametrize(
    ("public", "words"),
    [
        (
            Public(totals=((TOTAL, np.array([10.0])), (Marginal(("sex",)), np.array([5.0, 6.0])))),
            "the public totals contradict each other",
        ),
        (
            Public(
                np.array([True, True, False, False, False, False]),
                ((Marginal(("age",)), np.array([1.0, 2.0, 3.0])),),
            ),
            "every cell is a structural zero",
        ),
        (
            Public(
                np.array([True, False, True, False, False, False]),
                ((Marginal(("age",)), np.array([4.0, 4.0, 1.0])), (Marginal(("sex",)), np.array([3.0, 6.0]))),
            ),
            "the public totals contradict each other",
        ),
    ],
)
def test_contradictory_totals_are_refused_by_every_method(method: str, public: Public, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fit(FitProblem(DOMAIN, (CELLS,), public), method)  # type: ignore[arg-type]


def test_again_keeps_queries_and_laws() -> None:
    problem = FitProblem(DOMAIN, (CELLS,))
    other = problem.again([np.ones(6)])
    assert other.measured[0].law is LAW
    assert nnls(other).cells == pytest.approx(np.ones(6))


def test_unknown_methods_and_stray_arguments_are_refused() -> None:
    problem = FitProblem(DOMAIN, (CELLS,))
    with pytest.raises(ParameterError, match="there is no method 'magic'; there are auto, ols"):
        fit(problem, "magic")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="priorities are for sequential"):
        fit(problem, "nnls", priority=[[0]])
    with pytest.raises(ParameterError, match="pins are for pinned"):
        fit(problem, "nnls", pins=[Marginal(("age",))])


@pytest.mark.parametrize("method", METHODS)
def test_public_totals_hold_in_every_fit_of_a_larger_table(method: Method) -> None:
    """Estimates leave public totals out where a table is large; what is pinned must give way to them."""
    domain = CellDomain(("a", "b"), (60, 60))
    truth = np.diag(np.full(60, 5.0)).ravel()
    generator = np.random.default_rng(2)
    law = DiscreteLaplace(Fraction(2))
    measured = [
        MeasuredGroup(group, group.answer(domain, truth) + np.rint(generator.laplace(0, 2, 60)), law)
        for group in (Marginal(("a",)), Marginal(("b",)))
    ]
    zeros = np.zeros((60, 60), dtype=bool)
    zeros[0, 1:] = True
    public = Public(zeros.ravel(), ((Marginal(("a",)), np.full(60, 5.0)),))
    found = fit(FitProblem(domain, tuple(measured), public), method)
    assert found.answer(Marginal(("a",))) == pytest.approx([5.0] * 60, abs=1e-4)
    assert np.abs(found.cells[zeros.ravel()]).max() == 0
    assert found.certificate.violation < 1e-4

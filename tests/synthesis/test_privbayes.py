"""PrivBayes on public rows: what it pays, the network it finds, and the table that its families make."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.host.progress import heard_by
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis import privbayes
from confide.synthesis.curator import ChooseAmong, MeasureSets, Synthesized
from confide.synthesis.information import Family
from confide.synthesis.junction import tree_bytes
from confide.synthesis.markov import product_of
from confide.synthesis.privbayes import PrivBayesStrategy, model_strategy, privbayes_strategy
from tests.synthesis.booked import Booked, chain, every, mean_error
from tests.synthesis.whole import joint_of, marginal_of

SIZES = (3, 4, 2, 5)


def booked(rho: Fraction, sizes: tuple[int, ...] = SIZES, **given: Any) -> tuple[Booked, PrivBayesStrategy]:
    workload = every(sizes, 1)
    strategy = privbayes_strategy(workload, ZCDP(rho), 5_000, 1, **given)
    return Booked(chain(5_000, sizes), workload, strategy.reads(workload), rho), strategy


def ran(book: Booked, strategy: PrivBayesStrategy) -> Synthesized:
    return privbayes.run(book, book.workload, strategy)


@pytest.mark.parametrize("model", [False, True])
@pytest.mark.parametrize("sizes", [SIZES, (3, 2), (4,), (2, 2, 2, 2, 2)])
def test_a_run_spends_its_whole_share_and_buys_no_more(sizes: tuple[int, ...], model: bool) -> None:
    book, strategy = booked(Fraction(1, 10), sizes, model=model)
    found = ran(book, strategy)
    assert book.paid == book.rho
    assert book.bought <= float(book.rho) * (1 + 1e-9)
    assert found.measured == len(sizes)
    assert found.model.total == pytest.approx(5_000, rel=0.1)
    assert found.model.table.marginal((0,), 0, sizes[0]).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("model", [False, True])
def test_a_large_budget_finds_what_columns_have_in_common(model: bool) -> None:
    book, strategy = booked(Fraction(10**5), degree=2, model=model)
    found = ran(book, strategy)
    assert mean_error(found.model.table, book.codes, every(SIZES, 2)) < 0.03
    assert len(book.measured) == 4
    assert np.isfinite(found.loss)


def test_every_family_stands_on_columns_that_are_there() -> None:
    book, strategy = booked(Fraction(1, 10**4), (2, 3, 2, 3, 2), degree=2)
    ran(book, strategy)
    placed = {strategy.root(book.workload)}
    assert book.measured[0] == (0,)
    for columns in book.measured[1:]:
        assert len(set(columns) - placed) == 1
        placed |= set(columns)
    assert placed == set(range(5))


def test_families_are_the_largest_that_their_cells_allow() -> None:
    strategy = PrivBayesStrategy(2, 12, 80, model=False)
    found = set(strategy.families((2, 3, 4, 5), [0, 1]))
    assert found == {Family(2, (0,)), Family(2, (1,)), Family(3, (0,))}
    assert set(PrivBayesStrategy(2, 1, 80, model=False).families((2, 3), [0])) == {Family(1, ())}
    assert set(PrivBayesStrategy(0, 99, 80, model=False).families((2, 3), [0])) == {Family(1, ())}


def test_how_large_families_are_follows_from_the_policy_and_the_cost() -> None:
    workload = every((4,) * 6, 1)
    sizes = [
        privbayes_strategy(workload, cost, expected, 1).cells
        for cost, expected in (
            (ZCDP(Fraction(1, 10)), 1_000), (ZCDP(Fraction(1, 10)), 100_000), (ZCDP(Fraction(1, 1_000)), 100_000),
            (PureDP(Fraction(1)), None),
        )
    ]  # fmt: skip
    assert sizes[0] < sizes[1] > sizes[2]
    assert sizes[0] == int(1_000 / (4 * np.sqrt(5 / (2 * 0.1 * 0.65))))
    assert model_strategy(workload, ZCDP(Fraction(1)), None, 1, degree=1).model
    with pytest.raises(ParameterError, match="degree = 9 must be a whole number from 0 to 6"):
        privbayes_strategy(workload, ZCDP(Fraction(1)), None, 1, degree=9)


def test_conditional_shares_multiply_to_the_law_that_they_are_of() -> None:
    """Counts without noise of a law that has the network."""
    generator = np.random.default_rng(0)
    sizes = (2, 3, 2)
    factors = [((0,), generator.dirichlet([1, 1]))]
    for columns in ((0, 1), (0, 1, 2)):
        drawn = generator.dirichlet(np.ones(sizes[columns[-1]]), [sizes[own] for own in columns[:-1]])
        factors.append((columns, drawn))
    joint = factors[0][1][:, None, None] * factors[1][1][:, :, None] * factors[2][1]
    table = product_of(sizes, factors)
    np.testing.assert_allclose(joint_of(table), joint, atol=1e-6)
    np.testing.assert_allclose(table.marginal((2, 0), 0, 2), marginal_of(joint, (2, 0)), atol=1e-6)


def test_what_never_occurs_with_its_parents_is_even() -> None:
    factors = [((0,), np.array([1.0, 0.0])), ((0, 1), np.array([[1.0, 0.0], [0.0, 0.0]]))]
    table = product_of((2, 2), factors)
    np.testing.assert_allclose(joint_of(table), [[1, 0], [0, 0]], atol=1e-7)


def test_the_table_stays_within_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (30, 40, 50, 40, 2)
    workload = every(sizes, 1)
    strategy = PrivBayesStrategy(3, 100_000, 1, model=False)
    book = Booked(chain(5_000, sizes), workload, strategy.reads(workload), Fraction(10))
    ran(book, strategy)
    assert tree_bytes(sizes, book.measured) <= 2**20
    assert strategy.room(workload) == 2**19


def test_a_plan_has_the_steps_of_a_run() -> None:
    book, strategy = booked(Fraction(1))
    root, choice, families = strategy.steps(book.workload)
    assert isinstance(root, MeasureSets)
    assert isinstance(choice, ChooseAmong)
    assert isinstance(families, MeasureSets)
    assert root.share + choice.share * choice.times + families.share == 1
    assert (choice.times, choice.errors, len(families.sets)) == (3, "other", 3)


def test_progress_goes_from_the_root_to_the_families() -> None:
    told: list[tuple[str, float, int]] = []
    with heard_by(lambda *step: told.append(step)):
        ran(*booked(Fraction(1, 10)))
    assert told[0] == ("measuring the smallest column", 0, 6)
    assert told[-1] == ("measuring 3 families", 4, 6)

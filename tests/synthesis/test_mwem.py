"""MWEM on public rows: what it pays, and that it is multiplicative weights over the whole history."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.loss import ZCDP
from confide.synthesis import mwem
from confide.synthesis.curator import ChooseAmong, MeasuredMarginal, MeasureSets, Merging
from confide.synthesis.mwem import MwemStrategy, mwem_strategy
from tests.synthesis.booked import Booked, chain, every, mean_error

SIZES = (3, 4, 2, 5)


def booked(rho: Fraction, sizes: tuple[int, ...] = SIZES, k: int = 2, kind: type[Booked] = Booked) -> Booked:
    workload = every(sizes, k)
    return kind(chain(5_000, sizes), workload, workload.sets, rho)


def planned(book: Booked, **given: Any) -> MwemStrategy:
    return mwem_strategy(book.workload, ZCDP(book.rho), None, 1, **given)


@pytest.mark.parametrize("rounds", [None, 1, 9])
def test_a_run_spends_its_whole_share_and_buys_no_more(rounds: int | None) -> None:
    book = booked(Fraction(1, 10))
    found = mwem.run(book, book.workload, planned(book, rounds=rounds))
    assert book.paid == book.rho
    assert book.bought <= float(book.rho) * (1 + 1e-9)
    assert len(book.choices) == (rounds or 4)
    assert found.model.total == pytest.approx(5_000, rel=0.1)


def test_a_history_that_is_measured_again_without_paying_is_noticed() -> None:
    """The published mistake: every round what was measured before gets fresh noise at the price of the new."""

    class Remeasures(Booked):
        def measure(
            self, sets: Sequence[tuple[int, ...]], share: Fraction, merging: Merging | None = None
        ) -> tuple[MeasuredMarginal, ...]:
            paid, history = self.paid, list(self.measured)
            for columns in history:
                super().measure([columns], share, merging)
            self.paid = paid
            return super().measure(sets, share, merging)

    honest, broken = booked(Fraction(1, 10)), booked(Fraction(1, 10), kind=Remeasures)
    for book in (honest, broken):
        mwem.run(book, book.workload, planned(book))
    assert honest.bought <= float(honest.paid) * (1 + 1e-9)
    assert broken.bought > float(broken.paid) * (1 + 1e-9)


def test_it_is_what_multiplicative_weights_on_the_histogram_come_to() -> None:
    """Cell by cell over all 120 of them, measurement by measurement, the history again and again until it stands."""
    book = booked(Fraction(1, 2))
    seen: list[MeasuredMarginal] = []

    class Kept(Booked):
        def measure(self, *given: Any) -> tuple[MeasuredMarginal, ...]:
            found = super().measure(*given)
            seen.extend(found)
            return found

    book = booked(Fraction(1, 2), kind=Kept)
    model = mwem.run(book, book.workload, planned(book)).model
    weights = np.full(SIZES, 1 / np.prod(SIZES))
    precision = max(1 / part.variance for part in seen)
    for _ in range(30_000):
        pull = np.zeros(SIZES)
        for part in seen:
            shape = [size if column in part.columns else 1 for column, size in enumerate(SIZES)]
            away = tuple(column for column in range(4) if column not in part.columns)
            off = part.counts.reshape(shape) / model.total - weights.sum(axis=away, keepdims=True)
            pull = pull + off / part.variance / precision
        weights = weights * np.exp(pull)
        weights /= weights.sum()
    np.testing.assert_allclose(model.table.marginal((0, 1, 2, 3), 0, 3), weights, atol=2e-4)


def test_a_large_budget_finds_the_marginals_of_the_workload() -> None:
    book = booked(Fraction(10**5))
    found = mwem.run(book, book.workload, planned(book, rounds=8))
    assert mean_error(found.model.table, book.codes, book.workload) < 0.01


def test_a_plan_has_the_steps_of_a_run() -> None:
    book = booked(Fraction(1))
    first, choice, measure = planned(book).steps(book.workload)
    assert isinstance(first, MeasureSets)
    assert isinstance(choice, ChooseAmong)
    assert isinstance(measure, MeasureSets)
    assert first.sets == ((2,),)
    assert first.share + (choice.share + measure.share) * choice.times == 1
    assert choice.among == 6
    assert measure.sets == ((1, 3),)


def test_beyond_the_histogram_the_model_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (50, 60, 50, 2)
    small = booked(Fraction(1), (20, 20), 2)
    assert planned(small).room(small.workload) == 4 * 400
    monkeypatch.setattr(mwem, "HISTOGRAM", 10_000)
    book = booked(Fraction(1), sizes, 3)
    strategy = planned(book, megabytes=1)
    assert strategy.candidates(book.workload) == ((0, 1, 3), (0, 2, 3), (1, 2, 3))
    assert strategy.room(book.workload) == 2**19
    mwem.run(book, book.workload, strategy)
    assert len(book.choices) == 4
    with pytest.raises(ParameterError, match="there is none; take wider bins"):
        planned(booked(Fraction(1), (60, 60, 60, 60), 4), megabytes=1)


def test_where_there_is_room_for_nothing_else_what_was_measured_is_measured_again() -> None:
    """One megabyte holds 131,072 cells: of two tables of 90,000 one is measured, again and again."""
    sizes = (300, 300, 300)
    workload = every(sizes, 2)
    book = Booked(chain(2_000, sizes), workload, workload.sets, Fraction(1))
    mwem.run(book, workload, planned(book, megabytes=1))
    assert len(set(book.choices)) == 1
    assert len(book.choices) == 3
    assert book.paid == book.rho

"""Rounds against a curator that keeps a book of everything it gave: the published mistakes, each with its mutant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from confide.host.progress import heard_by
from confide.mechanism import Randomness, TestRandomness, gaussian
from confide.synthesis import rap
from confide.synthesis.curator import Curator, MeasuredMarginal, MeasuredQueries, Model, Picked, Synthesized
from confide.synthesis.strategy import Strategy
from confide.workload import Threshold, Workload, tables_of
from tests.synthesis.fitting import pretend_to_fit
from tests.workload.samples import domain, rows

SIZES = (2, 4, 6, 4)
WORKLOAD = Workload((Threshold(("sex", "ward", "age"), 2), Threshold(("age", "day"), 2))).bound(domain())
RHO = Fraction(1, 2)


@dataclass
class Bookkeeper:
    """A curator of public rows. `paid` is ρ, `bought` is what the released numbers would cost by their own noise."""

    seed = 1

    fresh: Callable[[], Randomness]
    paid: Fraction = Fraction(0)
    bought: float = 0.0
    asked: list[tuple[int, int]] = field(default_factory=list)
    noise: list[NDArray[np.int64]] = field(default_factory=list)
    codes: NDArray[np.int64] = field(default_factory=lambda: rows(SIZES, 2_000))

    def measure(self, sets: Sequence[tuple[int, ...]], share: Fraction) -> tuple[MeasuredMarginal, ...]:
        exact = tables_of(self.codes, SIZES, WORKLOAD.sets)
        found = []
        for columns in sets:
            counts = exact.marginal(columns, 0, SIZES[columns[0]]).reshape(-1)
            noisy, variance = self._noisy(counts, share / len(sets), 1)
            self.bought += 1 / (2 * variance)
            found.append(MeasuredMarginal(columns, noisy, variance))
        self.paid += RHO * share
        return tuple(found)

    def choose_set(self, candidates: Sequence[tuple[int, ...]], model: Model, share: Fraction) -> int:
        self.paid += RHO * share
        self.bought += float(RHO * share)
        return len(candidates) - 1

    def choose_queries(self, count: int, taken: Picked, model: Model, share: Fraction) -> Picked:
        self.paid += RHO * share
        self.bought += float(RHO * share)
        free = [cell for cell in range(24) if cell not in set(taken.cells.tolist())]
        return Picked(np.ones(count, np.int64), np.array(free[:count], np.int64))

    def ask(self, picked: Picked, share: Fraction) -> MeasuredQueries:
        table = tables_of(self.codes, SIZES, ((2, 3),)).marginal((2, 3), 0, 6).reshape(-1)
        noisy, variance = self._noisy(table[picked.cells], share, len(picked))
        self.paid += RHO * share
        self.bought += len(picked) / (2 * variance)
        self.asked += [(1, int(cell)) for cell in picked.cells]
        places = np.stack([6 + picked.cells // 4, 12 + picked.cells % 4], axis=1)
        return MeasuredQueries(places, np.full(len(picked), 2), noisy, variance)

    def _noisy(self, counts: NDArray[np.int64], share: Fraction, parts: int) -> tuple[NDArray[np.float64], float]:
        mechanism = gaussian(1, RHO * share / parts)
        values = mechanism.measure(counts, self.fresh()).values
        self.noise.append(values - counts)
        return values.astype(np.float64), float(mechanism.law.variance)


def kept_source() -> Callable[[], Randomness]:
    source = TestRandomness(4)
    return lambda: source


def strategy(select: str, rounds: int, picks: int = 1) -> Strategy:
    return Strategy(select, rounds, picks, 20, Fraction(1, 5), Fraction(1, 4))  # type: ignore[arg-type]


def run(curator: Curator, select: str, rounds: int, picks: int = 1) -> Synthesized:
    return rap.run(curator, WORKLOAD, strategy(select, rounds, picks))


@pytest.fixture(autouse=True)
def _no_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_to_fit(monkeypatch)


# --- what a run pays --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("select", "rounds", "picks"), [("closure", 1, 1), ("marginals", 2, 1), ("queries", 2, 3)])
def test_a_run_spends_its_whole_share_and_buys_no_more(select: str, rounds: int, picks: int) -> None:
    book = Bookkeeper(kept_source())
    found = run(book, select, rounds, picks)
    assert book.paid == RHO
    assert book.bought <= float(RHO) * (1 + 1e-9)
    assert found.model.total == pytest.approx(2_000, rel=0.1)


def pays_for_all(book: Bookkeeper) -> bool:
    return book.bought <= float(book.paid) * (1 + 1e-9)


def test_a_history_that_is_measured_again_without_paying_is_noticed() -> None:
    """The published mistake: each round, all queries chosen so far get fresh noise at the price of the new ones."""

    class Remeasures(Bookkeeper):
        def ask(self, picked: Picked, share: Fraction) -> MeasuredQueries:
            before = [cell for _, cell in self.asked]
            cells = np.concatenate([np.array(before, np.int64), picked.cells])
            both = Picked(np.ones(len(cells), np.int64), cells)
            paid = self.paid
            measured = super().ask(both, share * len(both) / len(picked))
            self.paid = paid + RHO * share
            return measured

    honest, broken = Bookkeeper(kept_source()), Remeasures(kept_source())
    run(honest, "queries", 3, 2)
    run(broken, "queries", 3, 2)
    assert pays_for_all(honest)
    assert not pays_for_all(broken)


def test_no_query_is_chosen_or_measured_twice() -> None:
    book = Bookkeeper(kept_source())
    run(book, "queries", 3, 4)
    assert len(book.asked) == len(set(book.asked)) == 12


# --- noise ------------------------------------------------------------------------------------------------------------


def noise_is_fresh(book: Bookkeeper) -> bool:
    """No two steps with noise of one law share their draws; false alarm below 24⁻⁶ or so for the steps compared."""
    asked = [noise for noise in book.noise if len(noise) == 6]
    return not any(np.array_equal(one, two) for place, one in enumerate(asked) for two in asked[:place])


def test_every_round_has_noise_of_its_own() -> None:
    book = Bookkeeper(kept_source())
    run(book, "queries", 3, 6)
    assert noise_is_fresh(book)


def test_noise_that_is_used_again_is_noticed() -> None:
    """The published mistake: one key for every round, so that the noise of two rounds is the same and cancels."""
    book = Bookkeeper(lambda: TestRandomness(4))
    run(book, "queries", 3, 6)
    assert not noise_is_fresh(book)


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_goes_from_nothing_to_the_last_round() -> None:
    told: list[tuple[str, float, int]] = []
    with heard_by(lambda *step: told.append(step)):
        rap.run(Bookkeeper(kept_source()), WORKLOAD, strategy("marginals", 2))
    assert told[0] == ("round 0 of 2: measuring single columns", 0, 3)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][0].startswith("round 2 of 2: fitting, loss ")
    assert told[-1][1:] == (2, 3)

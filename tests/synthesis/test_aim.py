"""AIM on public rows: what it pays, what it chooses, how its rounds grow, and how large its model may be."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.host.progress import heard_by
from confide.privacy.limits import LONGEST_ANSWER
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis import aim, marginal_rounds, model_size
from confide.synthesis.aim import AimStrategy, aim_strategy
from confide.synthesis.curator import ChooseAmong, MeasuredMarginal, MeasureSets, Merging, Synthesized
from confide.synthesis.junction import tree_bytes
from confide.synthesis.marginal_rounds import MarginalRounds
from tests.synthesis.booked import Booked, chain, every, mean_error

SIZES = (3, 4, 2, 5)
RHO = ZCDP(Fraction(1, 2))


def planned(book: Booked, **given: Any) -> AimStrategy:
    return aim_strategy(book.workload, ZCDP(book.rho), None, 1, **given)


def booked(rho: Fraction, sizes: tuple[int, ...] = SIZES, k: int = 3, kind: type[Booked] = Booked) -> Booked:
    workload = every(sizes, k)
    return kind(chain(5_000, sizes), workload, workload.sets, rho)


def ran(book: Booked, **given: Any) -> Synthesized:
    return aim.run(book, book.workload, planned(book, **given))


def pays_for_all(book: Booked) -> bool:
    """What was released is worth what was paid, and all of it was paid."""
    return book.paid == book.rho and book.bought <= float(book.rho) * (1 + 1e-9)


@pytest.mark.parametrize("rho", [Fraction(1, 1_000), Fraction(1, 10), Fraction(10)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_run_spends_its_whole_share_and_buys_no_more(rho: Fraction, k: int) -> None:
    book = booked(rho, k=k)
    found = ran(book)
    assert pays_for_all(book)
    assert found.model.total == pytest.approx(5_000, rel=0.2)
    assert found.measured == len(book.measured) == 4 + len(book.choices)


def test_first_columns_that_are_not_counted_are_noticed() -> None:
    """The published mistake: what is measured before the first round is more than what is paid for it."""

    class Uncounted(Booked):
        def measure(
            self, sets: Sequence[tuple[int, ...]], share: Fraction, merging: Merging | None = None
        ) -> tuple[MeasuredMarginal, ...]:
            before, first = self.paid, not self.measured
            found = super().measure(sets, share * len(sets) if first else share, merging)
            self.paid = before + self.rho * share
            return found

    book = booked(Fraction(1, 10), kind=Uncounted)
    ran(book)
    assert not pays_for_all(book)


def noise_is_fresh(book: Booked) -> bool:
    """No two measurements of as many cells share their noise: by chance alone below 10⁻⁶ or so."""
    pairs = [(one, two) for place, one in enumerate(book.noise) for two in book.noise[:place] if len(one) == len(two)]
    asked = [(one, two) for one, two in pairs if len(one) >= 6]
    assert asked
    return not any(np.array_equal(one, two) for one, two in asked)


def test_noise_of_one_key_is_noticed() -> None:
    """The published mistake: one random key for every round, so that the noise of two rounds is the same."""

    class OneKey(Booked):
        def measure(self, *given: Any) -> tuple[MeasuredMarginal, ...]:
            self.__post_init__()
            return super().measure(*given)

    honest, broken = (booked(Fraction(1, 2), (3, 3, 3, 3), 2, kind) for kind in (Booked, OneKey))
    for book in (honest, broken):
        ran(book)
    assert noise_is_fresh(honest)
    assert not noise_is_fresh(broken)


def test_a_large_budget_finds_what_columns_have_in_common() -> None:
    book = booked(Fraction(10**5))
    found = ran(book)
    assert mean_error(found.model.table, book.codes, book.workload) < 0.02
    assert any(set(pair) <= set(columns) for pair in pairwise(range(4)) for columns in book.choices)
    small = booked(Fraction(1, 10**4))
    assert mean_error(ran(small).model.table, small.codes, small.workload) > 0.1


@pytest.mark.parametrize("pure", [False, True])
def test_rounds_that_change_nothing_are_followed_by_fewer_and_more_exact_ones(pure: bool) -> None:
    """Independent columns: noise is all there is, until it is small."""
    sizes = (3, 3, 3)
    workload = every(sizes, 2)
    codes = np.random.default_rng(0).integers(0, 3, (2_000, 3))
    shares: list[Fraction] = []

    class Watched(Booked):
        def choose(self, candidates: Any, score: Any, share: Fraction) -> int:
            shares.append(share)
            return super().choose(candidates, score, share)

    book = Watched(codes, workload, workload.sets, Fraction(1, 100))
    aim.run(book, workload, AimStrategy(48, 1, pure=pure))
    grown = {later / earlier for earlier, later in pairwise(shares[:-1])}
    assert grown <= {Fraction(1), Fraction(2 if pure else 4)}
    assert len(grown - {1}) == 1
    assert len(shares) < 40
    assert book.paid == book.rho


def test_the_model_stays_within_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROUGH_STEPS", "MOST_STEPS"):
        monkeypatch.setattr(marginal_rounds, name, 2)
    sizes = (40, 60, 60, 3)
    book = booked(Fraction(100), sizes)
    ran(book, megabytes=1, rounds=12)
    assert tree_bytes(sizes, book.measured) <= 2**20
    assert (0, 1, 2) not in book.measured
    assert max(map(len, book.measured)) > 1
    assert planned(book, megabytes=1).room(book.workload) == 2**19


def test_a_candidate_speaks_of_as_much_as_it_shares_with_the_workload_and_noise_is_taken_off() -> None:
    seen: list[Any] = []

    class Watched(Booked):
        def choose(self, candidates: Any, score: Any, share: Fraction) -> int:
            seen.append((list(candidates), score, share))
            return super().choose(candidates, score, share)

    book = booked(Fraction(1), (2, 3, 4), 2, Watched)
    ran(book)
    candidates, score, share = seen[0]
    weights = dict(zip(candidates, score.weights, strict=True))
    assert weights == {(0,): 2, (1,): 2, (2,): 2, (0, 1): 4, (0, 2): 4, (1, 2): 4}
    offsets = dict(zip(candidates, score.offsets, strict=True))
    assert offsets[1, 2] == pytest.approx(12 * np.sqrt(2 / np.pi) * book.deviation(9 * share))
    assert offsets[0,] == pytest.approx(2 * np.sqrt(2 / np.pi) * book.deviation(9 * share))


def test_a_plan_has_the_first_rounds_and_their_cost_is_the_whole() -> None:
    book = booked(Fraction(1))
    ones, choice, measure = planned(book).steps(book.workload)
    assert isinstance(ones, MeasureSets)
    assert isinstance(choice, ChooseAmong)
    assert isinstance(measure, MeasureSets)
    assert ones.share + (choice.share + measure.share) * choice.times == 1
    assert ones.share == Fraction(9, 160)
    assert measure.sets == ((0, 1, 3),)


def test_closures_that_are_too_many_are_cut_by_the_number_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aim, "MOST_CANDIDATES", 10)
    book = booked(Fraction(1), (2,) * 5, 4)
    assert max(map(len, planned(book).candidates(book.workload))) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [({"rounds": 7}, "whole number from 8 to"), ({"megabytes": 0}, "whole number from 1"), ({"rounds": 1.5}, "rounds")],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        planned(booked(Fraction(1)), **given)


def test_a_pure_budget_and_a_number_of_rounds_are_taken_as_they_are() -> None:
    workload = every(SIZES, 2)
    assert aim_strategy(workload, PureDP(Fraction(1)), None, 1, rounds=20) == AimStrategy(20, 80, pure=True)
    assert aim_strategy(workload, RHO, None, 1) == AimStrategy(64, 80, pure=False)


def test_progress_is_the_part_that_was_spent() -> None:
    told: list[tuple[str, float, int]] = []
    hear: Callable[..., None] = lambda *step: told.append(step)  # noqa: E731
    with heard_by(hear):
        ran(booked(Fraction(1, 10)))
    assert told[0] == ("round 0: measuring single columns", 0, 100)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1:] == (100, 100)


def test_a_model_that_the_memory_does_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = every((100, 100, 100, 100), 3)
    monkeypatch.setattr(model_size, "machine_bytes", lambda: 2**30)
    assert aim_strategy(workload, RHO, None, 1, megabytes=170).megabytes == 170
    with pytest.raises(ParameterError, match="fitted in 1,080 MiB, and this machine has 1,024 MiB"):
        aim_strategy(workload, RHO, None, 1, megabytes=180)
    assert aim_strategy(every((9, 9), 2), RHO, None, 1, megabytes=10_000).megabytes == 10_000
    monkeypatch.setattr(model_size, "machine_bytes", lambda: None)
    assert aim_strategy(workload, RHO, None, 1, megabytes=180).megabytes == 180


def test_a_model_of_the_usual_size_can_be_kept() -> None:
    workload = every((100, 100, 100, 100), 3)
    assert aim_strategy(workload, RHO, None, 1).room(workload) == 40 * 2**20 < LONGEST_ANSWER


def test_all_that_is_measured_has_no_more_cells_than_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROUGH_STEPS", "MOST_STEPS"):
        monkeypatch.setattr(marginal_rounds, name, 2)
    sizes = (80, 80, 80, 2)
    book = booked(Fraction(10**4), sizes)
    ran(book, megabytes=1, rounds=60)
    large = [own for own in book.measured if np.prod([sizes[column] for column in own]) > 4_096]
    assert sum(int(np.prod([sizes[column] for column in own])) for own in large) <= 2**17
    assert large


def test_a_pair_that_closes_a_circle_is_looked_at_only_where_its_clique_fits() -> None:
    sizes, pairs = (60, 60, 60), [(0, 1), (0, 2), (1, 2)]
    book = booked(Fraction(1), sizes, 2)
    for megabytes, expected in ((1, [0, 2]), (2, [0, 1, 2])):
        rounds = MarginalRounds(book, book.workload, pairs, [1] * 3, megabytes, pure=False)
        rounds.begin([(0, 1), (1, 2)], Fraction(1))
        assert rounds._admitted() == expected

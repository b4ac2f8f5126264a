"""MST on public rows: what it pays, which tree it finds, and what it makes of rare places."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from confide.host.progress import heard_by
from confide.synthesis import mst
from confide.synthesis.curator import ChooseAmong, MeasureSets
from confide.synthesis.mst import MstStrategy, spread
from tests.synthesis.booked import Booked, chain, domain_with, every, mean_error
from tests.synthesis.whole import joint_of, random_table

SIZES = (3, 4, 2, 5, 3)


def booked(rho: Fraction, sizes: tuple[int, ...] = SIZES) -> Booked:
    workload = every(sizes, min(3, len(sizes)))
    return Booked(chain(5_000, sizes), workload, MstStrategy().reads(workload), rho)


@pytest.mark.parametrize("sizes", [SIZES, (3, 4), (6,)])
def test_a_run_spends_its_whole_share_and_buys_no_more(sizes: tuple[int, ...]) -> None:
    book = booked(Fraction(1, 10), sizes)
    found = mst.run(book, book.workload, MstStrategy())
    assert book.paid == book.rho
    assert book.bought <= float(book.rho) * (1 + 1e-9)
    assert found.measured == 2 * len(sizes) - 1
    assert found.model.total == pytest.approx(5_000, rel=0.05)


def test_a_plan_has_the_steps_of_a_run() -> None:
    workload = every(SIZES, 3)
    ones, choices, pairs = MstStrategy().steps(workload)
    assert isinstance(ones, MeasureSets)
    assert isinstance(choices, ChooseAmong)
    assert isinstance(pairs, MeasureSets)
    assert ones.share + choices.share * choices.times + pairs.share == 1
    assert (choices.times, choices.among, len(pairs.sets)) == (4, 10, 4)
    assert MstStrategy().room(workload) > 0


def test_a_large_budget_finds_the_tree_of_the_data_and_its_counts() -> None:
    book = booked(Fraction(10**6))
    found = mst.run(book, book.workload, MstStrategy())
    assert set(book.choices) == set(pairwise(range(5)))
    assert mean_error(found.model.table, book.codes, book.workload) < 0.06
    nothing = booked(Fraction(1, 10**7))
    assert (
        mean_error(mst.run(nothing, nothing.workload, MstStrategy()).model.table, nothing.codes, nothing.workload) > 0.3
    )


def test_no_edge_closes_a_circle() -> None:
    for seed in range(5):
        book = booked(Fraction(1, 10**6))
        book.seed = seed
        book.__post_init__()
        mst.run(book, book.workload, MstStrategy())
        parts = list(range(5))
        for one, two in book.choices:
            assert parts[one] != parts[two]
            parts = [parts[two] if part == parts[one] else part for part in parts]
        assert len(set(parts)) == 1


def test_pairs_that_are_too_large_leave_several_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mst, "MOST_CELLS", 12)
    sizes = (3, 4, 20, 20)
    workload = every(sizes, 1)
    assert MstStrategy().pairs(workload) == ((0, 1),)
    assert MstStrategy().edges(workload) == 1
    book = Booked(chain(1_000, sizes), workload, MstStrategy().reads(workload))
    mst.run(book, workload, MstStrategy())
    assert book.choices == [(0, 1)]


def test_rare_places_come_out_alike_and_pairs_are_measured_without_them() -> None:
    sizes = (40, 2)
    workload = every(sizes, 2)
    codes = chain(4_000, (3, 2))
    book = Booked(codes, workload, MstStrategy().reads(workload), Fraction(1, 20))
    table = mst.run(book, workload, MstStrategy()).model.table
    rare = table.marginal((0,), 3, 40)
    assert len(book.noise[-1]) < 3 * 12  # of the pair: three places and the rest, or little more
    assert len(np.unique(rare.round(9))) <= 4
    assert table.marginal((0,), 0, 40).sum() == pytest.approx(1, abs=1e-5)


def test_merged_places_share_what_they_have_together() -> None:
    small = random_table((2, 3), [(0, 1)])
    merging = [np.array([0, 1, 0, 0]), np.array([2, 0, 1, 2])]
    whole, joint = joint_of(spread(small, merging)), joint_of(small)
    for one in range(4):
        for two in range(4):
            alike = np.bincount(merging[0])[merging[0][one]] * np.bincount(merging[1])[merging[1][two]]
            assert whole[one, two] == pytest.approx(joint[merging[0][one], merging[1][two]] / alike, abs=1e-6)


def test_progress_goes_from_nothing_to_the_fit() -> None:
    told: list[tuple[str, float, int]] = []
    with heard_by(lambda *step: told.append(step)):
        book = booked(Fraction(1, 2))
        mst.run(book, book.workload, MstStrategy())
    assert told[0] == ("measuring single columns", 0, 7)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][0].startswith("fitting, loss ")
    assert domain_with(SIZES).sizes == SIZES

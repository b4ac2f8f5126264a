"""Selection by error: its exact law, its numbering, its sensitivity, and audits that broken variants fail."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from confide.mechanism import TestRandomness
from confide.mechanism.selection.exponential import Exponential
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.selection import DENSE, LargestError, Scores, TopErrors, _histogram, selection_epsilon
from tests.conformance.audit import audit

Integers = NDArray[np.int64]
NONE = np.zeros(0, dtype=np.int64)


def in_runs(values: list[int], length: int = 3) -> Scores:
    def scores() -> Iterator[tuple[int, Integers]]:
        for start in range(0, len(values), length):
            yield start, np.array(values[start : start + length], dtype=np.int64)

    return scores


@pytest.mark.parametrize("picks", [1, 3, 16])
def test_the_picks_of_one_selection_cost_no_more_than_is_paid(picks: int) -> None:
    assert selection_epsilon(PureDP(Fraction(1, 3)), picks) * picks == Fraction(1, 3)
    rho = Fraction(1, 700)
    epsilon = selection_epsilon(ZCDP(rho), picks)
    assert picks * epsilon**2 / 8 <= rho
    assert picks * (epsilon + Fraction(1, 10**29)) ** 2 / 8 > rho


def test_top_errors_have_the_law_of_peeling() -> None:
    """Against the product of exponential mechanisms, by chi-square at 1e-6."""
    scores, count = [5, 2, 2, 9], 2
    rate = 0.5 / 2
    weights = np.exp(rate * np.array(scores))
    law = {}
    for first, second in permutations(range(4), count):
        law[first, second] = weights[first] / weights.sum() * weights[second] / (weights.sum() - weights[first])
    mechanism, randomness = TopErrors(Fraction(1, 2), 1), TestRandomness(5)
    seen = dict.fromkeys(law, 0)
    runs = 3_000
    for _ in range(runs):
        # In the order of the draws only up to the score, so pairs are compared as sets.
        chosen = mechanism.choose(in_runs(scores), NONE, count, randomness)
        seen[int(chosen[0]), int(chosen[1])] += 1
    pairs = sorted({tuple(sorted(pair)) for pair in law})
    observed = [seen[pair] + seen[pair[::-1]] for pair in pairs]  # type: ignore[index]
    expected = [runs * (law[pair] + law[pair[::-1]]) for pair in pairs]  # type: ignore[index]
    assert chisquare(observed, expected).pvalue > 1e-6


def keeps_numbers(choose: Callable[[Scores, Integers, int], Integers]) -> bool:
    """At a huge ε the choice is the largest errors that were not taken, under their own numbers, round after round."""
    values = [10, 50, 50, 20, 40, 5, 50, 30]
    taken = NONE
    rounds = [{1, 2, 6}, {4, 7, 3}, {0, 5}]
    for expected in rounds:
        chosen = choose(in_runs(values), taken, 3)
        if set(chosen.tolist()) != expected:
            return False
        taken = np.concatenate([taken, chosen])
    return True


def test_chosen_queries_keep_their_numbers_in_later_rounds() -> None:
    mechanism, randomness = TopErrors(Fraction(1000), 1), TestRandomness(1)
    assert keeps_numbers(lambda scores, taken, count: mechanism.choose(scores, taken, count, randomness))


def test_numbers_in_a_shortened_array_are_noticed() -> None:
    """The published mistake: what was chosen before is removed, and a place in the rest is taken for a number."""
    mechanism, randomness = TopErrors(Fraction(1000), 1), TestRandomness(1)

    def shortened(scores: Scores, taken: Integers, count: int) -> Integers:
        whole = np.concatenate([run for _, run in scores()])
        rest = np.delete(whole, taken).tolist()
        return mechanism.choose(in_runs(rest), NONE, count, randomness)

    assert not keeps_numbers(shortened)


def test_many_queries_of_one_score_are_chosen_evenly() -> None:
    values = [0] * 40 + [3] * 20
    mechanism, randomness = TopErrors(Fraction(8), 1), TestRandomness(2)
    seen = np.zeros(60)
    for _ in range(400):
        chosen = mechanism.choose(in_runs(values, 7), np.array([45]), 5, randomness)
        assert len(set(chosen.tolist())) == 5
        seen[chosen] += 1
    assert seen[45] == 0
    high = np.delete(seen[40:], 5)
    assert chisquare(high).pvalue > 1e-6


def test_no_more_is_chosen_than_there_is() -> None:
    chosen = TopErrors(Fraction(1), 1).choose(in_runs([4, 4]), np.array([0]), 5, TestRandomness(1))
    assert chosen.tolist() == [1]


# --- privacy ----------------------------------------------------------------------------------------------------------

SCORES = [6, 4, 5, 0, 1]
NEIGHBOUR = [5, 5, 6, 1, 0]
"""Every score moves by at most one, in both directions: the worst that one row can do."""


def first_choices(epsilon: Fraction, sensitivity: int, scores: list[int], runs: int, seed: int) -> Integers:
    mechanism = Exponential(epsilon, 2 * sensitivity)
    values = -np.array(scores, dtype=np.int64)
    chosen, _ = mechanism.select(values, np.ones(len(scores), dtype=np.int64), TestRandomness(seed), runs)
    return chosen[:, None]


def test_the_largest_error_is_chosen_by_the_law_that_was_audited() -> None:
    mechanism = LargestError(Fraction(2), 1)
    randomness = TestRandomness(3)
    seen = np.bincount([mechanism.choose(np.array(SCORES), randomness) for _ in range(4_000)], minlength=5)
    weights = np.exp(np.array(SCORES, dtype=float))
    assert chisquare(seen, 4_000 * weights / weights.sum()).pvalue > 1e-6


def test_selection_on_neighbours_stays_within_its_loss() -> None:
    one, two = (first_choices(Fraction(1), 1, s, 200_000, i) for i, s in enumerate((SCORES, NEIGHBOUR)))
    assert not audit(one, two, PureDP(Fraction(1))).violated


def test_a_selection_that_forgets_the_two_is_caught() -> None:
    """Exponents −score at rate ε/Δ instead of ε/2Δ: the mistake that halves the noise."""
    one, two = (first_choices(Fraction(2), 1, s, 200_000, i) for i, s in enumerate((SCORES, NEIGHBOUR)))
    assert audit(one, two, PureDP(Fraction(1))).violated


@pytest.mark.audit
def test_top_errors_on_neighbours_stay_within_their_loss() -> None:
    runs, epsilon = 60_000, Fraction(1)
    sides = []
    for seed, scores in enumerate((SCORES, NEIGHBOUR)):
        randomness = TestRandomness(10 + seed)
        mechanism = TopErrors(epsilon, 1)
        sides.append(np.array([np.sort(mechanism.choose(in_runs(scores), NONE, 2, randomness)) for _ in range(runs)]))
    assert not audit(sides[0], sides[1], PureDP(2 * epsilon)).violated
    assert not audit(sides[0], sides[1], ZCDP(2 * epsilon**2 / 8)).violated
    assert audit(sides[0], sides[1], PureDP(Fraction(1, 4))).violated


def test_scores_change_by_no_more_than_a_units_rows() -> None:
    """Brute force: every table of two rows over four cells, every row added, any model."""
    generator = np.random.default_rng(1)
    for counts in np.ndindex(3, 3, 3, 3):
        for cell in range(4):
            model = generator.integers(0, 4, 4)
            before = np.abs(np.array(counts) - model)
            after = np.abs(np.array(counts) + (np.arange(4) == cell) - model)
            assert np.abs(before - after).max() <= 1
            assert abs(int(before.max()) - int(after.max())) <= 1
    assert math.isfinite(float(before.max()))


def test_scores_of_any_size_are_counted_and_found() -> None:
    """As many as there are, not as many as they are large."""
    values = [2**61, 3, 2**61, 2**40, 3, DENSE, DENSE - 1, 2**61 - 1]
    found, sizes = _histogram(in_runs(values), np.array([1]))
    assert dict(zip(found.tolist(), sizes.tolist(), strict=True)) == {
        3: 1, DENSE - 1: 1, DENSE: 1, 2**40: 1, 2**61 - 1: 1, 2**61: 2,
    }  # fmt: skip
    chosen = TopErrors(Fraction(10), 1).choose(in_runs(values), NONE, 3, TestRandomness(1))
    assert sorted(chosen.tolist()) == [0, 2, 7]
    every = TopErrors(Fraction(1, 10**12), 1).choose(in_runs(values), NONE, 20, TestRandomness(1))
    assert sorted(every.tolist()) == list(range(8))

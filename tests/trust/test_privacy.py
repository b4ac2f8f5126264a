"""What every decider costs: exact probabilities on all small neighbours, then audits by sampling, which mutants fail.

A false alarm of an audit has probability 10⁻⁶. The neighbours that are audited are those with the largest exact ratio.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import log
from typing import Any

import numpy as np
import pytest

from confide.mechanism import DiscreteLaplace, KernelRandomness, Randomness, TestRandomness, draw, laplace
from confide.privacy.loss import PureDP
from confide.trust.decider import Decider
from confide.trust.median import Histogram, Selected
from confide.trust.optimal import Optimal
from confide.trust.plug_in import PlugInMean
from confide.trust.race_decider import RESOLUTION, Raced
from confide.trust.sparse_decider import SparseDecider
from confide.trust.target import Facts, Steps, Target
from tests.conformance.audit import audit
from tests.mechanism.small_data import neighbours
from tests.trust.small_questions import FACTS, VALUES, all_deciders, chooser, read

ORDINARY, LONG = 60_000, 1_000_000
EPSILONS = (Fraction(1, 2), Fraction(2))
APPROXIMATE = {"svt"}  # its probabilities are averages over a grid
PAIRS = tuple(neighbours(VALUES, 4, "add-remove"))


def _log_ratio(one: float, two: float) -> float:
    return abs(log(max(one, 1e-300)) - log(max(two, 1e-300)))


def _ratios(decider: Decider, kind: Any) -> list[tuple[float, Any]]:
    """The exact log-ratio of every pair; each data set stands in many of them."""

    @cache
    def chance(rows: tuple[int, ...]) -> float:
        return decider.chance(read(kind, decider.reading, rows))

    return [(_ratio(chance(one), chance(two)), (one, two)) for one, two in PAIRS]


def _ratio(first: float, second: float) -> float:
    return max(_log_ratio(first, second), _log_ratio(1 - first, 1 - second)) if min(first, second) > 0 else 0.0


@pytest.mark.parametrize(("name", "decider"), [*all_deciders()])
def test_no_neighbours_differ_by_more_than_the_loss(name: str, decider: str) -> None:
    for epsilon in EPSILONS:
        for tau in (Fraction(2, 3), Fraction(5, 2)):
            made = chooser(name, tau).make(decider, epsilon)
            assert made.loss == PureDP(epsilon)
            worst, _ = max(_ratios(made, FACTS[name].kind))
            assert worst <= float(epsilon) * (1.02 if decider in APPROXIMATE else 1) + 1e-6
            if decider == "optimal":
                assert worst >= float(epsilon) * 0.999


@pytest.mark.parametrize("rows", [1, 3])
def test_the_parts_of_a_decider_cost_epsilon_together(rows: int) -> None:
    """For units of several rows, and for bits that no small neighbours drive to their bound."""
    target, epsilon = Target(Fraction(20), Fraction(5)), Fraction(2)
    facts = Facts("sum", 40 * rows, rows, low=0, high=40)
    raced, sparse = Raced.make(facts, target, epsilon), SparseDecider.make(facts, target, epsilon)
    mean = PlugInMean.make(replace(facts, kind="mean"), target, epsilon)
    quantile = replace(facts, kind="quantile", q=Fraction(1, 4))
    histogram = Histogram.make(quantile, target, epsilon)
    sums, counts = mean.laws
    assert isinstance(sums, DiscreteLaplace)
    assert isinstance(counts, DiscreteLaplace)
    assert isinstance(histogram.law, DiscreteLaplace)
    spent = {
        "r2t": len(raced.edges) * rows * RESOLUTION / raced.law.scale,
        "svt": 3 * rows / sparse.bound_law.scale + 2 * rows * RESOLUTION / sparse.law.scale,
        "mean": 20 * rows / sums.scale + rows / counts.scale,
        "histogram": 2 * rows / histogram.law.scale,
        "exponential": 2 * 4 * rows * Selected.published(quantile, target, epsilon).mechanism.rate,
        "tie-aware": 2 * 3 * rows * Selected.tie_aware(quantile, target, epsilon).mechanism.rate,
    }
    for name, loss in spent.items():
        assert epsilon * Fraction(999, 1000) < loss <= epsilon, name


@cache
def _worst_pair(name: str, decider: str) -> tuple[Any, Any]:
    made = chooser(name, Fraction(5, 2)).make(decider, Fraction(1))
    return max(_ratios(made, FACTS[name].kind))[1]


def _bits(decider: Decider, kind: Any, rows: Any, runs: int, randomness: Randomness) -> Any:
    return decider.decide(read(kind, decider.reading, rows), randomness, runs).astype(np.int64)[:, np.newaxis]


@pytest.mark.parametrize(("name", "decider"), [*all_deciders()])
def test_an_audit_finds_no_more_than_the_loss(name: str, decider: str) -> None:
    made = chooser(name, Fraction(5, 2)).make(decider, Fraction(1))
    one, two = _worst_pair(name, decider)
    runs = ORDINARY // 10 if decider in ("svt", "r2t") else ORDINARY
    samples = [_bits(made, FACTS[name].kind, rows, runs, TestRandomness(n)) for n, rows in enumerate((one, two))]
    assert not audit(*samples, made.loss).violated


@pytest.mark.audit
@pytest.mark.parametrize(("name", "decider"), [*all_deciders()])
def test_audit_a_million_runs_a_side(name: str, decider: str) -> None:
    made = chooser(name, Fraction(5, 2)).make(decider, Fraction(1))
    kind = FACTS[name].kind
    samples = [_bits(made, kind, rows, LONG, KernelRandomness()) for rows in _worst_pair(name, decider)]
    assert audit(*samples, made.loss).epsilon <= 1


# --- mutants ----------------------------------------------------------------------------------------------------------

ONE = PureDP(Fraction(1))
Runs = Callable[[Any, Randomness, int], Any]


def _column(bits: Any) -> Any:
    return np.asarray(bits).astype(np.int64).reshape(len(bits), -1)


def _without_noise(rows: Any, randomness: Randomness, runs: int) -> Any:
    """The margin itself against the threshold."""
    made = chooser("count", 1).make("optimal", Fraction(1))
    assert isinstance(made, Optimal)
    return np.full(runs, made.margin.of(len(rows)) >= 1)


def _forgotten_split(rows: Any, randomness: Randomness, runs: int) -> Any:
    """A mean from a sum and a count, each at all of ε."""
    made = PlugInMean.make(FACTS["mean"], Target(Fraction(0), Fraction(1)), Fraction(2))
    return made.decide(read("mean", made.reading, rows), randomness, runs)


def _forgotten_list(rows: Any, randomness: Randomness, runs: int) -> Any:
    """Two queries of one call, each at all of ε."""
    made = chooser("count", 1).make("optimal", Fraction(1))
    return np.stack([made.decide(len(rows), randomness, runs) for _ in range(2)], axis=1)


def _reused_noise(rows: Any, randomness: Randomness, runs: int) -> Any:
    """Two groups, one of which a unit is in, with one noise for both."""
    made = chooser("count", 1).make("optimal", Fraction(1))
    assert isinstance(made, Optimal)
    noise = draw(laplace(1, Fraction(1)).law, runs, randomness)
    return np.stack([made.margin.of(count) + noise >= 1 for count in (4, len(rows))], axis=1)


def _sensitivity_of_a_row(rows: Any, randomness: Randomness, runs: int) -> Any:
    """A sum decided as if every value were at most 1."""
    return chooser("sum", 1, facts=replace(FACTS["sum"], whole=1)).make("optimal", Fraction(1)).decide(
        sum(rows), randomness, runs
    )  # fmt: skip


def _half_of_a_half(rows: Any, randomness: Randomness, runs: int) -> Any:
    """A tie-aware median with half of its sensitivity."""
    made = Selected.tie_aware(FACTS["median"], Target(Fraction(0), Fraction(2)), Fraction(2))
    return made.decide(read("quantile", made.reading, rows), randomness, runs)


def _blocks_over_groups(rows: Any, randomness: Randomness, runs: int) -> Any:
    """A unit with a row in each of three groups, decided in steps of three rows at all of ε in each."""
    facts = Facts("count", 3)
    made = Optimal.make(facts, chooser("count", 3).target, Fraction(1))
    return np.stack([made.decide(len(rows), randomness, runs) for _ in range(3)], axis=1)


MUTANTS: dict[str, tuple[Runs, Any, Any]] = {
    "the noise of the threshold is dropped": (_without_noise, (0,) * 5, (0,) * 6),
    "the split of ε is forgotten": (_forgotten_split, (), (0,)),
    "the split over queries is forgotten": (_forgotten_list, (0,) * 5, (0,) * 6),
    "noise is reused": (_reused_noise, (0,) * 4, (0,) * 3),
    "the sensitivity of a sum is that of a count": (_sensitivity_of_a_row, (4, 4), (4, 4, 4)),
    "the sensitivity of a rank is halved": (_half_of_a_half, (2, 2, 4, 4), (0, 2, 2, 4, 4)),
    "groups share no price": (_blocks_over_groups, (0,) * 2, (0,) * 3),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: str) -> None:
    run, one, two = MUTANTS[mutant]
    samples = [_column(run(rows, TestRandomness(n), 4 * ORDINARY)) for n, rows in enumerate((one, two))]
    assert audit(*samples, ONE).violated


def test_groups_that_pay_row_by_row_survive_the_same_audit() -> None:
    """The control of the last mutant: steps of one row at a third of ε in each of three groups."""
    made = Optimal.make(Facts("count", 3, single=False), chooser("count", 3).target, Fraction(1))
    assert made.margin.epsilon == Fraction(1, 3)
    samples = [
        _column(np.stack([made.decide(count, TestRandomness(7 * n + g), ORDINARY) for g in range(3)], axis=1))
        for n, count in enumerate((2, 3))
    ]
    assert not audit(*samples, ONE).violated


def test_steps_round_up_so_that_edges_stay_edges() -> None:
    steps = Steps(4, Fraction(1))
    assert [steps.of(margin) for margin in (-4, -3, 0, 1, 4, 5)] == [-1, 0, 0, 1, 1, 2]

"""What every mechanism must do: `check_mechanism` runs it all and raises an AssertionError that says what is wrong."""

import math
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext
from typing import Protocol

import numpy as np
from scipy.stats import binom, chi2

from confide.mechanism import DiscreteGaussian, DiscreteLaplace, Measurement, NoNoise, Randomness, TestRandomness
from confide.mechanism.noise.additive import AnyIntegers
from confide.privacy.loss import ZCDP, ApproxDP, PrivacyLoss, PureDP
from tests.conformance.audit import ORDERS, audit
from tests.conformance.exact_law import probability, tails, weight

CONFIDENCES = (0.5, 0.8, 0.95, 0.99)
Exact = Sequence[int]


class Mechanism(Protocol):
    """States what it costs before it runs; turns exact integers into a measurement."""

    @property
    def name(self) -> str: ...

    @property
    def loss(self) -> PrivacyLoss: ...

    def measure(self, exact: AnyIntegers, randomness: Randomness) -> Measurement: ...


def check_mechanism(
    mechanism: Mechanism,
    neighbours: Sequence[tuple[Exact, Exact]],
    *,
    samples: int = 200_000,
    source: Callable[[int], Randomness] = TestRandomness,
    alarm: float = 1e-6,
) -> None:
    """Loss stated first, integers out, fresh noise from the given source only, the stated law, coverage, and the audit.

    `neighbours` are pairs of exact vectors that one unit can tell apart, the worst ones included. Each statistical part
    raises a false alarm with probability at most `alarm`; with a seeded source it passes or fails for good.
    """
    check_statement(mechanism)
    check_integers_and_noise(mechanism, neighbours[0][0])
    for place, (one, other) in enumerate(neighbours):
        first, second = (
            mechanism.measure(np.tile(np.array(exact, dtype=np.int64), (samples, 1)), source(2 * place + side))
            for side, exact in enumerate((one, other))
        )
        for exact, measurement in ((one, first), (other, second)):
            noise = measurement.values - np.array(exact, dtype=np.int64)
            for column in range(len(exact)):
                check_law(noise[:, column], measurement.law, alarm)
            check_coverage(measurement, exact, alarm)
        finding = audit(first.values, second.values, mechanism.loss, alarm)
        assert not finding.violated, f"{mechanism.name} loses more than {mechanism.loss}: {finding}"


def check_statement(mechanism: Mechanism) -> None:
    """The loss is there before anything runs, is a loss, and cannot be changed."""
    loss = mechanism.loss
    assert isinstance(loss, PureDP | ZCDP | ApproxDP), f"the loss must be stated as data, not {loss!r}"
    assert mechanism.name
    try:
        mechanism.loss = loss  # type: ignore[misc]
    except (FrozenInstanceError, AttributeError):
        pass
    else:
        raise AssertionError("the loss can be overwritten")
    mechanism.measure(np.array([0]), TestRandomness(0))
    assert mechanism.loss == loss, "the loss changed when it ran"


def check_integers_and_noise(mechanism: Mechanism, exact: Exact) -> None:
    """Integers come out; the same bits give the same noise, other bits other noise; nothing is reused between calls."""
    numbers = np.resize(np.array(exact, dtype=np.int64), 256)
    source = TestRandomness(100)
    first, second = mechanism.measure(numbers, source), mechanism.measure(numbers, source)
    kind = first.values.dtype
    assert kind == np.int64 or all(type(value) is int for value in first.values.flat), f"integers expected, not {kind}"
    again = mechanism.measure(numbers, TestRandomness(100)).values
    assert (first.values == again).all(), "noise comes from elsewhere than the source that was given"
    if first.law.variance > 0.25:
        assert (first.values != second.values).any(), "two calls shared their noise"
        noise = first.values - numbers
        assert len(set(noise.tolist())) > 1, "all numbers of a call shared their noise"


def check_law(noise: np.ndarray, law: DiscreteLaplace | DiscreteGaussian | NoNoise, alarm: float) -> None:
    """The noise follows the law that the measurement states: chi-square over single values, the rare ones pooled."""
    if isinstance(law, NoNoise):
        assert not noise.any(), "noise in a number that is stated to be exact"
        return
    size = len(noise)
    reach = next((place for place, tail in enumerate(tails(law)) if tail * size < 20), 0)
    inner = range(-reach, reach + 1)
    expected = np.array([float(probability(law, value)) for value in inner]) * size
    observed = np.bincount(np.clip(noise, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    outside = float(tails(law)[reach]) * size
    cells = np.concatenate([[2 * outside], expected])
    counts = np.concatenate([[observed[0] + observed[-1]], observed[1:-1]])
    large = cells > 5
    pooled, found = np.append(cells[large], cells[~large].sum()), np.append(counts[large], counts[~large].sum())
    if pooled[-1] < 5:
        assert binom.sf(found[-1] - 1, size, pooled[-1] / size) > alarm / 2, f"rare noise too often for {law}"
        pooled, found = pooled[:-1], found[:-1]
    statistic = ((found - pooled) ** 2 / pooled).sum()
    assert chi2.sf(statistic, max(len(pooled) - 1, 1)) > alarm / 2, f"the noise does not follow {law}"


def check_coverage(measurement: object, exact: Exact, alarm: float) -> None:
    """Intervals cover at least as often as they say, by an exact binomial test in every column."""
    truth = np.array(exact, dtype=np.int64)
    for confidence in CONFIDENCES:
        intervals = measurement.intervals(confidence)  # type: ignore[attr-defined]
        assert intervals.assumes in ("always", "density")
        inside = intervals.contains(truth)
        for column in range(len(exact)):
            misses = int((~inside[:, column]).sum())
            chance = binom.sf(misses - 1, len(inside), 1 - confidence)
            assert chance > alarm / len(CONFIDENCES), f"{confidence} intervals miss {misses} times in {len(inside)}"


def check_loss_exactly(law: DiscreteLaplace | DiscreteGaussian, shifts: Exact, loss: PureDP | ZCDP) -> None:
    """The loss of adding this noise, over all outcomes, from big-number arithmetic alone: no samples, no false alarm.

    `shifts` says how far a neighbour moves each number. For pure losses the largest log-ratio of probabilities, for
    concentrated ones the Rényi divergence at several orders; they add up over independent numbers.
    """
    if isinstance(loss, PureDP):
        with localcontext(prec=50):
            worst = sum(
                max(
                    (weight(law, value) / weight(law, value + shift)).ln() for value in range(-2 * shift - 3, shift + 4)
                )
                for shift in map(abs, shifts)
                if shift
            )
            limit = Decimal(loss.epsilon.numerator) / loss.epsilon.denominator
            assert worst <= limit * (1 + Decimal(10) ** -40), f"log-ratio {worst:.6} with {law}, stated {limit:.6}"
        return
    assert isinstance(law, DiscreteGaussian), "a concentrated loss is stated for Gaussian noise only"
    with localcontext(prec=50):
        rho = Decimal(loss.rho.numerator) / loss.rho.denominator
        for order in map(Decimal, map(str, ORDERS)):
            divergence = sum(_renyi(law, abs(shift), order) for shift in shifts if shift)
            message = f"Rényi divergence {divergence:.6} at order {order} with {law}, stated {order * rho:.6}"
            assert divergence <= order * rho * (1 + Decimal(10) ** -30), message


def _renyi(law: DiscreteGaussian, shift: int, order: Decimal) -> Decimal:
    """The Rényi divergence of the law from itself shifted, summed over all integers that matter."""
    rate = Decimal(law.variance.denominator) / (2 * law.variance.numerator)
    centre, reach = int((1 - order) * shift), math.ceil(16 * float(law.variance) ** 0.5) + 3
    values = range(centre - reach, centre + reach + 1)
    total = sum((-rate * value * value).exp() for value in range(-reach, reach + 1))
    mixed = sum((-rate * (order * value * value + (1 - order) * (value - shift) ** 2)).exp() for value in values)
    return (mixed / total).ln() / (order - 1)

"""The mechanisms against the conformance suite, and the suite against mechanisms that are known to be broken."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from confide.mechanism import (
    DiscreteGaussian,
    DiscreteLaplace,
    KernelRandomness,
    Measurement,
    TestRandomness,
    exact,
    gaussian,
    gaussian_key_threshold,
    key_threshold,
    laplace,
)
from confide.mechanism.noise.handful import _laplace as handful_laplace
from confide.mechanism.noise.sampler import FEW
from confide.privacy.loss import ZCDP, ApproxDP, PureDP
from tests.conformance.audit import audit, clopper_pearson, excess
from tests.conformance.mechanism import Mechanism, check_loss_exactly, check_mechanism
from tests.conformance.mutants import ONE_NUMBER, TWO_NUMBERS

ONE = [((0,), (1,)), ((7,), (6,))]
TWO = [((0, 0), (1, 1)), ((3, 9), (4, 8))]

RIGHT = [
    (laplace(1, Fraction(1)), ONE),
    (laplace(1, Fraction(1, 10)), ONE),
    (laplace(1, Fraction(7, 2)), ONE),
    (laplace(2, Fraction(1)), [*TWO, ((5, 5), (7, 5))]),
    (laplace(100, Fraction(1)), [((0,), (100,))]),
    (gaussian(1, Fraction(1, 2)), ONE),
    (gaussian(1, Fraction(1, 50)), ONE),
    (gaussian(2, Fraction(1, 2)), TWO),
    (gaussian(10**4, Fraction(1, 2)), [((0,), (100,))]),
    (gaussian(Fraction(1, 3), Fraction(2)), [((0,), (0,))]),
    (exact(), [((3, 4), (3, 4))]),
]


@pytest.mark.parametrize(("mechanism", "neighbours"), RIGHT, ids=str)
def test_mechanisms_conform(mechanism, neighbours):
    check_mechanism(mechanism, neighbours)


@dataclass(frozen=True)
class Handfuls:
    """A mechanism that is asked for a few runs at a time, as a question asks it: few numbers have their own sampler."""

    mechanism: Mechanism

    @property
    def name(self):
        return self.mechanism.name

    @property
    def loss(self):
        return self.mechanism.loss

    def measure(self, exact, randomness):
        parts = np.array_split(exact, -(-exact.size // FEW))
        measured = [self.mechanism.measure(part, randomness) for part in parts]
        return Measurement(np.concatenate([part.values for part in measured]), measured[0].law)


@pytest.mark.parametrize(("mechanism", "neighbours"), [RIGHT[0], RIGHT[4], RIGHT[5], RIGHT[8]], ids=str)
def test_mechanisms_conform_by_handfuls(mechanism, neighbours):
    check_mechanism(Handfuls(mechanism), neighbours[:1], samples=100_000)


def _zero_twice(magnitudes, randomness):
    negative = np.frombuffer(randomness.bytes(len(magnitudes)), dtype=np.uint8) % 2 == 1
    return np.where(negative, -magnitudes, magnitudes)


@pytest.mark.parametrize(
    ("part", "broken", "mechanism"),
    [
        ("signed", _zero_twice, laplace(1, Fraction(1))),
        ("signed", lambda magnitudes, _: magnitudes, laplace(1, Fraction(1))),
        ("LN_2", 0.6, laplace(1, Fraction(1, 10))),
        ("_kept", lambda rates, *_: np.ones(len(rates), dtype=bool), gaussian(1, Fraction(1, 50))),
        ("_laplace", lambda scale, *rest: handful_laplace(2 * scale, *rest), gaussian(1, Fraction(1, 50))),
    ],
    ids=["zero twice", "one sign", "a wrong logarithm", "nothing rejected", "a proposal that the rate is not for"],
)
def test_broken_handfuls_are_caught(part, broken, mechanism, monkeypatch):
    monkeypatch.setattr(f"confide.mechanism.noise.handful.{part}", broken)
    with pytest.raises(AssertionError, match="does not follow"):
        check_mechanism(Handfuls(mechanism), ONE[:1], samples=100_000)


@pytest.mark.parametrize(("mutant", "reason"), ONE_NUMBER, ids=lambda value: getattr(value, "name", ""))
def test_broken_mechanisms_of_one_number_are_caught(mutant, reason):
    with pytest.raises(AssertionError, match=reason):
        check_mechanism(mutant, ONE)


@pytest.mark.parametrize(("mutant", "reason"), TWO_NUMBERS, ids=lambda value: getattr(value, "name", ""))
def test_broken_mechanisms_of_two_numbers_are_caught(mutant, reason):
    with pytest.raises(AssertionError, match=reason):
        check_mechanism(mutant, TWO)


LEAKING = ["halved", "tenth", "no noise", "truncated", "non-negative", "even", "half the sensitivity", "for a row"]
LEAKS = [
    (mutant, pairs)
    for mutants, pairs in ((ONE_NUMBER, ONE), (TWO_NUMBERS, TWO))
    for mutant, _ in mutants
    if any(part in mutant.name for part in LEAKING)
]


@pytest.mark.parametrize(("mutant", "pairs"), LEAKS, ids=lambda value: getattr(value, "name", ""))
def test_the_audit_alone_catches_those_that_leak(mutant, pairs):
    """Without help from the law, the coverage or the plumbing: from samples, the loss is seen to be too large."""
    caught = []
    for place, pair in enumerate(pairs):
        first, second = (
            mutant.measure(np.tile(np.array(side), (200_000, 1)), TestRandomness(2 * place + number)).values
            for number, side in enumerate(pair)
        )
        caught.append(audit(first, second, mutant.loss).violated)
    assert any(caught)


def test_the_audit_comes_close_to_the_stated_loss():
    """A bound far below the truth would catch nothing: on the right mechanism it reaches nine tenths of ε."""
    mechanism = laplace(1, Fraction(1))
    first, second = (mechanism.measure(np.full((200_000, 1), side), TestRandomness(side)).values for side in (0, 1))
    finding = audit(first, second, mechanism.loss)
    assert 0.9 < finding.epsilon <= 1


@pytest.mark.parametrize(
    ("keys", "epsilon", "delta"), [(1, Fraction(1), Fraction(1, 100)), (2, Fraction(1, 2), Fraction(1, 20))]
)
def test_key_thresholds_conform(keys, epsilon, delta):
    mechanism = key_threshold(keys, epsilon, delta)
    lower = type(mechanism)(mechanism.law, mechanism.threshold - 2, mechanism.loss)
    alone, shared = ((1,) * keys, (0,) * keys), ((2,) * keys, (1,) * keys)
    many = ((mechanism.threshold,) * keys, (mechanism.threshold - 1,) * keys)
    for pair in (alone, shared, many):
        assert not audit(*_shown(mechanism, pair), mechanism.loss).violated
    assert audit(*_shown(lower, alone), mechanism.loss).violated
    assert audit(*_shown(mechanism, many), ApproxDP(epsilon / 2, delta / 8)).violated


@pytest.mark.parametrize(
    ("keys", "rho", "delta"), [(1, Fraction(1, 2), Fraction(1, 100)), (2, Fraction(1, 8), Fraction(1, 20))]
)
def test_gaussian_key_thresholds_conform(keys, rho, delta):
    mechanism = gaussian_key_threshold(keys, rho, delta)
    lower = type(mechanism)(mechanism.law, mechanism.threshold - 2, mechanism.loss)
    alone, shared = ((1,) * keys, (0,) * keys), ((2,) * keys, (1,) * keys)
    many = ((mechanism.threshold,) * keys, (mechanism.threshold - 1,) * keys)
    for pair in (alone, shared, many):
        assert not audit(*_shown(mechanism, pair), mechanism.loss).violated
    # A key of one unit can only be seen where that unit is: its chance is the whole of δ.
    assert audit(*_shown(lower, alone), ApproxDP(Fraction(5), delta)).violated
    assert audit(*_shown(mechanism, many), ZCDP(rho / 16, delta / 8)).violated


def _shown(mechanism, pair):
    """A released key shows its noised number, a hidden one nothing, written as zero; absent keys are never shown."""
    for number, side in enumerate(pair):
        units = np.tile(np.array(side), 200_000)
        released = mechanism.release(units, TestRandomness(number))
        runs = np.zeros(units.shape, dtype=np.int64)
        runs[released.places] = released.values
        runs[units == 0] = 0
        yield runs.reshape(200_000, len(side))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10, 3), Fraction(8)])
@pytest.mark.parametrize("shifts", [(1,), (3,), (1, 1), (2, -1)])
def test_losses_are_exactly_what_is_stated(shifts, epsilon):
    check_loss_exactly(laplace(sum(map(abs, shifts)), epsilon).law, shifts, PureDP(epsilon))
    check_loss_exactly(gaussian(sum(shift**2 for shift in shifts), epsilon).law, shifts, ZCDP(epsilon))


def test_the_exact_check_can_fail():
    with pytest.raises(AssertionError, match="log-ratio"):
        check_loss_exactly(DiscreteLaplace(Fraction(999_999, 10**6)), (1,), PureDP(Fraction(1)))
    with pytest.raises(AssertionError, match="log-ratio"):
        check_loss_exactly(DiscreteGaussian(Fraction(1)), (1,), PureDP(Fraction(1)))
    with pytest.raises(AssertionError, match="Rényi"):
        check_loss_exactly(DiscreteGaussian(Fraction(99, 100)), (1,), ZCDP(Fraction(1, 2)))


def test_clopper_pearson_holds_its_level():
    """Exactly: the chance of a count whose bound is wrong, summed over all counts."""
    counts = np.arange(501)
    chances = binom.pmf(counts, 500, 0.03)
    bounds = [clopper_pearson(int(count), int(count), 500, 500, 0.1) for count in counts]
    assert chances[[low > 0.03 for low, _ in bounds]].sum() <= 0.05
    assert chances[[high < 0.03 for _, high in bounds]].sum() <= 0.05
    assert clopper_pearson(0, 500, 500, 500, 0.1) == (0, 1)


def test_excess_of_each_loss():
    assert excess(0.5, 0.1, PureDP(Fraction(1))) == pytest.approx(np.log(5) - 1)
    assert (
        excess(0.5, 0.1, ApproxDP(Fraction(1), Fraction(1, 4)))
        < 0
        < excess(0.6, 0.1, ApproxDP(Fraction(1), Fraction(1, 4)))
    )
    assert excess(0.1, 0.5, ZCDP(Fraction(1))) < 0
    assert excess(0.9, 0.1, ZCDP(Fraction(1, 2))) > 0
    assert excess(0.9, 0.1, ZCDP(Fraction(4))) < 0


@pytest.mark.audit
@pytest.mark.parametrize(("mechanism", "neighbours"), RIGHT, ids=str)
def test_audit_mechanisms_conform_on_a_million_runs_a_side(mechanism, neighbours):
    check_mechanism(mechanism, neighbours, samples=1_000_000, source=lambda _: KernelRandomness(), alarm=1e-7)
    check_mechanism(Handfuls(mechanism), neighbours, samples=1_000_000, source=lambda _: KernelRandomness(), alarm=1e-7)

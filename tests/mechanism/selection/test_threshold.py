import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import TestRandomness, key_threshold
from confide.privacy.loss import ApproxDP
from tests.conformance.exact_law import probability, tails

CASES = [
    (1, Fraction(1), Fraction(1, 10)),
    (1, Fraction(1, 2), Fraction(1, 1000)),
    (2, Fraction(1), Fraction(1, 20)),
    (2, Fraction(3), Fraction(1, 10**4)),
    (3, Fraction(3, 2), Fraction(1, 50)),
]
REACH = 60


def _outcomes(mechanism, units):
    """Probabilities of what one key shows: nothing, or a number from the threshold on (the last is all beyond)."""
    if units == 0:
        return np.array([1.0] + [0.0] * (REACH + 1))
    beyond = tails(mechanism.law)
    first = mechanism.threshold - units

    def at_least(value):  # P(X >= value)
        return float(beyond[value - 1]) if value > 0 else 1 - float(beyond[-value])

    shown = [float(probability(mechanism.law, first + step)) for step in range(REACH)]
    return np.array([1 - at_least(first), *shown, at_least(first + REACH)])


def _excess(one, other, factor):
    """The sum over outcomes of what P exceeds e^ε P′ by: the least δ for this pair."""
    return float(np.maximum(one - factor * other, 0).sum())


def _joint(mechanism, units):
    joint = np.array([1.0])
    for number in units:
        joint = np.multiply.outer(joint, _outcomes(mechanism, number)).ravel()
    return joint


@pytest.mark.parametrize(("keys", "epsilon", "delta"), CASES)
def test_the_whole_guarantee_by_enumeration(keys, epsilon, delta):
    """Every way in which a unit can join up to `keys` keys that have 0, 1, 2, τ - 1 or τ other units."""
    mechanism = key_threshold(keys, epsilon, delta)
    assert mechanism.loss == ApproxDP(epsilon, delta)
    worst = 0.0
    others = (
        sorted({0, 1, 2, mechanism.threshold - 1, mechanism.threshold}) if keys < 3 else [0, 1, mechanism.threshold]
    )
    for without in itertools.combinations_with_replacement(others, keys):
        with_unit = tuple(number + 1 for number in without)
        one, other = _joint(mechanism, with_unit), _joint(mechanism, without)
        factor = math.exp(epsilon)
        worst = max(worst, _excess(one, other, factor), _excess(other, one, factor))
    assert worst <= delta * (1 + 1e-9)
    assert worst > delta / 5 / math.exp(epsilon / keys)  # the threshold is no larger than it must be


@pytest.mark.parametrize(("keys", "epsilon", "delta"), CASES)
def test_the_threshold_is_the_smallest_that_hides_a_single_unit(keys, epsilon, delta):
    mechanism = key_threshold(keys, epsilon, delta)
    beyond = tails(mechanism.law)
    chance = 1 - (1 - float(delta)) ** (1 / keys)
    assert float(beyond[mechanism.threshold - 2]) <= chance
    if mechanism.threshold > 2:
        assert float(beyond[mechanism.threshold - 3]) > chance


def test_a_smaller_threshold_breaks_the_guarantee():
    keys, epsilon, delta = CASES[2]
    right = key_threshold(keys, epsilon, delta)
    wrong = type(right)(right.law, right.threshold - 1, right.loss)
    assert _excess(_joint(wrong, (1, 1)), _joint(wrong, (0, 0)), math.exp(epsilon)) > delta


def test_release_shows_what_reaches_the_threshold():
    mechanism = key_threshold(2, Fraction(1), Fraction(1, 10**6))
    units = np.array([1] * 2000 + [1000] * 50 + [mechanism.threshold] * 2000)
    released = mechanism.release(units, TestRandomness(1))
    assert (released.values >= mechanism.threshold).all()
    assert set(range(2000, 2050)) <= set(released.places.tolist())
    assert not set(range(2000)) & set(released.places.tolist())  # false alarm 1e-3 at most, and seeded
    shown = (released.places >= 2050).sum()
    assert 1000 < shown < 1400
    assert len(released.values) == len(released.places)


def test_a_key_of_one_unit_is_shown_at_most_as_often_as_delta_allows():
    keys, epsilon, delta = 1, Fraction(1), Fraction(1, 100)
    mechanism = key_threshold(keys, epsilon, delta)
    runs = 300_000
    shown = len(mechanism.release(np.ones(runs, dtype=np.int64), TestRandomness(2)).places)
    assert shown <= runs * float(delta) + 5 * math.sqrt(runs * float(delta))  # false alarm 6e-7
    assert shown >= runs * float(delta) / math.e * 0.9


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("units", [1, 2, 8, 9, 10, 11, 12, 14, 20, 100])
def test_intervals_cover_given_that_the_key_is_shown(units, confidence):
    mechanism = key_threshold(1, Fraction(1), Fraction(1, 10**4))
    released = mechanism.release(np.full(400_000, units), TestRandomness(units))
    intervals = released.intervals(confidence)
    count = len(intervals)
    covered = intervals.contains(np.full(count, units)).mean()
    assert covered >= confidence - 4 * math.sqrt(confidence * (1 - confidence) / count)  # false alarm 3e-5, seeded
    assert (intervals.low >= 1).all()


def test_intervals_of_large_keys_are_the_usual_ones():
    mechanism = key_threshold(1, Fraction(1), Fraction(1, 10**4))
    released = mechanism.release(np.full(100, 5000), TestRandomness(3))
    intervals = released.intervals(0.95)
    width = mechanism.law.half_width(0.95)
    assert (intervals.high - released.values == width).all()
    assert (released.values - intervals.low == width).all()


def test_nothing_in_nothing_out():
    released = key_threshold(1, Fraction(1), Fraction(1, 100)).release(np.array([], dtype=np.int64), TestRandomness(1))
    assert len(released.places) == 0
    assert len(released.intervals(0.9)) == 0


@pytest.mark.parametrize(
    ("keys", "epsilon", "delta"),
    [
        (0, Fraction(1), Fraction(1, 10)),
        (True, Fraction(1), Fraction(1, 10)),
        (1.5, Fraction(1), Fraction(1, 10)),
        (1, Fraction(0), Fraction(1, 10)),
        (1, Fraction(1), Fraction(0)),
        (1, Fraction(1), Fraction(1)),
        (1, Fraction(1), Fraction(-1, 2)),
        (1, Fraction(1), 0.1),
        (1, 1.0, Fraction(1, 10)),
    ],
)
def test_refuses_what_makes_no_sense(keys, epsilon, delta):
    with pytest.raises(ParameterError):
        key_threshold(keys, epsilon, delta)

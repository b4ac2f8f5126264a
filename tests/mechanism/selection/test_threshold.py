import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, TestRandomness, gaussian_key_threshold, key_threshold
from confide.mechanism.selection.threshold import shown_intervals
from confide.privacy.loss import ZCDP, ApproxDP
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


# --- Gaussian noise ---------------------------------------------------------------------------------------------------

NORMAL = [
    (1, Fraction(1, 2), Fraction(1, 10), 1),
    (1, Fraction(1, 8), Fraction(1, 10**4), 1),
    (2, Fraction(1, 2), Fraction(1, 20), 1),
    (3, Fraction(2), Fraction(1, 10**3), 2),
    (1, Fraction(1, 8), Fraction(1, 10**4), 2),
]


def _normal_outcomes(mechanism, units):
    """As `_outcomes`, from the weights of the law: nothing, or a number from the threshold on."""
    variance, first = float(mechanism.law.variance), mechanism.threshold - units
    reach = math.ceil(30 * math.sqrt(variance)) + mechanism.threshold + REACH
    noise = np.arange(-reach, reach + 1)
    chances = np.exp(-(noise**2) / (2 * variance))
    chances /= chances.sum()
    return np.array([chances[noise < first].sum(), *chances[(noise >= first) & (noise < first + REACH)]])


def _renyi(one, other, order):
    seen = (one > 1e-250) & (other > 1e-250)
    return math.log(float(np.exp(order * np.log(one[seen]) + (1 - order) * np.log(other[seen])).sum())) / (order - 1)


@pytest.mark.parametrize(("keys", "rho", "delta", "units"), NORMAL)
def test_the_whole_gaussian_guarantee_by_enumeration(keys, rho, delta, units):
    """Definition 8.1, for the worst there is: keys that a unit alone holds, and keys of both data sets."""
    mechanism = gaussian_key_threshold(keys, rho, delta, units)
    assert mechanism.loss == ZCDP(rho, delta)
    hidden = _normal_outcomes(mechanism, 1)[0]
    assert hidden**keys >= (1 - float(delta)) * (1 - 1e-12)  # the event: none of the keys of one unit is shown
    numbers = [n for n in (1, 2, mechanism.threshold - 1, mechanism.threshold, mechanism.threshold + 3) if n > 0]
    worst = 0.0
    for order in (1.01, 1.5, 2, 4, 10):
        each = max(
            _renyi(*pair, order)
            for n in numbers
            for pair in itertools.permutations((_normal_outcomes(mechanism, n), _normal_outcomes(mechanism, n + 1)))
        )
        # Keys are noised one by one, so divergences add up: over `keys` of them, or twice as many.
        assert units * keys * each <= float(rho) * order * (1 + 1e-9)
        worst = max(worst, units * keys * each / (float(rho) * order))
    assert worst > 0.8  # and the noise is no larger than it must be


@pytest.mark.parametrize(("keys", "rho", "delta", "units"), NORMAL)
def test_the_gaussian_threshold_is_the_smallest_that_hides_a_single_unit(keys, rho, delta, units):
    mechanism = gaussian_key_threshold(keys, rho, delta, units)
    beyond = tails(mechanism.law)
    chance = 1 - (1 - float(delta)) ** (1 / keys)
    assert float(beyond[mechanism.threshold - 2]) <= chance
    if mechanism.threshold > 2:
        assert float(beyond[mechanism.threshold - 3]) > chance


def test_the_tail_of_the_continuous_law_would_hide_too_little():
    """P(X > k) of the discrete law is above that of the continuous one rounded to integers where σ is small."""
    mechanism = gaussian_key_threshold(1, Fraction(4), Fraction(1, 10**3))
    sigma = math.sqrt(mechanism.law.variance)
    reached = mechanism.threshold - 1  # 1 + X >= τ
    assert math.erfc(reached / sigma / math.sqrt(2)) / 2 < float(tails(mechanism.law)[reached - 1])


def test_a_quarter_of_the_laplace_threshold():
    rho, delta = Fraction(1, 40), Fraction(1, 2 * 10**9)
    epsilon = Fraction(math.isqrt(int(2 * rho * 10**20)), 10**10)
    assert gaussian_key_threshold(1, rho, delta).threshold < 0.31 * key_threshold(1, epsilon, delta).threshold


def _covered(law, threshold, units, confidence, reach):
    """The exact probability that an interval holds the number, given that the key is shown."""
    values = np.arange(threshold, max(threshold, units) + reach)
    offsets = (values - units).astype(float)
    if isinstance(law, DiscreteLaplace):
        weights = np.exp(-np.abs(offsets) / float(law.scale) + max(0.0, float(threshold - units)) / float(law.scale))
    else:
        least = max(0.0, float(threshold - units)) ** 2
        weights = np.exp(-(offsets**2 - least) / (2 * float(law.variance)))
    intervals = shown_intervals(values, law, threshold, confidence)
    inside = (intervals.low <= units) & (units <= intervals.high)
    return float(weights[inside].sum() / weights.sum())


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    ("law", "reach"),
    [
        (DiscreteLaplace(Fraction(3)), 200),
        (DiscreteGaussian(Fraction(1, 2)), 30),
        (DiscreteGaussian(Fraction(9)), 60),
        (DiscreteGaussian(Fraction(300**2)), 4000),
    ],
)
def test_exact_coverage_given_that_the_key_is_shown(law, reach, confidence):
    threshold = law.upper(1 - 1e-6) + 2
    near = (threshold - 1, threshold, threshold + 1, threshold + threshold // 3, 2 * threshold, 5 * threshold)
    for units in (1, 2, threshold // 2, *near):
        assert _covered(law, threshold, max(1, units), confidence, reach) >= confidence - 1e-9


def test_tails_rounded_down_are_below_the_exact_ones():
    for law in (DiscreteLaplace(Fraction(5, 2)), DiscreteGaussian(Fraction(7)), DiscreteGaussian(Fraction(1, 3))):
        exact = np.array([float(tail) for tail in tails(law)])
        steps = np.flatnonzero(exact > 1e-30).astype(float)
        assert (law.least_tails(steps) <= exact[: len(steps)]).all()
        assert (law.least_tails(steps) >= exact[: len(steps)] * (1 - 1e-8)).all()
    wide = DiscreteGaussian(Fraction(1000**2))
    steps = np.arange(0, 8000, 37).astype(float)
    assert (wide.least_tails(steps) < wide.tails(steps)).all()
    assert (wide.least_tails(steps) > wide.tails(steps) * 0.9).all()


def test_numbers_of_any_size_have_intervals():
    values = np.array([10, 1 << 80, (1 << 63) - 1], dtype=object)
    for law in (DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(9))):
        intervals = shown_intervals(values, law, 10, 0.95)
        assert all(low <= value <= high for low, value, high in zip(intervals.low, values, intervals.high, strict=True))


@pytest.mark.parametrize("units", [0, 3, 1.5])
def test_one_unit_or_two_change(units):
    with pytest.raises(ParameterError):
        gaussian_key_threshold(1, Fraction(1), Fraction(1, 10), units)

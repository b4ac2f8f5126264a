"""Group keys that nobody declared: a key is shown only if enough units hold it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.interval.interval import Intervals
from confide.mechanism.noise.additive import added, gaussian, laplace
from confide.mechanism.noise.law import Confidence, DiscreteGaussian, DiscreteLaplace, miss_rate
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.loss import ZCDP, ApproxDP

AnyIntegers = NDArray[Any]
_HELD: Final = 1 << 60
"""Numbers are compared up to here, in 64 bits: cutting a larger one moves the lower end of its interval down."""


@dataclass(frozen=True, slots=True)
class KeyThreshold:
    """Releases the keys whose noised number of units is at least `threshold`, with that number. Made by
    `key_threshold` and `gaussian_key_threshold`.

    Only keys that some unit holds go in; what comes out must not be in an order that depends on the others.
    """

    law: DiscreteLaplace | DiscreteGaussian
    threshold: int
    loss: ApproxDP | ZCDP

    @property
    def name(self) -> str:
        return f"discrete {'laplace' if isinstance(self.law, DiscreteLaplace) else 'gaussian'} with threshold"

    def release(self, units: AnyIntegers, randomness: Randomness) -> "ReleasedKeys":
        """From the number of units of each key, the places of the keys to show and their noised numbers."""
        noised = added(units, draw(self.law, units.shape, randomness))
        places = np.flatnonzero(noised >= self.threshold)
        return ReleasedKeys(places, noised[places], self.law, self.threshold)


def key_threshold(keys: int, epsilon: Fraction, delta: Fraction) -> KeyThreshold:
    """Releases undeclared keys with discrete Laplace noise of scale keys/ε on their numbers of units, where above τ.

    Neighbours: one unit added or removed, which holds at most `keys` keys. Loss: (ε, δ)-DP.
    τ is the smallest integer for which a key of one unit is shown with probability at most p = 1 - (1-δ)^(1/keys).
    Proof. Let the unit be in D and not in D′, and K be the keys that it alone holds: D′ cannot show them. On the other
    keys the numbers differ by at most `keys` in L1, so what is shown of them is ε-DP: R on D, R′ on D′, with P(R in S)
    <= e^ε P(R′ in S) and back. Keys that two or more units hold, as they are in both, need nothing else. Let Z be that
    no key of K is shown, which is independent of R, with P(Z) >= (1-p)^|K| >= 1-δ. Then P(M(D) in S) <= P(not Z) +
    P(R in S) <= δ + e^ε P(M(D′) in S). And P(M(D′) in S) <= e^ε P(R in S) = e^ε P(R in S, Z) / P(Z), so that with x =
    P(M(D′) in S): x <= x(1-P(Z)) + e^ε P(M(D) in S) <= δ + e^ε P(M(D) in S). ([Korolova2009];
    [Wilson2020].)
    """
    _require(keys, delta)
    law = laplace(keys, epsilon).law
    assert isinstance(law, DiscreteLaplace)
    return KeyThreshold(law, _hiding(law, keys, delta), ApproxDP(Fraction(epsilon), delta))


def gaussian_key_threshold(keys: int, rho: Fraction, delta: Fraction, units: int = 1) -> KeyThreshold:
    """Releases undeclared keys with discrete Gaussian noise of σ² at least units·keys/2ρ on their numbers, if above τ.

    Neighbours: one unit added or removed (`units` = 1) or replaced by another (2); each holds at most `keys` keys.
    Loss: δ-approximate ρ-zCDP ([BunSteinke2016], Definition 8.1).
    τ is the smallest integer for which a key of one unit is shown with probability at most p = 1 - (1-δ)^(1/keys), by
    the tail of the discrete law itself: its terms are summed, or bounded as `DiscreteGaussian.tails` proves.
    Proof. Let K be the keys of D that nobody in D′ holds, and K′ those of D′ that nobody in D holds. Only the unit that
    is in D and not in D′ holds those of K, so |K| <= keys and each has the number 1. Let E be that M(D) shows none of
    K: each noise is independent, so P(E) >= (1-p)^keys >= 1-δ; and E′ the same of M(D′) and K′. E is independent of
    what is shown of the other keys, so M(D) given E is that alone, and so is M(D′) given E′. The other keys are those
    of both data sets. Their numbers differ by at most 1 in at most units·keys of them, so by units·keys in squared L2,
    and what is shown is made of them plus noise, key by key: ρ-zCDP in both directions ([Canonne2020], Theorem 4).
    """
    _require(keys, delta)
    if units not in (1, 2):
        raise ParameterError(f"one unit comes or goes, or two change places; got {units!r}")
    law = gaussian(units * keys, rho).law
    assert isinstance(law, DiscreteGaussian)
    return KeyThreshold(law, _hiding(law, keys, delta), ZCDP(Fraction(rho), delta))


def _require(keys: int, delta: Fraction) -> None:
    if isinstance(keys, bool) or not isinstance(keys, int) or keys < 1:
        raise ParameterError(f"a unit holds at least one key; got {keys!r}")
    if not isinstance(delta, Fraction) or not 0 < delta < 1:
        raise ParameterError(f"delta must be an exact number strictly between 0 and 1; got {delta!r}")


def _hiding(law: DiscreteLaplace | DiscreteGaussian, keys: int, delta: Fraction) -> int:
    """The smallest threshold that a key of one unit reaches as rarely as it must."""
    chance = -math.expm1(math.log1p(-float(delta)) / keys) * (1 - 1e-12)  # rounded down
    # A key of one unit is shown if 1 + X >= τ, that is X > τ - 2.
    return law.upper(1 - Fraction(chance)) + 2


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedKeys:
    """Which keys are shown, and their noised numbers of units, all of them at least the threshold."""

    places: NDArray[np.intp]
    values: AnyIntegers
    law: DiscreteLaplace | DiscreteGaussian
    threshold: int

    def intervals(self, confidence: Confidence) -> Intervals:
        """Intervals for the numbers of units that hold for shown keys, not just for keys on average."""
        return shown_intervals(self.values, self.law, self.threshold, confidence)


def shown_intervals(
    values: AnyIntegers, law: DiscreteLaplace | DiscreteGaussian, threshold: int, confidence: Confidence
) -> Intervals:
    """Intervals for numbers that are shown because they reached the threshold with their noise.

    A key is shown because its noise was large: given that, the usual interval of a small key would never cover.
    The upper end is the usual one, as large noise only helps it. The lower end is the smallest number c >= 1 for which
    a noised number this large, among those that are shown, has probability above half the miss rate:
    P(X >= value - c) / P(X >= threshold - c). The ratio never falls as c grows, since the tails of both laws are
    log-concave; for Laplace noise it is the same for all c up to the threshold. It is rounded up.
    """
    rate = miss_rate(confidence) / 2
    seen = np.minimum(np.maximum(values, -_HELD), _HELD).astype(np.int64)
    held = min(threshold, _HELD)

    def likely(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        reached = law.tails((seen - numbers - 1).astype(np.float64))
        return np.asarray(reached > rate * _at_least(law, held - numbers), dtype=bool)

    low = np.ones(seen.shape, dtype=np.int64)
    high = np.maximum(seen, held)
    everything = likely(low)
    while np.any(high - low > 1):  # not likely at low, likely at high
        middle = (low + high) // 2
        enough = likely(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    lows = np.where(everything, 1, high)
    return Intervals(lows, added(values, law.half_width(confidence)), float(confidence), "always")


def _at_least(law: DiscreteLaplace | DiscreteGaussian, least: NDArray[np.int64]) -> NDArray[np.float64]:
    """P(X >= least), rounded down."""
    beyond = law.least_tails(np.maximum(least - 1, 0).astype(np.float64))
    within = 1 - law.tails(np.maximum(-least, 0).astype(np.float64))  # P(X >= -k) = P(X <= k)
    return np.where(least > 0, beyond, within)

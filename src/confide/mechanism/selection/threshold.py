"""Group keys that nobody declared: a key is shown only if enough units hold it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism.interval.interval import Intervals
from confide.mechanism.noise.additive import laplace
from confide.mechanism.noise.law import Confidence, DiscreteLaplace, miss_rate
from confide.mechanism.noise.measurement import added
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.loss import ApproxDP

AnyIntegers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class KeyThreshold:
    """Releases the keys whose noised number of units is at least `threshold`, with that number. Made by
    `key_threshold`.

    Only keys that some unit holds go in; what comes out must not be in an order that depends on the others.
    """

    law: DiscreteLaplace
    threshold: int
    loss: ApproxDP
    name: ClassVar[str] = "discrete laplace with threshold"

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
    if isinstance(keys, bool) or not isinstance(keys, int) or keys < 1:
        raise ParameterError(f"a unit holds at least one key; got {keys!r}")
    if not isinstance(delta, Fraction) or not 0 < delta < 1:
        raise ParameterError(f"delta must be an exact number strictly between 0 and 1; got {delta!r}")
    law = laplace(keys, epsilon).law
    assert isinstance(law, DiscreteLaplace)
    chance = -math.expm1(math.log1p(-float(delta)) / keys) * (1 - 1e-12)  # rounded down
    # A key of one unit is shown if 1 + X >= τ, that is X > τ - 2.
    return KeyThreshold(law, law.upper(1 - Fraction(chance)) + 2, ApproxDP(Fraction(epsilon), delta))


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedKeys:
    """Which keys are shown, and their noised numbers of units, all of them at least the threshold."""

    places: NDArray[np.intp]
    values: AnyIntegers
    law: DiscreteLaplace
    threshold: int

    def intervals(self, confidence: Confidence) -> Intervals:
        """Intervals for the numbers of units that hold for shown keys, not just for keys on average.

        A key is shown because its noise was large: given that, the usual interval of a small key would never cover.
        The upper end is the usual one, as large noise only helps it. The lower end is the smallest number c >= 1 for
        which a noised number this large, among those that are shown, has probability above half the miss rate:
        P(X >= value - c) / P(X >= threshold - c). The ratio grows with c, and is the same for all c up to the
        threshold.
        """
        rate = miss_rate(confidence) / 2
        values = self.values.astype(np.int64)

        def likely(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
            reached = self.law.tails((values - numbers - 1).astype(np.float64))
            shown = 1 - self.law.tails((numbers - self.threshold).astype(np.float64))
            return np.asarray(reached > rate * shown, dtype=bool)

        low = np.full(values.shape, self.threshold, dtype=np.int64)
        high = np.maximum(values, self.threshold)
        everything = likely(low)
        while np.any(high - low > 1):  # not likely at low, likely at high
            middle = (low + high) // 2
            enough = likely(middle)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        lows = np.where(everything, 1, high)
        return Intervals(lows, added(self.values, self.law.half_width(confidence)), float(confidence), "always")

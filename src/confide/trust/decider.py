"""What a decider is: one bit about a private answer, at a cost that is known before anything is read."""

from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.mechanism import DiscreteLaplace, Law, Randomness, laplace
from confide.mechanism.noise.law import Floats
from confide.mechanism.selection.exponential import Exponential
from confide.privacy.loss import PureDP
from confide.trust.seen import Reading, Seen

Bits = NDArray[np.bool_]

_LADDER: Final = np.array([0, 1], dtype=np.int64)
_FLAT: Final = np.zeros(2, dtype=np.int64)
_ONE_EACH: Final = np.ones(2, dtype=np.int64)


class Decider(Protocol):
    """One way to decide. Everything but `decide` follows from public facts."""

    @property
    def name(self) -> str: ...

    @property
    def loss(self) -> PureDP: ...

    @property
    def reading(self) -> Reading:
        """What it needs to know of the data."""

    @property
    def wrong_yes(self) -> float | None:
        """At most so often it says yes where no is right, if what it `assumes` holds; None without a bound."""

    @property
    def blind(self) -> Fraction:
        """So far, in steps of the grid, it may be off even without noise; 0 for most."""

    @property
    def assumes(self) -> str:
        """What its answer rests on beside chance; empty for most."""

    def chance(self, seen: Seen) -> float:
        """The probability of yes."""

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        """The bit, in `count` independent runs of the decider; a release takes one."""


def logistic_coin(log_odds: Fraction, randomness: Randomness, count: int) -> Bits:
    """True with probability exactly 1 / (1 + exp(-log_odds)), `count` times."""
    mechanism = Exponential(abs(log_odds) or Fraction(1), 1)
    segments, _ = mechanism.select(_LADDER if log_odds else _FLAT, _ONE_EACH, randomness, count)
    likelier: Bits = segments == 0
    return likelier if log_odds >= 0 else ~likelier


def logistic(log_odds: float) -> float:
    """The same probability as a number; never an overflow."""
    small = float(np.exp(-abs(log_odds)))
    return 1 / (1 + small) if log_odds >= 0 else small / (1 + small)


def reaches(law: Law, least: int) -> float:
    """P(Z >= least)."""
    return law.tail(least - 1)


def between(law: Law, least: int, most: int) -> float:
    """P(least <= Z <= most)."""
    if least > most:
        return 0.0
    # From the nearer side, so that two small tails are not told apart as 1 - 1.
    if least > 0:
        return max(0.0, law.tail(least - 1) - law.tail(most))
    if most < 0:
        return max(0.0, law.tail(-most - 1) - law.tail(-least))
    return max(0.0, 1 - law.tail(-least) - law.tail(most))


def laplace_law(sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
    """The law of Laplace noise for a positive sensitivity."""
    law = laplace(sensitivity, epsilon).law
    assert isinstance(law, DiscreteLaplace)
    return law


def midpoints(law: DiscreteLaplace, count: int) -> Floats:
    """Quantiles of a Laplace law at the middles of `count` equal parts of probability, for averages over it."""
    share = (np.arange(count) + 0.5) / count
    scale = float(law.scale)
    low: Floats = scale * np.log(2 * np.minimum(share, 1 - share))
    return np.where(share < 0.5, low, -low)


def shared_noise(law: Law, reach: int) -> tuple[Floats, Floats]:
    """Noises from -reach to reach, thinned out, each with the probability of those it stands for."""
    step = max(1, reach // 2_000)
    noises = np.arange(-reach, reach + 1, step).astype(np.float64)
    tails = law.tails(np.append(noises, noises[-1] + step) - step // 2 - 1)
    weights: Floats = tails[:-1] - tails[1:]
    return noises, weights

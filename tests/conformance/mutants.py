"""Mechanisms with a known flaw each. `check_mechanism` must catch every one of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from confide.mechanism import (
    DiscreteGaussian,
    DiscreteLaplace,
    Intervals,
    KernelRandomness,
    Measurement,
    draw,
    gaussian,
    laplace,
)
from confide.mechanism.noise.law import Law
from confide.privacy.loss import PrivacyLoss, PureDP

EPSILON = Fraction(1)
RHO = Fraction(1, 2)
STATED = DiscreteLaplace(1 / EPSILON)
LOSS = PureDP(EPSILON)


@dataclass(frozen=True)
class Flawed:
    """States a law and a loss, and does what `noise` does."""

    name: str
    law: Law
    loss: PrivacyLoss
    noise: Callable[[Any, Any], Any]  # exact numbers and randomness to released numbers

    def measure(self, exact, randomness):
        return Measurement(self.noise(exact, randomness), self.law)


def _laplace(name, noise, law=STATED):
    return Flawed(name, law, PureDP(EPSILON), noise)


def _drawn(law):
    return lambda exact, randomness: exact + draw(law, exact.shape, randomness)


def _continuous(exact, randomness):
    uniform = (randomness.uint64(exact.size) >> np.uint64(11)).reshape(exact.shape) * 2.0**-53 - 0.5
    return -np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / float(EPSILON)


def _dropped_at_zero(exact, randomness):
    return np.where(exact == 0, 0, exact + draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness))


def _truncated(exact, randomness):
    return exact + np.clip(draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness), -3, 3)


def _non_negative(exact, randomness):
    return exact + np.abs(draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness))


def _shared_in_a_row(exact, randomness):
    noise = draw(DiscreteLaplace(2 / EPSILON), exact.shape[0], randomness)
    return exact + noise.reshape(-1, *([1] * (exact.ndim - 1)))


def _shared_by_all(exact, randomness):
    return exact + draw(DiscreteLaplace(1 / EPSILON), 1, randomness)[0]


def _own_source(exact, randomness):
    return exact + draw(DiscreteLaplace(1 / EPSILON), exact.shape, KernelRandomness())


def _even(exact, randomness):
    return exact + 2 * (draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness) // 2)


def _depends_on_data(exact, randomness):
    """Less noise for large numbers, as when noise is scaled by the data."""
    noise = draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness)
    return exact + np.where(exact > 5, noise // 2, noise)


def _reused(cache={}):  # noqa: B006 - the shared default is the flaw
    def noise(exact, randomness):
        if exact.shape not in cache:
            cache[exact.shape] = draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness)
        return exact + cache[exact.shape]

    return noise


def _biased_signs(exact, randomness):
    noise = draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness)
    flip = draw(DiscreteLaplace(Fraction(1)), exact.shape, randomness) > 2
    return exact + np.where(flip, np.abs(noise), noise)


@dataclass(frozen=True)
class NarrowIntervals:
    """The right noise, with intervals for one side only on both sides."""

    name: str = "narrow intervals"
    loss: PrivacyLoss = LOSS

    def measure(self, exact, randomness):
        values = exact + draw(DiscreteLaplace(1 / EPSILON), exact.shape, randomness)
        return _Narrow(values, DiscreteLaplace(1 / EPSILON))


@dataclass(frozen=True)
class _Narrow:
    values: Any
    law: Law

    def intervals(self, confidence):
        width = max(self.law.upper(confidence) - 1, 0)
        return Intervals(self.values - width, self.values + width, confidence)


@dataclass
class LateLoss:
    """Knows what it cost only after it ran."""

    name: str = "late loss"
    loss: Any = None
    right: Any = field(default_factory=lambda: laplace(1, EPSILON))

    def measure(self, exact, randomness):
        self.loss = PureDP(EPSILON)
        return self.right.measure(exact, randomness)


def _half(mechanism, law):
    return Flawed(f"half the sensitivity: {mechanism.name}", law, mechanism.loss, _drawn(law))


SMALL, SMALLER = DiscreteLaplace(Fraction(9, 10)), DiscreteLaplace(Fraction(1, 2))
LEAK, LAW = "loses more than", "does not follow"

ONE_NUMBER = [  # each with what must catch it
    (_laplace("scale halved, and so stated", _drawn(SMALLER), SMALLER), LEAK),
    (_laplace("scale a tenth too small, and so stated", _drawn(SMALL), SMALL), LEAK),
    (_laplace("scale a tenth too small", _drawn(SMALL)), LAW),
    (_laplace("rounded", lambda exact, source: exact + np.rint(_continuous(exact, source)).astype(int)), LAW),
    (_laplace("continuous noise", lambda exact, source: exact + _continuous(exact, source)), "integers expected"),
    (_laplace("no noise at zero", _dropped_at_zero), "shared their noise"),
    (_laplace("no noise", lambda exact, source: exact + 0), "shared their noise"),
    (_laplace("truncated noise", _truncated), LAW),
    (_laplace("non-negative noise", _non_negative), LAW),
    (_laplace("noise from its own source", _own_source), "from elsewhere"),
    (_laplace("even noise", _even), LAW),
    (_laplace("less noise for large numbers", _depends_on_data), LAW),
    (_laplace("noise reused between calls", _reused()), "two calls shared"),
    (_laplace("one noise for all numbers", _shared_by_all), "all numbers of a call shared"),
    (_laplace("signs that are not fair", _biased_signs), LAW),
    (NarrowIntervals(), "intervals miss"),
    (LateLoss(), "stated as data"),
    (_half(gaussian(1, RHO), DiscreteGaussian(1 / (8 * RHO))), LEAK),
    (
        Flawed(
            "variance too small", gaussian(1, RHO).law, gaussian(1, RHO).loss, _drawn(DiscreteGaussian(Fraction(3, 4)))
        ),
        LAW,
    ),
]

TWO_NUMBERS = [
    (_half(laplace(2, EPSILON), DiscreteLaplace(1 / EPSILON)), LEAK),
    (_half(gaussian(2, RHO), DiscreteGaussian(1 / (4 * RHO))), LEAK),
    (Flawed("one noise for a row", DiscreteLaplace(2 / EPSILON), PureDP(EPSILON), _shared_in_a_row), LEAK),
]

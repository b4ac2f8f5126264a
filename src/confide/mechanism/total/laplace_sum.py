"""Sums with discrete Laplace noise: over a declared range, or over one that is found privately."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism.interval.interval import Assumes
from confide.mechanism.noise.additive import laplace
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.quantile.svt import WalkedEnd, walked_end
from confide.mechanism.statistic import Expectation, Setting
from confide.mechanism.tally import Domain, Tally
from confide.mechanism.total.clipping import SHELL, Radius, clip_range
from confide.mechanism.total.summation import SumSpan, sensitivity

CENTRE_SHARE: Final = Fraction(1, 12)
RADIUS_SHARE: Final = Fraction(1, 12)
RADIUS_MISS: Final = 0.5
FINE: Final = 2**0.25  # the step between radii; a power of two costs up to twice the width


@dataclass(frozen=True, slots=True)
class DeclaredRange:
    """Releases Σ(x - centre) plus discrete Laplace noise, for values in the domain; the centre is its middle, or 0.

    Neighbours: add-remove or replace-one. Loss: ε-DP, Laplace mechanism. Interval: exact quantile, always valid.
    """

    setting: Setting
    name: ClassVar[str] = "laplace"
    assumes: ClassVar[Assumes] = "always"
    count_share: ClassVar[Fraction] = Fraction(1, 3)

    def __post_init__(self) -> None:
        self.setting.bound(self.name, "svt")

    def condition(self, epsilon: Fraction, miss: float, centred: bool) -> str:
        return ""

    def prepare(self, epsilon: Fraction, miss: float, centred: bool) -> None:
        laplace(self._sensitivity(centred), epsilon)

    def expected(self, epsilon: Fraction, miss: float, centred: bool, expectation: Expectation) -> float:
        law = laplace(self._sensitivity(centred), epsilon).law
        return law.half_width(1 - Fraction(miss))

    def off_centre(self, expectation: Expectation) -> float:
        low, high = self.setting.ends
        return (high - low) / 4

    def span(self, tally: Tally, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness) -> SumSpan:
        centre = self._centre(centred)
        return noised(tally, centre, self._sensitivity(centred), epsilon, miss, randomness)

    def _centre(self, centred: bool) -> int:
        return sum(self.setting.ends) // 2 if centred else 0

    def _sensitivity(self, centred: bool) -> int:
        centre, (low, high) = self._centre(centred), self.setting.ends
        return sensitivity(low - centre, high - centre, self.setting)


@dataclass(frozen=True, slots=True)
class FoundRange:
    """Releases Σ(clip(x) - centre) plus discrete Laplace noise; centre and range of clipping are found privately.

    Neighbours: add-remove or replace-one. Loss: ε-DP: a walk to the median, a radius about it, Laplace noise; about
    zero, without the walk, where n is private and not measured ([Sun2023], Algorithm 6 and Theorem 4.6).
    Interval: valid where nothing is clipped, so it assumes a density (see `clipping`). Errata of Algorithm 6: line 8
    adds the shift at one end and subtracts it at the other, here it is subtracted at both; line 3 yields a place, the
    point is one less.
    """

    setting: Setting
    base: float = FINE
    name: ClassVar[str] = "svt"
    assumes: ClassVar[Assumes] = "density"
    count_share: ClassVar[Fraction] = Fraction(1, 6)  # the mean is near the centre, so the count matters less

    def __post_init__(self) -> None:
        if not 1.01 <= self.base <= 16:
            raise ParameterError(f"the base of the radii lies between 1.01 and 16, such as 2; got {self.base!r}")

    def condition(self, epsilon: Fraction, miss: float, centred: bool) -> str:
        needed = self._radius(epsilon, miss, self._farthest(centred)).needed
        if centred:
            return f"at least {needed} rows in the lowest and in the highest quarter of the range of the values"
        return f"at least {needed} values that are at least half as large as the largest, signs aside"

    def prepare(self, epsilon: Fraction, miss: float, centred: bool) -> None:
        low, high = self.setting.ends
        walk, _, noise = self._shares(epsilon, centred)
        if centred:
            self._walk(walk)
        _ = self._radius(epsilon, miss, self._farthest(centred)).mechanism
        laplace(sensitivity(low, high, self.setting) if not centred else high - low, noise)

    def expected(self, epsilon: Fraction, miss: float, centred: bool, expectation: Expectation) -> float:
        """As if the walk stopped midway between two radii, and the values lay evenly about their centre."""
        low, high = self.setting.ends
        largest = expectation.spread if expectation.spread is not None else high - low
        radius = SHELL * math.sqrt(self.base) * (largest / 2 if centred else largest)
        reach = min(radius, self._farthest(centred))
        one_sided = not centred and (low >= 0 or high <= 0)
        width = min(reach if one_sided else 2 * reach, high - low)
        each = width if self.setting.neighbours == "replace-one" else min(reach, width)
        law = laplace(max(1, math.ceil(each)), self._shares(epsilon, centred)[2]).law
        return law.half_width(1 - Fraction(miss * (1 - RADIUS_MISS)))

    def off_centre(self, expectation: Expectation) -> float:
        low, high = self.setting.ends
        return (expectation.spread if expectation.spread is not None else high - low) / 8

    def span(self, tally: Tally, epsilon: Fraction, miss: float, centred: bool, randomness: Randomness) -> SumSpan:
        domain, shares = self.setting.ends, self._shares(epsilon, centred)
        centre = self._locate(tally, domain, shares[0], randomness) if centred else 0
        farthest = max(abs(domain[0] - centre), abs(domain[1] - centre))
        radius = self._radius(epsilon, miss, farthest).measure(tally, centre, randomness)
        low, high = tally.covered(*clip_range(centre, radius, domain))
        each = sensitivity(low - centre, high - centre, self.setting)
        return noised(tally.clipped(low, high), centre, each, shares[2], miss * (1 - RADIUS_MISS), randomness)

    def _locate(self, tally: Tally, domain: Domain, epsilon: Fraction, randomness: Randomness) -> int:
        """A point near the median; how near has no part in the guarantee."""
        return self._walk(epsilon)([tally], domain, randomness)[0]

    def _walk(self, epsilon: Fraction) -> WalkedEnd:
        return walked_end(Fraction(1, 2), epsilon, self.setting.neighbours, 0.5)

    def _shares(self, epsilon: Fraction, centred: bool) -> tuple[Fraction, Fraction, Fraction]:
        centre, radius = epsilon * CENTRE_SHARE if centred else Fraction(0), epsilon * RADIUS_SHARE
        return centre, radius, epsilon - centre - radius

    def _radius(self, epsilon: Fraction, miss: float, farthest: int) -> Radius:
        return Radius(epsilon * RADIUS_SHARE, miss * RADIUS_MISS, farthest, self.base)

    def _farthest(self, centred: bool) -> int:
        low, high = self.setting.ends
        return high - low if centred else max(abs(low), abs(high))


def noised(tally: Tally, centre: int, each: int, epsilon: Fraction, miss: float, randomness: Randomness) -> SumSpan:
    """Σ(x - centre), of which one row changes at most `each`, with noise and its exact quantile."""
    total = tally.total() - centre * tally.rows
    measurement = laplace(each, epsilon).measure(np.array([total], dtype=object), randomness)
    estimate, half_width = int(measurement.values[0]), measurement.law.half_width(1 - Fraction(miss))
    return SumSpan(centre, estimate, estimate - half_width, estimate + half_width, measurement.law, miss)

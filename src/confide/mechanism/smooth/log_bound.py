"""The logarithm of a smooth bound, released so that it is rarely below what it is."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.noise.law import SLACK
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw

LOG_STEPS: Final = 64  # ln S is measured in steps of α/64


@dataclass(frozen=True, slots=True)
class SmoothLog:
    """Releases ln S in steps of α/64, rounded up, plus discrete Laplace noise and a margin.

    Neighbours: those between which ln S changes by at most α, and by what arithmetic in doubles adds to that. Rounding
    up to whole steps adds at most one step to the difference: `rounding` is what both add, in steps.
    Loss: ε-DP, Laplace mechanism. Interval: always valid, below ln S with probability at most `miss`.
    """

    alpha: Fraction
    epsilon: Fraction
    rounding: int = 1

    @property
    def noise(self) -> Additive:
        return laplace(LOG_STEPS + self.rounding, self.epsilon)

    def measure(self, logarithm: float, miss: float, randomness: Randomness) -> float:
        steps = math.ceil(logarithm / self._step) + int(draw(self.noise.law, 1, randomness)[0])
        return (steps + self._steps(miss)) * self._step * (1 + SLACK)

    def margin(self, miss: float) -> float:
        """About how far above ln S that is on average."""
        return self._steps(miss) * self._step

    @property
    def _step(self) -> float:
        return float(self.alpha) / LOG_STEPS

    def _steps(self, miss: float) -> int:
        return self.noise.law.upper(1 - Fraction(miss))

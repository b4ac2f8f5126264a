"""How large counts are: a prior that is learned from noisy counts, in classes of counts that are expected to be alike.

A mixture of a point at zero and of bins that widen with what they hold, so that counts which lie alone are hardly
drawn anywhere. Its weights are found by expectation-maximisation ([Robbins1956] is the idea), stopped early: a prior
that fits every noisy count would draw counts to each other that only noise brought together.
"""

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.fit.cells import Floats

FIRST: Final = 1.0  # width of the bins next to zero, in standard deviations
WIDENING: Final = 0.5  # of its lower end: the width of a bin further up
REACH: Final = 32.0  # standard deviations: larger counts are drawn nowhere
STEP: Final = 0.4  # between the points that stand for a bin
AT_ZERO: Final = 0.5  # of what is supposed before anything is seen
BELIEF: Final = 2.0  # counts that what is supposed is worth
SHARED: Final = 5.0  # counts that the prior of all is worth to a class


class CountPrior:
    """Weights of the bins, for each of some classes of counts; deviations are those of one noisy count."""

    def __init__(self, deviation: float, classes: int) -> None:
        edges = [0.0]
        while edges[-1] < REACH:
            edges.append(edges[-1] + max(FIRST, WIDENING * edges[-1]))
        points: list[Floats] = [np.zeros(1)]
        bins = [0]
        for place, (low, high) in enumerate(pairwise(edges), start=1):
            count = math.ceil((high - low) / STEP)
            points.append(np.linspace(low, high, 2 * count + 1)[1::2])
            bins.extend([place] * count)
        self.points: Floats = np.concatenate(points) * deviation
        self.top = edges[-1] * deviation
        self._mean = np.zeros((len(bins), len(edges)))  # of a bin's points
        self._mean[np.arange(len(bins)), bins] = 1 / np.bincount(bins)[bins]
        self._supposed = np.full(len(edges), (1 - AT_ZERO) / (len(edges) - 1))
        self._supposed[0] = AT_ZERO
        self._weights = np.tile(self._supposed, (classes, 1))

    @property
    def shape(self) -> tuple[int, int]:
        """How many classes and bins there are."""
        classes, bins = self._weights.shape
        return classes, bins

    def moments(self, likelihoods: Floats, classes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Means and variances of counts, given how likely each of the points makes what was seen of them."""
        posterior = likelihoods * (self._weights @ self._mean.T)[classes]
        posterior /= posterior.sum(axis=1, keepdims=True)
        means = posterior @ self.points
        return means, np.maximum(posterior @ self.points**2 - means**2, 0)

    def evidence(self, likelihoods: Floats, classes: NDArray[np.int64]) -> Floats:
        """For each class, how many of its counts are in each bin."""
        shares = (likelihoods @ self._mean) * self._weights[classes]
        shares /= shares.sum(axis=1, keepdims=True)
        found = np.zeros(self._weights.shape)
        np.add.at(found, classes, shares)
        return found

    def learn(self, evidence: Floats) -> None:
        """One step of expectation-maximisation: a class has the prior of all, as far as it has no counts of its own."""
        together = evidence.sum(axis=0) + BELIEF * self._supposed
        mixed = evidence + SHARED * together / together.sum()
        self._weights = mixed / mixed.sum(axis=1, keepdims=True)

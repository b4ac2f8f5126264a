"""What noisy counts say of every cell, taken together: posterior means under a prior that they teach.

Each measured sum says of a cell what it leaves when the other cells are taken away, as exactly as these are known.
Going around, with every sum correcting for what it said before, is approximate message passing ([Donoho2009],
[Rangan2011]); it takes a few sums over the table for each round, however many cells there are. Its means are good on
average and promise nothing for one cell; `adaptive` therefore follows them a little way only. Nothing here but noisy
answers and laws is used.

The prior says how large counts are. It is learned from the noisy counts, in classes of counts that are expected to be
alike: a mixture of a point at zero and of bins that widen with what they hold, so that counts which lie alone are
hardly drawn anywhere. Its weights are found by expectation-maximisation ([Robbins1956] is the idea), stopped early: a
prior that fits every noisy count would draw counts to each other that only noise brought together.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confide.fit.group import CellDomain, Floats, Marginal
from confide.fit.problem import SMALLEST_VARIANCE, FitProblem, MeasuredGroup
from confide.fit.program import counts_cells
from confide.mechanism.noise.law import DiscreteLaplace

ROUNDS: Final = 25
DAMPING: Final = 0.4  # how far a round moves
CUTS: Final = (0.1, 1.0)  # standard deviations: where classes of expected counts begin
MARGIN: Final = 4.0  # standard deviations below the prior's reach
BLOCK: Final = 8192  # cells at a time
MOST_CELLS: Final = 20_000  # half a second; in larger tables rounds often do not settle
UNSETTLED: Final = (
    2.0  # of the noise's variance: the mean squared distance of a posterior from noisy counts is below one
)

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


def measured_cells(problem: FitProblem) -> list[MeasuredGroup]:
    """The measurements that count single cells; none if there are too many of them to be looked at one by one."""
    if problem.domain.cells > MOST_CELLS:
        return []
    return [
        item
        for item in problem.measured
        if counts_cells(problem.domain, item.group) and float(item.law.variance) > SMALLEST_VARIANCE
    ]


def posterior_means(problem: FitProblem, near: Floats) -> Floats:
    """The mean of every cell; `near` is a fitted table, which says how large a cell is expected to be.

    At least one measurement must count single cells. Measurements of queries that overlap are left out, and so is
    what is public but for zeros. Where rounds do not settle (means further from the noisy counts than noise takes
    them), nothing is said: `near` is returned.
    """
    domain = problem.domain
    own = measured_cells(problem)
    precision = sum(1 / item.variance for item in own)
    deviation = 1 / math.sqrt(precision)
    seen = [item.group.spread(domain, item.answers) for item in own]
    centre = np.asarray(sum(values / item.variance for values, item in zip(seen, own, strict=True)) / precision)
    sums = [item for item in problem.measured if item.group.disjoint(domain) and item not in own]
    free = np.ones(domain.cells, dtype=bool) if problem.public.zeros is None else ~problem.public.zeros
    prior = CountPrior(deviation, len(CUTS) + 1)
    classes = np.digitize(expected(domain, near) / deviation, CUTS)
    small = np.flatnonzero(free & (centre < prior.top - MARGIN * deviation))
    means, variances = np.where(free, np.maximum(centre, 0), 0.0), np.where(free, deviation**2, 0.0)
    pulls = [np.zeros(len(item.answers)) for item in sums]
    for _ in range(ROUNDS):
        information, push = np.full(domain.cells, 1e-9 * precision), np.zeros(domain.cells)
        for place, item in enumerate(sums):
            spread = item.group.answer(domain, variances)
            expects = item.group.answer(domain, means) - spread * pulls[place]
            pull = (item.answers - expects) / (item.variance + spread)
            pulls[place] = pulls[place] + DAMPING * (pull - pulls[place])
            information += item.group.spread(domain, 1 / (item.variance + spread))
            push += item.group.spread(domain, pulls[place])
        said = means + push / information
        found = (precision * centre + information * said) / (precision + information)
        certain = 1 / (precision + information)
        evidence = np.zeros(prior.shape)
        for start in range(0, len(small), BLOCK):
            block = small[start : start + BLOCK]
            likely = _likelihoods(prior, own, seen, block, said, information)
            found[block], certain[block] = prior.moments(likely, classes[block])
            evidence += prior.evidence(likely, classes[block])
        prior.learn(evidence)
        means = np.where(free, means + DAMPING * (found - means), 0.0)
        variances = np.where(free, variances + DAMPING * (certain - variances), 0.0)
    settled = float(np.mean((means - centre)[free] ** 2)) <= UNSETTLED * deviation**2
    return np.maximum(means, 0) if settled else near


def expected(domain: CellDomain, cells: Floats) -> Floats:
    """What each cell would hold if attributes were independent; nothing is expected of a single attribute's cells."""
    total = float(cells.sum())
    if len(domain.sizes) == 1 or total <= 0:
        return np.zeros(domain.cells)
    product = np.full(domain.sizes, total)
    for name in domain.attributes:
        marginal = Marginal((name,))
        product *= marginal.laid_out(domain, marginal.answer(domain, cells) / total)
    return product.ravel()


def _likelihoods(
    prior: CountPrior,
    own: Sequence[MeasuredGroup],
    seen: Sequence[Floats],
    block: NDArray[np.int64],
    said: Floats,
    information: Floats,
) -> Floats:
    """How likely every point of the prior makes the cells' own noisy counts, and what the sums say of them."""
    logarithm = -information[block, None] / 2 * (said[block, None] - prior.points) ** 2
    for item, values in zip(own, seen, strict=True):
        apart = values[block, None] - prior.points
        if isinstance(item.law, DiscreteLaplace):
            logarithm -= np.abs(apart) / float(item.law.scale)
        else:
            logarithm -= apart**2 / (2 * float(item.law.variance))
    likelihoods: Floats = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    return likelihoods

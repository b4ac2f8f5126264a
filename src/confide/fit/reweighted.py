"""ReWeighted fitting: answers that could be noise alone count less one by one, and more as a sum."""

import math

import numpy as np
from scipy.special import log_ndtr, ndtri

from confide.errors import ParameterError
from confide.fit.fitted import Fit, require_consistent, solve
from confide.fit.group import Floats, Mask, Subtotal
from confide.fit.problem import FitProblem, MeasuredGroup, NoiseLaw
from confide.fit.program import Term
from confide.mechanism.noise.law import DiscreteLaplace


def reweighted(problem: FitProblem, gamma: float = 0.99, start: Fit | None = None) -> Fit:
    """ReWeighted fitting ([Abowd2021], Algorithm 2): non-negative least squares in which low answers are down-weighted.

    As published, which differs from the paper's text in two places: the down-weight is at least 1, and it is the
    median of the maximum of as many noises as there are low answers. It has the unit of a count
    (docs/errata/microdata.md).
    """
    require_consistent(problem)
    if not 0 < gamma < 1:
        raise ParameterError(f"gamma is a probability close to 1, such as 0.99; got {gamma!r}")
    terms = []
    for place, item in enumerate(problem.measured):
        if not item.group.disjoint(problem.domain):
            raise ParameterError(f"reweighted fitting needs groups of disjoint queries; measurement {place} has others")
        terms.extend(_reweighted(item, gamma))
    return solve(problem, terms, "reweighted", start)


def low_answers(item: MeasuredGroup, gamma: float = 0.99) -> Mask:
    """The answers that noise alone explains: all below a cutoff that noise would rarely reach.

    With the answers in ascending order a(1), a(2), ..., the cutoff is the first a(j) that the largest of j noises
    stays below with probability gamma; if there is none, all are low.
    """
    ascending = np.sort(item.answers)
    count = np.arange(1, len(ascending) + 1)
    beyond = count * log_cdf(item.law, ascending) >= math.log(gamma)
    return item.answers < (ascending[int(beyond.argmax())] if beyond.any() else np.inf)


def log_cdf(law: NoiseLaw, values: Floats) -> Floats:
    """ln P(noise <= value) for the continuous law of the same scale."""
    if isinstance(law, DiscreteLaplace):
        steps = np.abs(values) / float(law.scale)
        return np.where(values < 0, -steps - math.log(2), np.log1p(-np.exp(-steps) / 2))
    return np.asarray(log_ndtr(values / math.sqrt(law.variance)))


def median_of_largest(law: NoiseLaw, count: int) -> float:
    """The median of the largest of some noises, for the continuous law of the same scale."""
    level = 0.5 ** (1 / count)
    if isinstance(law, DiscreteLaplace):
        return float(law.scale) * (-math.log(2 * (1 - level)) if level > 0.5 else math.log(2 * level))
    return math.sqrt(law.variance) * float(ndtri(level))


def _reweighted(item: MeasuredGroup, gamma: float) -> list[Term]:
    low = low_answers(item, gamma)
    count = int(low.sum())
    if count == 0:
        return [Term(item.group, item.answers, 1 / item.variance)]
    downweight = max(1.0, median_of_largest(item.law, count))
    weights = np.where(low, 1 / (2 * downweight**2), 1.0) / item.variance
    subtotal = Subtotal(item.group, low)
    return [
        Term(item.group, item.answers, weights),
        Term(subtotal, np.array([item.answers[low].sum()]), 1 / (2 * count * item.variance)),
    ]

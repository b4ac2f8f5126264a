"""Chi-square tests of integer samples against exact probabilities and against other samples."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2


def against_tails(sample: NDArray[np.int64], edges: Sequence[int], beyond: Sequence[float]) -> float:
    """The p-value of a sample of a symmetric law, given P(X > edge) for increasing edges >= 0.

    The cells are the values up to the first edge in absolute value, and those between edges on each side.
    """
    outer = np.array(beyond)
    expected = np.concatenate([[1 - 2 * outer[0]], np.repeat(np.append(outer[:-1] - outer[1:], outer[-1]), 2)])
    cells = np.searchsorted(np.array(edges), np.abs(sample), side="left")
    places = np.where(cells == 0, 0, 2 * cells - (sample > 0))
    observed = np.bincount(places, minlength=len(expected))
    return p_value(observed, expected * len(sample))


def against_sample(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The p-value that two samples of the same size have one law; rare values are pooled."""
    values, counts = np.unique(np.concatenate([first, second]), return_counts=True)
    common = values[counts >= 40]
    one = np.array([*(np.searchsorted(np.sort(first), common, "right") - np.searchsorted(np.sort(first), common)), 0])
    two = np.array([*(np.searchsorted(np.sort(second), common, "right") - np.searchsorted(np.sort(second), common)), 0])
    one[-1], two[-1] = len(first) - one.sum(), len(second) - two.sum()
    total = one + two
    kept = total > 0
    statistic = (((one - two) ** 2)[kept] / total[kept]).sum()
    return float(chi2.sf(statistic, kept.sum() - 1))


def p_value(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    if expected.min() < 5:
        raise ValueError("a cell expects fewer than five: pool it")
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))

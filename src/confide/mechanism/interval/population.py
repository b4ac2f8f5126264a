"""Intervals for the population of which the rows are a random sample, from a noised total and a noised count.

Releases     nothing: this is arithmetic on numbers that were released.
Holds        for the mean of the population with the stated confidence, over sampling and noise together, if the rows
             are drawn from it independently, whatever its distribution within the range, for every number of rows.
How          In three parts, whose miss rates add up to the whole.
             1. The mean m of the sample lies in the interval of the ratio of what was measured: noise alone.
             2. The sample has at least n rows, by the law of the noise of its count.
             3. Given m and n, the mean p of the population. Values are taken to be shares of their range.
                Of zeros and ones: the limits of [ClopperPearson1934], with m·n for the number of ones. They go up with
                m, and towards m as n grows, so the ends of 1 and the bound of 2 give the outer limits.
                Of others: n KL(m, p) <= log(1 / rate), with KL the divergence of coins. Among all values of a mean a
                coin's have the largest moments, so Chernoff's bound for coins is one for them ([Hoeffding1963]). It is
                as narrow as the largest variance allows that a mean near an end of the range leaves: p(1 - p).
             Nothing is approximated by a normal law, so rare shares and few rows have the confidence that is stated.
"""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Intervals
from confide.mechanism.interval.ratio import ratio_intervals
from confide.mechanism.noise.law import Confidence, Floats, Law, miss_rate

AnyIntegers = NDArray[Any]

NOISE: Final = Fraction(1, 4)  # of the miss rate, for the mean of the sample
COUNT: Final = Fraction(1, 20)  # for how many rows there are at least
HALVINGS: Final = 60
ROUNDING: Final = 1e-9  # of a share: more than the error of the limits below


def population_intervals(
    totals: AnyIntegers,
    counts: AnyIntegers,
    total_law: Law,
    count_law: Law,
    confidence: Confidence,
    *,
    low: int,
    high: int,
) -> Intervals:
    """Intervals for the mean of the population, of values that are whole numbers from `low` to `high`."""
    miss = Fraction(miss_rate(confidence))
    sample = ratio_intervals(
        totals,
        counts,
        total_law,
        count_law,
        1 - miss * NOISE,
        low=float(low),
        high=float(high),
        denominator_nonnegative=True,
    )
    rows = (counts - count_law.upper(1 - miss * COUNT)).astype(np.float64)
    nothing, width = rows < 1, float(high - low)
    if not width:
        return Intervals(sample.low, sample.high, float(confidence))
    rows = np.where(nothing, 1.0, rows)
    least, most = (np.clip((ends - float(low)) / width, 0.0, 1.0) for ends in (sample.low, sample.high))
    rate = float(miss * (1 - NOISE - COUNT) / 2)
    limit = _share_limit if high - low == 1 else _mean_limit
    # The upper limit of shares is the lower one of their complements.
    lows = np.where(nothing, 0.0, np.maximum(limit(least, rows, rate) - ROUNDING, 0.0))
    highs = np.where(nothing, 1.0, np.minimum(1.0 - limit(1.0 - most, rows, rate) + ROUNDING, 1.0))
    return Intervals(float(low) + width * lows, float(low) + width * highs, float(confidence))


def _share_limit(shares: Floats, rows: Floats, rate: float) -> Floats:
    """The p at which so large a share of so many coins comes up with probability `rate`; 0 for a share of 0."""
    from scipy.special import betaincinv  # noqa: PLC0415  heavy, and loaded when used

    ones = shares * rows
    some = ones > 0
    limits = betaincinv(np.where(some, ones, 1.0), np.where(some, rows - ones + 1, 1.0), rate)
    return np.where(some, np.nan_to_num(limits, nan=0.0), 0.0)


def _mean_limit(means: Floats, rows: Floats, rate: float) -> Floats:
    """The least p <= m with rows × KL(m, p) <= log(1 / rate), by halving; what is found is no larger."""
    allowed = math.log(1 / rate) / rows
    low, high = np.zeros(means.shape), means.copy()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        outside = _divergence(means, middle) > allowed
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return low


def _divergence(m: Floats, p: Floats) -> Floats:
    """KL of coins: m log(m/p) + (1 - m) log((1 - m)/(1 - p)), for p <= m."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(m > 0, m * (np.log(m) - np.log(p)), 0.0)
        second = np.where(m < 1, (1 - m) * (np.log1p(-m) - np.log1p(-p)), 0.0)
    return first + second

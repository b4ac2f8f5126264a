"""Intervals for the share that one sum of noised integers has in a whole: of M in M + R, both not below zero.

Measured are M + X and R + Y with independent noise. At the true share s = M / (M + R) it holds that (1 - s)M = sR, so
(1 - s)(M + X) - s(R + Y) = (1 - s)X - sY. So {s : |(1 - s)(M + X) - s(R + Y)| <= q(s)}, where q(s) bounds
|(1 - s)X - sY| with the confidence, contains the true share with it ([Fieller1954], as in `ratio`). What is reported is
the hull of that set within 0 and 1. If M + R could be zero, the share need not exist, and 0 to 1 is reported.

With D = M + X + R + Y > 0 the left side is |M + X - sD|. So M + X is first moved to the nearest number from 0 to D: for
no share from 0 to 1 does this make it larger, and the share M + X then is of D is always in the set.

q is tabulated in steps: on a cell of shares from a to b one number serves that serves for the coefficients 1 - a and b
and for all smaller ones (`dominating_repeated_half_width`). Where a cheaper and larger number leaves a cell out, the
narrower one is not computed: both are fixed, and whenever a share is left out, the noise exceeds one that serves. So
does (1 - s)x + sy where x and y bound X and Y with miss rates that add up to the whole one; what that leaves in is an
interval in closed form. What every one of these bounds leaves in is reported.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from confide.mechanism.interval.many_terms import (
    cheap_half_width,
    dominating_repeated_half_width,
    repeated_half_width,
    rounded_up,
)
from confide.mechanism.noise.law import Confidence, Law

GROWTH: Final = 1.03
"""How much wider a cell's width may be than the spread at its ends would ask for."""
SMALLEST_CELL: Final = 1 / 512
SPLITS: Final = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
UNIT: Final = 1 << 20
"""Ends of cells are multiples of one millionth or so, for exact arithmetic."""
ROUNDING: Final = 2.0**-45

Terms = Sequence[tuple[Fraction, Law, int]]
"""Coefficients and laws of independent noises, and how often each is there."""
Kept = tuple[tuple[Fraction, Law, int], ...]


def share_interval(
    part: Fraction, whole: Fraction, own: Terms, rest: Terms, confidence: Confidence, *, least: Fraction = Fraction(0)
) -> tuple[float, float]:
    """Ends for M / (M + R) from what was measured of M and of M + R. `least`: below which M + R cannot be.

    `own` is the noise of M, `rest` that of R. At least the nominal coverage for every M >= 0 and R >= 0.
    """
    steps = _steps(_few(own), _few(rest), confidence)
    if whole <= 0 or (least <= 0 and whole <= steps.one_sided):
        return 0.0, 1.0
    part = min(max(part, Fraction(0)), whole)
    lows, highs = zip(*(_closed(part, whole, *bounds) for bounds in steps.apart), strict=True)
    share, size = float(part / whole), float(whole)
    low, high = steps.end(share, size, upper=False), steps.end(share, size, upper=True)
    return min(max(low, *lows), share), max(min(high, *highs), share)


def _closed(part: Fraction, whole: Fraction, own: Fraction, rest: Fraction) -> tuple[float, float]:
    """Between which shares s the distance |part - s·whole| is at most (1 - s)·own + s·rest."""
    below, above = whole - own + rest, whole + own - rest
    low = (part - own) / below if part > own else Fraction(0)
    high = (part + own) / above if above > part + own else Fraction(1)
    return float(low) * (1 - ROUNDING * (low < 1)), min(float(high) * (1 + ROUNDING), 1.0)


class ShareSteps:
    """q in steps, for one pair of noises."""

    def __init__(self, own: Kept, rest: Kept, confidence: Confidence) -> None:
        self._own, self._rest, self._confidence = own, rest, confidence
        miss, twice = 1 - Fraction(confidence), 2 * Fraction(confidence) - 1
        self.one_sided = repeated_half_width(_together((*own, *rest)), twice if twice > 0 else confidence)
        self.apart = [
            (repeated_half_width(own, 1 - miss * share), repeated_half_width(rest, 1 - miss * (1 - share)))
            for share in SPLITS
        ]
        """Bounds of X and Y whose miss rates add up to the whole one."""
        nodes = _nodes(_variance(own), _variance(rest))
        self._lows, self._highs = np.array(nodes[:-1]) / UNIT, np.array(nodes[1:]) / UNIT
        self._weighed = [self._weights(first, last) for first, last in pairwise(nodes)]
        self._wide = np.array([float(cheap_half_width(terms, confidence)) for terms in self._weighed])
        self._narrow: dict[int, float] = {}

    def _weights(self, first: int, last: int) -> Terms:
        """(1 - s)X - sY with the largest coefficients that it has in a cell."""
        above, below = Fraction(UNIT - first, UNIT), Fraction(last, UNIT)
        own = [(a * above, law, count) for a, law, count in self._own]
        return [*own, *((a * below, law, count) for a, law, count in self._rest)]

    def end(self, share: float, size: float, *, upper: bool) -> float:
        """The furthest share of the set: cells are looked at from outside, until one has a part in it."""
        reach = _reach(self._wide, size)
        inside = self._lows <= share + reach if upper else self._highs >= share - reach
        cells = np.flatnonzero(inside)
        for cell in (cells[::-1] if upper else cells).tolist():
            low, high = float(self._lows[cell]), float(self._highs[cell])
            near = _reach(self._close(cell), size)
            if upper and low <= share + near:
                return min(high, share + float(near))
            if not upper and high >= share - near:
                return max(low, share - float(near))
        return share

    def _close(self, cell: int) -> float:
        if cell not in self._narrow:
            found = dominating_repeated_half_width(self._weighed[cell], self._confidence)
            self._narrow[cell] = min(float(found), float(self._wide[cell]))
        return self._narrow[cell]


def _few(terms: Terms) -> Kept:
    """With one of few counts, as all bounds take them, so that parts of running sums have steps in common."""
    return tuple((factor, law, rounded_up(count)) for factor, law, count in terms)


@lru_cache(maxsize=512)
def _steps(own: Kept, rest: Kept, confidence: Confidence) -> ShareSteps:
    return ShareSteps(own, rest, confidence)


def _reach(width: Any, size: float) -> Any:
    """How far from the measured share a width reaches, rounded up."""
    return width / size * (1 + ROUNDING) + ROUNDING


def _together(terms: Terms) -> Terms:
    """The same with each kind once."""
    found: dict[tuple[Fraction, Law], int] = {}
    for factor, law, count in terms:
        found[factor, law] = found.get((factor, law), 0) + count
    return [(factor, law, count) for (factor, law), count in found.items()]


def _variance(terms: Terms) -> float:
    return sum(float(a) ** 2 * float(law.variance) * count for a, law, count in terms)


def _nodes(own: float, rest: float) -> list[int]:
    """Ends of the cells, so near each other that the width of one is not much more than its shares ask for."""
    found, at = [0], 0.0

    def spread(share: float) -> float:
        return (1 - share) ** 2 * own + share**2 * rest

    while at < 1:
        near, far = min(at + SMALLEST_CELL, 1.0), 1.0
        for _ in range(20):
            middle = (near + far) / 2
            if (1 - at) ** 2 * own + middle**2 * rest <= GROWTH**2 * min(spread(at), spread(middle)):
                near = middle
            else:
                far = middle
        at = near if near < 1 - SMALLEST_CELL else 1.0
        found.append(round(at * UNIT))
    return found

"""Intervals of means over tables: ratios of two numbers with independent noises, each of them a sum of many."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from confide.mechanism import DiscreteLaplace
from confide.mechanism.interval.many import laplace_pair_width
from confide.release.block_noise import BlockNoise
from confide.release.workload.measured_design import Ends
from confide.release.workload.noise import widths
from confide.workload.strategy.line import Floats

ROUNDED: Final = 1 + 1e-7
"""Room for the arithmetic of the roots."""
NOT_ALONE: Final = 1 - 1e-6
"""A sum of fourth powers up to which widths grow with it. Above, a noise is alone, whose own law is no bound of two."""


def ratio_ends(
    numbers: tuple[Floats, Floats],
    moments: tuple[tuple[Floats, Floats], tuple[Floats, Floats]],
    rounding: tuple[float, float],
    limits: tuple[float, float],
    noises: Sequence[BlockNoise],
    confidence: float,
) -> tuple[Ends, Floats]:
    """Ratios A/B within limits, B a count, from A + X and B + Y, where X and Y are sums of independent noises.

    At the true ratio m, A + X − m(B + Y) = X − mY has Σc²σ² = S + m²T; of Laplace noise the sum of fourth powers is at
    most κ(S + m²T)², with κ the larger of both numbers' own; where each is one noise alone, X − mY is two, of any
    shares. So one factor F serves all m: |X − mY| ≤ F√(S + m²T), and the m for which that holds lie between the roots
    of a quadratic ([Fieller1954]). As in `mechanism.interval.ratio`, A + X is first moved to where a ratio is possible,
    and where B may be zero the whole range is given.

    Doubles lose at most x of A + X and y of B + Y, the `rounding`, beside sums of many cells more than these numbers
    have digits for. With g = max(x/√S, y/√T) that is x + |m|y ≤ g(√S + |m|√T) ≤ √2·g·√(S + m²T): as much is added to F.
    """
    top, bottom = numbers
    (s, s4), (t, t4) = moments
    low, high = limits
    lost = np.sqrt(2) * np.maximum(rounding[0] / np.sqrt(s), rounding[1] / np.sqrt(t))
    factor = (_factors(s4 / s**2, t4 / t**2, noises, confidence) + lost) * ROUNDED
    square = factor**2 * t
    known = (bottom > 0) & (bottom**2 * (1 - 1e-9) > square)
    under = np.where(known, bottom, 1.0)
    above = np.clip(top, low * under, high * under)
    lead = np.where(known, under**2 - square, 1.0)
    inner = np.maximum(factor**2 * (s * under**2 + t * above**2 - factor**2 * s * t), 0.0)
    reach = np.sqrt(inner) * (1 + 1e-9) + 1e-15 * np.abs(under * above)
    first = np.clip((under * above - reach) / lead, low, high)
    last = np.clip((under * above + reach) / lead, low, high)
    middle = np.clip(above / under, first, last)
    empty = np.broadcast_to(~known, np.shape(top))
    whole = (np.where(empty, (low + high) / 2, middle), np.where(empty, low, first), np.where(empty, high, last))
    return whole, empty.astype(np.float64)


def _factors(top: Floats, bottom: Floats, noises: Sequence[BlockNoise], confidence: float) -> Floats:
    """F from the fourth powers of both numbers, as shares of their squares: a bound for every share of the two."""
    kappa = np.maximum(top, bottom)
    found = widths(np.ones(np.shape(kappa)), np.minimum(kappa, NOT_ALONE), list(noises), confidence)
    scales = [float(noise.law.scale) for noise in noises if isinstance(noise.law, DiscreteLaplace)]
    if not scales:
        return found
    alone = np.minimum(top, bottom) >= 1 - 1e-9
    return np.where(alone, laplace_pair_width(min(scales), confidence), found)

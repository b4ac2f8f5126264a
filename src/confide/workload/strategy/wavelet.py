"""Haar wavelets: of every stretch of a binary tree the difference of its halves, with a weight for each level.

[Xiao2011]. Rows are orthogonal, so an answer needs only the stretches that its ends cut. Cells beyond the last are
empty by definition: they belong to no row of data.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from confide.workload.strategy.hierarchy import WEIGHT_BITS, contrast_needs
from confide.workload.strategy.line import AskedLine, Floats, Integers, NoiseKind, Norms


@dataclass(frozen=True)
class WaveletLine:
    """The total times weights[0], then for each level the left half minus the right one, times its weight."""

    size: int
    weights: tuple[int, ...]
    name: str = "wavelet"

    def __post_init__(self) -> None:
        if min(self.weights) <= 0 or 2 ** (len(self.weights) - 1) < self.size:
            raise ValueError("the weights of a wavelet are positive, and its levels reach every cell")

    @property
    def factors(self) -> Integers | None:
        return None

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many cells a difference of each level spans."""
        return tuple(2 ** (len(self.weights) - 1 - level) for level in range(len(self.weights) - 1))

    @property
    def rows(self) -> int:
        return 1 + sum(-(-self.size // width) for width in self.widths)

    @cached_property
    def norms(self) -> Norms:
        """Every cell has one difference of each level, times 1 or −1."""
        squares = sum(weight * weight for weight in self.weights)
        return Norms(sum(self.weights), Fraction(squares), Fraction(-squares), max(self.weights))

    def _halves(self, values: Floats | Integers, width: int) -> Floats | Integers:
        """The left half minus the right one of every stretch of a width."""
        half = width // 2
        sums = np.add.reduceat(values, np.arange(0, self.size, half), axis=0)
        if len(sums) % 2:
            sums = np.concatenate([sums, np.zeros_like(sums[:1])])
        return sums[::2] - sums[1::2]

    def measure(self, counts: Integers) -> Integers:
        parts = [counts.sum(axis=0, keepdims=True) * self.weights[0]]
        parts += [self._halves(counts, w) * own for w, own in zip(self.widths, self.weights[1:], strict=True)]
        return np.concatenate(parts)

    def estimate(self, measured: Floats) -> Floats:
        whole = 2 ** (len(self.weights) - 1)
        found = np.repeat(measured[:1] / (self.weights[0] * whole), self.size, axis=0)
        begin = 1
        places = np.arange(self.size)
        for width, weight in zip(self.widths, self.weights[1:], strict=True):
            count = -(-self.size // width)
            own = measured[begin : begin + count] / (weight * width)
            sign = np.where(places % width < width // 2, 1.0, -1.0).reshape(-1, *([1] * (measured.ndim - 1)))
            found = found + sign * own[places // width]
            begin += count
        return found

    def coefficients(self, query: Floats) -> Floats:
        parts = [query.sum(axis=0, keepdims=True) / (self.weights[0] * 2 ** (len(self.weights) - 1))]
        for width, weight in zip(self.widths, self.weights[1:], strict=True):
            parts.append(self._halves(query, width) / (weight * width))
        return np.concatenate(parts)

    def spread(self, starts: Integers, stops: Integers, fourth: bool) -> tuple[Floats, Floats]:
        total = (stops - starts) / (self.weights[0] * 2.0 ** (len(self.weights) - 1))
        second, quads = total**2, total**4
        for width, weight in zip(self.widths, self.weights[1:], strict=True):
            begin, end = _triangle(starts, width), _triangle(stops, width)
            same = starts // width == stops // width
            for own in (np.where(same, end - begin, -begin), np.where(same, 0.0, end)):
                part = own / (weight * width)
                second += part**2
                if fourth:
                    quads += part**4
        return second, quads if fourth else second


def _triangle(cuts: Integers, width: int) -> Floats:
    """Left half minus right half of the cells before a cut, within the stretch that it is in."""
    inside = cuts % width
    found: Floats = np.minimum(inside, width - inside).astype(np.float64)
    return found


def wavelet_for(asked: AskedLine, noise: NoiseKind) -> WaveletLine:
    """With the best weights of levels: λ ∝ √(need·span) for Gaussian noise, by cube roots for Laplace noise."""
    depth = (asked.size - 1).bit_length()
    widths = [2 ** (depth - level) for level in range(depth + 1)]
    needs = contrast_needs(asked, widths)
    spans = np.array([widths[0], *widths[:-1]], dtype=np.float64)
    # An answer's noise is Σ need/(span·w²); the price of a level is w² or, in L1, w.
    ratio = np.maximum(needs / spans, 1e-300)
    weights = ratio ** (0.25 if noise == "gaussian" else 1 / 3)
    scale = 2**WEIGHT_BITS / weights.max()
    return WaveletLine(asked.size, tuple(max(1, round(float(weight) * scale)) for weight in weights))

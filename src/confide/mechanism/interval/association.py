"""Intervals for covariances, correlations and lines of least squares from noised sums, valid for every data set.

Measured are n, Σu, Σv, Σu², Σv² and Σuv with independent noise, for u and v within known distances of zero; here both
distances are 1. Let a and b be the means of u and v, C = Σ(u - a)(v - b), D = Σ(u - a)² and E = Σ(v - b)². Given a and
b, each of these is a sum of what was measured:

    C = Σuv - aΣv - bΣu + ab n,    D = Σu² - 2aΣu + a² n,    and E like D.

A covariance c has C - c(n - d) = 0, a slope s has C - sD = 0, and a correlation r has C - r(D/l + lE)/2 = 0 with
l = √(D/E). So with noised sums in their place, each is a sum of noises with known coefficients, given a, b and l: as
Fieller's for a ratio, the set of all s (or c, or r) for which it is within its quantile holds the true one with the
confidence of that quantile. For a and b there are the intervals of ratios, for l those of D and E, each with a small
part of the miss rate: the sums depend on a and b only through n(a - Σu/n)(b - Σv/n), and (D/l + lE)/2 is least at its
l, so that errors of these count in the second order. The coefficients are bounded by the same intervals, and by the
interval of s (or c, or r) itself, which is found in rounds.

Soundness. All rests on two events: that a, b and l are in their intervals, and that the sum of noises at the true
values is within the least of all widths that could be taken for it. Widths are taken on a grid that is fixed
beforehand, each at coefficients no smaller than the true ones; each is exceeded no more often than the miss rate
allows, so the least of them is not either. On both events every round gives an interval that holds the true value.

Noise may take C beyond what is possible given D and E; it is then moved to the nearest possible number, which brings it
no further from any r in [-1, 1]. So no interval is empty, or a point. Where D (or E) could be zero, or n could be d or
less, there may be no such number, and the whole range is reported.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from confide.mechanism.interval.interval import Intervals
from confide.mechanism.interval.linear import dominating_half_width
from confide.mechanism.interval.ratio import ratio_intervals
from confide.mechanism.noise.law import Confidence, Floats, Law, miss_rate

AnyIntegers = NDArray[Any]
Sums = Literal["n", "u", "v", "uu", "vv", "uv"]
Range = tuple[Floats, Floats]

MEANS: Final = Fraction(1, 20)  # of the miss rate, for each mean
SQUARES: Final = Fraction(1, 10)  # for each of C, D and E where a first bound is needed
INTERCEPT_MEANS: Final = Fraction(1, 5)  # an intercept moves with the means in the first order
ROUNDS: Final = 3
STEPS: Final = (16, 4, 1)  # coefficients are rounded up to powers of 2^(1/16), or coarser if there are many
MOST_WIDTHS: Final = 48  # of one column: more groups share coarser ones
ROUNDING: Final = 2.0**-44  # covers the operations below, most of all the cancelling in Σuv - ΣuΣv/n
SMALLEST: Final = 2.0**-60  # of a coefficient that is not zero


@dataclass(frozen=True, slots=True, eq=False)
class NoisedSums:
    """What was measured of each group, its laws, and how far u and v are from zero at most."""

    values: Mapping[Sums, AnyIntegers]
    laws: Mapping[Sums, Law]
    radius: tuple[int, int]

    def unit(self, name: Sums) -> int:
        """What a sum is divided by, so that u and v are within 1."""
        return math.prod(self.radius[letter == "v"] for letter in name if letter in "uv")

    def scaled(self, name: Sums) -> Floats:
        return np.asarray(self.values[name].astype(np.float64) / float(self.unit(name)))


def covariance_intervals(sums: NoisedSums, confidence: Confidence, *, sample: bool) -> tuple[Floats, Intervals]:
    """Estimates and intervals of the covariance of u and v, in units of both radii."""
    freedom, widest = (1, 2.0) if sample else (0, 1.0)
    parts = _Parts(sums, confidence, freedom, MEANS)
    rest = parts.n - freedom
    low, high = np.full(rest.shape, -widest), np.full(rest.shape, widest)
    for _ in range(ROUNDS):
        coefficients = {
            "uv": _one(rest),
            "u": _size(parts.b),
            "v": _size(parts.a),
            "n": _size(_minus(_times(parts.a, parts.b), (low, high))),
        }
        width = parts.width(coefficients, 1 - 2 * MEANS)
        # Noise may take both beyond what is possible; as much is possible then as if they were at its end.
        least, most = np.minimum(parts.c[0], high * rest), np.maximum(parts.c[1], low * rest)
        low, high = np.clip(_down((least - width) / rest), low, high), np.clip(_up((most + width) / rest), low, high)
    low, high = np.where(parts.whole, -widest, low), np.where(parts.whole, widest, high)
    return parts.inside(parts.middle / rest, low, high)


def correlation_intervals(sums: NoisedSums, confidence: Confidence) -> tuple[Floats, Intervals]:
    """Estimates and intervals of the correlation, within [-1, 1]."""
    parts = _Parts(sums, confidence, 0, MEANS)
    d, e = (parts.spread(name, SQUARES) for name in ("u", "v"))
    whole = parts.whole | d.nothing | e.nothing
    one = np.ones(parts.n.shape)
    flat = np.sqrt(_safe(d.least, whole) / _safe(e.most, whole))
    steep = np.sqrt(_safe(d.most, whole) / _safe(e.least, whole))
    ratio = _down(flat), _up(steep)
    inverse = _down(1 / ratio[1]), _up(1 / ratio[0])
    below, above = _balanced(d.noised, e.noised, ratio, whole)
    low, high = -one, one
    for _ in range(ROUNDS):
        g, h = _times((low, high), inverse), _times((low, high), ratio)
        squares = _plus(_times(g, _squared(parts.a)), _times(h, _squared(parts.b)))
        coefficients = {
            "uv": one,
            "uu": _size(g) / 2,
            "vv": _size(h) / 2,
            "u": _size(_minus(parts.b, _times(g, parts.a))),
            "v": _size(_minus(parts.a, _times(h, parts.b))),
            "n": _size(_minus(_times(parts.a, parts.b), (squares[0] / 2, squares[1] / 2))),
        }
        width = parts.width(coefficients, 1 - 2 * MEANS - 2 * SQUARES)
        ends = [(np.minimum(parts.c[0], m) - width) / m for m in (below, above)]
        tops = [(np.maximum(parts.c[1], -m) + width) / m for m in (below, above)]
        low = np.clip(_down(np.minimum(*ends)), low, high)
        high = np.clip(_up(np.maximum(*tops)), low, high)
    low, high = np.where(whole, -one, low), np.where(whole, one, high)
    spread = np.sqrt(np.maximum(d.middle, 0) * np.maximum(e.middle, 0))
    return parts.inside(np.where(spread > 0, parts.middle / np.where(spread > 0, spread, 1), 0.0), low, high)


def slope_intervals(sums: NoisedSums, confidence: Confidence) -> tuple[Floats, Intervals]:
    """Estimates and intervals of the slope of v on u by least squares; all numbers where u may not vary at all."""
    parts, low, high, _ = _slopes(sums, confidence, MEANS)
    return parts.inside(parts.middle / np.where(parts.square > 0, parts.square, 1), low, high)


def intercept_intervals(sums: NoisedSums, confidence: Confidence, at: float) -> tuple[Floats, Intervals]:
    """Estimates and intervals of what the line of least squares says of v at u = `at`."""
    parts, low, high, whole = _slopes(sums, confidence, INTERCEPT_MEANS)
    from_mean = (at - parts.a[1], at - parts.a[0])
    low, high = np.where(whole, 0.0, low), np.where(whole, 0.0, high)
    line = _plus(parts.b, _times((low, high), from_mean))
    low, high = np.where(whole, -np.inf, _down(line[0])), np.where(whole, np.inf, _up(line[1]))
    slope = parts.middle / np.where(parts.square > 0, parts.square, 1)
    return parts.inside(parts.v / parts.n + slope * (at - parts.u / parts.n), low, high)


def _slopes(
    sums: NoisedSums, confidence: Confidence, means: Fraction
) -> "tuple[_Parts, Floats, Floats, NDArray[np.bool_]]":
    parts = _Parts(sums, confidence, 0, means)
    d = parts.spread("u", SQUARES)
    whole = parts.whole | d.nothing
    one, two_a = np.ones(parts.n.shape), (2 * parts.a[0], 2 * parts.a[1])
    product = _times(parts.a, parts.b)
    first = parts.width({"uv": one, "u": _size(parts.b), "v": _size(parts.a), "n": _size(product)}, SQUARES)
    least, most = _safe(d.least, whole), np.where(whole, 1.0, d.most)
    covered = parts.c[0] - first, parts.c[1] + first
    low, high = _times(covered, (1 / most, 1 / least))
    below, above = (np.where(whole, 1.0, end) for end in d.noised)
    found = low, high
    for _ in range(ROUNDS):
        coefficients = {
            "uv": one,
            "uu": _size((low, high)),
            "u": _size(_minus(parts.b, _times((low, high), two_a))),
            "v": _size(parts.a),
            "n": _size(_minus(product, _times((low, high), _squared(parts.a)))),
        }
        width = parts.width(coefficients, 1 - 2 * means - 2 * SQUARES)
        ends = parts.c[0] - width, parts.c[1] + width
        found = _times((_down(ends[0]), _up(ends[1])), (1 / above, 1 / below))
        # Where the two have nothing in common one of them misses; neither is left out then.
        apart = (found[0] > high) | (found[1] < low)
        low = np.where(apart, np.minimum(low, found[0]), np.maximum(low, found[0]))
        high = np.where(apart, np.maximum(high, found[1]), np.minimum(high, found[1]))
    parts.square = d.middle
    low, high = np.where(whole, -np.inf, _down(low)), np.where(whole, np.inf, _up(high))
    return parts, low, high, whole


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """Σ(u - a)²: of noised sums, for any a of its interval; then the exact one; and where that may be nothing."""

    noised: Range
    least: Floats
    most: Floats
    nothing: NDArray[np.bool_]
    middle: Floats


class _Parts:
    """Means with their intervals, and C of noised sums for any a and b of theirs."""

    def __init__(self, sums: NoisedSums, confidence: Confidence, freedom: int, means: Fraction) -> None:
        self.sums, self.confidence = sums, confidence
        self.miss = Fraction(miss_rate(confidence))
        counts, law = sums.values["n"], sums.laws["n"]
        self.whole = np.asarray(counts <= freedom + law.upper(confidence), dtype=bool)
        self.n = np.where(self.whole, 2.0, counts.astype(np.float64))
        self.u, self.v = sums.scaled("u"), sums.scaled("v")
        self.a, self.b = self._mean("u", means), self._mean("v", means)
        off_a = (self.a[0] - self.u / self.n, self.a[1] - self.u / self.n)
        off_b = (self.b[0] - self.v / self.n, self.b[1] - self.v / self.n)
        between = self.u * self.v / self.n
        self.middle = sums.scaled("uv") - between
        moved = _times(off_a, off_b)
        error = ROUNDING * (np.abs(sums.scaled("uv")) + np.abs(between) + self.n * _size(moved))
        self.c = (self.middle + self.n * moved[0] - error, self.middle + self.n * moved[1] + error)
        self.square = np.ones(self.n.shape)

    def _mean(self, name: Sums, share: Fraction) -> Range:
        radius = float(self.sums.unit(name))
        found = ratio_intervals(
            np.where(self.whole, 0, self.sums.values[name]),
            np.where(self.whole, 2**62, self.sums.values["n"]),
            self.sums.laws[name],
            self.sums.laws["n"],
            1 - self.miss * share,
            low=-radius,
            high=radius,
            denominator_nonnegative=True,
        )
        return np.clip(_down(found.low / radius), -1, 1), np.clip(_up(found.high / radius), -1, 1)

    def spread(self, name: Literal["u", "v"], share: Fraction) -> _Spread:
        square: Sums = "uu" if name == "u" else "vv"
        mean, total = (self.a, self.u) if name == "u" else (self.b, self.v)
        squares, about = self.sums.scaled(square), total * total / self.n
        middle, centre = squares - about, total / self.n
        nearest = np.clip(centre, *mean)
        furthest = np.maximum(np.abs(mean[0] - centre), np.abs(mean[1] - centre))
        error = ROUNDING * (np.abs(squares) + about + self.n * furthest**2)
        low = middle + self.n * (nearest - centre) ** 2 - error
        high = middle + self.n * furthest**2 + error
        coefficients = {square: np.ones(self.n.shape), name: 2 * _size(mean), "n": _size(mean) ** 2}
        width = self.width(coefficients, share)
        return _Spread((low, high), _down(low - width), _up(high + width), low <= width * (1 + ROUNDING), middle)

    def width(self, coefficients: Mapping[Any, Floats], share: Fraction) -> Floats:
        """What |Σ coefficient × noise| exceeds with no more than a share of the miss rate, group by group."""
        covered = 1 - self.miss * share
        names = list(coefficients)
        sizes = np.stack([np.broadcast_to(coefficients[name], self.n.shape) for name in names])
        sizes = np.where(self.whole | ~np.isfinite(sizes).all(axis=0), 1.0, sizes)
        for steps in STEPS:
            places = np.ceil(steps * np.log2(np.maximum(sizes, SMALLEST)) - 1e-9).astype(np.int64)
            places = np.where(sizes > 0, places, -(2**20))
            kinds, which = np.unique(places, axis=1, return_inverse=True)
            if kinds.shape[1] <= MOST_WIDTHS:
                break
        widths = []
        for kind in kinds.T.tolist():
            terms = [
                (_power(place, steps) / self.sums.unit(name), self.sums.laws[name])
                for name, place in zip(names, kind, strict=True)
                if place > -(2**20)
            ]
            widths.append(math.nextafter(float(dominating_half_width(terms, covered)), math.inf))
        return np.array(widths)[which.ravel()].reshape(self.n.shape) * (1 + ROUNDING)

    def inside(self, estimates: Floats, low: Floats, high: Floats) -> tuple[Floats, Intervals]:
        """Estimates moved into their intervals; 0 where an interval has no end."""
        usable = np.isfinite(low) & np.isfinite(high) & np.isfinite(estimates) & ~self.whole
        middle = np.where(usable, estimates, 0.0)
        return np.clip(middle, low, high), Intervals(low, high, float(self.confidence), "always")


def _power(place: int, steps: int) -> Fraction:
    """2^(place/steps), no less: doubles are rounded up."""
    whole, part = divmod(place, steps)
    return Fraction(2) ** whole * Fraction(math.nextafter(2.0 ** (part / steps), math.inf) if part else 1)


def _balanced(d: Range, e: Range, ratio: Range, whole: NDArray[np.bool_]) -> Range:
    """Between what (D/l + lE)/2 lies, of noised sums, for every l of its interval: it is convex in l."""
    least_d, least_e, most_d, most_e = (np.where(whole, 1.0, end) for end in (d[0], e[0], d[1], e[1]))
    best = np.clip(np.sqrt(least_d / least_e), *ratio)
    ends = [(most_d / end + end * most_e) / 2 for end in ratio]
    return _down((least_d / best + best * least_e) / 2), _up(np.maximum(*ends))


def _one(like: Floats) -> Floats:
    return np.ones(like.shape)


def _safe(numbers: Floats, whole: NDArray[np.bool_]) -> Floats:
    return np.where(whole, 1.0, numbers)


def _size(numbers: Range) -> Floats:
    return _up(np.maximum(np.abs(numbers[0]), np.abs(numbers[1])))


def _times(first: Range, second: Range) -> Range:
    corners = np.stack([x * y for x in first for y in second])
    return _down(corners.min(axis=0)), _up(corners.max(axis=0))


def _plus(first: Range, second: Range) -> Range:
    return _down(first[0] + second[0]), _up(first[1] + second[1])


def _minus(first: Range, second: Range) -> Range:
    return _down(first[0] - second[1]), _up(first[1] - second[0])


def _squared(numbers: Range) -> Range:
    most = np.maximum(np.abs(numbers[0]), np.abs(numbers[1])) ** 2
    least = np.where(numbers[0] * numbers[1] <= 0, 0.0, np.minimum(np.abs(numbers[0]), np.abs(numbers[1])) ** 2)
    return _down(least), _up(most)


def _down(numbers: Floats) -> Floats:
    moved: Floats = numbers - np.abs(numbers) * ROUNDING
    return moved


def _up(numbers: Floats) -> Floats:
    moved: Floats = numbers + np.abs(numbers) * ROUNDING
    return moved

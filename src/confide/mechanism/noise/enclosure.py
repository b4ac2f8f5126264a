"""Exponentials between two integers: the arithmetic under the exact samplers.

A number p in [0, 1] is enclosed at b bits by integers low <= p·2^b <= high. Products round low down and high up, so
every enclosure is a proof; nothing here rests on an error analysis. Only `exp` comes from elsewhere: Python's decimal
module, whose specification makes it correctly rounded, widened by one unit on each side.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

GUARD = 64  # bits beyond those asked for; the rounding of a thousand products uses up ten


def exponential(rate: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= exp(-rate)·2^bits <= high for a rate >= 0, at most a few apart."""
    if rate == 0:
        return 1 << bits, 1 << bits
    if rate > bits:
        return 0, 1
    digits = bits * 31 // 100 + 8
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    numerator, denominator = Decimal(-rate.numerator), Decimal(rate.denominator)
    least = down.next_minus(down.exp(down.divide(numerator, denominator)))
    most = up.next_plus(up.exp(up.divide(numerator, denominator)))
    low_numerator, low_denominator = least.as_integer_ratio()
    high_numerator, high_denominator = most.as_integer_ratio()
    return (low_numerator << bits) // low_denominator, -((-high_numerator << bits) // high_denominator)


@dataclass(frozen=True, slots=True)
class ExponentialWeights:
    """Weights w₀ = 1, w₁, w₂, ... with w[k+1] / w[k] = exp(-(first + k·step)), all but w₀ doubled if `folded`.

    A step of 0 is a geometric law and a positive step a half Gaussian; folded, they are the laws of |X| for the
    discrete Laplace and the discrete Gaussian. `count` is how many weights there are; None means that they never end.
    """

    first: Fraction
    step: Fraction = Fraction(0)
    folded: bool = False
    count: int | None = None

    def cumulative(self, bits: int) -> "Cumulative":
        """The distribution function of the normalised weights, enclosed at `bits` bits.

        With A the weight up to an index and B the weight beyond, F = A / (A + B) grows with A and falls with B, so the
        ends of their enclosures give the ends of F's. Endless weights are summed until the rest is far below
        2^-bits of the whole; the ratios fall, so after a weight w with ratio r the rest is at most w·r / (1 - r).
        """
        work = bits + GUARD
        one = 1 << work
        ratio_low, ratio_high = exponential(self.first, work)
        step_low, step_high = exponential(self.step, work)
        low, high, rest = one, one, 0
        lows, highs = [low], [high]
        while self.count is None or len(lows) < self.count:
            low, high = low * ratio_low >> work, -(-high * ratio_high >> work)
            lows.append(low << self.folded)
            highs.append(high << self.folded)
            ratio_low, ratio_high = ratio_low * step_low >> work, -(-ratio_high * step_high >> work)
            if self.count is None:
                rest = -(-(high * ratio_high << self.folded) // (one - ratio_high))
                if rest >> GUARD // 2 == 0:
                    break
        lows, highs = _normalised(lows, highs, rest, bits)
        if self.count is None:
            needed = bisect_left(lows, (1 << bits) - 1) + 1  # from there on, F rounds to 1
            lows, highs = lows[:needed], highs[:needed]
        return Cumulative(bits, lows, highs, ends=self.count is not None)


@dataclass(frozen=True, slots=True)
class Cumulative:
    """F(0), F(1), ... between integers at `bits` bits; if it `ends`, the last is 1."""

    bits: int
    lows: list[int]
    highs: list[int]
    ends: bool

    def index(self, word: int) -> int | None:
        """The smallest k with U < F(k) for every U whose first `bits` bits are `word`, or None if it is not the same
        for all.
        """
        index = bisect_right(self.lows, word)
        if index == len(self.lows) or (index > 0 and self.highs[index - 1] > word):
            return None
        return index


def _normalised(lows: list[int], highs: list[int], rest: int, bits: int) -> tuple[list[int], list[int]]:
    beyond_low, beyond_high = sum(lows), sum(highs) + rest
    upto_low = upto_high = 0
    cumulative_lows, cumulative_highs = [], []
    for low, high in zip(lows, highs, strict=True):
        upto_low += low
        upto_high += high
        beyond_low -= low
        beyond_high -= high
        cumulative_lows.append((upto_low << bits) // (upto_low + beyond_high))
        cumulative_highs.append(-((-upto_high << bits) // (upto_high + beyond_low)))
    return cumulative_lows, cumulative_highs

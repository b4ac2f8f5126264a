"""Quantiles by rank: targets, and intervals made of a lower and an upper end.

Write q = p/d in lowest terms. Every definition of the q-quantile of n values (the ⌈qn⌉-th smallest, the interpolated
one at 1 + q(n-1), any y with #{x<y} <= qn <= #{x<=y}) lies between the order statistics ⌊1 + q(n-1)⌋ and ⌈1 + q(n-1)⌉.
The first of these is at least (p(n-1) + 1)/d. So an end y is too high only if

    d·#{x<y} >= p(n-1) + 1,         which is `target(q, n)`, in units of 1/d rows.

An upper end is a lower end of the mirrored data for the quantile 1 - q, because the two order statistics change places.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Protocol

from confide.errors import ParameterError
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.statistic import TYPICAL_ROWS, Expectation, Setting, StatisticEstimate, StatisticForecast, inside
from confide.mechanism.tally import Domain, Tally

FINEST_QUANTILE: Final = 10**6


def parse_quantile(value: object) -> Fraction:
    """The exact quantile behind a number; a double stands for its shortest decimal."""
    exact = None
    if isinstance(value, int | Fraction | Decimal | str) and not isinstance(value, bool):
        exact = _fraction(value)
    elif isinstance(value, float):
        exact = _fraction(repr(value))
    if exact is None or not 0 <= exact <= 1:
        raise ParameterError(f"a quantile lies between 0 and 1, such as 0.5 for the median; got {value!r}")
    if exact.denominator > FINEST_QUANTILE:
        raise ParameterError(f"a quantile has at most six decimals, or a denominator up to 10^6; got {value!r}")
    return exact


def _fraction(value: int | Fraction | Decimal | str) -> Fraction | None:
    try:
        return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def order_statistics(q: Fraction, rows: int) -> tuple[int, int]:
    """⌊1 + q(n-1)⌋ and ⌈1 + q(n-1)⌉, the places between which every definition of the q-quantile lies."""
    position = 1 + q * (rows - 1)
    return position.__floor__(), position.__ceil__()


def target(q: Fraction, rows: int) -> int:
    """The least rank, in units of 1/denominator rows, that a value above the quantile has below it."""
    return q.numerator * (rows - 1) + 1


class LowerEnd(Protocol):
    """Lower ends of a quantile, one for each tally, whose values lie in the domain."""

    def __call__(self, tallies: Sequence[Tally], domain: Domain, randomness: Randomness) -> Sequence[int]: ...

    def window(self, rows: int) -> Domain | None:
        """Ranks r and R: rows may be anywhere among values y with #{x<=y} <= r, or with #{x<y} >= R, for the same law.

        None if every row matters where it is.
        """


class EndMaker(Protocol):
    """A mechanism for lower ends: what it does for one quantile, at a price per row, missing at most so often."""

    def lower(self, q: Fraction, epsilon: Fraction, miss: float) -> LowerEnd: ...


@dataclass(frozen=True, slots=True)
class TwoEnds:
    """An interval for a quantile from two runs of one mechanism, each with half of the cost and of the miss rate.

    The smallest value has no private lower end but that of the domain, and the largest no upper one: there the other
    end gets everything.
    """

    maker: EndMaker
    setting: Setting
    q: Fraction

    @property
    def sides(self) -> int:
        return 1 if self.q in (0, 1) else 2

    def measure_each(self, tallies: Sequence[Tally], randomness: Randomness) -> list[StatisticEstimate]:
        """One interval for each tally, with noise of its own."""
        low, high = self.setting.ends
        lower, upper = self.made()
        clipped = [tally.clipped(low, high) for tally in tallies]
        lows: Sequence[int] = [low] * len(clipped)
        highs: Sequence[int] = [-high] * len(clipped)
        if lower is not None:
            lows = lower(clipped, (low, high), randomness)
        if upper is not None:
            highs = upper([tally.mirrored() for tally in clipped], (-high, -low), randomness)
        return [self._estimated(*sorted((first, -second))) for first, second in zip(lows, highs, strict=True)]

    def window(self) -> Callable[[int], Domain]:
        """From a number of rows, the window of both ends together, if they have one."""
        lower, upper = self.made()

        def both(rows: int) -> Domain:
            window = _window(lower, upper, rows)
            assert window is not None
            return window

        return both

    def made(self) -> tuple[LowerEnd | None, LowerEnd | None]:
        """One for the lower end, one for the upper end of mirrored data."""
        epsilon, miss = self.setting.row_epsilon / self.sides, self.setting.miss / self.sides
        lower = None if self.q == 0 else self.maker.lower(self.q, epsilon, miss)
        return lower, None if self.q == 1 else self.maker.lower(1 - self.q, epsilon, miss)

    def _estimated(self, low: int, high: int) -> StatisticEstimate:
        """The middle; but if one end is only that of the domain, the other is closer to the quantile."""
        at_low, at_high = low == self.setting.ends[0], high == self.setting.ends[1]
        estimate = (low + high) // 2
        if at_low != at_high:
            estimate = high if at_low else low
        return inside(estimate, low, high, self.setting)


def _window(lower: LowerEnd | None, upper: LowerEnd | None, rows: int) -> Domain | None:
    windows = [] if lower is None else [lower.window(rows)]
    if upper is not None:
        mirrored = upper.window(rows)
        windows.append(None if mirrored is None else (rows - mirrored[1], rows - mirrored[0]))
    known = [window for window in windows if window is not None]
    if len(known) < len(windows):
        return None
    return min(first for first, _ in known), max(last for _, last in known)


def rank_forecast(ranks: float, setting: Setting, expectation: Expectation, q: Fraction) -> StatisticForecast:
    """From ranks to values, if values lie evenly over their spread."""
    low, high = setting.ends
    rows = expectation.rows or TYPICAL_ROWS
    spread = expectation.spread or (high - low)
    reachable = min(ranks, rows * float(max(q, 1 - q)))
    half_width = min(reachable * spread / max(rows, 1), (high - low) / 2)
    if min(q, 1 - q) * rows < ranks:
        half_width = max(half_width, (high - low) / 4)  # one end falls off the data
    said = "" if expectation.rows and expectation.spread else " (a guess: say how many rows and what spread to expect)"
    return StatisticForecast(
        half_width, f"{ranks:.0f} rows to each side, {rows} rows evenly over {spread:.6g}{said}", ranks
    )

"""What a decider needs to know of the data: a few exact integers, by name. One statement fetches them."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np

from confide.mechanism.tally import Buckets, Domain, Integers, Tally, bucketed

Seen = int | tuple[int, ...] | Buckets | Tally
"""What was read: an integer, a few, sums by bucket, or distinct values with counts."""


@dataclass(frozen=True, slots=True)
class WholeCell:
    """The count, or the sum: one integer."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The sum of the known values, and how many there are."""


@dataclass(frozen=True, slots=True)
class Clipped:
    """The sum of the values cut to [low, high], and how many rows that changes."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Sides:
    """How many known values there are, how many are at most `below`, and how many at least `above`."""

    below: int
    above: int


@dataclass(frozen=True, slots=True)
class Powers:
    """Counts and sums by magnitude, in buckets that end at `edges`."""

    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """The distinct values with their counts."""


Reading = WholeCell | Totals | Clipped | Sides | Powers | Values


def seen_in(reading: Reading, tally: Tally) -> Seen:
    """What a reading finds in a tally."""
    match reading:
        case WholeCell():
            return tally.total()
        case Totals():
            return tally.total(), tally.rows
        case Clipped(low, high):
            outside = (tally.values < low) | (tally.values > high)
            return tally.clipped(low, high).total(), int(tally.counts[outside].sum())
        case Sides(below, above):
            return _sides(tally, below, above)
        case Powers(edges):
            return bucketed(tally, edges)
        case Values():
            return tally
        case _:
            assert_never(reading)


def quantile_of(tally: Tally, q: Fraction) -> Fraction | None:
    """The ⌈qn⌉-th smallest value, the first for q = 0; None without values."""
    if not tally.rows:
        return None
    place = max(1, -(-q.numerator * tally.rows // q.denominator))
    return Fraction(int(tally.values[np.searchsorted(np.cumsum(tally.counts), place)]))


Imagined = Callable[[Reading, Fraction], Seen]
"""What a reading would find if the private answer were so many steps above the synthetic one."""


def imagined_whole(answer: int) -> Imagined:
    """A count or a sum of which nothing but its size is known."""
    return lambda _, gap: answer + round(gap)


def imagined_sum(synthetic: Tally) -> Imagined:
    """A sum whose gap lies below any cut; over buckets it is made of more or fewer rows of the synthetic shape."""

    known: dict[Reading, Seen] = {}

    def imagine(reading: Reading, gap: Fraction) -> Seen:
        seen = known[reading] if reading in known else known.setdefault(reading, seen_in(reading, synthetic))
        match seen:
            case int():
                return seen + round(gap)
            case tuple():
                return seen[0] + round(gap), *seen[1:]
            case Buckets():
                return _moved(seen, round(gap))
            case Tally():
                return seen
            case _:
                assert_never(seen)

    return imagine


def imagined_mean(total: int, rows: int) -> Imagined:
    """A mean over as many rows as the synthetic one."""
    return lambda _, gap: (total + round(gap * rows), rows)


def imagined_values(synthetic: Tally, domain: Domain) -> Imagined:
    """The synthetic values, all moved by the gap."""

    def imagine(reading: Reading, gap: Fraction) -> Seen:
        # Cut beforehand, so that nothing leaves 64 bits.
        low, high = domain
        step = min(max(round(gap), low - high), high - low)
        kept = synthetic.clipped(low - min(step, 0), high - max(step, 0))
        return seen_in(reading, Tally(kept.values + step, kept.counts))

    return imagine


def _moved(buckets: Buckets, gap: int) -> Buckets:
    """A gap first takes from the part of the other sign, then adds to its own; a part keeps its shape."""
    counts, sums = buckets.counts.copy(), buckets.sums.copy()
    own, other = (1, 0) if gap > 0 else (0, 1)
    taken = min(abs(gap), int(sums[other].sum()))
    for sign, change in ((other, -taken), (own, abs(gap) - taken)):
        whole = int(sums[sign].sum())
        if change and whole:
            # Sums up to an edge are rounded, and not sums by bucket: so all of them add up to the whole.
            upto = [int(part) * (whole + change) // whole for part in np.cumsum(sums[sign])]
            sums[sign] = np.diff(np.array([0, *upto], dtype=object))
            counts[sign] = [round(Fraction(int(part) * (whole + change), whole)) for part in counts[sign]]
        elif change:  # of no shape: small values
            sums[sign, 0], counts[sign, 0] = change, counts[sign, 0] + change
    return Buckets(buckets.edges, counts, sums)


def _sides(tally: Tally, below: int, above: int) -> tuple[int, int, int]:
    cumulative: Integers = tally.cumulative()
    upto = int(cumulative[np.searchsorted(tally.values, below, side="right")])
    before = int(cumulative[np.searchsorted(tally.values, above, side="left")])
    return tally.rows, upto, tally.rows - before

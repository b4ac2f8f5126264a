"""Totals of contributions without a declared bound: cut at many levels, raced, or cut at a level that is learnt.

F(τ) is what is left of a total when no unit keeps more than τ: Σ min(contribution, τ), or the optimum of `Packing`
where units share rows. A unit changes F(τ) by at most τ; F grows with τ, ever more slowly, up to the exact total, which
it reaches where no unit has more. Where a `Change` says what one unit changes, F need only be at most the total, and
the total where no unit has more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Final, Protocol

import numpy as np

from confide.mechanism.interval.interval import Assumes
from confide.mechanism.join.sharing import PAIR, sensitivity, slack
from confide.mechanism.noise.additive import Additive, laplace
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.race import Lanes
from confide.mechanism.selection.sparse_vector import SparseVector, Stream
from confide.privacy.loss import PureDP

LATE: Final = 0.02  # how often the walk goes a level too far, which costs width only
BASE: Final = 2.0
FAR: Final = 2**61
RACED: Final = 2  # every second level takes part in a race: fewer get more of ε each


@dataclass(frozen=True, slots=True)
class Bounded:
    """A total with the ends of its interval, and the level it was cut at.

    `informed`: whether the upper end is for a level that was learnt, or declared. If not, it is for the largest level:
    it holds always, and is so wide that it says next to nothing. `beyond`: an upper end that holds where no unit has
    more than twice the level, whatever else is so; None where nothing is known of it. `borne_out`: False where what is
    released shows that the `condition` of the mechanism cannot be so; then the level may be too low by any factor.
    """

    estimate: int
    low: int
    high: int
    level: int
    informed: bool = True
    beyond: int | None = None
    borne_out: bool = True

    def __post_init__(self) -> None:
        """No interval is without width: where noise is nothing almost for certain, the upper end is one more."""
        if not self.low <= self.estimate <= self.high:
            raise ValueError("an estimate lies inside of its interval")
        object.__setattr__(self, "high", max(self.high, self.low + 1))


class Change(Protocol):
    """What one unit changes at a level, where what is released and what the level is learnt by are two numbers."""

    @property
    def counted(self) -> str:
        """What the level is learnt by, in words that end a sentence."""

    def learnt(self, level: int) -> tuple[int, int]:
        """How far one unit lowers, and how far it raises, what the level is learnt by."""

    def released(self, level: int) -> int:
        """How far one unit changes what is released."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Cut-offs 1, base, base², ... up to at least `largest`. `owners`: how many units may share a row.

    Where they share rows F comes from a program (`Packing`): what one unit changes then is for `sharing` to say. With a
    `change` F is anything that has one, and that is all that is asked of it.
    """

    largest: int
    owners: int = 1
    smallest: int = 1
    base: float = BASE
    change: Change | None = None

    @property
    def edges(self) -> tuple[int, ...]:
        edges, power = [self.smallest], float(self.smallest)
        while edges[-1] < self.largest:
            power *= self.base
            edges.append(min(math.ceil(power), max(self.largest, edges[-1] + 1)))
        return tuple(edges)

    def holding(self, largest: int) -> int:
        """The place of the first level that is not below a contribution."""
        return next((place for place, edge in enumerate(self.edges) if edge >= largest), len(self.edges) - 1)

    @property
    def learnt(self) -> bool:
        """One level alone is declared, not learnt."""
        return len(self.edges) > 1

    def sensitivity(self, level: int) -> int:
        edge = self.edges[level]
        return sensitivity(edge, self.owners) if self.change is None else self.change.released(edge)

    @property
    def walk_share(self) -> Fraction:
        """Of ε, for the walk that learns a level with one release after it. Gains of rows that many share are noisier
        in their own units, and a walk that stops early misses more than noise does.
        """
        return (Fraction(1, 3) if self.owners <= PAIR else Fraction(1, 2)) if self.learnt else Fraction(0)

    @property
    def race_share(self) -> Fraction:
        """The same for what is not the walk, with many releases beside it."""
        return (Fraction(3, 4) if self.owners <= PAIR else Fraction(1, 2)) if self.learnt else Fraction(1)

    def walk(self, epsilon: Fraction) -> SparseVector:
        """The gain of the next level over this one, in units: one unit that comes changes it by 0 to 1 where units
        share nothing, else by -1 to 2.
        """
        return SparseVector(epsilon, 1, 1) if self._alone else SparseVector(epsilon, 2, 3)

    def units(self) -> list[int]:
        """What gains are counted in, for each level but the last.

        A gain falls by at most what one unit lowers the next level and raises this one, and rises by the reverse.
        """
        if self._alone:
            return [following - here for here, following in pairwise(self.edges)]
        return [
            max(fall_after + rise, -(-(rise_after + fall) // 2))
            for (fall, rise), (fall_after, rise_after) in pairwise(map(self._reach, range(len(self.edges))))
        ]

    @property
    def _alone(self) -> bool:
        """Whether units share nothing, so that F is a sum of minima."""
        return self.owners == 1 and self.change is None

    def _reach(self, place: int) -> tuple[int, int]:
        """How far one unit lowers and raises what the level is learnt by.

        A unit that comes raises an optimum by 0 to its sensitivity, and what is known of it is off by less than slack.
        """
        if self.change is not None:
            return self.change.learnt(self.edges[place])
        return slack(self.edges[place]), self.sensitivity(place)

    def gains(self, totals: Sequence[int]) -> list[int]:
        """⌊(F(next) - F(level)) / unit⌋, for each level but the last."""
        return [(after - before) // unit for (before, after), unit in zip(pairwise(totals), self.units(), strict=True)]

    def enough(self, totals: Sequence[int], epsilon: Fraction, miss: float, randomness: Randomness) -> int | None:
        """One beyond the first level that the next one seems to gain nothing over; the last if there is none.

        None where so little is left at the first level that even if all of it came again at the next, that might not
        be seen: then a walk that stops says nothing. It is the first question of the same sparse vector.
        """
        if not self.learnt:
            return 0
        walk = self.walk(epsilon)
        first, *gains = self.seen(totals)
        few = self.crowd(epsilon, miss) - first
        margins = np.array([few, *(self.shift(epsilon) - gain for gain in gains)], dtype=np.int64)
        place = int(walk.first(Stream(margins, np.ones(len(margins), dtype=np.int64)), randomness)[0])
        if place == 0:
            return None
        return len(self.edges) - 1 if place < 0 else place

    def seen(self, totals: Sequence[int]) -> list[int]:
        """What the walk asks about: what is left at the first level, in units of which one more changes it by no more
        than a gain, and all gains. None is above FAR, which is passed by for certain.
        """
        fall, rise = self._reach(0)
        unit = rise if self._alone else max(fall, -(-rise // 2), self.units()[0])
        return [min(number, FAR) for number in (totals[0] // unit, *self.gains(totals))]

    def crowd(self, epsilon: Fraction, miss: float) -> int:
        """Of fewer than `needed` units at the first level it is said that they are few, but for `miss`."""
        return self.needed(epsilon, miss) + self.walk(epsilon).missed_below(miss)

    def shift(self, epsilon: Fraction) -> int:
        return self.walk(epsilon).missed_below(LATE)

    def needed(self, epsilon: Fraction, miss: float) -> int:
        """A gain of so many units is passed by, at any of the levels, but for `miss`."""
        return self.shift(epsilon) + self.walk(epsilon).stopped_above(miss / max(1, len(self.edges) - 1))

    def hidden(self, place: int, epsilon: Fraction, miss: float) -> int | None:
        """What twice a learnt level may hold beyond it, where the walk that learnt it errs but for `miss`.

        The walk stopped at the level before, so the gain over that is below `needed` units. An optimum is concave in
        τ, and so is a sum of minima: from a to b it gains no less, for each unit of τ, than from b on. What is known of
        an optimum is off by less than slack. Only where F has no `change`, and the walk did stop.
        """
        if self.change is not None or not 0 < place < len(self.edges) - 1:
            return None
        before, here = self.edges[place - 1], self.edges[place]
        gain = self.needed(epsilon, miss) * self.units()[place - 1] + 2 * slack(here)
        return -(-gain * here // (here - before)) + 2 * slack(here)

    def least(self, place: int, epsilon: Fraction, miss: float) -> int:
        """What is left at a learnt level at least, if the condition is so: all levels that the walk passed by were
        gained over by `needed` units. But for how often a walk goes a level too far.
        """
        if self.change is not None or not self.learnt:
            return 0
        return self.needed(epsilon, miss) * sum(self.units()[: max(place - 1, 0)])

    @property
    def raced(self) -> tuple[int, ...]:
        """Places of the levels that race; the last is among them."""
        return tuple(reversed(range(len(self.edges) - 1, -1, -RACED)))

    def learnt_end(self, place: int, ends: tuple[int, int, int], epsilon: Fraction, miss: float) -> Bounded:
        """An estimate and its ends at a learnt level, with what else is known of them."""
        estimate, low, high = ends
        hidden = self.hidden(place, epsilon, miss) if self.learnt else None
        beyond = None if hidden is None else high + hidden
        borne_out = not self.learnt or high >= self.least(place, epsilon, miss)
        return Bounded(estimate, low, high, self.edges[place], beyond=beyond, borne_out=borne_out)

    def always(self, totals: Sequence[int], epsilon: Fraction, miss: float, randomness: Randomness) -> Bounded:
        """A race to the largest level, where none is learnt: both ends hold whatever the data are; the estimate is the
        lower one ([Dong2022]).
        """
        low, _, high = self.always_lanes(epsilon, miss).run([totals[place] for place in self.raced], randomness)
        return Bounded(low, low, high, self.edges[-1], informed=False)

    def always_lanes(self, epsilon: Fraction, miss: float) -> Lanes:
        return Lanes(tuple(self.sensitivity(place) for place in self.raced), epsilon, miss / 2, miss / 4)

    def condition(self, epsilon: Fraction, miss: float) -> str:
        """What must hold of the data for the learnt level to lose nothing, but for `miss`."""
        if not self.learnt:
            return ""
        needed, units = self.needed(epsilon, miss), self.units()
        more = 0 if self._alone else units[0] - self.edges[0]
        times = max(Fraction(unit - more, edge) for unit, edge in zip(units, self.edges, strict=False))
        beside = f" and {needed * more:,} more" if more else ""
        return (
            "that where twice a cut-off still loses anything, doubling it brings back at least "
            f"{math.ceil(needed * times):,} times it{beside}{'' if self.change is None else self.change.counted}"
        )


@dataclass(frozen=True, slots=True)
class Race:
    """Releases F at many levels with noise, and with less at a learnt one, in the last of the `Lanes`: the best lower
    bound of all of them, and an upper one from the last (R2T, with a final heat).

    Neighbours: one unit comes or goes, with all its rows. Loss: ε-DP: ¼ε (½ε from three owners on) for the sparse
    vector that learns the level, half of the rest for all levels together, and half for the learnt one.
    Lower end: valid whatever the data are, since F never exceeds the total ([Patwa2023], equation 13; [Dong2022]).
    Upper end and estimate: from the learnt level, under `condition`. The estimate is not lowered by the published
    penalty of ln(L/β) scales, which only the lower end needs. Where too few units are seen to learn a level, or an
    upper end is not above the lower one, which shows that `condition` fails, it is that of the largest level: it holds
    whatever the data are.
    """

    levels: Levels
    epsilon: Fraction
    miss: float
    name: ClassVar[str] = "r2t"
    assumes: ClassVar[Assumes] = "density"

    def __post_init__(self) -> None:
        _ = self._lanes(len(self.levels.edges) - 1).noises
        if self.levels.learnt:
            self.levels.walk(self.epsilon * (1 - self.levels.race_share))

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def condition(self) -> str:
        return self.levels.condition(self.epsilon * (1 - self.levels.race_share), self.miss / 4)

    def measure(self, totals: Sequence[int], randomness: Randomness, learnt_by: Sequence[int] | None = None) -> Bounded:
        """`learnt_by`: by which numbers the level is learnt, where it is not by the totals."""
        levels, guide = self.levels, totals if learnt_by is None else learnt_by
        learnt = levels.enough(guide, self.epsilon * (1 - levels.race_share), self.miss / 4, randomness)
        if learnt is None:
            return levels.always(totals, self.epsilon * levels.race_share, self.miss, randomness)
        lanes, top = self._lanes(learnt), len(levels.raced) - 1
        noised = lanes.noised([totals[place] for place in (*levels.raced, learnt)], randomness)
        low, high = lanes.low(noised), lanes.high(-1, noised)
        if high > low - (lanes.margin == 0):
            estimate = min(max(noised[-1], low), high)
            return levels.learnt_end(
                learnt, (estimate, low, high), self.epsilon * (1 - levels.race_share), self.miss / 4
            )
        return Bounded(low, low, max(lanes.high(top, noised), low + lanes.margin), levels.edges[-1], informed=False)

    def expected_half_width(self, largest: int) -> float:
        """If the level that is learnt is the first that holds twice `largest`."""
        lanes = self._lanes(self.levels.holding(2 * largest))
        return (lanes.penalties[-1] + lanes.margin) / 2

    def _lanes(self, learnt: int) -> Lanes:
        """The walk has the last quarter of the miss rate."""
        changes = tuple(self.levels.sensitivity(place) for place in (*self.levels.raced, learnt))
        return Lanes(changes, self.epsilon * self.levels.race_share, self.miss / 2, self.miss / 4)


@dataclass(frozen=True, slots=True)
class Truncation:
    """Releases F at one level, learnt by a sparse vector, with noise for that level.

    Neighbours: one unit comes or goes, with all its rows. Loss: ε-DP: ⅓ε (½ε from three owners on) for the level
    (nothing if there is one only), the rest for F (after [Kotsogiannis2019], who learn a bound on
    join keys; here on what a unit adds to the answer).
    Lower end: valid whatever the data are, since F never exceeds the total. Upper end: under `condition`; where too few
    units are seen to learn a level, a race with the rest of ε gives two ends that hold whatever the data are.
    """

    levels: Levels
    epsilon: Fraction
    miss: float
    name: ClassVar[str] = "truncate"
    assumes: ClassVar[Assumes] = "density"

    def __post_init__(self) -> None:
        self.noise(len(self.levels.edges) - 1)
        if self.levels.learnt:
            self.levels.walk(self.epsilon * self.levels.walk_share)
            _ = self.levels.always_lanes(self._rest, self.miss).noises

    @property
    def loss(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def condition(self) -> str:
        return self.levels.condition(self.epsilon * self.levels.walk_share, self.miss / 4)

    def measure(self, totals: Sequence[int], randomness: Randomness, learnt_by: Sequence[int] | None = None) -> Bounded:
        """`learnt_by`: by which numbers the level is learnt, where it is not by the totals."""
        level = self.learn(totals if learnt_by is None else learnt_by, randomness)
        if level is None:
            return self.levels.always(totals, self._rest, self.miss, randomness)
        law = self.noise(level)
        noised = law.noised(totals[level], randomness)
        low = max(0, noised - law.law.upper(1 - Fraction(self.miss / 2)))
        # A total is not negative: below 0 the upper end stays where it is for 0.
        high = max(noised, 0) + law.law.upper(1 - self._above)
        ends = (max(noised, 0), low, high)
        return self.levels.learnt_end(level, ends, self.epsilon * self.levels.walk_share, self.miss / 4)

    def expected_half_width(self, largest: int) -> float:
        """If the level that is learnt is the first that holds twice `largest`."""
        law = self.noise(self.levels.holding(2 * largest)).law
        return (law.upper(1 - Fraction(self.miss / 2)) + law.upper(1 - self._above)) / 2

    @property
    def _above(self) -> Fraction:
        """How often noise may be beyond the upper end; the walk has the other quarter of the miss rate."""
        return Fraction(self.miss / (4 if self.levels.learnt else 2))

    @property
    def _rest(self) -> Fraction:
        """What the walk leaves of ε."""
        return self.epsilon * (1 - self.levels.walk_share)

    def learn(self, totals: Sequence[int], randomness: Randomness) -> int | None:
        """The place of the level, None where units are too few to learn it; costs its part of ε."""
        return self.levels.enough(totals, self.epsilon * self.levels.walk_share, self.miss / 4, randomness)

    def noise(self, level: int) -> Additive:
        """The noise of what is released at a level, for the rest of ε."""
        return laplace(self.levels.sensitivity(level), self.epsilon * (1 - self.levels.walk_share))


def clipped_totals(contributions: Sequence[int], counts: Sequence[int], edges: Sequence[int]) -> list[int]:
    """Σ min(contribution, τ) for every level τ, where units share no rows."""
    values = np.asarray(contributions, dtype=object)
    numbers = np.asarray(counts, dtype=object)
    return [int((np.minimum(values, edge) * numbers).sum()) if len(values) else 0 for edge in edges]

"""Sums with the rarest values cut: less noise, and a tail that is taken as the synthetic data have it.

The cut is public, because it is chosen on the synthetic data. Cut at C, one row changes the sum by C instead of the
largest value there may be, and T(C), what the synthetic values exceed C by, is left out. The cost of a cut is what both
add to the effectiveness threshold, (steps of noise)·C + T(C); the least is taken. Without a cut nothing is left out.

The private tail is not known. It is taken as the synthetic one, off by at most T(C) either way; and a third margin
looks whether there are many more private rows beyond the cut than synthetic ones, which costs nothing more.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from confide.errors import ParameterError
from confide.mechanism import Randomness
from confide.mechanism.tally import Domain, Integers, Tally, weighted_total
from confide.privacy.loss import PureDP
from confide.trust.decider import Bits
from confide.trust.optimal import Optimal, effective_margin
from confide.trust.plug_in import PlugIn
from confide.trust.seen import Clipped, Reading, Seen
from confide.trust.target import Facts, Prefer, Steps, Target, row_steps

CUTS: Final = 512  # how many cuts are looked at: quantiles of the synthetic values, and powers of two
TAIL_FACTOR: Final = 2  # so many times the synthetic rows may lie beyond the cut before that is a no
FEW: Final = 5  # where no synthetic row lies, so many private ones are no surprise
NOTHING_BEYOND: Final = 2**63  # where nothing is cut, nothing is counted


@dataclass(frozen=True, slots=True)
class ClipMargin:
    """Of the cut sum against the interval less the synthetic tail, and of the rows beyond the cut."""

    target: Target
    cut: Clipped
    steps: Steps
    rows: Steps
    most_outside: int

    @property
    def reading(self) -> Reading:
        return self.cut

    @property
    def epsilon(self) -> Fraction:
        return self.steps.epsilon

    def of(self, seen: Seen) -> int:
        assert isinstance(seen, tuple)
        total, outside = seen
        inside = self.steps.of(min(total - self.target.first, self.target.last - total) + 1)
        return min(inside, self.rows.of(self.most_outside - outside + 1))


@dataclass(frozen=True, slots=True)
class Clip:
    """Releases whether the sum of cut values, plus the synthetic tail, lies in the interval.

    Neighbours: those that `Facts` describes; cut to [low, high], a unit changes the sum by `Facts.change(low, high)`.
    Loss: ε-DP, as `optimal` where τ is at least the threshold, else as `laplace`; which of the two is public.
    It does not drop rows ([Patwa2023], Algorithm 4, drops the top 5 % and so says no whatever ε is). If cautious, a
    wrong yes is bounded as long as the private tail differs from the synthetic one by no more than that is, on either
    side; where that alone may be τ or more, no yes is safe and it is `never` said.
    """

    by_margin: Optimal
    by_noise: PlugIn
    tail: Fraction
    wide: bool
    cuts: bool
    never: bool
    name: ClassVar[str] = "clip"

    @classmethod
    def make(
        cls,
        facts: Facts,
        target: Target,
        epsilon: Fraction,
        prefer: Prefer = "balanced",
        synthetic: Tally | None = None,
    ) -> "Clip":
        if facts.kind != "sum" or synthetic is None:
            raise ParameterError("the decider clip takes sums")
        chosen = choose_cut(facts, epsilon, synthetic)
        steps = row_steps(facts, chosen.at.low, chosen.at.high, epsilon)
        # Cautious: the tail may be off by its own size, so the interval is narrower by that at both ends.
        width = target.tau - chosen.reach if prefer == "cautious" else target.tau
        never = width <= 0
        moved = Target(target.answer - chosen.tail, target.tau if never else width)
        rows = Steps(facts.rows, epsilon) if facts.single else Steps(1, epsilon / facts.rows)
        cuts = facts.domain != (chosen.at.low, chosen.at.high)
        most = _most_outside(facts, chosen, target.tau) + effective_margin(rows) if cuts else NOTHING_BEYOND
        margin = ClipMargin(moved, chosen.at, steps, rows, most)
        change = facts.change(chosen.at.low, chosen.at.high)
        wide = prefer == "cautious" or width >= effective_margin(steps)
        by_noise = PlugIn(moved, max(1, change), epsilon)
        return cls(Optimal(margin, epsilon, prefer), by_noise, Fraction(chosen.reach), wide, cuts, never)

    @property
    def cut(self) -> Clipped:
        reading = self.by_margin.reading
        assert isinstance(reading, Clipped)
        return reading

    @property
    def loss(self) -> PureDP:
        return self.by_margin.loss

    @property
    def reading(self) -> Reading:
        return self.by_margin.reading

    @property
    def blind(self) -> Fraction:
        return self.tail

    @property
    def assumes(self) -> str:
        if not self.cuts:
            return ""
        return (
            "private values exceed the cut by no more than twice what the synthetic ones do, all in all, "
            "those above it and those below it apart"
            if self.cut.low < 0 < self.cut.high
            else "private values exceed the cut by no more than twice what the synthetic ones do, all in all"
        )

    @property
    def wrong_yes(self) -> float | None:
        if self.never:
            return 0.0
        if self.cuts and self.by_margin.prefer == "balanced":
            return None
        return self.by_margin.wrong_yes if self.wide else self.by_noise.wrong_yes

    def chance(self, seen: Seen) -> float:
        if self.never:
            return 0.0
        return self.by_margin.chance(seen) if self.wide else self.by_noise.chance(_total(seen))

    def decide(self, seen: Seen, randomness: Randomness, count: int = 1) -> Bits:
        if self.never:
            return np.zeros(count, dtype=bool)
        if self.wide:
            return self.by_margin.decide(seen, randomness, count)
        return self.by_noise.decide(_total(seen), randomness, count)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where values are cut, and what that does to the synthetic data.

    `tail` is by how much the cut changes their sum, `reach` the same signs aside, `outside` how many rows it changes.
    """

    at: Clipped
    tail: int
    reach: int
    outside: int


@lru_cache(maxsize=64)
def choose_cut(facts: Facts, epsilon: Fraction, synthetic: Tally) -> Cut:
    """The cut with the least threshold. Values of both signs are cut alike."""
    low, high = facts.ends
    magnitudes = np.abs(synthetic.values)
    order = np.argsort(magnitudes, kind="stable")
    sizes, counts = magnitudes[order], synthetic.counts[order]
    cuts = _cuts(sizes, facts.domain)
    first_beyond = np.searchsorted(sizes, cuts, side="right")
    # Doubles are good enough to compare costs: the cut need not be the very best, only public.
    rows_beyond = np.append(np.cumsum(counts[::-1].astype(float))[::-1], 0.0)[first_beyond]
    sums_beyond = np.append(np.cumsum((sizes * counts.astype(float))[::-1])[::-1], 0.0)[first_beyond]
    noise = [effective_margin(row_steps(facts, max(low, -cut), min(high, cut), epsilon)) for cut in cuts]
    costs = np.array(noise, dtype=float) + np.maximum(sums_beyond - rows_beyond * np.array(cuts, dtype=float), 0)
    return _cut(Clipped(max(low, -cuts[int(costs.argmin())]), min(high, cuts[int(costs.argmin())])), synthetic)


def _cuts(sizes: Integers, domain: Domain | None) -> list[int]:
    """Synthetic magnitudes, thinned out, powers of two, and the largest that the domain allows: no cut."""
    seen, cuts = 1, set()
    if len(sizes):
        places = np.unique(np.linspace(0, len(sizes) - 1, CUTS).astype(np.int64))
        seen, cuts = int(sizes[-1]), {int(size) for size in sizes[places]}
    largest = seen if domain is None else max(abs(domain[0]), abs(domain[1]))
    cuts |= {2**power for power in range(largest.bit_length())} | {largest}
    return sorted(cut for cut in cuts if 1 <= cut <= largest) or [1]


def _cut(at: Clipped, synthetic: Tally) -> Cut:
    above = np.maximum(synthetic.values - at.high, 0)
    under = np.maximum(at.low - synthetic.values, 0)
    over, less = weighted_total(above, synthetic.counts), weighted_total(under, synthetic.counts)
    return Cut(at, over - less, over + less, int(synthetic.counts[(above > 0) | (under > 0)].sum()))


def _most_outside(facts: Facts, cut: Cut, tau: Fraction) -> int:
    """So many private rows may lie beyond the cut: twice the synthetic ones, and as many as cannot move half of τ."""
    room = 0 if facts.domain is None else max(facts.domain[1] - cut.at.high, cut.at.low - facts.domain[0])
    harmless = int(tau / (2 * room)) if room else 0
    return TAIL_FACTOR * cut.outside + max(FEW, harmless)


def _total(seen: Seen) -> int:
    assert isinstance(seen, tuple)
    return seen[0]

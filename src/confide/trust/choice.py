"""Which decider: by name, or by what is public."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from confide.errors import ParameterError
from confide.mechanism.tally import Tally
from confide.trust.clip import Clip
from confide.trust.decider import Decider
from confide.trust.effectiveness import threshold
from confide.trust.exponential_decider import Graded, Naive
from confide.trust.median import Histogram, Selected
from confide.trust.optimal import Optimal
from confide.trust.plug_in import PlugIn, PlugInMean
from confide.trust.race_decider import Raced
from confide.trust.seen import Imagined
from confide.trust.sparse_decider import SparseDecider
from confide.trust.target import Facts, Kind, Prefer, Target

Make = Callable[[Facts, Target, Fraction, Prefer], Decider]

MAKERS: Final[dict[Kind, dict[str, Make]]] = {
    "count": {
        "optimal": Optimal.make,
        "laplace": PlugIn.make,
        "exponential": Graded.make,
        "exponential-naive": Naive.make,
    },
    "sum": {
        "optimal": Optimal.make,
        "laplace": PlugIn.make,
        "exponential": Graded.make,
        "exponential-naive": Naive.make,
        "r2t": Raced.make,
        "svt": SparseDecider.make,
    },
    "mean": {"optimal": Optimal.make, "laplace": PlugInMean.make, "exponential-naive": Naive.make},
    "quantile": {
        "optimal": Optimal.make,
        "tie-aware": Selected.tie_aware,
        "exponential": Selected.published,
        "histogram": Histogram.make,
        "exponential-naive": Naive.make,
    },
}
"""Every decider of an aggregate but `clip`, which looks at the synthetic data too."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A decider, the least τ at which it is effective, in steps of the grid, and why it was taken."""

    decider: Decider
    threshold: float
    why: str


@dataclass(frozen=True, slots=True)
class Chooser:
    """Everything public about one decision but τ and ε."""

    facts: Facts
    target: Target
    imagine: Imagined
    prefer: Prefer = "balanced"
    synthetic: Tally | None = None
    """The synthetic values of a sum; without them there is no `clip`."""

    @property
    def names(self) -> tuple[str, ...]:
        more = ("clip",) if self.facts.kind == "sum" else ()
        return *more, *MAKERS[self.facts.kind]

    def make(self, name: str, epsilon: Fraction, tau: Fraction | None = None) -> Decider:
        """The decider of that name, for this τ or another."""
        target = self.target if tau is None else self.target.widened(tau)
        if name == "clip" and self.facts.kind == "sum":
            return Clip.make(self.facts, target, epsilon, self.prefer, self.synthetic)
        if name not in MAKERS[self.facts.kind]:
            raise ParameterError(
                f"there is no decider {name!r} for a {self.facts.kind}; there are auto, {', '.join(self.names)}"
            )
        return MAKERS[self.facts.kind][name](self.facts, target, epsilon, self.prefer)

    def choose(self, name: str, epsilon: Fraction) -> Chosen:
        """The decider of that name; for `auto` by effectiveness thresholds, which follow from public facts."""
        name, why = self.resolve(name, epsilon)
        decider = self.make(name, epsilon)
        if isinstance(decider, Clip) and decider.never:
            why += "; what is cut may be off by τ or more, so no yes would be safe: no, whatever the data are"
        return Chosen(decider, self.threshold(name, epsilon), why)

    def resolve(self, name: str, epsilon: Fraction) -> tuple[str, str]:
        """Which decider a name means at this ε, and why."""
        kind, cautious = self.facts.kind, self.prefer == "cautious"
        if name != "auto":
            return name, "as asked"
        if kind == "quantile":
            return "optimal", "it errs least for every quantile: one row moves its margin by half a row"
        if kind == "mean":
            return "optimal", "all of ε goes into the ends of the interval, and none into a count"
        if kind == "sum" and not cautious:
            return "clip", self._why_clip(epsilon)
        if cautious and kind == "sum" and self.facts.domain is None:
            raise ParameterError(
                "no decider bounds the wrong yes of a sum over an unbounded column whatever the data are; give the "
                "column a range in the policy, or ask for mechanism='clip', whose bound rests on what it assumes"
            )
        if cautious:
            return "optimal", "it errs least of those whose wrong yes is bounded whatever the data are"
        effective = self.threshold("optimal", epsilon)
        if self.target.tau >= effective:
            return "optimal", "it errs least of the deciders that are effective at this τ"
        return "laplace", "no decider is effective at so small a τ, and this one then errs towards no"

    def threshold(self, name: str, epsilon: Fraction) -> float:
        return threshold(lambda tau: self.make(name, epsilon, tau), self.facts, self.target.answer, self.imagine)

    def _why_clip(self, epsilon: Fraction) -> str:
        found = self.make("clip", epsilon)
        assert isinstance(found, Clip)
        why = "cutting rare large values lowers its threshold" if found.cuts else "no cut would lower the threshold"
        return why if found.wide else f"{why}; no decider is effective at so small a τ, and it then errs towards no"

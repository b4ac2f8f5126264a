"""What a method is going to ask of a curator, as far as that is known beforehand: from this a plan is priced."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class MeasureSets:
    """Every count of some sets of columns. Where a choice comes first, the largest stands for the chosen."""

    what: str
    sets: tuple[tuple[int, ...], ...]
    share: Fraction
    """Of the call's cost, for each time."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class ChooseAmong:
    """So many of some candidates, by the exponential mechanism."""

    what: str
    picks: int
    among: int
    share: Fraction
    times: int = 1


@dataclass(frozen=True, slots=True)
class MeasureQueries:
    """Single counts, each with noise of its own."""

    what: str
    count: int
    share: Fraction
    times: int = 1


SynthesisStep = MeasureSets | ChooseAmong | MeasureQueries

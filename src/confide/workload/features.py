"""Which columns are asked about: distributions over columns, workloads drawn from them, and drift.

After Definition 5.2 of [AventKorolova2023]: a set of k columns is drawn one by one without replacement, each with its
probability among those that are left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from confide.errors import ParameterError
from confide.workload.workload import Threshold, Workload


@dataclass(frozen=True, slots=True)
class Interest:
    """How likely each column is to be asked about."""

    columns: tuple[str, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.shares) or not self.columns:
            raise ParameterError("an interest has one share for each column")
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ParameterError("the shares of an interest are at least 0 and add up to 1")

    def distance(self, other: "Interest") -> float:
        """Total variation."""
        theirs = dict(zip(other.columns, other.shares, strict=True))
        mine = zip(self.columns, self.shares, strict=True)
        return sum(abs(share - theirs.get(column, 0)) for column, share in mine) / 2


def uniform(columns: Sequence[str]) -> Interest:
    """Every column alike."""
    return _interest(columns, [1.0] * len(columns))


def zipf(columns: Sequence[str], exponent: float = 1.0) -> Interest:
    """Shares in proportion to 1/i^exponent, in the order of the columns."""
    return _interest(columns, [(place + 1) ** -exponent for place in range(len(columns))])


def geometric(columns: Sequence[str], ratio: float = 0.5) -> Interest:
    """Shares that fall by `ratio` from one column to the next."""
    if not 0 < ratio < 1:
        raise ParameterError(f"ratio = {ratio!r} is not between 0 and 1")
    return _interest(columns, [ratio**place for place in range(len(columns))])


def drifted(interest: Interest, gamma: float, generator: np.random.Generator) -> Interest:
    """The same shares on other columns: γ = 0 changes nothing, ½ shuffles, 1 reverses their order."""
    if not 0 <= gamma <= 1:
        raise ParameterError(f"gamma = {gamma!r} is not between 0 and 1")
    count = len(interest.columns)
    shares = np.array(interest.shares)
    order = np.argsort(-shares, kind="stable")
    rank = np.arange(1, count + 1)
    keys = (1 - 2 * gamma) * (count - rank) / max(1, count - 1)
    keys = keys + (1 - abs(1 - 2 * gamma)) * generator.random(count)
    moved = np.empty(count)
    # The feature with the largest key gets the largest share.
    moved[order[np.argsort(-keys, kind="stable")]] = shares[order]
    return Interest(interest.columns, tuple(float(share) for share in moved))


def draw(interest: Interest, count: int, k: int, r: int | None = None, *, generator: np.random.Generator) -> Workload:
    """`count` thresholds on k columns each, drawn independently; r-of-k, or marginals if r is not given."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ParameterError(f"count = {count!r} is not a number of thresholds; write a whole number from 1")
    able = sum(share > 0 for share in interest.shares)
    if not 1 <= k <= able:
        raise ParameterError(f"k = {k!r} columns are to be drawn from {able}; write a whole number from 1 to {able}")
    need = k if r is None else r
    drawn = (
        sorted(generator.choice(len(interest.columns), size=k, replace=False, p=np.array(interest.shares)))
        for _ in range(count)
    )
    return Workload(tuple(Threshold(tuple(interest.columns[place] for place in places), need) for places in drawn))


def padded(
    workload: Workload, columns: Sequence[str], at_least: int, k: int, r: int, *, generator: np.random.Generator
) -> Workload:
    """With thresholds on columns drawn uniformly, until there are `at_least`: a short history says little of the future
    ([AventKorolova2023], section 5.3.1)."""
    missing = at_least - len(workload.parts)
    if missing <= 0 or not columns:
        return workload
    width = min(k, len(columns))
    return workload + draw(uniform(columns), missing, width, min(r, width), generator=generator)


def _interest(columns: Sequence[str], weights: Sequence[float]) -> Interest:
    total = sum(weights)
    return Interest(tuple(columns), tuple(weight / total for weight in weights))

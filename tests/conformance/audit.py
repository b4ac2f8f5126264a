"""Does what was sampled on two neighbouring inputs contradict the stated loss?

For an event E, Clopper-Pearson bounds give P(E) >= p on one input and P(E) <= q on the other. The stated loss limits
how far p may lie above q. The event is chosen on one half of the runs and judged on the other, so the choice is free.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from confide.privacy.loss import ZCDP, ApproxDP, PrivacyLoss, PureDP

ORDERS = (1.001, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
EVENTS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """The worst event of an audit: how often it happened on each side, and by how much that exceeds what is allowed."""

    event: str
    excess: float
    epsilon: float  # Clopper-Pearson lower bound on ε, at the stated δ

    @property
    def violated(self) -> bool:
        return self.excess > 0


def audit(first: NDArray[np.int64], second: NDArray[np.int64], loss: PrivacyLoss, alarm: float = 1e-6) -> Finding:
    """The worst finding over both directions, all views and their events; a false one has probability at most `alarm`.

    The rows of the arrays are independent runs, the columns what one run released.
    """
    views = [*zip(_views(first), _views(second), strict=True)]
    level = alarm / (2 * len(views))
    findings = []
    for (name, one), (_, two) in views:
        for direction, left, right in (("", one, two), (" (reversed)", two, one)):
            event = _best_event(left[::2], right[::2], loss, level)
            hits = event.count(left[1::2]), event.count(right[1::2])
            low, high = clopper_pearson(*hits, len(left[1::2]), len(right[1::2]), level)
            findings.append(Finding(f"{name} {event}{direction}", excess(low, high, loss), _epsilon(low, high, loss)))
    return max(findings, key=lambda finding: finding.excess)


def excess(low: float, high: float, loss: PrivacyLoss) -> float:
    """How far an event of probability >= `low` here and <= `high` there exceeds the loss; negative if it does not."""
    match loss:
        case PureDP(epsilon):
            return _log(low) - _log(high) - float(epsilon)
        case ApproxDP(epsilon, delta):
            return _log(max(low - float(delta), 0)) - _log(high) - float(epsilon)
        case ZCDP(rho, delta):
            low = max(low - float(delta), 0)
            return max(_renyi(low, high, order) - order * float(rho) for order in ORDERS) if low > high else -1.0


def clopper_pearson(hits: int, other_hits: int, runs: int, other_runs: int, level: float) -> tuple[float, float]:
    """A lower bound of the first probability and an upper bound of the second; one is wrong at most at the `level`."""
    low = float(beta.ppf(level / 2, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - level / 2, other_hits + 1, other_runs - other_hits)) if other_hits < other_runs else 1.0
    return low, high


@dataclass(frozen=True, slots=True)
class _Event:
    kind: str
    value: int

    def count(self, sample: NDArray[np.int64]) -> int:
        match self.kind:
            case ">=":
                return int((sample >= self.value).sum())
            case "<=":
                return int((sample <= self.value).sum())
            case _:
                return int((sample == self.value).sum())

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


def _best_event(one: NDArray[np.int64], two: NDArray[np.int64], loss: PrivacyLoss, level: float) -> _Event:
    pooled = np.concatenate([one, two])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, EVENTS), method="nearest"))
    values, counts = np.unique(pooled, return_counts=True)
    points = values[np.argsort(-counts)[:EVENTS]]
    events = [_Event(kind, int(value)) for kind in (">=", "<=") for value in thresholds]
    events += [_Event("=", int(value)) for value in points]

    def merit(event: _Event) -> float:
        bounds = clopper_pearson(event.count(one), event.count(two), len(one), len(two), level)
        return excess(*bounds, loss)

    return max(events, key=merit)


def _views(runs: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """What to look at: each number, and where there are several, their sum, least, greatest, and differences."""
    columns = runs.shape[1]
    for column in range(columns):
        yield f"number {column}", runs[:, column]
    if columns > 1:
        yield "sum", runs.sum(axis=1)
        yield "least", runs.min(axis=1)
        yield "greatest", runs.max(axis=1)
        for column in range(1, columns):
            yield f"number {column} less number {column - 1}", runs[:, column] - runs[:, column - 1]


def _epsilon(low: float, high: float, loss: PrivacyLoss) -> float:
    delta = 0.0 if isinstance(loss, PureDP) else float(loss.delta)
    return _log(max(low - delta, 0)) - _log(high)


def _renyi(one: float, two: float, order: float) -> float:
    """The Rényi divergence of two coins."""
    both = order * _log(one) + (1 - order) * _log(two), order * _log(1 - one) + (1 - order) * _log(1 - two)
    return float(np.logaddexp(*both)) / (order - 1)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -700.0

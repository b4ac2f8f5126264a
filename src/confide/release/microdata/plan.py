"""What microdata would give and cost, before anything is spent. Public facts only."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from confide.fit import FitProblem, MeasuredGroup, Subtotal, error
from confide.fit import Marginal as MarginalGroup
from confide.ledger.record.terms import Standing
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, NoNoise
from confide.policy import Policy
from confide.privacy.amount import show
from confide.release.cost import BudgetState, Cost, budget_state
from confide.release.microdata.marginals import Marginal, Marginals, Noise, show_marginal

USELESS: Final = 1.0
"""A count is useless if its half-width is this many times the mean count, or more."""


@dataclass(frozen=True, slots=True)
class PlannedMarginal:
    """One marginal: how wide the interval of each noisy count is, and that of its estimate from all marginals.

    `mean` is what a count is on average, if the number of rows is said by the caller or the policy.
    """

    marginal: Marginal
    cells: int
    half_width: float
    combined: float
    mechanism: str
    mean: float | None

    @property
    def useful(self) -> bool | None:
        return None if self.mean is None else self.combined < USELESS * self.mean


@dataclass(frozen=True)
class MicrodataPlan:
    """The forecast of a release. Nothing was read and nothing was charged."""

    table: str
    marginals: tuple[PlannedMarginal, ...]
    cells: int
    cost: Cost
    confidence: float
    unit: str
    neighbours: str
    rows: int | None
    affordable: bool
    budget: BudgetState
    notes: tuple[str, ...] = ()

    @property
    def half_width(self) -> dict[Marginal, float]:
        return {each.marginal: each.half_width for each in self.marginals}

    def to_dict(self) -> dict[str, object]:
        return {
            "table": self.table,
            "cells": self.cells,
            "cost": self.cost.to_dict(),
            "confidence": self.confidence,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "rows": self.rows,
            "affordable": self.affordable,
            "marginals": [
                {
                    "columns": list(each.marginal),
                    "cells": each.cells,
                    "half_width": each.half_width,
                    "combined_half_width": each.combined,
                    "mechanism": each.mechanism,
                    "mean_count": each.mean,
                    "useful": each.useful,
                }
                for each in self.marginals
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from confide.release.microdata.rendering import plan_text  # noqa: PLC0415  loaded when printed

        return plan_text(self)

    def _repr_html_(self) -> str:
        from confide.release.microdata.rendering import plan_html  # noqa: PLC0415  loaded when printed

        return plan_html(self)


def plan_design(
    policy: Policy,
    standing: Standing,
    design: Marginals,
    noise: Noise,
    epsilon: Fraction,
    confidence: float,
    rows: int | None,
) -> MicrodataPlan:
    size = rows if rows is not None else policy.tables[design.table].size
    planned = _planned(design, noise, confidence, size)
    return MicrodataPlan(
        table=design.table,
        marginals=planned,
        cells=design.domain.cells,
        cost=Cost.of(epsilon, noise.loss),
        confidence=confidence,
        unit=design.unit,
        neighbours=design.neighbours,
        rows=size,
        affordable=standing.holds(noise.loss),
        budget=budget_state(standing),
        notes=tuple(_notes(planned, size, epsilon)),
    )


def _planned(design: Marginals, noise: Noise, confidence: float, size: int | None) -> tuple[PlannedMarginal, ...]:
    combined = _combined(design, noise, confidence)
    planned = []
    for place, (marginal, mechanism) in enumerate(zip(design.marginals, noise.mechanisms, strict=True)):
        cells = design.domain.size(marginal)
        half = float(mechanism.law.half_width(confidence))
        mean = None if size is None else size / cells
        planned.append(PlannedMarginal(marginal, cells, half, combined[place], mechanism.name, mean))
    return tuple(planned)


def warn_if_useless(policy: Policy, design: Marginals, noise: Noise, epsilon: Fraction, confidence: float) -> None:
    """A warning before the charge, if nothing of what comes out would be more than noise."""
    size = policy.tables[design.table].size
    if size is None:
        return
    pairs = zip(design.marginals, noise.mechanisms, strict=True)
    if any(each.law.half_width(confidence) < USELESS * size / design.domain.size(own) for own, each in pairs):
        return  # a noisy count by itself shows already, so its estimate from all marginals does
    for note in _notes(_planned(design, noise, confidence, size), size, epsilon):
        if note.startswith(_TOO_SMALL):
            warnings.warn(f"{note} (plan_microdata shows this for free)", UserWarning, stacklevel=6)


_TOO_SMALL: Final = "ε is too small"


def _notes(planned: Sequence[PlannedMarginal], size: int | None, epsilon: Fraction) -> list[str]:
    if size is None:
        return ["the policy does not say how many rows there are, so whether ε is enough is not judged; give rows"]
    lost = [each for each in planned if not each.useful]
    if not lost:
        return []
    worst, best = max(lost, key=_ratio), min(lost, key=_ratio)
    forecast = (
        f"a count of {show_marginal(worst.marginal)} is {worst.mean:,.1f} on average and its interval "
        f"±{worst.combined:,.0f}"
    )
    # Widths fall as 1/ε for Laplace noise, and about so for Gaussian noise at the small ε this is about.
    needed = f"{show_marginal(best.marginal)} needs about ε = {show(_needed(best, epsilon), 2)}"
    if best is not worst:
        needed += f", {show_marginal(worst.marginal)} ε = {show(_needed(worst, epsilon), 2)}"
    if len(lost) == len(planned):
        return [f"{_TOO_SMALL} for any of the marginals: {forecast}; for the mean count to show, {needed}"]
    names = ", ".join(show_marginal(each.marginal) for each in lost)
    return [f"counts of {names} are mostly noise one by one, and useful in sums: {forecast} ({needed})"]


def _ratio(planned: PlannedMarginal) -> float:
    return planned.combined / max(planned.mean or 0.0, 1e-12)


def _needed(planned: PlannedMarginal, epsilon: Fraction) -> Fraction:
    return Fraction(float(epsilon) * _ratio(planned))


def _combined(design: Marginals, noise: Noise, confidence: float) -> list[float]:
    """The half-width of a count's least-squares estimate from all marginals; never above that of the count alone."""
    domain = design.domain
    pairs = list(zip(design.marginals, noise.mechanisms, strict=True))
    measured = [
        MeasuredGroup(MarginalGroup(marginal), np.zeros(domain.size(marginal)), mechanism.law)
        for marginal, mechanism in pairs
        if isinstance(mechanism.law, DiscreteLaplace | DiscreteGaussian)
    ]
    if not measured:
        return [0.0] * len(pairs)
    problem = FitProblem(domain, tuple(measured))
    widths = []
    for marginal, mechanism in pairs:
        if isinstance(mechanism.law, NoNoise):
            widths.append(0.0)
            continue
        first = np.arange(domain.size(marginal)) == 0
        # The estimate of zero answers is zero, so the upper end of its interval is the half-width.
        found = error(problem, Subtotal(MarginalGroup(marginal), first), confidence).interval.high
        widths.append(min(math.ceil(found * 100) / 100, float(mechanism.law.half_width(confidence))))
    return widths

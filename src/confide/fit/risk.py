"""Which sums are at risk in microdata, judged from noisy numbers only, and what each fit gives up.

A sum is at risk when many of its parts could be noise alone (Remark 2: the difficult data sets have one visible part
among many empty ones). Cutting a part that is zero at zero adds the mean of the positive half of its noise; over n
such parts this adds up to n of them, while the sum itself is known to within one noise. Either the sum takes the
excess, or the visible parts pay for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from confide.fit.adaptive import screen
from confide.fit.fitted import Fit
from confide.fit.group import TOTAL, Marginal
from confide.fit.least_squares import ols
from confide.fit.problem import FitProblem, MeasuredGroup, NoiseLaw
from confide.fit.reweighted import low_answers
from confide.mechanism.noise.law import DiscreteLaplace


@dataclass(frozen=True, slots=True)
class Risk:
    """One sum and its measured parts.

    `parts` of the marginal `over` belong to it, `low` of them could be noise alone; `excess` is what cutting those at
    zero would add to the sum on average, `deviation` the standard deviation of the sum's own noise. At risk: excess >
    deviation.
    """

    marginal: tuple[str, ...]
    place: tuple[int, ...]
    over: tuple[str, ...]
    answer: float
    parts: int
    low: int
    excess: float
    deviation: float

    @property
    def pressure(self) -> float:
        return self.excess / self.deviation


@dataclass(frozen=True, slots=True)
class Sacrifice:
    """How far a fit moves answers from their unbiased estimates, in standard deviations of the measurement's noise.

    `total` is the shift of the overall count; `sums` and `parts` are the largest shifts of an answer that has
    measured parts, and of one that has none, among those that noise alone does not explain; `cut` is the mass that
    was cut away or added.
    """

    method: str
    total: float
    sums: float
    parts: float
    cut: float


@dataclass(frozen=True, slots=True)
class Report:
    """The sums at risk, worst first and not more than asked for; how many there are in all; z of the test for hidden
    mass.
    """

    risks: tuple[Risk, ...]
    at_risk: int
    judged: int
    hidden: float | None
    sacrifices: tuple[Sacrifice, ...]


def report(problem: FitProblem, fits: Sequence[Fit] = (), most: int = 20) -> Report:
    """What the noisy numbers say about risk, and what the given fits sacrifice."""
    risks: list[Risk] = []
    judged = at_risk = 0
    for coarse in problem.measured:
        for fine in problem.measured:
            if not _contains(coarse, fine):
                continue
            found = _risks(problem, coarse, fine)
            judged += len(found)
            at_risk += sum(risk.pressure > 1 for risk in found)
            risks.extend(sorted((risk for risk in found if risk.pressure > 1), key=_pressure, reverse=True)[:most])
    seen = screen(problem)
    worst = tuple(sorted(risks, key=_pressure, reverse=True)[:most])
    unbiased = ols(problem) if fits else None
    given_up = tuple(_sacrifice(problem, fit, unbiased) for fit in fits if unbiased is not None)
    return Report(worst, at_risk, judged, None if seen is None else seen.z, given_up)


def mean_above_zero(law: NoiseLaw) -> float:
    """E max(0, noise), for the continuous law of the same scale."""
    return float(law.scale) / 2 if isinstance(law, DiscreteLaplace) else math.sqrt(law.variance / (2 * math.pi))


def _pressure(risk: Risk) -> float:
    return risk.pressure


def _contains(coarse: MeasuredGroup, fine: MeasuredGroup) -> bool:
    if not isinstance(coarse.group, Marginal) or not isinstance(fine.group, Marginal):
        return False
    return set(coarse.group.attributes) < set(fine.group.attributes)


def _risks(problem: FitProblem, coarse: MeasuredGroup, fine: MeasuredGroup) -> list[Risk]:
    """Every answer of a marginal with its parts in a finer one."""
    domain = problem.domain
    over, marginal = fine.group, coarse.group
    assert isinstance(over, Marginal)
    assert isinstance(marginal, Marginal)
    low = low_answers(fine).astype(np.float64)
    sizes = [domain.sizes[axis] for axis in domain.axes(over.attributes)]
    dropped = tuple(place for place, name in enumerate(over.attributes) if name not in marginal.attributes)
    kept = [name for name in over.attributes if name in marginal.attributes]
    counts = low.reshape(sizes).sum(axis=dropped)
    counts = np.asarray(counts).transpose([kept.index(name) for name in marginal.attributes]).ravel()
    parts = len(low) // max(len(counts), 1)
    shape = [domain.sizes[axis] for axis in domain.axes(marginal.attributes)]
    lift, deviation = mean_above_zero(fine.law), math.sqrt(coarse.variance)
    return [
        Risk(
            marginal.attributes,
            tuple(int(each) for each in np.unravel_index(place, shape)) if shape else (),
            over.attributes,
            float(coarse.answers[place]),
            parts,
            int(count),
            float(count) * lift,
            deviation,
        )
        for place, count in enumerate(counts)
        if count > 0
    ]


def _sacrifice(problem: FitProblem, fit: Fit, unbiased: Fit) -> Sacrifice:
    domain = problem.domain
    deviation = min(math.sqrt(item.variance) for item in problem.measured)
    total = float((fit.answer(TOTAL) - unbiased.answer(TOTAL))[0]) / deviation
    sums = parts = 0.0
    for item in problem.measured:
        visible = ~low_answers(item) if item.group.disjoint(domain) else np.ones(len(item.answers), dtype=bool)
        if not visible.any():
            continue
        shift = float(np.abs(fit.answer(item.group) - unbiased.answer(item.group))[visible].max())
        shift /= math.sqrt(item.variance)
        if any(_contains(item, other) for other in problem.measured):
            sums = max(sums, shift)
        else:
            parts = max(parts, shift)
    cut = float(np.minimum(unbiased.cells, 0).sum())
    return Sacrifice(fit.method, total, sums, parts, -cut)

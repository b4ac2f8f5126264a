"""The automatic fit: how much it shrinks small counts is decided by a test on the noisy numbers.

Where all of a table's mass could sit in its plainly visible cells, small answers are noise and are best shrunk hard;
where it could not, shrinking them hides real small cells. Two estimates of the total tell the two apart: ordinary
least squares, which is always right, and least squares on the visible cells alone, which is right and more precise
only if there is nothing besides. Their difference has the difference of their variances ([Hausman1978]); z is how many
deviations it amounts to. Nothing here but noisy answers and laws is used, so it costs no privacy. docs/microdata.md
has the figures.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from confide.errors import ParameterError
from confide.fit.error import estimates, variance
from confide.fit.fitted import Fit, require_consistent
from confide.fit.group import TOTAL, Floats, Marginal, Mask
from confide.fit.least_squares import nnls
from confide.fit.linear_systems import conjugate_gradients
from confide.fit.posterior import measured_cells, posterior_means
from confide.fit.problem import FitProblem, MeasuredGroup
from confide.fit.program import Term, counts_cells
from confide.fit.reweighted import low_answers
from confide.fit.sequential import pinned_to
from confide.mechanism.noise.law import DiscreteLaplace

TOWARDS: Final = 1 / 2  # of the way to the total of the visible cells, at full trust
HALFWAY: Final = 2.0  # standard deviations: an answer fitted as large as this counts half
LEAST: Final = 0.3  # what an answer fitted as zero still counts
OUTLIER: Final = 0.05  # what an outlier still counts
ROUNDS: Final = 2
MOVED: Final = 0.25  # standard deviations that a cell may be moved towards its posterior mean
FREED: Final = 4.0  # and more of them, where nothing is hidden and the visible cells are much better known
MOST_PRODUCTS: Final = 500


@dataclass(frozen=True, slots=True, eq=False)
class Screening:
    """What the noisy numbers say of hidden mass: z, the trust in there being none, the total to keep, low answers.

    `saved` is the part of the total's variance that would be saved if there were none: where it is little, z could
    hardly have found any.
    """

    z: float
    trust: float
    saved: float
    total: float
    low: tuple[Mask, ...]


def adaptive(problem: FitProblem, start: Fit | None = None) -> Fit:
    """Non-negative least squares with a pinned total, and with targets and weights adapted to what the noise leaves
    visible.

    1. The total is the least-squares estimate, moved up to half of the way to that of the visible cells if z says
       they may be all.
    2. Low answers are drawn to the nearest non-negative ones with that total, those of the finest marginals less so.
    3. Answers of the finest marginals count less where a first pinned fit makes them small.
    4. With Laplace noise, large residuals count less (two rounds of reweighting towards least absolute deviations).
    5. Where cells were measured, they move towards their posterior means under a prior that the noisy counts teach,
       by a part of a standard deviation at most ([EfronMorris1972]: that keeps most of what is won on average, and
       bounds what a cell can lose), and the nearest table with the total is the fit.
    """
    require_consistent(problem)
    seen = screen(problem)
    if seen is None:
        fit = nnls(problem, start)
        return Fit("adaptive", fit.domain, fit.cells, fit.certificate, fit.multipliers)
    held = Term(TOTAL, np.array([seen.total]), 1.0)  # or what public totals leave of it
    targets = [
        _drawn(item, seen.low[place], seen, seen.trust**2 if is_detail(problem, place) else seen.trust)
        for place, item in enumerate(problem.measured)
    ]
    raw = [Term(item.group, item.answers, 1 / item.variance) for item in problem.measured]
    first = fit = pinned_to(problem, [held], raw, "adaptive", start)
    for _ in range(ROUNDS if any(isinstance(item.law, DiscreteLaplace) for item in problem.measured) else 1):
        terms = [
            Term(item.group, target, _weights(problem, place, target, first, fit) / item.variance)
            for place, (item, target) in enumerate(zip(problem.measured, targets, strict=True))
        ]
        fit = pinned_to(problem, [held], terms, "adaptive", fit)
    cells = measured_cells(problem)
    return _moved(problem, cells[0], held, seen, fit) if cells else fit


def screen(problem: FitProblem) -> Screening | None:
    """The test for hidden mass; None where the measurements do not determine the total."""
    try:
        total, spread = float(estimates(problem, TOTAL)[0]), variance(problem, TOTAL)
    except ParameterError:
        return None
    domain = problem.domain
    low = tuple(
        low_answers(item) if item.group.disjoint(domain) else np.zeros(len(item.answers), dtype=bool)
        for item in problem.measured
    )
    visible = np.ones(domain.cells, dtype=bool) if problem.public.zeros is None else ~problem.public.zeros
    for item, mask in zip(problem.measured, low, strict=True):
        if mask.any():
            visible &= item.group.spread(domain, mask.astype(np.float64)) == 0
    restricted, precise = _restricted_total(problem, visible.astype(np.float64))
    known = spread <= 1e-12 * max(item.variance for item in problem.measured)  # a public total
    apart = precise if known else spread - precise
    z = (total - restricted) / math.sqrt(max(apart, 1e-6 * max(spread, precise), 1e-300))
    trust = math.exp(-(max(z, 0.0) ** 2) / 2)
    moved = 0.0 if known else TOWARDS * trust**2 * (total - restricted)
    saved = min(max(apart, 0.0) / spread, 1.0) if not known else 0.0
    return Screening(z, trust, saved, max(total - moved, 0.0), low)


def is_detail(problem: FitProblem, place: int) -> bool:
    """Whether no other measured marginal is finer than this measurement."""
    group = problem.measured[place].group
    if not isinstance(group, Marginal):
        return True
    names = set(group.attributes)
    return not any(names < set(item.group.attributes) for item in problem.measured if isinstance(item.group, Marginal))


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest numbers that are not negative and have the given sum."""
    if total <= 0:
        return np.zeros(len(values))
    descending = -np.sort(-values)
    excess = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(descending > excess)  # none where the total is lost in rounding beside the values
    return np.asarray(np.maximum(values - excess[kept[-1] if len(kept) else 0], 0))


def _drawn(item: MeasuredGroup, low: Mask, seen: Screening, trust: float) -> Floats:
    """The answers, with low ones moved towards the nearest numbers that are not negative and have the same sum: the
    more trust there is in that sum, the further.

    Two estimates of that sum are averaged: what the others leave of the total, which has their noise and one more,
    and the sum of the low answers, which has theirs.
    """
    count = int(low.sum())
    if count == 0:
        return item.answers
    drawn = item.answers.copy()
    rest, own = seen.total - float(item.answers[~low].sum()), float(item.answers[low].sum())
    noises = len(low) - count + 1
    share = count / (count + noises)
    drawn[low] = (
        trust * onto_simplex(item.answers[low], share * rest + (1 - share) * own) + (1 - trust) * item.answers[low]
    )
    return drawn


def _moved(problem: FitProblem, cells: MeasuredGroup, held: Term, seen: Screening, fit: Fit) -> Fit:
    """The fit, moved towards posterior means: less where other marginals have drawn the cells already."""
    others = sum(len(item.answers) > 1 for item in problem.measured if not counts_cells(problem.domain, item.group))
    most = MOVED / (1 + 2 * others) + FREED * seen.trust * seen.saved
    furthest = most * math.sqrt(cells.variance)
    wanted = fit.cells + np.clip(posterior_means(problem, fit.cells) - fit.cells, -furthest, furthest)
    target = cells.group.answer(problem.domain, wanted)
    return pinned_to(problem, [held], [Term(cells.group, target, 1 / cells.variance)], "adaptive", fit)


def _weights(problem: FitProblem, place: int, target: Floats, first: Fit, fit: Fit) -> Floats:
    item = problem.measured[place]
    detail = is_detail(problem, place)
    weights = np.ones(len(target))
    if detail:
        size = np.maximum(first.answer(item.group), 0)
        weights = np.maximum(size / (size + HALFWAY * math.sqrt(item.variance)), LEAST)
    if isinstance(item.law, DiscreteLaplace):
        bend = (2.0 if detail else 1.0) * float(item.law.scale)
        residual = np.maximum(np.abs(target - fit.answer(item.group)), 1e-9)
        weights = weights * np.clip(bend / residual, OUTLIER, 1)
    return weights


def _restricted_total(problem: FitProblem, visible: Floats) -> tuple[float, float]:
    """The least-squares total of tables that live on the visible cells alone, and its variance.

    One system gives both: with v the solution of (normal matrix) v = (ones), they are vᵀ(right-hand side) and vᵀ(ones).
    """
    if not visible.any():
        return 0.0, 0.0
    domain = problem.domain

    def normal(cells: Floats) -> Floats:
        total = np.zeros(len(cells))
        for item in problem.measured:
            total += item.group.spread(domain, item.group.answer(domain, cells)) / item.variance
        return visible * total

    # A hundredth of a standard deviation is more than a test needs.
    solution, _ = conjugate_gradients(normal, visible, left=1e-6, most=MOST_PRODUCTS)
    right = sum(item.group.spread(domain, item.answers) / item.variance for item in problem.measured)
    return float(solution @ right), float(solution @ visible)

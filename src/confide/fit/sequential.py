"""Fits by priority: what matters most is fitted first, and kept."""

from collections.abc import Sequence

import numpy as np

from confide.errors import ParameterError
from confide.fit.error import estimates
from confide.fit.fitted import Fit, Method, require_consistent, solve
from confide.fit.group import TOTAL, Floats, Group, Marginal
from confide.fit.problem import FitProblem
from confide.fit.program import Term, fixed, measured_terms

Priority = Sequence[Sequence[int]]
"""Places of measurements: those fitted first, those fitted next, ..."""


def sequential(problem: FitProblem, priority: Priority | None = None, start: Fit | None = None) -> Fit:
    """Sequential fitting ([Abowd2021], Algorithm 1): each stage fits its groups by non-negative least squares and keeps
    all earlier ones.

    `priority` is a partition of the measurements, most important first; by default coarse marginals before fine ones.
    """
    require_consistent(problem)
    stages = coarse_first(problem) if priority is None else _partition(problem, priority)
    terms = measured_terms(problem)
    kept: list[Group] = []
    fit = start
    for stage in stages:
        fit = _stage(problem, [terms[place] for place in stage], kept, fit if kept else None, "sequential", start)
        kept.extend(problem.measured[place].group for place in stage)
    assert fit is not None
    return fit


def pinned(problem: FitProblem, pins: Sequence[Group] = (TOTAL,), start: Fit | None = None) -> Fit:
    """Non-negative least squares with some totals fixed to their least-squares estimates, the first pins before the
    later.

    Sequential fitting keeps the raw noisy answers of a total; its least-squares estimate uses all measurements and
    has a smaller variance. An estimate that no non-negative table can have is replaced by the nearest that one can.
    """
    require_consistent(problem)
    if not pins:
        raise ParameterError("pin at least one group, such as the total")
    targets = [Term(pin, estimates(problem, pin), 1.0) for pin in pins]
    return pinned_to(problem, targets, measured_terms(problem), "pinned", start)


def pinned_to(
    problem: FitProblem, pins: Sequence[Term], terms: Sequence[Term], method: Method, start: Fit | None = None
) -> Fit:
    """A fit of terms that keeps given totals, or what is nearest to them of what can be."""
    kept: list[Group] = []
    fit: Fit | None = None
    for pin in pins:
        if not kept and isinstance(pin.group, Marginal) and not pin.group.attributes and not problem.public.totals:
            total = np.maximum(pin.target, 0)  # the stage for a total alone
            if problem.public.zeros is not None and problem.public.zeros.all():
                total = np.zeros(1)
            others = [fixed(pin.group, total)]
            if len(pins) == 1:
                return _final(problem, others, terms, method, start)
            fit = solve(problem, others, method, cells=_even(problem, float(total[0])))
        else:
            fit = _stage(problem, [pin], kept, fit, method, None)
        kept.append(pin.group)
    assert fit is not None
    return _final(problem, [fixed(group, fit.answer(group)) for group in kept], terms, method, start or fit)


def coarse_first(problem: FitProblem) -> list[list[int]]:
    """Marginals over fewer attributes first, all of as many attributes together; other queries last."""
    levels: dict[int, list[int]] = {}
    last = len(problem.domain.attributes) + 1
    for place, item in enumerate(problem.measured):
        level = len(item.group.attributes) if isinstance(item.group, Marginal) else last
        levels.setdefault(level, []).append(place)
    return [levels[level] for level in sorted(levels)]


def _stage(
    problem: FitProblem,
    terms: Sequence[Term],
    kept: Sequence[Group],
    before: Fit | None,
    method: Method,
    start: Fit | None,
) -> Fit:
    """Fits some terms while the groups kept so far have the answers they have in the fit before."""
    if before is None:
        return solve(problem, terms, method, cells=None if start is None else start.cells)
    held = [fixed(group, before.answer(group)) for group in kept]
    return solve(problem, [*terms, *held], method, cells=before.cells)


def _final(problem: FitProblem, held: Sequence[Term], terms: Sequence[Term], method: Method, start: Fit | None) -> Fit:
    pinned_groups = [term.group for term in held]
    rest = [term for term in terms if term.group not in pinned_groups]
    return solve(problem, [*rest, *held], method, start)


def _even(problem: FitProblem, total: float) -> Floats:
    zeros = problem.public.zeros
    free = np.ones(problem.domain.cells) if zeros is None else (~zeros).astype(np.float64)
    return np.asarray(free * (total / max(float(free.sum()), 1.0)))


def _partition(problem: FitProblem, priority: Priority) -> list[list[int]]:
    stages = [list(stage) for stage in priority]
    named = [place for stage in stages for place in stage]
    count = len(problem.measured)
    if sorted(named) != list(range(count)) or not all(stages):
        missing = sorted(set(range(count)) - set(named))
        wrong = sorted({place for place in named if place not in range(count) or named.count(place) > 1})
        raise ParameterError(
            f"priorities must name each of the measurements 0 to {count - 1} once; "
            f"missing: {missing or 'none'}, unknown or named twice: {wrong or 'none'}"
            + ("" if all(stages) else "; a stage is empty")
        )
    return stages

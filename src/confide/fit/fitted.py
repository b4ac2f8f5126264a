"""What a fit gives, and the way from terms to a fit that all methods share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from confide.errors import ParameterError
from confide.fit import effects
from confide.fit.group import CellDomain, Floats, Group, Marginal
from confide.fit.minimise import MOST_STEPS, minimise
from confide.fit.problem import FitProblem, Public
from confide.fit.program import Certificate, Term, build

Method = Literal["ols", "nnls", "maxfit", "sequential", "reweighted", "pinned", "adaptive"]

SMALL_DISTANCE: Final = 1e-4  # certified, in standard deviations of the noise
LARGE_DISTANCE: Final = 1e-2
LARGE: Final = 20_000  # cells


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A weighted table: how much of each combination of values there is. Only `ols` may be negative somewhere."""

    method: Method
    domain: CellDomain
    cells: Floats
    certificate: Certificate
    multipliers: Floats

    @property
    def table(self) -> Floats:
        """The cells with an axis for each attribute."""
        return self.cells.reshape(self.domain.sizes)

    def answer(self, group: Group) -> Floats:
        return group.answer(self.domain, self.cells)


def solve(
    problem: FitProblem,
    terms: Sequence[Term],
    method: Method,
    start: Fit | None = None,
    *,
    nonnegative: bool = True,
    cells: Floats | None = None,
    most_steps: int = MOST_STEPS,
) -> Fit:
    """The best table for some terms. `start` is a fit of the same problem, whose table and multipliers are near."""
    program = build(problem, terms, nonnegative=nonnegative)
    multipliers = None
    if start is not None:
        cells = start.cells if cells is None else cells
        multipliers = start.multipliers if len(start.multipliers) == program.rows.count else None
    elif cells is None and (program.pull == 0).any():
        cells = middle(problem)
    distance = SMALL_DISTANCE if problem.domain.cells <= LARGE else LARGE_DISTANCE
    solved, multipliers, certificate = minimise(program, multipliers, cells, distance=distance, most_steps=most_steps)
    return Fit(method, problem.domain, solved, certificate, multipliers)


def middle(problem: FitProblem) -> Floats:
    """Where to begin among tables that fit equally well: attributes independent, as far as their marginals are
    measured.
    """
    domain = problem.domain
    precision = effects.precisions(problem)
    total = max(sum(float(item.answers.sum()) for item in problem.measured if item.group.complete(domain)), 0.0)
    total /= max(sum(item.group.complete(domain) for item in problem.measured), 1)
    table = np.full(domain.sizes, max(total, 1.0) / domain.cells)
    if precision is None:
        return table.ravel()
    parts = effects.fitted(problem, precision)
    for axis, name in enumerate(domain.attributes):
        if (axis,) not in precision:
            continue
        counts = np.maximum(parts.answer(Marginal((name,))), 0)
        if counts.sum() > 0:
            shares = counts * (len(counts) / counts.sum())
            table *= shares.reshape([-1 if place == axis else 1 for place in range(len(domain.sizes))])
    return table.ravel()


def require_consistent(problem: FitProblem) -> None:
    """Refuses public totals that no table without negative cells can have."""
    if not problem.public.totals:
        return
    domain = problem.domain
    for place, (group, values) in enumerate(problem.public.totals):
        if problem.public.zeros is not None:
            possible = group.answer(domain, (~problem.public.zeros).astype(np.float64))
            if ((values > 0) & (possible == 0)).any():
                raise ParameterError(f"public total {place} has a count where every cell is a structural zero")
    terms = [Term(group, values, 1.0) for group, values in problem.public.totals]
    fit = solve(replace(problem, public=Public(problem.public.zeros, ())), terms, "nnls")
    apart = [fit.answer(group) - values for group, values in problem.public.totals]
    least = sum(float(each @ each) for each in apart) / 2 - fit.certificate.gap  # no table has a smaller sum of squares
    scale = max(float(values.max(initial=1)) for _, values in problem.public.totals)
    if least > 1e-9 * scale**2:
        place = int(np.argmax([np.abs(each).max(initial=0) for each in apart]))
        worst = int(np.abs(apart[place]).argmax())
        stated = problem.public.totals[place][1][worst]
        raise ParameterError(
            f"the public totals contradict each other: no table has them all (in the nearest one, count {worst} of "
            f"total {place} is {stated + apart[place][worst]:,.3f} and not {stated:,.3f})"
        )

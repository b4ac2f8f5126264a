"""From measurements to a program: what each group is fitted to, how strongly, and what must hold exactly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from confide.fit.cells import CellDomain, Floats
from confide.fit.group import Group, Marginal
from confide.fit.problem import FitProblem
from confide.fit.program import Program
from confide.fit.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A group whose answers are drawn to targets with weights, or kept between bounds; no weight and no bounds:
    ignored.
    """

    group: Group
    target: Floats
    weight: Floats | float = 0.0
    low: Floats | None = None
    high: Floats | None = None


def measured_terms(problem: FitProblem) -> list[Term]:
    """Every measurement, weighted by the inverse of its variance."""
    return [Term(item.group, item.answers, 1 / item.variance) for item in problem.measured]


def fixed(group: Group, values: Floats) -> Term:
    """A group whose answers are given."""
    return Term(group, values, 0.0, values, values)


def counts_cells(domain: CellDomain, group: Group) -> bool:
    """Whether the queries of a group are the cells themselves."""
    return isinstance(group, Marginal) and len(group.attributes) == len(domain.attributes)


def build(problem: FitProblem, terms: Sequence[Term], *, nonnegative: bool = True) -> Program:
    """The program of some terms and of everything public. Terms on single cells become pulls and bounds of cells."""
    domain = problem.domain
    cells = domain.cells
    pull, drawn = np.zeros(cells), np.zeros(cells)
    floor = np.zeros(cells) if nonnegative else np.full(cells, -np.inf)
    ceiling = np.full(cells, np.inf)
    if problem.public.zeros is not None:
        floor[problem.public.zeros] = ceiling[problem.public.zeros] = 0.0
    stacked = []
    for term in (*terms, *(fixed(group, values) for group, values in problem.public.totals)):
        if not counts_cells(domain, term.group):
            stacked.append(term)
            continue
        place = term.group.spread(domain, np.arange(cells, dtype=np.float64)).astype(np.int64)
        weight = np.broadcast_to(term.weight, cells)[place]
        pull += weight
        drawn += weight * term.target[place]
        if term.low is not None:
            floor = np.maximum(floor, np.minimum(term.low[place], ceiling))
        if term.high is not None:
            ceiling = np.minimum(ceiling, np.maximum(term.high[place], floor))
    rows = Rows(domain, tuple(term.group for term in stacked))
    centre = np.divide(drawn, pull, out=np.zeros(cells), where=pull > 0)
    return Program(
        rows,
        _stacked(rows, [term.weight for term in stacked]),
        _stacked(rows, [term.target for term in stacked]),
        _stacked(rows, [-np.inf if term.low is None else term.low for term in stacked]),
        _stacked(rows, [np.inf if term.high is None else term.high for term in stacked]),
        pull,
        centre,
        floor,
        ceiling,
    )


def _stacked(rows: Rows, values: Sequence[Floats | float]) -> Floats:
    if not values:
        return np.zeros(0)
    pairs = zip(values, rows.counts, strict=True)
    return np.concatenate([np.broadcast_to(np.asarray(value, dtype=np.float64), count) for value, count in pairs])

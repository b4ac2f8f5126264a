"""The one kind of optimisation that every method comes down to, and the proof of how good a solution is.

    minimise   ½ Σ pull (x − centre)²  +  ½ Σ weight (q·x − target)²     over cells x and queries q
    such that  floor <= x <= ceiling,  low <= q·x <= high.

Its dual has a number u for each query. With s = Σ u·q for each cell, every u gives a lower bound of the minimum,

    Σ min over z in [low, high] of ½ weight (z − target)² − u z
      + Σ min over x in [floor, ceiling] of ½ pull (x − centre)² + s x,

so the difference of the two values, the gap, bounds how far a solution is from the best. The objective is strongly
convex in the answers: √(2 gap) bounds how far the answers are from the best ones, in standard deviations of their
noise.

`build` makes a program of measurements: what each group is fitted to, how strongly, and what must hold exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from confide.fit.group import CellDomain, Floats, Group, Marginal
from confide.fit.problem import FitProblem
from confide.fit.rows import Rows

ROUNDING: Final = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The numbers of one optimisation. A query with weight 0 must have low = high."""

    rows: Rows
    weight: Floats
    target: Floats
    low: Floats
    high: Floats
    pull: Floats
    centre: Floats
    floor: Floats
    ceiling: Floats

    def cells(self, spread: Floats) -> Floats:
        """The best cells for given s; where there is no pull, `centre` stands for whatever was there before."""
        return np.clip(self.centre - spread / self.pull, self.floor, self.ceiling)

    def answers(self, multipliers: Floats, give: Floats) -> Floats:
        """The best answers for given u, where `give` is 1/weight, or 0 if there is none."""
        return np.clip(self.target + multipliers * give, self.low, self.high)

    def give(self) -> Floats:
        return np.divide(1.0, self.weight, out=np.zeros(len(self.weight)), where=self.weight > 0)


@dataclass(frozen=True, slots=True)
class Certificate:
    """How good a solution is, proven from the solution alone.

    `gap` bounds the objective's distance from its minimum (infinite if no bound could be derived), with what
    constraints that hold to rounding only can make of it; `violation` is the furthest that a constrained answer is
    from where it must be; `steps` counts linear systems solved.
    """

    gap: float
    violation: float
    steps: int

    @property
    def distance(self) -> float:
        """A bound of the root of Σ ((answer − best answer) / standard deviation)² over the queries."""
        return math.sqrt(2 * max(self.gap, 0.0))


def certify(program: Program, cells: Floats, multipliers: Floats, steps: int) -> Certificate:
    """The certificate of cells within their bounds, from multipliers that need not be optimal."""
    answers = program.rows.answer(cells)
    beyond = np.maximum(program.low - answers, answers - program.high)
    primal = _half(program.pull, cells - program.centre) + _half(program.weight, answers - program.target)
    spread = program.rows.spread(multipliers)
    unbounded = (program.pull == 0) & np.isinf(program.ceiling)
    if unbounded.any() and (short := np.where(unbounded, np.maximum(-spread, 0), 0.0)).any():
        multipliers = multipliers + _lift(program.rows, short)
        spread = program.rows.spread(multipliers)
        if (spread[unbounded] < -1e-12 * max(1.0, np.abs(spread).max())).any():
            return Certificate(math.inf, float(beyond.max(initial=0)), steps)
    best = program.answers(multipliers, program.give())
    dual = _half(program.weight, best - program.target) - float(multipliers @ best)
    pulled = program.pull > 0
    moved = np.clip(
        program.centre - np.divide(spread, program.pull, out=np.zeros(len(spread)), where=pulled),
        program.floor,
        program.ceiling,
    )
    ends = np.where(spread >= 0, program.floor, np.where(unbounded, program.floor, program.ceiling))
    moved = np.where(pulled, moved, ends)
    dual += _half(program.pull, moved - program.centre) + float(spread @ moved)
    beyond = np.maximum(beyond, 0)
    slack = float(np.abs(multipliers) @ (beyond + ROUNDING * np.abs(best))) + ROUNDING * (abs(primal) + abs(dual))
    return Certificate(max(primal - dual, 0.0) + slack, float(beyond.max(initial=0)), steps)


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


def _half(weights: Floats, differences: Floats) -> float:
    return 0.5 * float(weights @ (differences * differences))


def _lift(rows: Rows, short: Floats) -> Floats:
    """What to add to the multipliers so that no cell's s is below zero, by groups that count cells and never
    subtract.
    """
    lift = np.zeros(rows.count)
    for group, place in zip(rows.groups, rows.places, strict=True):
        if isinstance(group, Marginal):
            lift[place] = _largest(rows, group, short)
            return lift
        if rows.dense is None or (rows.dense[place] < 0).any() or not short.any():
            continue
        part = rows.dense[place]
        ratios = np.divide(short, part, out=np.zeros(part.shape), where=part > 0)
        lift[place] = ratios.max(axis=1, initial=0)
        short = np.maximum(short - lift[place] @ part, 0)
    return lift


def _largest(rows: Rows, group: Marginal, cells: Floats) -> Floats:
    """The largest cell under each answer of a marginal."""
    axes = rows.domain.axes(group.attributes)
    dropped = tuple(axis for axis in range(len(rows.domain.sizes)) if axis not in axes)
    largest = cells.reshape(rows.domain.sizes).max(axis=dropped)
    kept = sorted(axes)
    return np.asarray(largest).transpose([kept.index(axis) for axis in axes]).ravel()


def _stacked(rows: Rows, values: Sequence[Floats | float]) -> Floats:
    if not values:
        return np.zeros(0)
    pairs = zip(values, rows.counts, strict=True)
    return np.concatenate([np.broadcast_to(np.asarray(value, dtype=np.float64), count) for value, count in pairs])

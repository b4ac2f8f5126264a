"""What the measurements say about a linear query: its least-squares estimate, and an interval that holds whatever the
data.

The estimate is Σ c·(noisy answer) with coefficients c that make it unbiased and its variance least; the interval
follows from the laws of the noises alone. It is an interval for the true answer, not for the answer of a fitted
table.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import sparse

from confide.errors import ParameterError
from confide.fit import effects
from confide.fit.group import Floats, Group, Marginal, Mask, SparseGroup, Subtotal
from confide.fit.linear_systems import conjugate_gradients
from confide.fit.problem import FitProblem
from confide.fit.tail import half_width
from confide.mechanism.interval.interval import Interval, bounded_ends
from confide.mechanism.noise.law import Confidence

MOST_FACTORED: Final = 2_000  # cells
MOST_PRODUCTS: Final = 2_000
INSIDE: Final = 1e-8  # a query is in the span if it is this close to it, relative to its own size


@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """The least-squares answer of one query, its variance (an upper bound), and an interval for the true answer."""

    value: float
    variance: float
    interval: Interval


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """Coefficients of the measurements, one array for each, and what public totals add."""

    coefficients: tuple[Floats, ...]
    known: float

    def value(self, problem: FitProblem) -> float:
        pairs = zip(self.coefficients, problem.measured, strict=True)
        return self.known + sum(float(each @ item.answers) for each, item in pairs)


def error(problem: FitProblem, query: Group, confidence: Confidence = 0.95) -> LinearEstimate:
    """The estimate of one query; refuses a query that the measurements do not determine.

    Only counts are asked for: where the query has no negative weight, the interval is that of a number of at least 0.
    """
    if query.count(problem.domain) != 1:
        raise ParameterError(
            f"an interval is for one query, these are {query.count(problem.domain):,}: pick some by a Subtotal"
        )
    (combination,) = combinations(problem, query)
    value = combination.value(problem)
    terms = [(each, item.law) for each, item in zip(combination.coefficients, problem.measured, strict=True)]
    width = half_width(terms, confidence)
    low, high = value - width, value + width
    if not (query.spread(problem.domain, np.ones(1)) < 0).any():
        low, high = (float(ends[0]) for ends in bounded_ends(np.array([value]), width, width, 0.0)[1:])
    return LinearEstimate(value, variance(problem, query), Interval(low, high, float(confidence), "always"))


def estimates(problem: FitProblem, group: Group) -> Floats:
    """The least-squares answers of all queries of a group, without their intervals."""
    precision = effects.precisions(problem)
    if precision is not None and isinstance(group, Marginal):
        if effects.sorted_axes(problem.domain, group) not in precision:
            raise ParameterError(_outside())
        return effects.fitted(problem, precision).answer(group)
    return np.array([combination.value(problem) for combination in combinations(problem, group)])


def variance(problem: FitProblem, query: Group) -> float:
    """The variance of the estimate of one query."""
    (combination,) = combinations(problem, query)
    pairs = zip(combination.coefficients, problem.measured, strict=True)
    return sum(float(each @ each) * item.variance for each, item in pairs)


def combinations(problem: FitProblem, group: Group) -> list[Combination]:
    """How each query of a group is best estimated."""
    domain = problem.domain
    precision = effects.precisions(problem)
    rows = [group] if group.count(domain) == 1 else _single(group.matrix(domain))
    if precision is not None:
        return [Combination(_closed(problem, row, precision), 0.0) for row in rows]
    free = np.ones(domain.cells, dtype=bool) if problem.public.zeros is None else ~problem.public.zeros
    if domain.cells <= MOST_FACTORED:
        return _factored(problem, np.stack([row.spread(domain, np.ones(1)) for row in rows], axis=1), free)
    loose = free.astype(np.float64)
    return [Combination(_iterated(problem, loose * row.spread(domain, np.ones(1)), loose), 0.0) for row in rows]


def _single(rows: sparse.csr_array) -> list[Group]:
    return [SparseGroup(sparse.csr_array(rows[[place], :])) for place in range(rows.shape[0])]


def _closed(problem: FitProblem, query: Group, precision: dict[effects.Axes, float]) -> tuple[Floats, ...]:
    domain = problem.domain
    if isinstance(query, Subtotal) and isinstance(query.group, Marginal):
        parts = effects.split_marginal(domain, query.group, query.members.astype(np.float64))
        size = sum(effects.norm(domain, axes, part) for axes, part in parts.items())
        rest = sum(effects.norm(domain, axes, part) for axes, part in parts.items() if axes not in precision)
    else:
        weights = query.spread(domain, np.ones(1))
        size = float(weights @ weights)
        parts = effects.split_cells(domain, weights, set(precision))
        left = weights - effects.Effects(domain, parts).cells()
        rest = float(left @ left)
    if rest > INSIDE**2 * size:
        raise ParameterError(_outside())
    solved = effects.Effects(
        domain, {axes: part / precision[axes] for axes, part in parts.items() if axes in precision}
    )
    return tuple(solved.answer(item.group) / item.variance for item in problem.measured)


def _factored(problem: FitProblem, weights: Floats, free: Mask) -> list[Combination]:
    """By one dense system for all columns of weights: the normal equations, bordered by the public totals."""
    domain = problem.domain
    keep = np.flatnonzero(free)
    matrices = [item.group.matrix(domain)[:, keep] for item in problem.measured]
    normal = np.zeros((len(keep), len(keep)))
    for matrix, item in zip(matrices, problem.measured, strict=True):
        normal += (matrix.T @ matrix).toarray() / item.variance
    totals = [(group.matrix(domain)[:, keep].toarray(), values) for group, values in problem.public.totals]
    border = np.concatenate([rows for rows, _ in totals]) if totals else np.zeros((0, len(keep)))
    known = np.concatenate([values for _, values in totals]) if totals else np.zeros(0)
    scale = max(float(normal.diagonal().mean()), 1e-300)
    system = np.block([[normal / scale, border.T], [border, np.zeros((len(border), len(border)))]])
    right = np.concatenate([weights[keep], np.zeros((len(border), weights.shape[1]))])
    solution = np.linalg.lstsq(system, right, rcond=1e-11)[0]
    if np.abs(system @ solution - right).max(initial=0) > INSIDE * max(1.0, float(np.abs(right).max(initial=0))):
        raise ParameterError(_outside())
    found = []
    for column in solution.T:
        inner, outer = column[: len(keep)] / scale, column[len(keep) :]
        pairs = zip(matrices, problem.measured, strict=True)
        coefficients = tuple(np.asarray(matrix @ inner) / item.variance for matrix, item in pairs)
        found.append(Combination(coefficients, float(outer @ known)))
    return found


def _iterated(problem: FitProblem, weights: Floats, free: Floats) -> tuple[Floats, ...]:
    """By conjugate gradients. Public totals are left out: with them the interval could only be shorter."""
    domain = problem.domain

    def normal(cells: Floats) -> Floats:
        total = np.zeros(len(cells))
        for item in problem.measured:
            total += item.group.spread(domain, item.group.answer(domain, cells)) / item.variance
        return free * total

    solution, rest = conjugate_gradients(normal, weights, left=INSIDE * 1e-3, most=MOST_PRODUCTS)
    if np.abs(rest).max() > INSIDE * max(1.0, float(np.abs(weights).max())):
        raise ParameterError(_outside())
    return tuple(item.group.answer(domain, solution) / item.variance for item in problem.measured)


def _outside() -> str:
    return (
        "the measurements do not determine this query: "
        "it depends on a combination of attributes that no measured marginal has"
    )

"""Least squares of marginals in closed form.

Split tables into main effects and interactions: the part for a set S of attributes depends on these attributes only,
and has mean zero along each of them. Parts of different sets are orthogonal, and summing a marginal G of a table
keeps the parts with S ⊆ G, each times c(G) = the number of cells under an answer. So the normal equations of
marginals measured with precisions w are diagonal: each part S of the fit is the mean of the parts S of the answers,
with weights w(G), divided by c(G) in all, and the precision of part S is λ(S) = Σ w(G) c(G) over the marginals G ⊇ S.
(This is the residual basis of the planners for marginals; [Barak2007] use it for binary attributes.)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from confide.fit.group import CellDomain, Floats, Group, Marginal
from confide.fit.problem import FitProblem

Axes = tuple[int, ...]  # of the domain, ascending


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """The parts of a table or of a query: for each set of axes an array with one axis for each of them."""

    domain: CellDomain
    parts: dict[Axes, Floats]

    def cells(self) -> Floats:
        """The table itself, flat. Parts that fit into a larger one are added there first: few are spread over all."""
        parts = dict(self.parts)
        largest = [axes for axes in parts if not any(set(axes) < set(other) for other in parts)]
        table = np.zeros(self.domain.sizes)
        for top in largest:
            inner = [axes for axes in parts if set(axes) <= set(top)]
            total = np.zeros([self.domain.sizes[axis] for axis in top])
            for axes in inner:
                total += _aligned(parts.pop(axes), axes, top, self.domain)
            table += _aligned(total, top, tuple(range(len(self.domain.sizes))), self.domain)
        return table.ravel()

    def answer(self, group: Group) -> Floats:
        """The answers of a group on this table; of a marginal, without making the table."""
        if not isinstance(group, Marginal):
            return group.answer(self.domain, self.cells())
        axes = self.domain.axes(group.attributes)
        kept = tuple(sorted(axes))
        total = np.zeros([self.domain.sizes[axis] for axis in kept])
        for part_axes, part in self.parts.items():
            if set(part_axes) <= set(kept):
                total += _aligned(part, part_axes, kept, self.domain)
        total *= below(self.domain, kept)
        return total.transpose([kept.index(axis) for axis in axes]).ravel()


def precisions(problem: FitProblem) -> dict[Axes, float] | None:
    """λ(S) for every measured set S, or None where there is no closed form: other queries, zeros or public totals."""
    groups = [item.group for item in problem.measured]
    if problem.public.zeros is not None or problem.public.totals or not all(isinstance(g, Marginal) for g in groups):
        return None
    found: dict[Axes, float] = {}
    for item in problem.measured:
        axes = _sorted_axes(problem.domain, item.group)
        for part in _subsets(axes):
            found[part] = found.get(part, 0.0) + below(problem.domain, axes) / item.variance
    return found


def fitted(problem: FitProblem, precision: dict[Axes, float]) -> Effects:
    """The least-squares table of least norm."""
    parts = {
        axes: np.zeros([problem.domain.sizes[axis] for axis in axes])
        for axes in sorted(precision, key=len, reverse=True)
    }
    for item in problem.measured:
        for axes, part in _split(problem.domain, item.group, item.answers):
            parts[axes] += part / (item.variance * precision[axes])
    return Effects(problem.domain, parts)


def split_marginal(domain: CellDomain, marginal: Marginal, values: Floats) -> dict[Axes, Floats]:
    """The parts of the query that weighs the cells of a marginal by some values, as a table of weights."""
    return dict(_split(domain, marginal, values))


def split_cells(domain: CellDomain, weights: Floats, wanted: set[Axes]) -> dict[Axes, Floats]:
    """The wanted parts of a query given as a weight for each cell."""
    table = weights.reshape(domain.sizes)
    parts = {}
    for axes in wanted:
        dropped = tuple(axis for axis in range(len(domain.sizes)) if axis not in axes)
        parts[axes] = _centred(np.asarray(table.mean(axis=dropped)))
    return parts


def norm(domain: CellDomain, axes: Axes, part: Floats) -> float:
    """The squared norm of a part as a table over all cells."""
    return float((part * part).sum()) * below(domain, axes)


def below(domain: CellDomain, axes: Axes) -> float:
    """How many cells an answer of the marginal over these axes counts."""
    return float(math.prod(size for axis, size in enumerate(domain.sizes) if axis not in axes))


def sorted_axes(domain: CellDomain, marginal: Marginal) -> Axes:
    return tuple(sorted(domain.axes(marginal.attributes)))


def _sorted_axes(domain: CellDomain, group: Group) -> Axes:
    assert isinstance(group, Marginal)
    return sorted_axes(domain, group)


def _split(domain: CellDomain, group: Group, values: Floats) -> Iterator[tuple[Axes, Floats]]:
    axes = _sorted_axes(domain, group)
    assert isinstance(group, Marginal)
    array = group.laid_out(domain, values).reshape([domain.sizes[axis] for axis in axes])
    for part in _subsets(axes):
        dropped = tuple(place for place, axis in enumerate(axes) if axis not in part)
        yield part, _centred(np.asarray(array.mean(axis=dropped)))


def _centred(array: Floats) -> Floats:
    for axis in range(array.ndim):
        array = array - array.mean(axis=axis, keepdims=True)
    return array


def _aligned(part: Floats, axes: Axes, within: Axes, domain: CellDomain) -> Floats:
    return part.reshape([domain.sizes[axis] if axis in axes else 1 for axis in within])


def _subsets(axes: Axes) -> Iterator[Axes]:
    return chain.from_iterable(combinations(axes, count) for count in range(len(axes) + 1))

"""Linear systems, by conjugate gradients or factored, and linear programs, by HiGHS.

Conjugate gradients are for matrices that are only ever multiplied by. Factored is the normal matrix of marginals,
rows · diag(weights) · rowsᵀ. It is made of marginals of the weights: the entry of two counts of two marginals is the
weight of the cells that both count, so a block of two marginals is the marginal of the weights over the attributes of
both, and no cell is looked at more than once for each block. A matrix for ten thousand counts takes less than a
gigabyte however many cells there are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import highspy
import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from confide.fit.group import CellDomain, Floats, Marginal, Subtotal
from confide.fit.rows import Rows

FLAT: Final = 1e-14  # of the curvature first met: a direction with less is one that nothing measured depends on

MOST_ROWS: Final = 11_000  # a matrix of this size takes a gigabyte, and a factor some ten seconds


def conjugate_gradients(
    multiply: Callable[[Floats], Floats],
    right: Floats,
    *,
    left: float,
    most: int,
    scaling: Floats | float | Callable[[Floats], Floats] = 1.0,
) -> tuple[Floats, Floats]:
    """A solution, and what it leaves of the right-hand side: no more than `left` of it, in the norm of the scaling.

    `scaling` is the inverse of a diagonal near the system's own, or solves a system near it. At most `most` products
    are taken.
    """
    scaled_by: Callable[[Floats], Floats] = scaling if callable(scaling) else lambda values: scaling * values
    solution = np.zeros(len(right))
    rest = right.copy()
    scaled = scaled_by(rest)
    direction = scaled.copy()
    size = start = float(rest @ scaled)
    first = 0.0
    for _ in range(most):
        if size <= left**2 * start:
            break
        product = multiply(direction)
        curve = float(direction @ product)
        steepness = curve / float(direction @ direction)
        first = first or steepness
        if steepness <= FLAT * first:
            break
        length = size / curve
        solution += length * direction
        rest -= length * product
        scaled = scaled_by(rest)
        before, size = size, float(rest @ scaled)
        direction = scaled + (size / before) * direction
    return solution, rest


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A Cholesky factor, in the upper triangle."""

    upper: Floats

    def __call__(self, values: Floats) -> Floats:
        """Solves the system."""
        return np.asarray(lapack.dpotrs(self.upper, values, lower=0)[0])


def can_factor(rows: Rows) -> bool:
    """Whether rows are few, and different marginals, or subtotals of marginals that are there themselves."""
    marginals = [group for group in rows.groups if isinstance(group, Marginal)]
    return (
        rows.count <= MOST_ROWS
        and len(set(marginals)) == len(marginals)
        and all(isinstance(g, Marginal) or (isinstance(g, Subtotal) and g.group in marginals) for g in rows.groups)
    )


def factored(rows: Rows, weights: Floats, diagonal: Floats) -> Factor | None:
    """The factor of rows · diag(weights) · rowsᵀ + diag(diagonal), or None if rounding made that indefinite."""
    matrix = normal_matrix(rows, weights)
    matrix.flat[:: len(matrix) + 1] += diagonal
    # Symmetric, so its rows are the columns that the library wants: nothing is copied.
    upper, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    return Factor(upper) if failed == 0 else None


def normal_matrix(rows: Rows, weights: Floats) -> Floats:
    """rows · diag(weights) · rowsᵀ, of rows that `can_factor`."""
    matrix = np.zeros((rows.count, rows.count))
    homes = {group: place for group, place in zip(rows.groups, rows.places, strict=True) if isinstance(group, Marginal)}
    pairs = list(homes.items())
    for number, first in enumerate(pairs):
        for second in pairs[: number + 1]:
            _fill(rows.domain, weights, first, second, matrix)
    for group, place in zip(rows.groups, rows.places, strict=True):
        if isinstance(group, Subtotal):
            # The row of a subtotal is the sum of its members' rows, those of earlier subtotals included.
            assert isinstance(group.group, Marginal)
            members = homes[group.group].start + np.flatnonzero(group.members)
            row = matrix[members].sum(axis=0)
            row[place.start] = row[members].sum()
            matrix[place.start] = matrix[:, place.start] = row
    return matrix


def _fill(
    domain: CellDomain, weights: Floats, first: tuple[Marginal, slice], second: tuple[Marginal, slice], matrix: Floats
) -> None:
    """One block and its mirror image: the marginal of the weights over the attributes of both."""
    one, two = (domain.axes(group.attributes) for group, _ in (first, second))
    union = sorted({*one, *two})
    dropped = tuple(axis for axis in range(len(domain.sizes)) if axis not in union)
    shared = np.asarray(weights.reshape(domain.sizes).sum(axis=dropped))
    places = np.indices(shared.shape).reshape(len(union), shared.size)
    labels = []
    for axes, place in ((one, first[1]), (two, second[1])):
        label = np.zeros(shared.size, dtype=np.int64)
        for axis in axes:
            label = label * domain.sizes[axis] + places[union.index(axis)]
        labels.append(label + place.start)
    matrix[labels[0], labels[1]] = matrix[labels[1], labels[0]] = shared.ravel()


def linear_program(
    cost: Floats, columns: tuple[Floats, Floats], matrix: sparse.csc_array, rows: tuple[Floats, Floats]
) -> tuple[Floats, bool]:
    """min cost·x with columns and rows within their bounds: x, a vertex, and whether it is a solution."""
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(cost), matrix.shape[0]
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = columns
    program.row_lower_, program.row_upper_ = rows
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", "simplex")
    solver.passModel(program)
    solver.run()
    return np.array(solver.getSolution().col_value), solver.getModelStatus() == highspy.HighsModelStatus.kOptimal

"""What is measured of a table of all cells, as numbers that do not depend on each other: its orthonormal contrasts.

In each column the first contrast is the mean, the others are Helmert rows. A marginal, or what it tells beside its
parts, is then some of the contrasts of the whole, each known to within its own variance; two measurements of the same
contrast are their average, weighted by precision.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from confide.synthesis.curator import MeasuredEffect, MeasuredMarginal

Floats = NDArray[np.float64]

_BLOCK: Final = 64
"""Columns are taken together up to so many places: few products of larger matrices."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The change between cells and contrasts, of columns of these sizes."""

    sizes: tuple[int, ...]

    @cached_property
    def _steps(self) -> list[Floats]:
        """Orthonormal matrices whose product, column after column, is the change of the whole."""
        groups: list[list[int]] = []
        for size in self.sizes:
            if groups and prod(groups[-1]) * size <= _BLOCK:
                groups[-1].append(size)
            else:
                groups.append([size])
        return [reduce(_product, map(_basis, group)) for group in groups]

    def of(self, cells: Floats) -> Floats:
        """All contrasts of all cells, both flat."""
        return self._applied(cells, [step.T for step in self._steps])

    def cells(self, contrasts: Floats) -> Floats:
        """All cells of all contrasts: the change is orthonormal."""
        return self._applied(contrasts, self._steps)

    def _applied(self, values: Floats, steps: list[Floats]) -> Floats:
        found = values
        for step in steps:  # the first axis goes last; after all of them the order is the old one
            turned = np.ascontiguousarray(found.reshape(len(step), -1).T)
            # Small products one by one: shared out among threads they take longer, and far longer on a busy machine.
            whole = len(turned) // _BLOCK * _BLOCK
            found = np.empty_like(turned)
            np.matmul(turned[:whole].reshape(-1, _BLOCK, len(step)), step,
                      out=found[:whole].reshape(-1, _BLOCK, len(step)))  # fmt: skip
            np.matmul(turned[whole:], step, out=found[whole:])
            found = found.reshape(-1)
        return found

    def pooled(self, measured: Iterable[MeasuredMarginal | MeasuredEffect], total: float) -> "KnownContrasts":
        """All that was measured, as contrasts of shares of `total` rows. That shares add up to 1 is no news."""
        weights, sums = np.zeros((2, *self.sizes))
        for part in measured:
            shape = [self.sizes[column] for column in part.columns]
            own = part.counts.reshape(shape) / total
            for axis, size in enumerate(shape):
                own = np.moveaxis(np.tensordot(_basis(size), own, axes=(1, axis)), 0, axis)
            # The mean over a column that is not there is the sum over it, divided by the root of its size.
            rest = sqrt(prod(size for column, size in enumerate(self.sizes) if column not in part.columns))
            first = 1 if isinstance(part, MeasuredEffect) else 0
            place = tuple(slice(first, None) if column in part.columns else 0 for column in range(len(self.sizes)))
            weight = (total * rest) ** 2 / part.variance
            weights[place] += weight
            sums[place] += weight * own[(slice(first, None),) * len(shape)] / rest
        weights.reshape(-1)[0] = 0
        places = np.flatnonzero(weights)
        known = weights.reshape(-1)[places]
        return KnownContrasts(places, sums.reshape(-1)[places] / known, np.sqrt(1 / known))


@dataclass(frozen=True, slots=True, eq=False)
class KnownContrasts:
    """Some contrasts: where they are among all, what was measured, and the deviation of its noise."""

    places: NDArray[np.int64]
    values: Floats
    deviations: Floats

    def __len__(self) -> int:
        return len(self.places)


def _product(one: Floats, other: Floats) -> Floats:
    found: Floats = np.asarray(np.kron(one, other), dtype=np.float64)
    return found


def _basis(size: int) -> Floats:
    """A row for the mean, then the Helmert rows, all of length 1."""
    found: Floats = np.asarray(helmert(size, full=True), dtype=np.float64)
    return found

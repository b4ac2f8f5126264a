"""Groups of queries stacked into one linear map, dense where that is small and implicit where it is not."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from confide.fit.group import CellDomain, Floats, Group, Marginal, Subtotal

Integers = NDArray[np.int64]

MOST_DENSE: Final = 2_000_000  # entries: 16 MB
MOST_FACTORED: Final = 1_500  # rows: a Cholesky factor of this size takes a tenth of a second


@dataclass(frozen=True, eq=False)
class Rows:
    """The queries of some groups, one after another."""

    domain: CellDomain
    groups: tuple[Group, ...]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        return tuple(group.count(self.domain) for group in self.groups)

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the answers of each group stand."""
        ends = np.cumsum((0, *self.counts))
        return tuple(slice(int(first), int(last)) for first, last in pairwise(ends))

    @cached_property
    def count(self) -> int:
        return sum(self.counts)

    @cached_property
    def dense(self) -> Floats | None:
        """The matrix, if it is small enough to be worked with."""
        if self.count > MOST_FACTORED or self.count * self.domain.cells > MOST_DENSE:
            return None
        if not self.groups:
            return np.zeros((0, self.domain.cells))
        return np.concatenate([_dense(self.domain, group) for group in self.groups])

    def answer(self, cells: Floats) -> Floats:
        if self.dense is not None:
            return self.dense @ cells
        return np.concatenate([group.answer(self.domain, cells) for group in self.groups])

    def spread(self, values: Floats) -> Floats:
        if self.dense is not None:
            return values @ self.dense
        spread = np.zeros(self.domain.sizes)
        flat = spread.reshape(-1)
        for group, place in zip(self.groups, self.places, strict=True):
            if isinstance(group, Marginal):
                spread += group.laid_out(self.domain, values[place])
            else:
                flat += group.spread(self.domain, values[place])
        return flat

    def columns(self, cells: Integers) -> sparse.csc_array | None:
        """The columns of some cells as a sparse matrix; None if groups are other than marginals and their subtotals."""
        places = np.unravel_index(cells, self.domain.sizes)
        indices, kept = [], []
        for group, place in zip(self.groups, self.places, strict=True):
            marginal = group.group if isinstance(group, Subtotal) else group
            if not isinstance(marginal, Marginal):
                return None
            axes = self.domain.axes(marginal.attributes)
            label = np.zeros(len(cells), dtype=np.int64)
            for axis in axes:
                label = label * self.domain.sizes[axis] + places[axis]
            if isinstance(group, Subtotal):
                kept.append(group.members[label])
                label = np.zeros(len(cells), dtype=np.int64)
            else:
                kept.append(np.ones(len(cells), dtype=bool))
            indices.append(label + place.start)
        chosen = np.stack(kept, axis=1)
        starts = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
        flat = np.stack(indices, axis=1)[chosen]
        return sparse.csc_array((np.ones(len(flat)), flat, starts), shape=(self.count, len(cells)))

    def squares(self, cells: Floats) -> Floats:
        """The diagonal of rows · diag(cells) · rowsᵀ."""
        if self.dense is not None:
            return (self.dense * self.dense) @ cells
        return np.concatenate([group.squares(self.domain, cells) for group in self.groups])


def _dense(domain: CellDomain, group: Group) -> Floats:
    if isinstance(group, Subtotal):
        return np.asarray(group.members.astype(np.float64) @ _dense(domain, group.group))[None, :]
    return _kept_dense(domain, group)


@lru_cache(maxsize=64)
def _kept_dense(domain: CellDomain, group: Group) -> Floats:
    matrix: Floats = group.matrix(domain).toarray()
    matrix.flags.writeable = False
    return matrix

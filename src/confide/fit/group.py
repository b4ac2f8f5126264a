"""What a table is over, attributes with a number of values each, and groups of linear counting queries over that.

Groups are kept implicit: a query is never a row of numbers, one for each cell. A group answers (`answer`: cells to
answers) and gives back (`spread`: answers to cells, the transpose). Answers are flat.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from confide.errors import ParameterError

MOST_CELLS: Final = 20_000_000
"""A fit holds about ten numbers for each cell, so this many cells take 1.6 GB."""

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CellDomain:
    """Every combination of the values of some attributes is a cell; cells are counted with the last attribute
    fastest.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.sizes) or not self.attributes:
            raise ParameterError(
                f"a domain needs a size for each attribute: {len(self.attributes)} attributes, {len(self.sizes)} sizes"
            )
        if len(set(self.attributes)) != len(self.attributes):
            raise ParameterError(f"an attribute is named twice: {', '.join(self.attributes)}")
        for name, size in zip(self.attributes, self.sizes, strict=True):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ParameterError(f"attribute {name!r} must have a whole number of values, at least 1; got {size!r}")
        if self.cells > MOST_CELLS:
            raise ParameterError(self._too_large())

    @property
    def cells(self) -> int:
        return math.prod(self.sizes)

    def axes(self, attributes: tuple[str, ...]) -> tuple[int, ...]:
        """The places of some attributes; refuses what is not an attribute, or is one twice."""
        unknown = [name for name in attributes if name not in self.attributes]
        if unknown:
            raise ParameterError(
                f"{', '.join(map(repr, unknown))} is not an attribute of this table, which has "
                f"{', '.join(f'{name} ({size})' for name, size in zip(self.attributes, self.sizes, strict=True))}"
            )
        if len(set(attributes)) != len(attributes):
            raise ParameterError(f"an attribute is named twice in a marginal: {', '.join(attributes)}")
        return tuple(self.attributes.index(name) for name in attributes)

    def size(self, attributes: tuple[str, ...]) -> int:
        """How many cells the marginal over these attributes has."""
        return math.prod(self.sizes[axis] for axis in self.axes(attributes))

    def _too_large(self) -> str:
        """Says which attributes to drop: the largest ones, as few as will do."""
        left = dict(zip(self.attributes, self.sizes, strict=True))
        dropped = []
        while len(left) > 1 and math.prod(left.values()) > MOST_CELLS:
            largest = max(left, key=lambda name: left[name])
            dropped.append(f"{largest} ({left.pop(largest):,})")
        if math.prod(left.values()) <= MOST_CELLS:
            advice = f"without {' and '.join(dropped)} it has {math.prod(left.values()):,}"
        else:
            advice = "give its attributes fewer, wider classes"
        shape = " × ".join(f"{size:,}" for size in self.sizes)
        return f"a table of {shape} = {self.cells:,} cells cannot be fitted (the most is {MOST_CELLS:,}); {advice}"


def _require_names(attributes: object) -> None:
    if not isinstance(attributes, tuple) or not all(isinstance(name, str) for name in attributes):
        raise ParameterError(f"a marginal is over a tuple of attributes, such as ('age', 'sex'); got {attributes!r}")


class Group(Protocol):
    """Queries that were asked together."""

    def __hash__(self) -> int: ...

    def count(self, domain: CellDomain) -> int:
        """How many queries these are; refuses a group that does not fit the domain."""

    def answer(self, domain: CellDomain, cells: Floats) -> Floats:
        """The answers on a table given as flat cells."""

    def spread(self, domain: CellDomain, values: Floats) -> Floats:
        """One number for each cell: the sum of the values of the queries that count it, times how often they do."""

    def squares(self, domain: CellDomain, cells: Floats) -> Floats:
        """Like `answer`, with every coefficient squared."""

    def disjoint(self, domain: CellDomain) -> bool:
        """Whether each cell is counted by one query at most, and once."""

    def complete(self, domain: CellDomain) -> bool:
        """Whether the queries count each cell once in all: then they add up to the total."""

    def matrix(self, domain: CellDomain) -> sparse.csr_array:
        """The queries as rows, for domains that are small."""


@dataclass(frozen=True, slots=True)
class Marginal:
    """The counts for each combination of some attributes, in the order given; of no attributes, the total."""

    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_names(self.attributes)

    def count(self, domain: CellDomain) -> int:
        return domain.size(self.attributes)

    def answer(self, domain: CellDomain, cells: Floats) -> Floats:
        axes = domain.axes(self.attributes)
        dropped = tuple(axis for axis in range(len(domain.sizes)) if axis not in axes)
        sums = cells.reshape(domain.sizes).sum(axis=dropped) if dropped else cells.reshape(domain.sizes)
        kept = sorted(axes)
        flat: Floats = np.asarray(sums).transpose([kept.index(axis) for axis in axes]).ravel()
        return flat

    def spread(self, domain: CellDomain, values: Floats) -> Floats:
        spread = np.empty(domain.sizes)
        spread[...] = self.laid_out(domain, values)
        return spread.ravel()

    def laid_out(self, domain: CellDomain, values: Floats) -> Floats:
        """The answers as an array with one axis for each attribute of the domain, of length 1 if it is summed out."""
        axes = domain.axes(self.attributes)
        shaped = values.reshape([domain.sizes[axis] for axis in axes])
        ordered = shaped.transpose([axes.index(axis) for axis in sorted(axes)])
        return ordered.reshape([size if axis in axes else 1 for axis, size in enumerate(domain.sizes)])

    def squares(self, domain: CellDomain, cells: Floats) -> Floats:
        return self.answer(domain, cells)

    def disjoint(self, domain: CellDomain) -> bool:
        domain.axes(self.attributes)
        return True

    def complete(self, domain: CellDomain) -> bool:
        domain.axes(self.attributes)
        return True

    def matrix(self, domain: CellDomain) -> sparse.csr_array:
        labels = self.spread(domain, np.arange(self.count(domain), dtype=np.float64)).astype(np.int64)
        shape = (self.count(domain), domain.cells)
        return sparse.csr_array((np.ones(domain.cells), (labels, np.arange(domain.cells))), shape=shape)


@dataclass(frozen=True, slots=True, eq=False)
class SparseGroup:
    """Any queries at all: a sparse matrix with a row for each query and a column for each cell."""

    rows: sparse.csr_array

    def count(self, domain: CellDomain) -> int:
        count, width = self.rows.shape
        if width != domain.cells:
            raise ParameterError(f"queries over {width:,} cells do not fit a table of {domain.cells:,} cells")
        return int(count)

    def answer(self, domain: CellDomain, cells: Floats) -> Floats:
        self.count(domain)
        return np.asarray(self.rows @ cells, dtype=np.float64)

    def spread(self, domain: CellDomain, values: Floats) -> Floats:
        self.count(domain)
        return np.asarray(self.rows.T @ values, dtype=np.float64)

    def squares(self, domain: CellDomain, cells: Floats) -> Floats:
        return np.asarray(self.rows.power(2) @ cells, dtype=np.float64)

    def disjoint(self, domain: CellDomain) -> bool:
        self.count(domain)
        once = np.bincount(self.rows.indices, minlength=domain.cells) <= 1
        return bool(once.all() and (self.rows.data == 1).all())

    def complete(self, domain: CellDomain) -> bool:
        return self.disjoint(domain) and self.rows.nnz == domain.cells

    def matrix(self, domain: CellDomain) -> sparse.csr_array:
        self.count(domain)
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Subtotal:
    """One query: the sum of some of the queries of a group."""

    group: Group
    members: Mask

    def count(self, domain: CellDomain) -> int:
        if len(self.members) != self.group.count(domain):
            raise ParameterError(f"{len(self.members):,} members do not fit {self.group.count(domain):,} queries")
        return 1

    def answer(self, domain: CellDomain, cells: Floats) -> Floats:
        return np.array([self.group.answer(domain, cells)[self.members].sum()])

    def spread(self, domain: CellDomain, values: Floats) -> Floats:
        return self.group.spread(domain, np.where(self.members, values[0], 0.0))

    def squares(self, domain: CellDomain, cells: Floats) -> Floats:
        return np.array([(self.group.spread(domain, self.members.astype(np.float64)) ** 2) @ cells])

    def disjoint(self, domain: CellDomain) -> bool:
        return self.count(domain) == 1 and self.group.disjoint(domain)

    def complete(self, domain: CellDomain) -> bool:
        return self.count(domain) == 1 and bool(self.members.all()) and self.group.complete(domain)

    def matrix(self, domain: CellDomain) -> sparse.csr_array:
        self.count(domain)
        row = self.spread(domain, np.ones(1))
        return sparse.csr_array(row[None, :])


TOTAL = Marginal(())

"""What a table is over: attributes, each with a number of values."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

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

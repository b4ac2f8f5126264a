"""Public grids: however wide a column is, its values are read in so few cells that a summary stays small.

A cell is an interval of indices and has one point, which stands for every value in it. Cells follow from public facts
alone, so rows that are neighbours stay neighbours, and what is proved of values holds of points. Points keep the order
of values, so a quantile of the points lies in the cell of the quantile of the values: `cover` says how far that can be.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from confide.policy.table import SUMMARY_ROWS

LARGEST_SUMMARY: Final = SUMMARY_ROWS
"""How many rows a summary has at most, over all groups together, unless the policy says otherwise."""


@dataclass(frozen=True, slots=True)
class EvenGrid:
    """Cells of `step` indices each, from `low` on; their points are in their middle."""

    low: int
    high: int
    step: int

    @property
    def cells(self) -> int:
        return (self.high - self.low) // self.step + 1

    def point(self, value: int) -> int:
        return min(self._first(value) + self.step // 2, self.high)

    def cover(self, low: int, high: int) -> tuple[int, int]:
        """All values of the cells that an interval touches."""
        return self._first(low), min(self._first(high) + self.step - 1, self.high)

    def _first(self, value: int) -> int:
        inside = min(max(value, self.low), self.high)
        return self.low + (inside - self.low) // self.step * self.step


@dataclass(frozen=True, slots=True)
class FloatingGrid:
    """Cells that grow with the distance from `centre`: 2^digits of them from 2^(j-1), without it, to 2^j.

    Up to 2^(digits + 1) every distance has a cell of its own. No cell lies on two sides of a power of two, or of the
    centre, so sums by such buckets are exact. Points are in the middle of their cells, or at the end of the domain.
    """

    low: int
    high: int
    centre: int
    digits: int

    @property
    def bits(self) -> int:
        """The least j for which all distances are up to 2^j."""
        return max(0, max(abs(self.low - self.centre), abs(self.high - self.centre)) - 1).bit_length()

    @property
    def cells(self) -> int:
        sides = (self.low < self.centre) + (self.high > self.centre)
        return sides * floating_cells(self.bits, self.digits) + 1

    def width(self, distance: int) -> int:
        """Of the cell that a distance falls into."""
        return 1 << max(0, max(0, distance - 1).bit_length() - 1 - self.digits)

    def point(self, value: int) -> int:
        distance = abs(value - self.centre)
        width = self.width(distance)
        middle = distance if width == 1 else (distance - 1) // width * width + width // 2
        return min(max(self.centre + (middle if value >= self.centre else -middle), self.low), self.high)

    def cover(self, low: int, high: int) -> tuple[int, int]:
        """All values of the cells that an interval touches."""
        return max(self._ends(low)[0], self.low), min(self._ends(high)[1], self.high)

    def _ends(self, value: int) -> tuple[int, int]:
        inside = min(max(value, self.low), self.high)
        distance = abs(inside - self.centre)
        width = self.width(distance)
        if width == 1:
            return inside, inside
        near = (distance - 1) // width * width + 1
        far = near + width - 1
        return (
            (self.centre + near, self.centre + far)
            if inside > self.centre
            else (
                self.centre - far,
                self.centre - near,
            )
        )


Grid = EvenGrid | FloatingGrid


def floating_cells(bits: int, digits: int) -> int:
    """On one side of the centre."""
    return 1 << bits if bits <= digits + 1 else (bits - digits + 1) << digits


def even_grid(low: int, high: int, cells: int) -> EvenGrid:
    """At most so many cells, of a round number of indices each: 1, 2, 5, 10, 20, ..."""
    needed = ceil(Fraction(high - low + 1, max(1, cells)))
    scale = 10 ** (len(str(needed)) - 1)
    step = next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= needed)
    return EvenGrid(low, high, step)


def floating_grid(low: int, high: int, centre: int, cells: int) -> FloatingGrid | None:
    """The finest of at most so many cells; None if not even one for every power of two fits."""
    coarsest = FloatingGrid(low, high, centre, 0)
    if coarsest.cells > cells:
        return None
    grids = (FloatingGrid(low, high, centre, digits) for digits in range(coarsest.bits + 1))
    return max((grid for grid in grids if grid.cells <= cells), key=lambda grid: grid.digits)

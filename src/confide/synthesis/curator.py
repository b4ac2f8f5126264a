"""Who holds the data. A synthesizer asks a curator, and every answer is paid for before it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from confide.synthesis.measured import MeasuredMarginal, MeasuredQueries
from confide.synthesis.model import Model


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Single queries of a workload: the threshold of each, and its cell among those of the threshold."""

    thresholds: NDArray[np.int64]
    cells: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cells)


class Curator(Protocol):
    """Lends what a release may know. `share` is the part of the whole call's cost that a step pays.

    Each method is one step: a charge, then a private read, then a released answer. Nothing is measured twice for one
    payment, and nothing is learnt but through these methods.
    """

    @property
    def seed(self) -> int:
        """For the arithmetic on what was released: drawn at random with the first step, and kept with it."""

    def measure(self, sets: Sequence[tuple[int, ...]], share: Fraction) -> tuple[MeasuredMarginal, ...]:
        """Noisy counts of whole marginals; the share is divided evenly among them."""

    def choose_set(self, candidates: Sequence[tuple[int, ...]], model: Model, share: Fraction) -> int:
        """The candidate whose largest cell error is about the largest."""

    def choose_queries(self, count: int, taken: Picked, model: Model, share: Fraction) -> Picked:
        """The queries of the workload, not taken before, whose errors are about the largest."""

    def ask(self, picked: Picked, share: Fraction) -> MeasuredQueries:
        """Noisy counts of single queries; the share is divided evenly among them."""

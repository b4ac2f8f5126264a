"""What a synthesis leaves behind, whatever the method: a table of shares that can be asked, drawn from and kept."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from confide.workload import Tables


class ShareTable(Tables, Protocol):
    """Shares of all rows in every cell, over a domain of finite columns. It was released: nothing of it is private."""

    @property
    def words(self) -> str:
        """How large it is, as people read it."""

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """So many records: a row for each, the place in each column."""

    def to_bytes(self) -> bytes:
        """What `SynthesisMethod.load` makes it of again; the same bytes for the same table."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What is believed so far: a table, and how many rows it stands for."""

    table: ShareTable
    total: float


@dataclass(frozen=True, slots=True, eq=False)
class Synthesized:
    """What a run leaves: the model, and how well it explains what was measured, in units of the noise."""

    model: Model
    loss: float
    measured: int
    """How many tables or queries were measured."""

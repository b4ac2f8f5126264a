"""How far a synthesis is, for whoever waits for it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `done` is the share of its rounds; `loss` of the fit at hand, if there is one."""

    what: str
    round: int
    rounds: int
    done: float
    loss: float | None = None


Tell = Callable[[Progress], None]

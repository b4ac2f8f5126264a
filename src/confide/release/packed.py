"""What is left of rows that units share when none keeps more than each level; the programs are solved or nothing is."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import EngineError


def packed_totals(
    members: NDArray[np.int64],
    weights: NDArray[np.int64],
    levels: Sequence[int],
    kinds: NDArray[np.int64] | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> list[int]:
    """`Packing` with an error that says nothing of the data. `tell`: how many levels are done, one after the other."""
    from confide.mechanism.join.curved import UncertifiedError  # noqa: PLC0415  heavy, and loaded when used
    from confide.mechanism.join.packing import Packing  # noqa: PLC0415

    try:
        found = {}
        for done, (level, total) in enumerate(Packing(members, weights, kinds).each(levels), start=1):
            found[level] = total
            tell(done)
        return [found[level] for level in levels]
    except UncertifiedError:
        pass
    raise EngineError

"""What is left of rows that units share when none keeps more than each level; the programs are solved or nothing is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import EngineError
from confide.host.progress import tell


def packed_totals(
    members: NDArray[np.int64],
    weights: NDArray[np.int64],
    levels: Sequence[int],
    kinds: NDArray[np.int64] | None = None,
    before: int = 0,
    steps: int | None = None,
) -> list[int]:
    """`Packing` with an error that says nothing of the data. It tells of each level but the last, after so many that
    were `before`, of so many `steps` in all.
    """
    from confide.mechanism.join.curved import UncertifiedError  # noqa: PLC0415  heavy, and loaded when used
    from confide.mechanism.join.packing import Packing  # noqa: PLC0415

    whole = len(levels) if steps is None else steps
    try:
        found = {}
        for done, (level, total) in enumerate(Packing(members, weights, kinds).each(levels), start=1):
            found[level] = total
            if done < len(levels):
                tell("counting", before + done, whole)
        return [found[level] for level in levels]
    except UncertifiedError:
        pass
    raise EngineError

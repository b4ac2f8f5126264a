"""Chi-square tests of counts against probabilities, with rare cells pooled."""

import numpy as np
from numpy.typing import NDArray

from tests.statistical.goodness import p_value


def fits(observed: NDArray[np.int64], probabilities: NDArray[np.float64], level: float = 1e-4) -> bool:
    """Whether the counts could have these probabilities; a false no has probability `level`."""
    expected = np.asarray(probabilities) * observed.sum()
    rare = expected < 10
    cells = np.append(observed[~rare], observed[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    if cells[1][-1] < 5:  # too rare even together: with the smallest of the others
        least = int(np.argmin(cells[1][:-1]))
        for part in cells:
            part[least] += part[-1]
        cells = cells[0][:-1], cells[1][:-1]
    return p_value(*cells) > level

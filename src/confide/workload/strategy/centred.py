"""What an ordered column tells beside its total, as whole numbers whose rows add up to zero."""

import numpy as np
from numpy.typing import NDArray

from confide.workload.strategy.dense import DenseLine, integers_of
from confide.workload.strategy.line import AskedLine, Floats
from confide.workload.strategy.optimum import BITS, gaussian_optimum


def centred_optimum(asked: AskedLine) -> DenseLine:
    """The best strategy for what is asked, without its mean."""
    matrix = gaussian_optimum(asked).matrix
    return DenseLine("residual", centred_integers(matrix, BITS), centred=True)


def centred_integers(matrix: Floats, bits: int) -> NDArray[np.int32]:
    """Rows less their means, rounded so that every row adds up to exactly zero."""
    rows = matrix - matrix.mean(axis=1, keepdims=True)
    whole = integers_of(rows, bits)
    scale = float(np.abs(whole).max()) / max(float(np.abs(rows).max()), 1e-300)
    left = rows * scale - whole
    for row, sum_ in enumerate(whole.sum(axis=1)):
        # What is over is taken off where rounding went up the most, a unit at each cell.
        order = np.argsort(left[row] if sum_ > 0 else -left[row])[: abs(int(sum_))]
        whole[row, order] -= np.sign(sum_)
    result: NDArray[np.int32] = whole[np.abs(whole).sum(axis=1) > 0]
    return result

"""p-Identity: every cell and p further rows, all columns of norm 1, found by descent ([McKenna2018]).

A = [I; Θ]·D with D = diag(1/s), s = 1 + the column sums of Θ ≥ 0. With B = (I + ΘΘᵀ)⁻¹, P = I − ΘᵀBΘ and H = D⁻¹GD⁻¹
the total variance is tr(P·H), and G = WᵀW is applied without being made: a step costs p²n.
"""

from typing import Final

import numpy as np

from confide.workload.strategy.dense import DenseLine, integers_of
from confide.workload.strategy.line import AskedCells, Floats

BITS: Final = 12
MOST_STEPS: Final = 250
_FAR: Final = 1e3
"""Above the logarithm of every variance that doubles hold."""


def laplace_descent(asked: AskedCells, rows: int | None = None, steps: int = MOST_STEPS) -> Floats:
    """Θ of the least error that descent finds from a tree of blocks."""
    from scipy.optimize import minimize  # noqa: PLC0415  heavy, and loaded when used

    start = _blocks(asked.size, rows)
    shape = start.shape
    diagonal = asked.diagonal()

    def objective(flat: Floats) -> tuple[float, Floats]:
        error, slope = _error(flat.reshape(shape), asked, diagonal)
        return error, slope.reshape(-1)

    found = minimize(
        objective, start.reshape(-1), jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size,
        options={"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-9},
    )  # fmt: skip
    result: Floats = found.x.reshape(shape)
    return result


def _error(theta: Floats, asked: AskedCells, diagonal: Floats) -> tuple[float, Floats]:
    """The logarithm of the total variance, and its slope."""
    sums = 1 + theta.sum(axis=0)
    middle = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    short = middle @ theta  # BΘ
    seen = asked.apply_gram(theta * sums) * sums  # ΘH
    error = float((diagonal * sums**2).sum() - (short * seen).sum())
    if not error > 0:  # a step so long that doubles cancel: descent turns back
        return _FAR, np.zeros_like(theta)
    reach = middle @ seen  # BΘH
    slope = -2 * (reach - (reach @ theta.T) @ short)
    # By way of s: 2 ((P∘G)·s).
    spread = 2 * (diagonal * sums - (theta * asked.apply_gram(short * sums)).sum(axis=0))
    return float(np.log(error)), (slope + spread) / error


def _blocks(size: int, rows: int | None) -> Floats:
    """Blocks of several widths, each a little uneven, so that descent is not caught in their symmetry."""
    width = 12 if rows is None else max(2, -(-size // rows))
    found = []
    while width < size:
        for begin in range(0, size, width):
            row = np.zeros(size)
            row[begin : begin + width] = 1.0
            found.append(row)
        width *= 6
    found.append(np.ones(size))
    blocks = np.array(found)
    places = np.arange(blocks.size, dtype=np.float64).reshape(blocks.shape)
    uneven: Floats = blocks * (0.3 + 0.1 * np.sin(places * 12.9898)) + 1e-3 * (1 + np.sin(places * 78.233))
    return uneven


def optimised_laplace(asked: AskedCells) -> DenseLine:
    theta = laplace_descent(asked)
    theta[theta < 2.0**-BITS] = 0.0
    matrix = np.concatenate([np.eye(asked.size), theta]) / (1 + theta.sum(axis=0))
    matrix = matrix[np.abs(matrix).sum(axis=1) > 0]
    return DenseLine("optimised", integers_of(matrix, BITS + 2))

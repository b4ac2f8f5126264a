"""The least error that Gaussian noise allows: the convex optimum of the matrix mechanism ([Li2015], [Edmonds2020]).

Among X = KᵀK with a diagonal of at most 1 the total variance tr(G·X⁻¹) is convex, G = WᵀW. At the optimum
X = Λ^−½ (Λ^½ G Λ^½)^½ Λ^−½ for the multipliers λ of the diagonal; λ ← diag((Λ^½ G Λ^½)^½) finds them. Any λ gives the
lower bound (tr (Λ^½ G Λ^½)^½)² / Σλ, by duality, which certifies what was found.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from confide.workload.strategy.dense import DenseLine, integers_of
from confide.workload.strategy.line import AskedGram, AskedLine, Floats

BITS: Final = 12
ENOUGH: Final = 6e-4
"""How far, relatively, the error may be from the least before the search ends."""
MOST_STEPS: Final = 20
COARSE: Final = 1_024
"""A longer column is begun from the multipliers of one of so many cells, and takes one step."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianOptimum:
    """A strategy A with columns of norm 1, its total variance at unit noise, and what none can be below."""

    matrix: Floats
    multipliers: Floats
    error: float
    bound: float


def gaussian_optimum(asked: AskedGram) -> GaussianOptimum:
    size = asked.size
    gram = asked.gram()
    if isinstance(asked, AskedLine) and size > COARSE:
        coarse = gaussian_optimum(AskedLine(COARSE, asked.kinds)).multipliers
        places = (np.arange(size) + 0.5) * COARSE / size - 0.5
        start = np.interp(places, np.arange(COARSE), coarse)
    else:
        start = np.sqrt(gram.diagonal())
    return optimum_of(gram, start, 1 if size > COARSE else MOST_STEPS)


def optimum_of(gram: Floats, start: Floats, steps: int = MOST_STEPS) -> GaussianOptimum:
    """The best of so many steps for a Gram matrix of answers, from some multipliers."""
    best = None
    multipliers = start
    for _ in range(steps):
        found, updated = _step(gram, multipliers)
        if best is None or found.error < best.error:
            best = found
        if found.error <= found.bound * (1 + ENOUGH):
            break
        multipliers = updated
    assert best is not None
    return best


def _step(gram: Floats, multipliers: Floats) -> tuple[GaussianOptimum, Floats]:
    roots = np.sqrt(multipliers)
    values, vectors = np.linalg.eigh(roots[:, None] * gram * roots)
    values = np.maximum(values, values[-1] * 1e-14)
    half = (vectors * values**0.25) @ vectors.T  # M^½, M = (Λ^½ G Λ^½)^½
    matrix = half / roots
    norms = np.sqrt((matrix**2).sum(axis=0))
    diagonal = (half**2).sum(axis=0)
    # With A = M^½ Λ^−½ D⁻¹, D its norms: tr(G (AᵀA)⁻¹) = tr(G D Λ^½ M⁻¹ Λ^½ D).
    inverse = (vectors * values**-0.5) @ vectors.T
    scaled = (norms * roots)[:, None] * inverse * (norms * roots)
    error = float((gram * scaled).sum())
    bound = float(np.sqrt(values).sum() ** 2 / multipliers.sum())
    return GaussianOptimum(matrix / norms, multipliers, error, bound), diagonal


def optimised_gaussian(asked: AskedGram) -> DenseLine:
    return DenseLine("optimised", integers_of(gaussian_optimum(asked).matrix, BITS))

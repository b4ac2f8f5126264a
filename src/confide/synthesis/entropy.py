"""The table of all cells that explains noisy contrasts and says least beside them: maximum entropy with slack.

Of all tables p it has the least λ·KL(p‖even) + Σ (c(p) − y)²/2σ² over the measured contrasts c, each with its own
deviation σ. It is a Gibbs table, p ∝ exp(Σ θ·c), and the dual is smooth and convex, without constraints:
log Σ exp(θ·c) − θ·y + λ/2 Σ σ²θ² ([Dudik2007]). λ counts rows: as many as what is believed beforehand is worth.

How large λ shall be is decided as a projection decides when to stop: noise splits itself. With fresh noise z of the
same variance, y + αz and y − z/α are independent; a fit to the first is judged by the second. There a contrast counts
1/σ⁴: a design gives the variance 1/√w to what enters answers with the weight w, so that is w. From large λ to small
each fit starts at the one before. Everything here is arithmetic on released numbers, so it costs nothing and its own
randomness protects nobody.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from confide.privacy.public_randomness import public_generator
from confide.synthesis.contrasts import Contrasts, Floats, KnownContrasts
from confide.synthesis.curator import MeasuredEffect, MeasuredMarginal
from confide.synthesis.descent import least
from confide.synthesis.full import FullTable

SPLIT: Final = 0.5
"""α: the larger it is, the better the judge and the worse the fit that is judged."""
SLACKS: Final = (1_000.0, 300.0, 100.0, 30.0, 10.0, 3.0)
"""λ, from much slack to little."""
SPLITS: Final = 2
_STEP: Final = 10
MOST_STEPS: Final = 1_500
NEAR: Final = 0.2
"""A fit is near enough where no contrast is further off than this, in units of its noise."""

Watch = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class EntropyFit:
    """A fitted table, with the slack that served best, and its mean squared error in units of the noise."""

    table: FullTable
    slack: float
    loss: float


def fit_entropy(
    sizes: tuple[int, ...],
    measured: tuple[MeasuredMarginal | MeasuredEffect, ...],
    total: float,
    seed: int,
    watch: Watch | None = None,
) -> EntropyFit:
    """Fit all cells to what was measured of `total` rows. `watch` is told after each fit how many were made, of how
    many at most.
    """
    change = Contrasts(sizes)
    known = change.pooled(measured, total)
    generator = public_generator(seed)
    pairs = [_split(known, generator) for _ in range(SPLITS)]
    most, done = (SPLITS + 1) * len(SLACKS), 0

    def fitted(own: KnownContrasts, slack: float, start: Floats) -> tuple[Floats, Floats]:
        nonlocal done
        found = _fitted(change, own, slack, start)
        done += 1
        if watch is not None:
            watch(done, most)
        return found

    starts = [_beginning(change, training) for training, _ in pairs]
    judged: list[float] = []
    for slack in SLACKS:
        judgement = 0.0
        for place, (training, judge) in enumerate(pairs):
            starts[place], cells = fitted(training, slack, starts[place])
            judgement += float(((_away(change, judge, cells) / judge.deviations) ** 2).sum())
        judged.append(judgement)
        if len(judged) > 1 and judged[-1] > judged[-2]:
            break
    best = int(np.argmin(judged))
    start = _beginning(change, known)
    for slack in SLACKS[: best + 1]:
        start, cells = fitted(known, slack, start)
    away = _away(change, known, cells)
    return EntropyFit(
        FullTable(sizes, cells.astype(np.float32)), SLACKS[best], float(np.mean(away**2)) if len(away) else 0.0
    )


def _beginning(change: Contrasts, known: KnownContrasts) -> Floats:
    """Where the first slack begins: from so much slack that the table is nearly even, by tens. Counts that are all but
    exact are so reached by short ways.
    """
    found = np.zeros(len(known))
    slack = 1 / (math.prod(change.sizes) * float(known.deviations.min(initial=math.inf)) ** 2)
    while slack > _STEP * SLACKS[0]:
        found, _ = _fitted(change, known, slack, found)
        slack /= _STEP
    return found


def _fitted(change: Contrasts, known: KnownContrasts, slack: float, start: Floats) -> tuple[Floats, Floats]:
    """The dual point in units of the noise, σθ, and its table."""
    cells = np.zeros(math.prod(change.sizes))
    scattered = np.zeros_like(cells)

    def gibbs(point: Floats) -> float:
        """Writes the table of a point into `cells`; the logarithm of what its exponentials add up to."""
        scattered[known.places] = point / known.deviations
        energy = change.cells(scattered)
        top = float(energy.max())
        np.exp(energy - top, out=cells)
        whole = float(cells.sum())
        np.divide(cells, whole, out=cells)
        return top + math.log(whole)

    def dual(point: Floats) -> tuple[float, Floats]:
        normal = gibbs(point)
        away = _away(change, known, cells)
        value = normal - float(point @ (known.values / known.deviations)) + slack / 2 * float(point @ point)
        return value, away + slack * point

    found = least(dual, start, NEAR, MOST_STEPS)
    gibbs(found)
    return found, cells


def _away(change: Contrasts, known: KnownContrasts, cells: Floats) -> Floats:
    """By how many deviations of its noise each contrast is off."""
    found: Floats = (change.of(cells)[known.places] - known.values) / known.deviations
    return found


def _split(known: KnownContrasts, generator: np.random.Generator) -> tuple[KnownContrasts, KnownContrasts]:
    """Two independent measurements in place of one."""
    noise = generator.normal(size=len(known)) * known.deviations
    one = replace(known, values=known.values + SPLIT * noise, deviations=known.deviations * math.sqrt(1 + SPLIT**2))
    other = replace(known, values=known.values - noise / SPLIT, deviations=known.deviations * math.sqrt(1 + SPLIT**-2))
    return one, other

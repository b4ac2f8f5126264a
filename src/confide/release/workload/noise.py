"""The noise of every block of a design, and what it costs in all. Public facts only."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.mechanism import DiscreteGaussian, DiscreteLaplace
from confide.mechanism.interval.many import gaussian_factor, laplace_widths
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, PureDP
from confide.query.tabulation import Tabulation
from confide.release.block_noise import BlockNoise, Cost, forecast, noises_for
from confide.release.holdings import Holdings
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import AUTO, EXACT, Design, Goal, designs, many_marginals
from confide.workload.strategy.line import Floats, NoiseKind
from confide.workload.strategy.worst import worst_coefficients

NEAR: Final = 1.05
"""Designs within so much of the best rough forecast get an exact one."""


def worst_forecast(
    design: Design, noises: tuple[BlockNoise, ...], sizes: tuple[int, ...], tables: tuple[AskedTable, ...]
) -> float:
    """The largest variance of an answer, or what it is at most where answers of a table differ."""
    parts = worst_coefficients(design.blocks, design.sources, sizes, tables)
    pairs = zip(design.blocks, noises, strict=True)
    return float(parts.worst(np.array([noise.variance / block.fineness**2 for block, noise in pairs])).max())


def widths(second: Floats, fourth: Floats, noises: list[BlockNoise], confidence: float) -> Floats:
    """Half-widths from what noise puts into answers: Σc²σ² of Gaussian noise, Σ(cb)² and Σ(cb)⁴ of Laplace noise."""
    if isinstance(noises[0].law, DiscreteGaussian):
        found: Floats = gaussian_factor(min(noise.variance for noise in noises), confidence) * np.sqrt(second)
        return found
    scale = min(float(noise.law.scale) for noise in noises if isinstance(noise.law, DiscreteLaplace))
    return laplace_widths(second, fourth, scale, confidence)


def powers(noise: BlockNoise, fine: int) -> tuple[float, float]:
    """By what Σc² and Σc⁴ of a block's coefficients on counts are multiplied: σ², or b² and b⁴."""
    if isinstance(noise.law, DiscreteGaussian):
        return noise.variance / fine**2, 0.0
    scale = float(noise.law.scale) / fine
    return scale**2, scale**4


def best_design(
    sizes: tuple[int, ...],
    tables: tuple[AskedTable, ...],
    strategy: str,
    change: UnitChange,
    cost: Cost,
    goal: Goal = "typical",
) -> tuple[float, Design, tuple[BlockNoise, ...]]:
    """The design of the least exact forecast, of all that the strategy and the cost allow, with its noise.

    Given is the sum of the tables' mean variances; of the goal `worst`, the largest variance that a table may have.
    """
    made: list[Design] = []
    refusal: ParameterError | None = None
    kinds: tuple[NoiseKind, ...] = ("laplace",) if isinstance(cost, PureDP) else ("gaussian", "laplace")
    if strategy in (AUTO, EXACT) and many_marginals(tables) and "gaussian" in kinds:
        kinds = ("gaussian",)  # Laplace noise for T tables has 2T times the variance at the same ρ
    for kind in kinds:
        try:
            made += _designs(sizes, tables, strategy, kind, goal)
        except ParameterError as error:
            refusal = error
    if not made:
        raise refusal or ParameterError("no strategy suits this workload; ask for fewer columns, or wider bins")
    if goal == "worst":
        priced = [(design, noises_for(design, change, cost)) for design in made]
        return min(
            ((worst_forecast(design, noises, sizes, tables), design, noises) for design, noises in priced),
            key=lambda each: each[0],
        )
    rough = [_rough(design, change, cost) for design in made]
    found: list[tuple[float, Design, tuple[BlockNoise, ...]]] = []
    for design, near in zip(made, rough, strict=True):
        if near <= min(rough) * NEAR:
            noises = noises_for(design, change, cost)
            found.append((forecast(design, noises), design, noises))
    return min(found, key=lambda each: each[0])


def _rough(design: Design, change: UnitChange, cost: Cost) -> float:
    """The forecast in doubles, of laws without rounding: to leave out what is far from the best."""
    known: dict[object, float] = {}
    for block in design.blocks:
        if block.lines not in known:
            own = block.norms
            known[block.lines] = float(change.l2_squared(own) if design.noise == "gaussian" else change.l1(own) ** 2)
    norms = np.array([known[block.lines] for block in design.blocks])
    shares, totals = np.array([float(share) for share in design.shares]), np.array(design.totals)
    if design.noise == "gaussian":
        assert isinstance(cost, ZCDP)
        return float((totals * norms / shares).sum() / (2 * float(cost.rho)))
    epsilon = float(cost.epsilon) if isinstance(cost, PureDP) else (2 * float(cost.rho)) ** 0.5
    return float((2 * totals * norms / shares**2).sum() / epsilon**2)


@lru_cache(maxsize=64)
def _designs(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str, kind: NoiseKind, goal: Goal
) -> tuple[Design, ...]:
    return tuple(designs(sizes, tables, strategy, kind, goal))


def read_blocks(
    holdings: Holdings, charge: Charge, tabulation: Tabulation, design: Design, noises: tuple[BlockNoise, ...]
) -> tuple[NDArray[Any], ...]:
    """Every block of a design, read once against the charge and noised.

    A block may have more columns than any table that is asked for: what is read are the sets of columns of both.
    """
    sets = dict.fromkeys((*tabulation.sets, *(block.columns for block in design.blocks if block.columns)))
    exact = holdings.engine.tabulate(replace(tabulation, sets=tuple(sets)), charge, holdings.ledger.secret)
    values = []
    for block, noise in zip(design.blocks, noises, strict=True):
        if block.columns:
            counts = exact.marginal(block.columns, 0, exact.sizes[block.columns[0]])
        else:
            counts = np.array(exact.rows, dtype=np.int64)
        values.append(noise.measure(block, counts, holdings.randomness))
    return tuple(values)

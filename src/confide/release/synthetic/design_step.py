"""A step that measures a design: the noise of each of its blocks, what is released of it, and what that tells."""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism import Randomness
from confide.privacy.budget import Currency
from confide.release.block_noise import BlockNoise, noises_for
from confide.release.synthetic.kept import KeptMarginal
from confide.release.synthetic.steps import NO_ROUND
from confide.synthesis.curator import MeasuredEffect, MeasuredMarginal, UnitReach
from confide.workload import ExactTables
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.design import Design
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.line import AskedLine, total_spread

_LARGEST: Final = 2.0**54
"""Of the deviation of a measured number, in its own unit: then 64 bits hold it, with 2⁸ deviations to spare."""


def design_noises(design: Design, loss: Currency, reach: UnitReach) -> tuple[BlockNoise, ...]:
    """The noise of each block, which has its own part of what the step pays. Refused where 64 bits do not hold it."""
    try:
        noises = noises_for(design, UnitChange(reach.rows, reach.replaced), loss)
    except EpsilonTooSmall:
        raise ParameterError(NO_ROUND) from None
    for block, noise in zip(design.blocks, noises, strict=True):
        factors = block.factors
        largest = 1 if factors is None else int(factors.max(initial=1))
        if noise.variance * largest > _LARGEST**2:
            raise ParameterError(NO_ROUND)
    return noises


def released(
    design: Design, noises: tuple[BlockNoise, ...], exact: ExactTables, randomness: Randomness
) -> NDArray[np.int64]:
    """Releases the numbers of all blocks, with noise on each: see `BlockNoise.measure`. The design's shares add up to 1
    at most, so the loss is no more than what the step pays (composition).
    """
    values: list[NDArray[Any]] = []
    for block, noise in zip(design.blocks, noises, strict=True):
        first = exact.sizes[block.columns[0]] if block.columns else 0
        counts = exact.marginal(block.columns, 0, first) if block.columns else np.array(exact.rows, dtype=np.int64)
        values.append(noise.measure(block, counts, randomness).astype(np.int64))
    return np.concatenate(values)


def told(
    design: Design, noises: tuple[BlockNoise, ...], values: NDArray[np.int64]
) -> tuple[MeasuredMarginal | MeasuredEffect, ...]:
    """What the numbers of each block tell of its columns, in the unit of counts."""
    found: list[MeasuredMarginal | MeasuredEffect] = []
    parts = np.split(values, np.cumsum([block.rows for block in design.blocks])[:-1])
    for block, noise, part in zip(design.blocks, noises, parts, strict=True):
        counts = block.estimate(part.astype(np.float64)).reshape(-1)
        variance = max(noise.variance / block.fineness**2 * _spread(block), 1e-9)
        whole = bool(block.columns) and all(isinstance(line, IdentityLine) for line in block.lines)
        kind = MeasuredMarginal if whole else MeasuredEffect
        found.append(kind(block.columns, counts, max(variance, 1 / 12) if whole else variance))
    return tuple(found)


def cells_of(
    design: Design, noises: tuple[BlockNoise, ...], values: NDArray[np.int64], sizes: Sequence[int]
) -> list[KeptMarginal]:
    """The blocks that measured every cell of a marginal, as they are kept."""
    found = []
    parts = np.split(values, np.cumsum([block.rows for block in design.blocks])[:-1])
    for block, noise, part in zip(design.blocks, noises, parts, strict=True):
        if block.columns and all(isinstance(line, IdentityLine) for line in block.lines):
            shape = tuple(sizes[column] for column in block.columns)
            merged = (None,) * len(block.columns)
            found.append(KeptMarginal(block.columns, part.reshape(shape), noise.law, merged, 0, block.fineness))
    return found


def _spread(block: ProductBlock) -> float:
    """The mean variance of a contrast at unit noise: of Helmert rows it is 1, of every cell by itself too."""
    lines = [line for line in block.lines if not isinstance(line, IdentityLine)]
    return prod(total_spread(line, AskedLine(line.size, ("each",))) / (line.size - 1) for line in lines)

"""The noise of every block of a design, and what it costs in all. Public facts only."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall
from confide.mechanism import Additive, DiscreteGaussian, DiscreteLaplace, gaussian, laplace
from confide.mechanism.interval.many import gaussian_factor, laplace_widths
from confide.mechanism.noise.additive import added
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.amount import root
from confide.privacy.loss import ZCDP, PureDP
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.design import Design
from confide.workload.strategy.line import Floats, Integers

Cost = PureDP | ZCDP
BlockLaw = DiscreteLaplace | DiscreteGaussian

LARGEST_DEVIATION: Final = 2.0**48
"""Of the noise of one block, in counts: beyond, doubles would not hold estimates."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockNoise:
    """The law of the noise on one block's numbers, in their own unit; factors of a block multiply its variance."""

    law: BlockLaw

    @property
    def variance(self) -> float:
        return float(self.law.variance)

    def measure(self, block: ProductBlock, counts: Integers, randomness: Randomness) -> NDArray[Any]:
        """Releases `fineness`·K·x, whole numbers, plus independent noise of this law on each.

        Neighbours: those that the law was made for (`block_noise`). Loss: the block's share of the cost.
        Theorem: for discrete Gaussians of variances fV the loss is Σ d²/2fV-zCDP for a change d, and the strategy's
        squared norm bounds Σ d²/f ([Canonne2020], Theorem 14); for Laplace noise it is Σ|d|/b ([Ghosh2012]).
        """
        exact = block.measure(counts)
        factors = block.factors
        if factors is None:
            return added(exact, draw(self.law, exact.shape, randomness))
        assert isinstance(self.law, DiscreteGaussian)
        noise = np.zeros(exact.shape, dtype=object)
        kinds, inverse = np.unique(factors, return_inverse=True)
        for place, factor in enumerate(kinds.tolist()):
            own = np.flatnonzero(inverse == place)
            noise[own] = draw(DiscreteGaussian(self.law.variance * factor), (len(own),), randomness)
        return added(exact.astype(object), noise)


def block_noise(block: ProductBlock, kind: str, share: Fraction, change: UnitChange, cost: Cost) -> BlockNoise:
    """The noise that a share of the cost buys for a block, for the change that one unit can make.

    Where ρ is added up, Laplace noise at ε = √(2ρ) costs no more than ρ.
    """
    norms, fine = block.norms, block.fineness
    made: Additive
    if kind == "gaussian":
        assert isinstance(cost, ZCDP)
        made = gaussian(change.l2_squared(norms) * fine**2, cost.rho * share)
    else:
        epsilon = cost.epsilon if isinstance(cost, PureDP) else root(2 * cost.rho)
        made = laplace(change.l1(norms) * fine, epsilon * share)
    assert isinstance(made.law, DiscreteLaplace | DiscreteGaussian)
    found = BlockNoise(made.law)
    if found.variance**0.5 / fine > LARGEST_DEVIATION:
        raise EpsilonTooSmall(f"epsilon is too small: its noise would pass 2^{LARGEST_DEVIATION:.0f}")
    return found


def noises_for(design: Design, change: UnitChange, cost: Cost) -> tuple[BlockNoise, ...]:
    pairs = zip(design.blocks, design.shares, strict=True)
    return tuple(block_noise(block, design.noise, share, change, cost) for block, share in pairs)


def forecast(design: Design, noises: tuple[BlockNoise, ...]) -> float:
    """The sum over tables of the mean variance of their answers, exactly as it will be."""
    parts = zip(design.blocks, noises, design.totals, strict=True)
    return sum(total * noise.variance / block.fineness**2 for block, noise, total in parts)


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

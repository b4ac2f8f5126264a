"""Noise on blocks of whole numbers, what a block of a design costs, and the forecast of what follows from all of them.

What is measured by a design is the same whichever product asks for it.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall
from confide.mechanism import Additive, DiscreteGaussian, DiscreteLaplace, gaussian, laplace
from confide.mechanism.noise.additive import added
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.amount import root
from confide.privacy.loss import ZCDP, PureDP
from confide.workload.strategy.block import MOST_ROWS_BITS, ProductBlock, UnitChange
from confide.workload.strategy.design import Design
from confide.workload.strategy.line import AnyIntegers, Integers

Cost = PureDP | ZCDP
BlockLaw = DiscreteLaplace | DiscreteGaussian

LARGEST_BITS: Final = 126
"""Of sums; `mechanism.noise.law` holds the same bound."""
SHIFT: Final = 1 << LARGEST_BITS
"""What is added to sums, and taken out again: then they are above 0."""
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
        return self.noised(block, block.measure(counts), randomness)

    def measure_sums(self, block: ProductBlock, sums: AnyIntegers, randomness: Randomness) -> NDArray[Any]:
        """The same of sums of whole numbers, of any size and sign: in parts that are counts, and exactly.

        Loss and theorem as for counts, for noise that was made for what one unit can change of sums.
        """
        raised = np.array(sums + SHIFT, dtype=object)
        exact: AnyIntegers = -block.measure(np.ones(sums.shape, dtype=np.int64)).astype(object) * SHIFT
        # Of all cells together a part is below what counts are, which is what `measure` has room for.
        bits = MOST_ROWS_BITS - sums.size.bit_length()
        for shift in range(0, LARGEST_BITS + 1, bits):
            part = np.array((raised >> shift) & ((1 << bits) - 1), dtype=object)
            exact = exact + (block.measure(part.astype(np.int64)).astype(object) << shift)
        return self.noised(block, exact, randomness)

    def noised(self, block: ProductBlock, exact: AnyIntegers, randomness: Randomness) -> NDArray[Any]:
        """What a block measures, with its noise."""
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
        raise EpsilonTooSmall(f"epsilon is too small: its noise would pass {LARGEST_DEVIATION:.2g} rows")
    return found


def noises_for(design: Design, change: UnitChange, cost: Cost) -> tuple[BlockNoise, ...]:
    known: dict[tuple[object, Fraction], BlockNoise] = {}
    found = []
    for block, share in zip(design.blocks, design.shares, strict=True):
        key = block.lines, share
        if key not in known:
            known[key] = block_noise(block, design.noise, share, change, cost)
        found.append(known[key])
    return tuple(found)


def forecast(design: Design, noises: tuple[BlockNoise, ...]) -> float:
    """The sum over tables of the mean variance of their answers, exactly as it will be."""
    parts = zip(design.blocks, noises, design.totals, strict=True)
    return sum(total * noise.variance / block.fineness**2 for block, noise, total in parts)

"""The noise of every block of a design, and what it costs in all. Public facts only."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confide.errors import EpsilonTooSmall, ParameterError
from confide.mechanism import Additive, DiscreteGaussian, DiscreteLaplace, gaussian, laplace
from confide.mechanism.interval.many import gaussian_factor, laplace_widths
from confide.mechanism.noise.additive import added
from confide.mechanism.noise.randomness import Randomness
from confide.mechanism.noise.sampler import draw
from confide.privacy.amount import root
from confide.privacy.charge import Charge
from confide.privacy.loss import ZCDP, PureDP
from confide.query.tabulation import Tabulation
from confide.release.holdings import Holdings
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import MOST_ROWS_BITS, ProductBlock, UnitChange
from confide.workload.strategy.design import AUTO, EXACT, Design, Goal, designs, many_marginals
from confide.workload.strategy.line import AnyIntegers, Floats, Integers, NoiseKind
from confide.workload.strategy.worst import worst_coefficients

Cost = PureDP | ZCDP
BlockLaw = DiscreteLaplace | DiscreteGaussian

NEAR: Final = 1.05
"""Designs within so much of the best rough forecast get an exact one."""
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

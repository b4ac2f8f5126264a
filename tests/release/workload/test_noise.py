"""The noise of blocks: what all of it costs together, and that every number gets its own."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from confide.errors import EpsilonTooSmall
from confide.mechanism import DiscreteGaussian, DiscreteLaplace, TestRandomness
from confide.privacy.loss import ZCDP, PureDP
from confide.release.block_noise import BlockNoise, block_noise, noises_for
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import ProductBlock, UnitChange
from confide.workload.strategy.design import designs
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.helmert import HelmertLine

SIZES = (4, 3, 7)
TABLES = (
    *(AskedTable(chosen, ("each", "each")) for chosen in combinations(range(3), 2)),
    AskedTable((2,), ("range",)),
)


@pytest.mark.parametrize("change", [UnitChange(1, False), UnitChange(1, True), UnitChange(5, False)])
def test_all_blocks_together_cost_what_is_charged(change: UnitChange) -> None:
    rho, epsilon = Fraction(1, 7), Fraction(2, 3)
    for design in designs(SIZES, TABLES, "auto", "gaussian"):
        spent = Fraction(0)
        for block, noise in zip(design.blocks, noises_for(design, change, ZCDP(rho)), strict=True):
            assert isinstance(noise.law, DiscreteGaussian)
            spent += change.l2_squared(block.norms) * block.fineness**2 / (2 * noise.law.variance)
        assert rho * Fraction(999_999, 1_000_000) < spent <= rho
    for design in designs(SIZES, TABLES, "auto", "laplace"):
        for cost, most in ((PureDP(epsilon), epsilon), (ZCDP(epsilon**2 / 2), epsilon)):
            used = Fraction(0)
            for block, noise in zip(design.blocks, noises_for(design, change, cost), strict=True):
                assert isinstance(noise.law, DiscreteLaplace)
                used += change.l1(block.norms) * block.fineness / noise.law.scale
            assert most * Fraction(999_999, 1_000_000) < used <= most


def test_every_row_has_the_variance_of_its_factor() -> None:
    """20,000 draws for each row: an estimated variance is off by 4 % with chance below 10⁻⁴; the seed is fixed."""
    block = ProductBlock((0, 1), (HelmertLine(3), IdentityLine(20_000)))
    noise = block_noise(block, "gaussian", Fraction(1), UnitChange(1, False), ZCDP(Fraction(1, 2)))
    counts = np.zeros((3, 20_000), dtype=np.int64)
    draws = noise.measure(block, counts, TestRandomness(4)).astype(float).reshape(2, -1)
    assert draws.var(axis=1) == pytest.approx(noise.variance * np.array([2, 6]), rel=0.04)


def test_noise_is_added_to_whole_numbers_made_fine() -> None:
    block = ProductBlock((0,), (IdentityLine(3),))
    noise = BlockNoise(DiscreteLaplace(Fraction(1, 10**6)))  # next to none
    assert noise.measure(block, np.array([1, 2, 3]), TestRandomness(1)).tolist() == [2**16, 2**17, 3 * 2**16]


def test_too_small_a_share_is_refused_before_anything_is_read() -> None:
    block = ProductBlock((0,), (IdentityLine(3),))
    with pytest.raises(EpsilonTooSmall):
        block_noise(block, "laplace", Fraction(1), UnitChange(1, False), PureDP(Fraction(1, 2**60)))

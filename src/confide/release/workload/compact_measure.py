"""Reading and noising very many marginals in a memory that does not grow with them: some at a time, then packed."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from math import prod
from typing import Final

import numpy as np

from confide.host.progress import tell
from confide.mechanism import DiscreteGaussian
from confide.mechanism.noise.gaussians import gaussians
from confide.mechanism.noise.randomness import Randomness
from confide.privacy.charge import Charge
from confide.query.grouping import key_size
from confide.query.tabulation import Tabulation
from confide.release.block_noise import BlockNoise
from confide.release.holdings import Holdings
from confide.release.workload.compact_design import CompactDesign, packed, runs, steps, variances, within_room
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.design import Design
from confide.workload.strategy.line import Integers

MOST_CELLS: Final = 2**20
"""Of all columns together: up to so many, a database counts them all; beyond, rows are read and counted here."""

Count = Callable[[tuple[int, ...]], Integers]


def measured_compactly(
    holdings: Holdings,
    charge: Charge,
    tabulation: Tabulation,
    design: Design,
    noises: tuple[BlockNoise, ...],
    bits: int,
) -> CompactDesign:
    """Every block of a design, in order of its columns, noised by `noised` and packed.

    Only what is packed is kept, and it is kept as one outcome of the one charge.
    """
    order = sorted(
        range(len(design.blocks)), key=lambda place: (len(design.blocks[place].columns), design.blocks[place].columns)
    )
    blocks = [design.blocks[place] for place in order]
    known: dict[Fraction, int] = {}
    which = tuple(known.setdefault(_variance(noises[place]), len(known)) for place in order)
    laws = tuple(known)
    count, sizes = _counted(holdings, charge, tabulation)
    sets = tuple(block.columns for block in blocks)
    parts = list(runs(sizes, sets))
    chunks = []
    for done, run in enumerate(parts):
        tell("measuring", done, len(parts))
        own = [blocks[place] for place in run]
        variance = [laws[which[place]] for place in run]
        values = noised(own, variance, count, holdings.randomness)
        chunks.append(packed(values >> steps(variances(own, variance), bits)))

    def further(run: int, least: int) -> Integers:
        """Of each number how many more bits are left out, where one less is kept of a deviation."""
        places = parts[run]
        spread = variances([blocks[place] for place in places], [laws[which[place]] for place in places])
        return steps(spread, least) - steps(spread, least + 1)

    kept, left = within_room(chunks, bits, further)
    return CompactDesign(sizes, sets, laws, which, kept, left)


def noised(blocks: list[ProductBlock], laws: list[Fraction], count: Count, randomness: Randomness) -> Integers:
    """Releases `fineness`·K·x of each block, whole numbers, plus independent noise of variance f·V on each.

    Neighbours: those that the laws V were made for (`block_noise`). Loss: the blocks' shares of the cost.
    Theorem: a change d costs Σ d²/2fV, as in `BlockNoise.measure`, and the strategy's squared norm bounds Σ d²/f
    ([Canonne2020], Theorem 14).
    """
    exact = []
    for _, own in groupby(blocks, key=lambda block: block.lines):
        alike = list(own)
        counts = np.stack([count(block.columns) for block in alike], axis=-1)
        exact.append(alike[0].measure(counts).reshape(alike[0].rows, len(alike)).T.reshape(-1))
    ends = np.cumsum([block.rows for block in blocks])

    def variance(place: int) -> Fraction:
        number = int(np.searchsorted(ends, place, side="right"))
        factors = blocks[number].factors
        within = place - int(ends[number]) + blocks[number].rows
        return laws[number] * (1 if factors is None else int(factors[within]))

    found: Integers = np.concatenate(exact) + gaussians(variances(blocks, laws), variance, randomness)
    return found


def _counted(holdings: Holdings, charge: Charge, tabulation: Tabulation) -> tuple[Count, tuple[int, ...]]:
    """How the counts of some columns are found: which way follows from the sizes of the columns alone."""
    secret = holdings.ledger.secret
    sizes = tuple(key_size(key) or 0 for key in tabulation.keys)
    if prod(sizes) > MOST_CELLS:
        rows = holdings.engine.occupied(tabulation, charge, secret)
        return rows.marginal, rows.sizes
    every = tuple(range(len(sizes)))
    whole = holdings.engine.tabulate(replace(tabulation, sets=(every,)), charge, secret).marginal(every, 0, sizes[0])
    return lambda columns: whole.sum(axis=tuple(place for place in every if place not in columns)), sizes


def _variance(noise: BlockNoise) -> Fraction:
    assert isinstance(noise.law, DiscreteGaussian)
    return noise.law.variance

"""The strategies by name: each is one module and one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from confide.workload.strategy.dense import MOST_DENSE, DenseLine
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.hierarchy import tree_for
from confide.workload.strategy.line import AskedLine, LineStrategy, NoiseKind
from confide.workload.strategy.optimum import optimised_gaussian
from confide.workload.strategy.p_identity import optimised_laplace
from confide.workload.strategy.toeplitz import ToeplitzLine
from confide.workload.strategy.wavelet import wavelet_for

MOST_DIRECT: Final = 2**20
"""Entries of a strategy that measures every answer by itself."""


@dataclass(frozen=True, slots=True)
class Maker:
    """How a strategy is made for what is asked of a column, and up to how many cells."""

    make: Callable[[AskedLine, NoiseKind], LineStrategy]
    most: int
    words: str


def direct_line(asked: AskedLine, noise: NoiseKind) -> LineStrategy:
    """Every answer by itself."""
    starts, stops = asked.stretches()
    places = np.arange(asked.size)
    return DenseLine("direct", ((places >= starts[:, None]) & (places < stops[:, None])).astype(np.int32))


def _optimised(asked: AskedLine, noise: NoiseKind) -> LineStrategy:
    return optimised_gaussian(asked) if noise == "gaussian" else optimised_laplace(asked)


LINES: Final[Mapping[str, Maker]] = {
    "identity": Maker(lambda asked, noise: IdentityLine(asked.size), 2**24, "every cell by itself"),
    "hierarchy": Maker(tree_for, 2**24, "a tree of stretches, levels weighted"),
    "wavelet": Maker(wavelet_for, 2**24, "differences of halves, levels weighted"),
    "prefix": Maker(lambda asked, noise: ToeplitzLine(asked.size), 2**20, "the square root of prefix sums"),
    "optimised": Maker(_optimised, MOST_DENSE, "the least error there is for its noise"),
}

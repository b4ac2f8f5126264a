"""Shares that make the widest answer as narrow as can be, in place of the mean, without a solver.

Let every table B have its worst variance V_B = Σ_A m_BA·Δ_A/share_A: m_BA is the largest, over its answers, of what
unit noise on block A puts in. For weights λ of tables that add up to 1 the least Σ λV has a closed form, and is below
the least max V: a lower bound. λ_B ← λ_B · V_B / bound gives more weight to what is above it; where no V is above it
by more than `ENOUGH`, the shares are proven to be as near to the best there are. (For marginals all answers of a table
are alike, and V_B is exact; of ranges it is a bound, since the largest of a sum is below the sum of the largest.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from confide.workload.asked import AskedTable
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.line import Floats, Integers, Kind, LineStrategy, NoiseKind, stretches

ENOUGH: Final = 1e-4
MOST_STEPS: Final = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class WorstCoefficients:
    """m_BA for each table and each of its blocks: `blocks` says which, `starts` where each table's begin."""

    blocks: Integers
    starts: Integers
    amounts: Floats

    def worst(self, variances: Floats) -> Floats:
        """V of every table, for the variance of each block's noise in the unit of its strategy."""
        found: Floats = np.add.reduceat(self.amounts * variances[self.blocks], self.starts)
        return found

    def totals(self, weights: Floats, blocks: int) -> Floats:
        """Σ_B λ_B·m_BA of every block."""
        counts = np.diff([*self.starts, len(self.blocks)])
        found: Floats = np.bincount(
            self.blocks, weights=self.amounts * np.repeat(weights, counts), minlength=blocks
        ).astype(np.float64)
        return found


def worst_coefficients(
    blocks: Sequence[ProductBlock],
    sources: Sequence[tuple[int, ...]],
    sizes: tuple[int, ...],
    tables: Sequence[AskedTable],
) -> WorstCoefficients:
    known: dict[tuple[LineStrategy | None, int, Kind], float] = {}

    def largest(line: LineStrategy | None, size: int, kind: Kind) -> float:
        key = line, size, kind
        if key not in known:
            starts, stops = stretches(kind, size)
            own = ((stops - starts) / size) ** 2 if line is None else line.spread(starts, stops, fourth=False)[0]
            known[key] = float(own.max())
        return known[key]

    places, amounts = [], []
    for table, own in zip(tables, sources, strict=True):
        asked = dict(zip(table.columns, table.kinds, strict=True))
        for number in own:
            block, amount = blocks[number], 1.0
            for column, line in zip(block.columns, block.lines, strict=True):
                amount *= largest(line, sizes[column], asked.get(column, "total"))
            for column, kind in asked.items():
                if column not in block.columns:
                    amount *= largest(None, sizes[column], kind)
            places.append(number)
            amounts.append(amount)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in sources])[:-1]]).astype(np.int64)
    return WorstCoefficients(np.array(places, dtype=np.int64), starts, np.array(amounts))


@dataclass(frozen=True, slots=True, eq=False)
class WorstShares:
    """Shares of the blocks, the worst variance under them at a cost of 1, and what none can be below."""

    shares: Floats
    worst: float
    bound: float


def worst_shares(parts: WorstCoefficients, norms: Floats, noise: NoiseKind) -> WorstShares:
    """`norms` are the squared sensitivities; variances are norm/share for Gaussian noise, norm/share² for Laplace."""
    power = 1 if noise == "gaussian" else 2
    tables = len(parts.starts)
    weights = np.full(tables, 1 / tables)
    best: WorstShares | None = None
    for _ in range(MOST_STEPS):
        own = (parts.totals(weights, len(norms)) * norms) ** (1 / (power + 1))
        bound = float(own.sum()) ** (power + 1)
        shares = np.maximum(own / own.sum(), 1e-12)
        found = parts.worst(norms / shares**power)
        worst = float(found.max())
        highest = bound if best is None else max(bound, best.bound)
        if best is None or worst < best.worst:
            best = WorstShares(shares, worst, highest)
        else:
            best = WorstShares(best.shares, best.worst, highest)
        if best.worst <= best.bound * (1 + ENOUGH):
            break
        weights = weights * found / bound
        weights /= weights.sum()
    assert best is not None
    return best

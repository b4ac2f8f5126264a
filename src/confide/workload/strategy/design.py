"""What is measured for a whole workload: blocks of columns, their shares of the cost, and what adds up to what.

union     one block for each set of columns that is asked for, each with a strategy for every column
cells     one block for all columns together: every cell by itself
residual  what each set of columns tells beside its parts, for every set and its parts ([Xiao2023]); the answers of
          a set are sums over its parts, and no two parts say the same thing, so that all agree
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from confide.errors import ParameterError
from confide.workload.asked import MOST_CELLS, AskedTable, kinds_by_column
from confide.workload.strategy.block import ProductBlock
from confide.workload.strategy.cache import kept_line
from confide.workload.strategy.centred_laplace import MOST_CENTRED, centred_laplace
from confide.workload.strategy.dense import MOST_DENSE
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.helmert import HelmertLine
from confide.workload.strategy.line import (
    AskedLine,
    Floats,
    Kind,
    LineStrategy,
    NoiseKind,
    count_of,
    noise_norm,
    stretches,
    total_spread,
    unit_error,
)
from confide.workload.strategy.registry import LINES, MOST_DIRECT, direct_line
from confide.workload.strategy.worst import worst_coefficients, worst_shares

QUANTA: Final = 2**40
"""Shares are whole numbers of these."""
AUTO_DENSE: Final = 1_024
"""Cells of a column for which `auto` looks for the least error there is; longer ones take minutes, and a name."""
Goal = Literal["typical", "worst"]
GOALS: Final[tuple[Goal, ...]] = ("typical", "worst")
"""What is made least: the mean variance of answers, every table counted the same, or the largest of all."""
MANY: Final = 1_000
"""Marginals of which `auto` looks at no other strategy than the optimal one."""
AUTO: Final = "auto"
EXACT: Final = "exact"
"""The best of those that do not look at the data, whose widths are known beforehand."""
NAMES: Final = ("direct", *LINES, "residual")
LOOKING: Final = ("privtree", "dawa", "net")
"""Strategies that look at the data, and are no design: `release.workload.partition_price` has those that find parts,
`release.workload.net_price` the one that chooses a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Blocks with their shares of the cost, and of which blocks every table is the sum.

    Every table counts the same, however many answers it has. `totals` is, for each block, the sum over tables of the
    mean over answers of Σ f·c²: what a noise of variance 1 on the block's numbers puts in.
    """

    strategy: str
    noise: NoiseKind
    blocks: tuple[ProductBlock, ...]
    shares: tuple[Fraction, ...]
    sources: tuple[tuple[int, ...], ...]
    totals: tuple[float, ...]

    @property
    def numbers(self) -> int:
        """How many whole numbers are measured."""
        return sum(block.rows for block in self.blocks)

    def error(self) -> float:
        """The sum over tables of the mean variance, in units of that of one number measured alone at the whole cost."""
        power = 1 if self.noise == "gaussian" else 2
        parts = zip(self.blocks, self.shares, self.totals, strict=True)
        return sum(
            total * noise_norm([line.norms for line in block.lines], self.noise) / float(share) ** power
            for block, share, total in parts
        )


Shape = tuple[tuple[int, ...], tuple[AskedTable, ...]]
"""The sizes of a domain's columns, and the tables that are asked for: all that a design follows from."""


def designs(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str, noise: NoiseKind, goal: Goal = "typical"
) -> list[Design]:
    """The designs of a strategy for one kind of noise: of `auto` all that suit."""
    if strategy not in (AUTO, EXACT):
        if strategy not in NAMES:
            known = ", ".join((*NAMES, *LOOKING))
            raise ParameterError(f"there is no strategy {strategy!r}; there are auto, exact, {known}")
        made = _design(sizes, tables, strategy, noise, goal)
        if made is None:
            raise ParameterError(_unsuited(strategy, sizes, tables, noise))
        return [made]
    ordered = {
        sizes[column]
        for table in tables
        for column, kind in zip(table.columns, table.kinds, strict=True)
        if kind in ("prefix", "range")
    }
    if many_marginals(tables) and noise == "gaussian":
        return designs(sizes, tables, "residual", noise, goal)  # none is below it, and each takes seconds to look at
    names = ["best" if ordered else "direct", "identity"]
    if max(ordered, default=0) <= AUTO_DENSE:
        names.append("residual")
    found = [_design(sizes, tables, name, noise, goal) for name in names]
    return [design for design in found if design is not None]


def many_marginals(tables: tuple[AskedTable, ...]) -> bool:
    """Whether there are so many tables, all marginals, that `auto` takes what is known to be best of them."""
    return len(tables) > MANY and all(set(table.kinds) == {"each"} for table in tables)


@lru_cache(maxsize=64)
def _design(
    sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str, noise: NoiseKind, goal: Goal
) -> Design | None:
    """None where the strategy has nothing for this workload."""
    made = _typical(sizes, tables, strategy, noise)
    return made if made is None or goal == "typical" else _for_worst(made, sizes, tables)


def _for_worst(design: Design, sizes: tuple[int, ...], tables: tuple[AskedTable, ...]) -> Design:
    """The same blocks with the shares that make the widest answer narrowest."""
    norms = np.array([noise_norm([line.norms for line in block.lines], design.noise) for block in design.blocks])
    parts = worst_coefficients(design.blocks, design.sources, sizes, tables)
    return replace(design, shares=_in_quanta(worst_shares(parts, norms, design.noise).shares))


@lru_cache(maxsize=64)
def _typical(sizes: tuple[int, ...], tables: tuple[AskedTable, ...], strategy: str, noise: NoiseKind) -> Design | None:
    if strategy == "residual":
        return _residual(sizes, tables, noise)
    if strategy == "identity":
        return _cells(sizes, tables, noise)
    line = _line_maker(strategy, noise)
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, table in enumerate(tables):
        groups.setdefault(table.columns, []).append(place)
    blocks = []
    for columns, places in groups.items():
        kinds = kinds_by_column([tables[place] for place in places])
        lines = [line(AskedLine(sizes[column], kinds[column])) for column in columns]
        if any(own is None for own in lines):
            return None
        blocks.append(ProductBlock(columns, tuple(own for own in lines if own is not None)))
    if not all(block.fits for block in blocks):
        return None
    found = {place: (number,) for number, places in enumerate(groups.values()) for place in places}
    sources = tuple(found[place] for place in range(len(tables)))
    name = (
        "+".join(dict.fromkeys(line.name for block in blocks for line in block.lines))
        if strategy == "best"
        else strategy
    )
    totals = _totals(blocks, sources, sizes, tables)
    return _shared(name, noise, blocks, sources, totals, even=strategy == "direct")


def _line_maker(strategy: str, noise: NoiseKind) -> Callable[[AskedLine], LineStrategy | None]:
    """The strategy of a name for an ordered column; other columns are counted cell by cell."""

    def best(asked: AskedLine) -> LineStrategy | None:
        if set(asked.kinds) <= {"each", "total"}:
            return IdentityLine(asked.size)
        if strategy == "direct":
            return direct_line(asked, noise) if asked.count * asked.size <= MOST_DIRECT else None
        if strategy != "best":
            return kept_line(strategy, asked, noise) if asked.size <= LINES[strategy].most else None
        names = [name for name, maker in LINES.items() if asked.size <= min(maker.most, _auto_most(name))]
        made = [kept_line(name, asked, noise) for name in names]
        return min(made, key=lambda own: unit_error(own, asked, noise))

    return lru_cache(maxsize=None)(best)


def _auto_most(name: str) -> int:
    return AUTO_DENSE if name == "optimised" else MOST_CELLS


def _cells(sizes: tuple[int, ...], tables: tuple[AskedTable, ...], noise: NoiseKind) -> Design | None:
    columns = tuple(sorted({column for table in tables for column in table.columns}))
    if math.prod(sizes[column] for column in columns) > MOST_CELLS:
        return None
    block = ProductBlock(columns, tuple(IdentityLine(sizes[column]) for column in columns))
    sources = ((0,),) * len(tables)
    return _shared("identity", noise, [block], sources, _totals([block], sources, sizes, tables))


def _residual(sizes: tuple[int, ...], tables: tuple[AskedTable, ...], noise: NoiseKind) -> Design | None:
    if noise == "laplace" and max(sizes[column] for table in tables for column in table.columns) > MOST_CENTRED:
        return None
    if any(kind in ("prefix", "range") and sizes[column] > MOST_DENSE
           for table in tables for column, kind in zip(table.columns, table.kinds, strict=True)):  # fmt: skip
        return None
    kinds = kinds_by_column(tables)
    line = lru_cache(maxsize=None)(residual_line)
    lines = {column: line(AskedLine(sizes[column], own), noise) for column, own in kinds.items()}
    numbers: dict[tuple[int, ...], int] = {}
    totals: list[float] = []
    sources = []
    known: dict[tuple[int, int, Kind | None], float] = {}
    for table in tables:
        own = []
        # Of every column what its line puts in, where it is in the part, and what its mean does where it is not.
        pairs = [
            (_inside(lines[column], sizes[column], kind, known), _outside(sizes[column], kind, known))
            for column, kind in zip(table.columns, table.kinds, strict=True)
        ]
        for part, total in _parts(table.columns, pairs, sizes, 1 / _size(sizes, table)):
            number = numbers.setdefault(part, len(numbers))
            if number == len(totals):
                totals.append(0.0)
            totals[number] += total
            own.append(number)
        sources.append(tuple(own))
    blocks = [ProductBlock(part, tuple(lines[column] for column in part)) for part in numbers]
    stretched = any(kind in ("prefix", "range") for own in kinds.values() for kind in own)
    # Helmert rows are small, and always fit.
    if (stretched or noise == "laplace") and not all(block.fits for block in blocks):
        return None
    return _shared("residual", noise, blocks, tuple(sources), np.array(totals))


def _parts(
    columns: tuple[int, ...], pairs: Sequence[tuple[float, float]], sizes: tuple[int, ...], start: float
) -> list[tuple[tuple[int, ...], float]]:
    """Every set of some of the columns with its product; a column of one cell tells nothing beside the total."""
    found: list[tuple[tuple[int, ...], float]] = [((), start)]
    for column, (inside, outside) in zip(columns, pairs, strict=True):
        more = [((*part, column), total * inside) for part, total in found] if sizes[column] > 1 else []
        found = [(part, total * outside) for part, total in found] + more
    return found


def residual_line(asked: AskedLine, noise: NoiseKind = "gaussian") -> LineStrategy:
    """What a column tells beside its total: Helmert rows, or of an ordered column its best strategy, centred."""
    if noise == "laplace" and asked.size > 1:
        return centred_laplace(asked)
    if asked.size == 1 or set(asked.kinds) <= {"each", "total"}:  # of one cell there is nothing beside the total
        return HelmertLine(asked.size)
    return kept_line("residual", asked, "gaussian")


def _shared(
    strategy: str,
    noise: NoiseKind,
    blocks: Sequence[ProductBlock],
    sources: tuple[tuple[int, ...], ...],
    totals: Floats,
    even: bool = False,
) -> Design:
    """The shares that make the total variance least, in closed form: every block's noise falls as its share grows.

    Gaussian: Σ T·Δ²/ρ at Σρ fixed has ρ ∝ √(T·Δ²); Laplace: Σ T·Δ²/ε² has ε ∝ (T·Δ²)^⅓. `even` gives every block the
    same noise.
    """
    norms = np.array([noise_norm([line.norms for line in block.lines], noise) for block in blocks])
    power = {("gaussian", False): 1 / 2, ("laplace", False): 1 / 3, ("gaussian", True): 1.0, ("laplace", True): 1 / 2}
    weights = (norms if even else totals * norms) ** power[noise, even]
    own = tuple(float(total) for total in totals)
    return Design(strategy, noise, tuple(blocks), _in_quanta(weights), sources, own)


def _in_quanta(weights: Floats) -> tuple[Fraction, ...]:
    """Shares in proportion to some weights, which add up to 1 at most."""
    whole = np.maximum(np.floor(weights / weights.sum() * (QUANTA - len(weights))).astype(np.int64), 1)
    return tuple(Fraction(part, QUANTA) for part in whole.tolist())


def _totals(
    blocks: Sequence[ProductBlock],
    sources: Sequence[tuple[int, ...]],
    sizes: tuple[int, ...],
    tables: Sequence[AskedTable],
) -> Floats:
    """For each block Σ over tables of the mean over answers of what it puts in: products over columns."""
    totals = np.zeros(len(blocks))
    known: dict[tuple[int, int, Kind | None], float] = {}
    for table, own in zip(tables, sources, strict=True):
        asked = dict(zip(table.columns, table.kinds, strict=True))
        for number in own:
            block, total = blocks[number], 1 / _size(sizes, table)
            for column, line in zip(block.columns, block.lines, strict=True):
                total *= _inside(line, sizes[column], asked.get(column, "total"), known)
            totals[number] += total
    return totals


def _size(sizes: tuple[int, ...], table: AskedTable) -> int:
    return math.prod(count_of(kind, sizes[column]) for column, kind in zip(table.columns, table.kinds, strict=True))


def _inside(line: LineStrategy, size: int, kind: Kind, known: dict[tuple[int, int, Kind | None], float]) -> float:
    key = (size, id(line), kind)
    if key not in known:
        known[key] = total_spread(line, AskedLine(size, (kind,)))
    return known[key]


def _outside(size: int, kind: Kind, known: dict[tuple[int, int, Kind | None], float]) -> float:
    key = (size, 0, kind)
    if key not in known:
        known[key] = float((mean_lengths(kind, size) ** 2).sum())
    return known[key]


def mean_lengths(kind: Kind, size: int) -> Floats:
    """Of every stretch of a kind the share of a column's cells: how a mean is handed to it."""
    starts, stops = stretches(kind, size)
    found: Floats = (stops - starts) / size
    return found


def _unsuited(strategy: str, sizes: tuple[int, ...], tables: tuple[AskedTable, ...], noise: NoiseKind) -> str:
    if strategy == "residual" and noise == "laplace":
        return (
            f"strategy='residual' takes columns of at most {MOST_CENTRED:,} cells under a budget without a δ, whose "
            "noise is Laplace; write strategy='auto'"
        )
    if strategy == "identity":
        columns = {column for table in tables for column in table.columns}
        cells = math.prod(sizes[column] for column in columns)
        return f"strategy='identity' would measure {cells:,} cells, at most {MOST_CELLS:,}; write strategy='auto'"
    most = LINES[strategy].most if strategy in LINES else MOST_DENSE
    return f"strategy={strategy!r} does not reach so far: it takes columns of at most {most:,} cells; take wider bins"

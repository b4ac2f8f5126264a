"""What the method `planned` measures where all columns together have too many cells: single columns first, then pairs
and sets of three, of places that were merged by what single columns told. From public facts alone.

The rule was found on generated populations (`bench/synthesis_rules.py`), never on the data at hand. (Results on Adult
were seen while its constants were set, so Adult is no untouched test of it.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from confide.errors import ParameterError
from confide.privacy.loss import ZCDP, PureDP
from confide.synthesis.curator import MeasureSets, SynthesisStep
from confide.synthesis.relaxed import cell_count
from confide.synthesis.strategy import MOST_CELLS, noise
from confide.workload import BoundWorkload

ROWS: Final = 300
MOST_TOGETHER: Final = 2**24
"""Of all sets of three: cells before places are merged, which are held at once to be counted."""
NOISY: Final = 0.004
"""Where a cell of a pair would have noise of more than this share of the rows, half of the cost is for single columns,
and no set of three is measured."""
ALONE: Final = {True: Fraction(1, 2), False: Fraction(3, 20)}
THREES: Final = {True: Fraction(0), False: Fraction(3, 10)}

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class MergedStrategy:
    """Single columns, then all pairs of merged places within the workload, and sets of three."""

    alone: Fraction
    """The share of single columns."""
    threes: Fraction
    """What sets of three get of the rest."""
    rows: int

    @property
    def words(self) -> str:
        more = " and sets of three" if self.threes else ""
        return f"planned: single columns, then pairs{more} of merged places, {self.rows} rows"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"select": "all" if self.threes else "closure", "rows": self.rows}

    def reads(self, workload: BoundWorkload) -> Sets:
        return workload.sets

    def pairs(self, workload: BoundWorkload) -> Sets:
        return tuple(columns for columns in workload.closure(2) if len(columns) == 2)

    def triples(self, workload: BoundWorkload) -> Sets:
        return triples_of(workload) if self.threes else ()

    def shares(self, workload: BoundWorkload) -> tuple[Fraction, Fraction, Fraction]:
        """Of single columns, pairs and sets of three."""
        if not self.pairs(workload):
            return Fraction(1), Fraction(0), Fraction(0)
        return self.alone, (1 - self.alone) * (1 - self.threes), (1 - self.alone) * self.threes

    def steps(self, workload: BoundWorkload) -> tuple[SynthesisStep, ...]:
        parts = zip(
            ("columns", "pairs, of merged places", "sets of three, of merged places"),
            (workload.closure(1), self.pairs(workload), self.triples(workload)),
            self.shares(workload),
            strict=True,
        )
        return tuple(
            MeasureSets(f"every count of {len(sets):,} {what}", sets, share) for what, sets, share in parts if sets
        )

    def room(self, workload: BoundWorkload) -> int:
        return 4 * self.rows * sum(workload.domain.sizes)


def spelled(own: MergedStrategy) -> tuple[Any, ...]:
    return own.alone, own.threes, own.rows


def triples_of(workload: BoundWorkload) -> Sets:
    """None where they have too many cells to be counted at once."""
    found = tuple(columns for columns in workload.closure(3) if len(columns) == 3)
    cells = sum(cell_count(workload.domain.sizes, columns) for columns in found)
    return found if cells <= MOST_TOGETHER else ()


def choose_merged(
    workload: BoundWorkload, cost: PureDP | ZCDP, expected: int | None, unit_rows: int, select: str, rows: int | None
) -> MergedStrategy:
    sizes, pairs = workload.domain.sizes, [columns for columns in workload.closure(2) if len(columns) == 2]
    for columns in pairs:
        if cell_count(sizes, columns) > MOST_CELLS:
            names = " and ".join(workload.domain.names[column] for column in columns)
            raise ParameterError(
                f"{names} together have {cell_count(sizes, columns):,} cells, at most {MOST_CELLS:,} in one table are "
                "measured. Use wider bins or fewer columns"
            )
    n = expected or 10_000
    singles = workload.closure(1)
    if expected is not None and noise(cost, ALONE[True], len(singles), unit_rows) > expected:
        raise ParameterError(
            f"this epsilon buys nothing: the noise of single columns exceeds the {expected:,} rows that the policy "
            "expects; give a larger one"
        )
    noisy = noise(cost, Fraction(1), max(1, len(pairs)), unit_rows) > NOISY * n
    threes = THREES[noisy] if select == "auto" else THREES[select == "closure"]
    return MergedStrategy(ALONE[noisy], threes if triples_of(workload) else Fraction(0), rows or ROWS)

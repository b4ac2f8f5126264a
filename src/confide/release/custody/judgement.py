"""What exact counts of the data say about a policy, in words for its custodian."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from confide.engine.read.outside import STEPS, OutsideCounts, UnitCounts
from confide.policy import Category, Column, Date, Number, Table
from confide.policy.column import show

_LOUD_SHARE: Final = Fraction(1, 50)
_FEW_STEPS: Final = 20
_ENOUGH_VALUES: Final = 100
_SIZE_FACTOR: Final = 2
_SHOWN: Final = 5
_LONGEST: Final = 40


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to know, and where; `loud` if answers would be about something else than is thought."""

    where: str
    what: str
    loud: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def column_remarks(
    where: str,
    column: Column,
    counts: OutsideCounts,
    rows: int,
    unreadable: int,
    whole: int,
    absent: Sequence[str],
    common: Sequence[tuple[str, int]],
) -> Iterator[Remark]:
    if unreadable:
        yield _unreadable(where, column, rows, unreadable, whole)
    if isinstance(column, Category):
        yield from _listed(where, column, counts, rows, absent, common)
    if isinstance(column, Number | Date):
        yield from _ranged(where, column, counts)
    if isinstance(column, Number) and counts.uneven:
        yield from _grained(where, column, counts)


def table_remarks(table: Table, rows: int, units: UnitCounts | None, nobody: int | None, unit: str) -> Iterator[Remark]:
    if not rows:
        yield Remark(table.name, "the table has no rows", loud=True)
    if table.size is not None and rows and not rows / _SIZE_FACTOR <= table.size <= rows * _SIZE_FACTOR:
        yield Remark(
            table.name,
            f"size: {table.size:,}, but there are {rows:,} rows: forecasts of errors are off. A rough public number is "
            "enough",
        )
    if units is None:
        return
    if units.rows > rows:
        yield Remark(
            table.name,
            f"{rows:,} rows lead to {units.rows:,} of units: a key on the way to {unit} is not unique, and rows count "
            "once for each",
            loud=True,
        )
    if nobody:
        yield Remark(
            table.name,
            f"{nobody:,} rows ({share(nobody, rows)}) belong to nobody: their key is NULL, or leads to no {unit}; they "
            "count in no answer",
            loud=Fraction(nobody, rows) > _LOUD_SHARE,
        )
    if units.beyond:
        most = table.at_most.rows
        yield Remark(
            table.name,
            f"{units.beyond:,} of {units.units:,} units ({share(units.beyond, units.units)}) have more than "
            f"{most:,} row{'s' * (most != 1)} (at_most), up to {units.most:,}: {units.cut:,} rows "
            f"({share(units.cut, units.rows)}) are left out where all count",
            loud=Fraction(units.cut, units.rows) > _LOUD_SHARE,
        )
    allowed = f"{table.at_most.groups:,} group{'s' * (table.at_most.groups != 1)}"
    for column, number in units.groups:
        if number:
            yield Remark(
                f"{table.name}.{column}",
                f"{number:,} of {units.units:,} units ({share(number, units.units)}) have rows in more than {allowed} "
                f"of this column (at_most): GROUP BY {column} leaves some out",
                loud=Fraction(number, units.units) > _LOUD_SHARE,
            )


def share(part: int, whole: int) -> str:
    """A part in per cent, never 0 or 100 unless it is."""
    if not whole:
        return "0 %"
    percent = 100 * part / whole
    if 0 < percent < 0.01:
        return "below 0.01 %"
    if 99.99 < percent < 100:
        return "above 99.99 %"
    return f"{percent:.3g} %"


def short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _unreadable(where: str, column: Column, rows: int, unreadable: int, whole: int) -> Remark:
    loud = Fraction(unreadable, rows) > _LOUD_SHARE
    many = f"{unreadable:,} of {rows:,} rows ({share(unreadable, rows)})"
    if isinstance(column, Date):
        if 2 * whole >= unreadable:
            what = (
                f"{many} hold whole numbers where the policy says days: all of them count as NULL. Store days as "
                "2024-01-31 or as dates; or declare a range of numbers, if numbers are meant"
            )
            return Remark(where, what, loud)
        return Remark(where, f"{many} hold no day that can be read, and count as NULL; write 2024-01-31", loud)
    kind = "is no number"
    if isinstance(column, Category):
        kind = "is neither true nor false" if column.kind is bool else "is no whole number"
    return Remark(where, f"{many} hold something that {kind}, and count as NULL", loud)


def _listed(
    where: str,
    column: Category,
    counts: OutsideCounts,
    rows: int,
    absent: Sequence[str],
    common: Sequence[tuple[str, int]],
) -> Iterator[Remark]:
    seen = f"; often: {', '.join(f'{short(value)!r} ({number:,})' for value, number in common)}" if common else ""
    if counts.known and len(absent) == len(column.values):
        yield Remark(
            where,
            f"NONE of the {len(column.values):,} declared values ({_some(absent)}) occurs, and all {counts.known:,} "
            f"values count as NULL: are they spelled as they are stored{seen}?",
            loud=True,
        )
        return
    if counts.unlisted:
        yield Remark(
            where,
            f"{counts.unlisted:,} of {rows:,} rows ({share(counts.unlisted, rows)}) have a value that is not declared, "
            f"and count as NULL; there {'is' if counts.kinds == 1 else 'are'} {counts.kinds:,} such "
            f"value{'s' * (counts.kinds != 1)}{seen}",
            loud=Fraction(counts.unlisted, rows) > _LOUD_SHARE,
        )
    if absent:
        verb = "never occurs" if len(absent) == 1 else "never occur"
        # A value that nobody has is a fact of the data; that others stand in its place is a mistake of the policy.
        yield Remark(where, f"declared, but {verb}: {_some(absent)}", loud=bool(counts.unlisted))


def _ranged(where: str, column: Number | Date, counts: OutsideCounts) -> Iterator[Remark]:
    moved = counts.below + counts.above
    if not moved:
        return
    low, high = (show(end) if isinstance(end, Fraction) else str(end) for end in (column.low, column.high))
    parts = [
        f"{number:,} ({share(number, counts.known)}) are moved {way} to {end}"
        for number, way, end in ((counts.below, "up", low), (counts.above, "down", high))
        if number
    ]
    yield Remark(
        where,
        f"of {counts.known:,} values {' and '.join(parts)}",
        loud=Fraction(moved, counts.known) > _LOUD_SHARE,
    )


def _grained(where: str, column: Number, counts: OutsideCounts) -> Iterator[Remark]:
    inside = counts.known - counts.below - counts.above
    rounded = counts.uneven[0]
    if rounded:
        few = 2 * rounded > inside and (column.high - column.low) / column.grain < _FEW_STEPS
        yield Remark(
            where,
            f"{rounded:,} values ({share(rounded, counts.known)}) are rounded to the grain {show(column.grain)}"
            + (", which leaves hardly any of their differences; write a finer one" if few else ""),
            loud=few,
        )
        return
    coarser = [step for step, uneven in zip(STEPS, counts.uneven, strict=True) if not uneven][-1]
    if coarser > 1 and counts.nonzero >= _ENOUGH_VALUES:
        yield Remark(
            where,
            f"no value needs a grain finer than {show(coarser * column.grain)}, and the policy says "
            f"{show(column.grain)}; if that is so by the nature of the subject, a coarser grain reads faster",
        )


def _some(values: Sequence[str]) -> str:
    more = f", … ({len(values):,} in all)" if len(values) > _SHOWN else ""
    return ", ".join(short(value) for value in values[:_SHOWN]) + more

"""How much of the data a policy leaves out or moves, in exact numbers: for the custodian's eyes, and for no release."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from confide.engine.protocol import Statements
from confide.engine.sql.canonical_text import matches
from confide.engine.sql.expression_sql import RowWriter
from confide.engine.sql.statement import SummaryWriter
from confide.engine.sql.syntax import among, case, cast, integer, name, select
from confide.policy import Category, Column, Date, Number
from confide.policy.column import CategoryValue
from confide.query.scope import reading
from confide.query.tree import Field, Reading, Scan, Summary

FINER: Final = 1000
"""A column of numbers is examined in steps so much finer than its grain, to see what rounding to it changes."""
STEPS: Final = (1, 10, 100, 1000)
"""Of how many grains values are whole multiples: counted for each."""
_SHOWN: Final = 5
_WHOLE: Final = "[ ]*[+-]?[0-9]{1,38}([.]0{0,100})?[ ]*"


@dataclass(frozen=True, slots=True)
class OutsideCounts:
    """One column: of how many rows it has a value that can be read, and how many of these the policy moves or drops.

    `uneven[i]`: values inside the range that are no multiples of STEPS[i] grains. `occurring`: the listed values that
    are there. `kinds`: how many different values are not listed, and `common` the most frequent of them.
    """

    known: int
    below: int = 0
    above: int = 0
    nonzero: int = 0
    uneven: tuple[int, ...] = ()
    unlisted: int = 0
    kinds: int = 0
    occurring: frozenset[CategoryValue] = frozenset()
    common: tuple[tuple[Any, int], ...] = ()


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """The units of a table: how many there are, how many have more rows than count, and how many rows that cuts.

    `groups`: of a listed column, how many units have more of its values than `at_most` allows groups.
    """

    units: int
    rows: int
    beyond: int
    cut: int
    most: int
    groups: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TableCounts:
    rows: int
    columns: dict[str, OutsideCounts]
    units: UnitCounts | None


@dataclass(frozen=True, slots=True)
class TableInquiry:
    """Counts a table. `examined` are its columns as they are read here, in ranges and grains so wide and fine that
    nothing is moved; `declared` as the policy has them. `summary` is of all its rows, and says whose they are;
    of a public table there is none.
    """

    table: str
    declared: Sequence[Column]
    examined: Sequence[Column]
    summary: Summary | None
    least: int
    """A value that is not listed is told if it has so many rows."""

    def read(self, statements: Statements) -> TableCounts:
        writer = RowWriter(statements.storages, Scan(self.table, "s", public=True))
        values, totals = [], ["COUNT(*) AS n"]
        widths = []
        for place, (declared, examined) in enumerate(zip(self.declared, self.examined, strict=True)):
            values.append((f"c{place}", _value(writer, examined)))
            counts = _counts(declared, examined, f"c{place}")
            widths.append(len(counts))
            totals += [f"{count} AS v{place}_{number}" for number, count in enumerate(counts)]
        rows = select(values, f"main.{name(self.table)} AS s")
        first, *numbers = statements.rows(f"SELECT {', '.join(totals)} FROM ({rows}) AS r")[0]
        columns = {}
        for declared, width in zip(self.declared, widths, strict=True):
            own, numbers = [int(number) for number in numbers[:width]], numbers[width:]
            columns[declared.name] = self._column(statements, writer, declared, own)
        return TableCounts(int(first), columns, self._units(statements))

    def _column(self, statements: Statements, writer: RowWriter, declared: Column, counts: list[int]) -> OutsideCounts:
        known = counts[0]
        if isinstance(declared, Number | Date):
            _, below, above, nonzero, *uneven = counts
            return OutsideCounts(known, below, above, nonzero, tuple(uneven))
        if not isinstance(declared, Category):
            return OutsideCounts(known)
        value, source = writer.column(Field("s", declared)), f"main.{name(self.table)} AS s"
        listed = among(value, declared.values)
        found = statements.rows(f"SELECT {value} AS v FROM {source} WHERE {listed} GROUP BY {value}")
        strange = f"{value} IS NOT NULL AND NOT ({listed})"
        common = statements.rows(
            f"SELECT {value} AS v, COUNT(*) AS n FROM {source} WHERE {strange} GROUP BY {value} "
            f"HAVING COUNT(*) >= {self.least} ORDER BY n DESC, v LIMIT {_SHOWN}"
        )
        return OutsideCounts(
            known,
            unlisted=known - counts[1],
            kinds=counts[2],
            occurring=frozenset(row[0] for row in found),
            common=tuple((row[0], int(row[1])) for row in common),
        )

    def _units(self, statements: Statements) -> UnitCounts | None:
        bound = None if self.summary is None else self.summary.bound
        if self.summary is None or bound is None:
            return None
        source = SummaryWriter(self.summary, statements.storages, b"").source()
        rows = RowWriter(statements.storages, self.summary.relation)
        unit = rows.column(bound.unit)
        listed = [own for own in self.declared if isinstance(own, Category)] if bound.groups < bound.rows else []
        alias = _leftmost(self.summary.relation)
        each = [("u", unit), *((f"g{place}", rows.seen(Field(alias, own))) for place, own in enumerate(listed))]
        inner = select(each, source, [f"{unit} IS NOT NULL"])
        different = "".join(f", COUNT(DISTINCT g{place}) AS d{place}" for place in range(len(listed)))
        by_unit = f"SELECT u, COUNT(*) AS n{different} FROM ({inner}) AS w GROUP BY u"
        most = bound.rows
        beyond = case([(f"n > {most}", "1")])
        totals = [
            "COUNT(*)",
            "COALESCE(SUM(n), 0)",
            f"COUNT({beyond})",
            f"COALESCE(SUM({case([(f'n > {most}', f'n - {integer(most)}')], integer(0))}), 0)",
            "COALESCE(MAX(n), 0)",
            *(f"COUNT({case([(f'd{place} > {bound.groups}', '1')])})" for place in range(len(listed))),
        ]
        named = ", ".join(f"{total} AS t{place}" for place, total in enumerate(totals))
        units, counted, many, cut, largest, *groups = map(
            int, statements.rows(f"SELECT {named} FROM ({by_unit}) AS x")[0]
        )
        by_column = tuple((own.name, number) for own, number in zip(listed, groups, strict=True))
        return UnitCounts(units, counted, many, cut, largest, by_column)


@dataclass(frozen=True, slots=True)
class WrittenInquiry:
    """Of columns that are read as texts here: of how many rows there is any value, and a whole number."""

    table: str
    columns: Sequence[Column]

    def read(self, statements: Statements) -> dict[str, tuple[int, int]]:
        writer = RowWriter(statements.storages, Scan(self.table, "s", public=True))
        values = [(f"c{place}", writer.column(Field("s", column))) for place, column in enumerate(self.columns)]
        counts = [
            count
            for alias, _ in values
            for count in (f"COUNT({alias})", f"COUNT({case([(matches(alias, _WHOLE), '1')])})")
        ]
        named = ", ".join(f"{count} AS t{place}" for place, count in enumerate(counts))
        found = statements.rows(f"SELECT {named} FROM ({select(values, f'main.{name(self.table)} AS s')}) AS r")[0]
        pairs = zip(found[::2], found[1::2], strict=True)
        return {column.name: (int(any_), int(whole)) for column, (any_, whole) in zip(self.columns, pairs, strict=True)}


def _value(writer: RowWriter, column: Column) -> str:
    seen = reading(Field("s", column))
    return writer.number(seen) if isinstance(seen, Reading) else writer.column(seen)


def _counts(declared: Column, examined: Column, alias: str) -> list[str]:
    """What is counted of a column, given its value as it is examined."""

    def count(condition: str) -> str:
        return f"COUNT({case([(condition, '1')])})"

    counts = [f"COUNT({alias})"]
    if isinstance(declared, Category):
        listed = among(alias, declared.values)
        return [*counts, count(listed), f"COUNT(DISTINCT {case([(f'NOT ({listed})', alias)])})"]
    if not isinstance(declared, Number | Date) or not isinstance(examined, Number | Date):
        return counts
    finer = int(declared.grain / examined.grain)
    low, high = declared.low_index * finer, declared.high_index * finer
    inside = f"{alias} BETWEEN {low} AND {high}"
    counts += [count(f"{alias} < {low}"), count(f"{alias} > {high}"), count(f"{inside} AND {alias} <> 0")]
    if finer == 1:
        return counts
    for step in STEPS:
        width = finer * step
        # Truncating or flooring, only multiples come back as they were.
        back = f"({cast(alias, 'BIGINT')} // {integer(width)}) * {integer(width)}"
        counts.append(count(f"{inside} AND {back} <> {alias}"))
    return counts


def _leftmost(relation: Any) -> str:
    while not isinstance(relation, Scan):
        relation = relation.left
    return relation.source

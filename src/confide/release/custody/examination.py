"""Whether a policy fits its data: exact numbers, for the custodian's eyes alone.

What is found here is paid for by nobody and protects nobody. So it is made from a policy and its data, by whoever has
both, and never from a session, which analysts hold; it enters no ledger, no release and no message of an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any, Final

from confide.engine import Engine
from confide.engine.read.outside import FINER, OutsideCounts, TableCounts, TableInquiry, UnitCounts, WrittenInquiry
from confide.policy import Category, Column, Date, KeyUnit, Number, Policy, Table, Text, Unbounded
from confide.policy.column import INDEX_LIMIT
from confide.query.bind import bind_whole
from confide.release.custody.judgement import Remark, column_remarks, table_remarks
from confide.release.custody.sources import Data, open_engine

FOR_WHOM: Final = (
    "for the custodian's eyes only: these are exact numbers of the data. They are no release, are written to no "
    "ledger, and must not be passed on"
)
LEAST_SHARE: Final = Fraction(1, 100)
_LEAST_ROWS: Final = 20
_FIRST, _LAST = date(1, 1, 1), date(9999, 12, 31)


@dataclass(frozen=True, slots=True)
class ExaminedColumn:
    """One column of the data beside what the policy says of it, in rows."""

    name: str
    kind: str
    values: int
    """Rows with a value that the column can be read as."""
    missing: int
    """Rows without any value."""
    unreadable: int
    """Rows with a value that is none of the column's kind, such as a word where numbers are: it counts as NULL."""
    outside: int
    """Rows with a value that is not in the list, and counts as NULL, or is moved to an end of the range."""
    rounded: int | None
    """Rows whose value is moved to a multiple of the grain."""
    absent: tuple[str, ...]
    """Listed values that never occur."""
    common: tuple[tuple[str, int], ...]
    """Values that are not listed and that many rows have."""
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class ExaminedTable:
    name: str
    rows: int
    units: int | None
    beyond: int | None
    """Units with more rows than `at_most` says."""
    cut: int | None
    """Rows that this leaves out of every answer."""
    columns: tuple[ExaminedColumn, ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """How a policy fits its data, table by table. For the custodian's eyes only."""

    tables: tuple[ExaminedTable, ...]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All that is worth saying, the loud ones first."""
        found = [remark for table in self.tables for remark in (*table.remarks, *_of_columns(table))]
        return tuple(sorted(found, key=lambda remark: not remark.loud))

    @property
    def loud(self) -> tuple[Remark, ...]:
        return tuple(remark for remark in self.remarks if remark.loud)

    def to_dict(self) -> dict[str, Any]:
        return {
            "for": FOR_WHOM,
            "tables": [_table_data(table) for table in self.tables],
            "remarks": [{"where": remark.where, "what": remark.what, "loud": remark.loud} for remark in self.remarks],
        }

    def __str__(self) -> str:
        from confide.release.custody.examined_text import examined_text  # noqa: PLC0415  loaded when printed

        return examined_text(self)

    def _repr_html_(self) -> str:
        from confide.release.custody.examined_text import examined_html  # noqa: PLC0415  loaded when printed

        return examined_html(self)


def examine(policy: Policy, data: Data = None) -> Examination:
    """Open the data, count what the policy leaves out or moves, and close them again."""
    examined = {label: _wide_table(table) for label, table in policy.tables.items()}
    engine = open_engine(replace(policy, tables=examined), data, lines=True)
    try:
        found = {
            label: engine.examine(_inquiry(policy, engine, table, examined[label]))
            for label, table in policy.tables.items()
            if table.columns
        }
    finally:
        engine.close()
    written = _written(policy, data, found)
    return Examination(
        tuple(_table(policy, policy.tables[label], counts, written.get(label, {})) for label, counts in found.items())
    )


def _inquiry(policy: Policy, engine: Engine, table: Table, examined: Table) -> TableInquiry:
    summary = None if table.public else bind_whole(table.name, policy, engine).summary
    return TableInquiry(
        table.name, tuple(table.columns.values()), tuple(examined.columns.values()), summary, _LEAST_ROWS
    )


def _written(policy: Policy, data: Data, found: Mapping[str, TableCounts]) -> dict[str, dict[str, tuple[int, int]]]:
    """Of columns in which something is missing: how many rows have any text there, and how many a whole number.

    A second reading, and only of what is in doubt: as they are declared, such columns say NULL for both.
    """
    doubtful = {
        label: [
            Text(column.name)
            for column in policy.tables[label].columns.values()
            if _is_typed(column) and counts.columns[column.name].known < counts.rows
        ]
        for label, counts in found.items()
    }
    doubtful = {label: columns for label, columns in doubtful.items() if columns}
    if not doubtful:
        return {}
    tables = {
        label: replace(table, columns={**table.columns, **{own.name: own for own in doubtful.get(label, ())}})
        for label, table in policy.tables.items()
    }
    engine = open_engine(replace(policy, tables=tables), data, lines=True)
    try:
        return {label: engine.examine(WrittenInquiry(label, columns)) for label, columns in doubtful.items()}
    finally:
        engine.close()


def _is_typed(column: Column) -> bool:
    """Whether a value that is there may be none of the column's kind."""
    return isinstance(column, Number | Date | Unbounded) or (isinstance(column, Category) and column.kind is not str)


def _wide_table(table: Table) -> Table:
    return replace(table, columns={label: _wide(column) for label, column in table.columns.items()})


def _wide(column: Column) -> Column:
    """The column in a range that moves nothing, and in steps that show what its grain rounds."""
    if isinstance(column, Date):
        return Date(column.name, _FIRST, _LAST)
    if not isinstance(column, Number):
        return column
    reach = max(abs(column.low_index), abs(column.high_index))
    grain = column.grain / FINER if reach * FINER * FINER < INDEX_LIMIT else column.grain
    most = (INDEX_LIMIT - 1) * grain
    return Number(column.name, -most, most, grain)


def _table(policy: Policy, table: Table, counts: TableCounts, written: Mapping[str, tuple[int, int]]) -> ExaminedTable:
    units = counts.units
    columns = tuple(
        _column(table, column, counts.columns[column.name], counts.rows, written.get(column.name))
        for column in table.columns.values()
    )
    nobody = None if units is None or not isinstance(policy.unit, KeyUnit) else max(0, counts.rows - units.rows)
    return ExaminedTable(
        table.name,
        counts.rows,
        None if units is None else units.units,
        None if units is None else units.beyond,
        None if units is None else units.cut,
        columns,
        tuple(table_remarks(table, counts.rows, units, nobody, str(policy.unit))),
    )


def _column(
    table: Table, column: Column, counts: OutsideCounts, rows: int, written: tuple[int, int] | None
) -> ExaminedColumn:
    texts, whole = (0, 0) if written is None else written
    there = max(counts.known, texts)
    unreadable = there - counts.known
    outside = counts.unlisted + counts.below + counts.above
    listed = column.values if isinstance(column, Category) else ()
    absent = tuple(_word(value) for value in listed if value not in counts.occurring)
    common = tuple((_word(value), number) for value, number in counts.common if number >= rows * LEAST_SHARE)
    where = f"{table.name}.{column.name}"
    remarks = column_remarks(where, column, counts, rows, unreadable, whole, absent, common)
    return ExaminedColumn(
        column.name,
        _kind(column),
        counts.known,
        rows - there,
        unreadable,
        outside,
        counts.uneven[0] if counts.uneven else None,
        absent,
        common,
        tuple(remarks),
    )


def _kind(column: Column) -> str:
    names = {Number: "number", Unbounded: "number", Date: "day", Category: "values", Text: "text"}
    return names.get(type(column), "id")


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_columns(table: ExaminedTable) -> list[Remark]:
    return [remark for column in table.columns for remark in column.remarks]


def _table_data(table: ExaminedTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "rows": table.rows,
        "units": table.units,
        "units_beyond_at_most": table.beyond,
        "rows_cut": table.cut,
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "values": column.values,
                "missing": column.missing,
                "unreadable": column.unreadable,
                "outside": column.outside,
                "rounded": column.rounded,
                "absent": list(column.absent),
                "common": [list(pair) for pair in column.common],
            }
            for column in table.columns
        ],
    }


__all__ = ["FOR_WHOM", "Examination", "ExaminedColumn", "ExaminedTable", "UnitCounts", "examine"]

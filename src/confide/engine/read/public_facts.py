"""Facts of public tables, read from the tables themselves."""

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from math import ceil, floor
from typing import Any

from confide.engine.sql.expression_sql import RowWriter
from confide.engine.sql.syntax import name
from confide.engine.storage import Storage, Storages
from confide.policy import Category, Column, Date, Identifier, Number, Text
from confide.query.tree import Field, Scan

_MOST_VALUES = 10_000
_STEPS = 10**6
"""A public column of fractions is seen in at least so many steps."""
_LARGEST_INDEX = 2**60

Run = Callable[[str], list[tuple[Any, ...]]]


def infer_column(run: Run, table: str, label: str, storage: Storage) -> Column:
    """What a column of a public table holds: a short list of values, a range, or neither."""
    column, source = name(label), f"main.{name(table)}"
    # An optimiser may believe the first part of every value, NaN among them.
    finite = f" WHERE {column} BETWEEN -1e300 AND 1e300 AND NOT ISNAN({column})" if storage.kind == "float" else ""
    ends = f"MIN({column}), MAX({column})" if storage.kind not in ("text", "boolean", "other") else "NULL, NULL"
    least, most, distinct = run(f"SELECT {ends}, COUNT(DISTINCT {column}) FROM {source}{finite}")[0]
    if storage.kind in ("text", "boolean", "integer") and 0 < distinct <= _MOST_VALUES:
        found = run(f"SELECT DISTINCT {column} FROM {source} WHERE {column} IS NOT NULL ORDER BY 1")
        if storage.kind != "integer" or max(abs(least), abs(most)) < _LARGEST_INDEX:
            return Category(label, tuple(row[0] for row in found))
    match storage.kind:
        case "date" if isinstance(least, date) and isinstance(most, date) and least < most:
            return Date(label, least, most)
        case "float" | "decimal" | "integer" if distinct > 0:
            return _number(label, Fraction(least), Fraction(most), whole=storage.kind == "integer")
        case "text":
            return Text(label)
    return Identifier(label)


def _number(label: str, low: Fraction, high: Fraction, whole: bool) -> Column:
    """A range on a decimal grid that is fine beside its width, and not too fine for 62 bits."""
    grain, largest = Fraction(1), max(abs(low), abs(high), Fraction(1))
    if whole and largest >= _LARGEST_INDEX:
        return Identifier(label)
    while not whole and (high - low) / grain < _STEPS and largest / grain < _LARGEST_INDEX // 100:
        grain /= 10
    while largest / grain >= _LARGEST_INDEX:
        grain *= 10
    least, most = floor(low / grain), ceil(high / grain)
    return Number(label, least * grain, max(most, least + 1) * grain, grain)


def most_rows(run: Run, storages: Storages, table: str, columns: tuple[Column, ...]) -> int:
    """The most rows of a table that agree on these columns, as a join sees them."""
    writer = RowWriter(storages, Scan(table, "s", public=True))
    values = [writer.joined(Field("s", column)).sql for column in columns]
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    counts = f"SELECT COUNT(*) AS n FROM main.{name(table)} AS s WHERE {known} GROUP BY {', '.join(values)}"
    return int(run(f"SELECT COALESCE(MAX(n), 0) FROM ({counts}) AS c")[0][0])


def different_rows(
    run: Run, storages: Storages, table: str, columns: tuple[Column, ...], most: int
) -> tuple[tuple[Any, ...], ...] | None:
    """The different rows of a table in these columns, as its policy sees them; None if there are more than `most`."""
    writer = RowWriter(storages, Scan(table, "s", public=True))
    values = [f"{writer.seen(Field('s', column))} AS c{place}" for place, column in enumerate(columns)]
    found = run(f"SELECT DISTINCT {', '.join(values)} FROM main.{name(table)} AS s LIMIT {most + 1}")
    return None if len(found) > most else tuple(tuple(row) for row in found)


def counted_rows(
    run: Run, storages: Storages, table: str, columns: tuple[Column, ...], most: int
) -> tuple[tuple[Any, ...], ...] | None:
    """The same, and after the values of each how many rows have them; in an order of their own."""
    writer = RowWriter(storages, Scan(table, "s", public=True))
    values = [writer.seen(Field("s", column)) for column in columns]
    shown = [f"{value} AS c{place}" for place, value in enumerate(values)]
    inner = f"SELECT {', '.join(shown)} FROM main.{name(table)} AS s"
    keys = ", ".join(f"c{place}" for place in range(len(values)))
    found = run(f"SELECT {keys}, COUNT(*) AS n FROM ({inner}) AS r GROUP BY {keys} LIMIT {most + 1}")
    return None if len(found) > most else tuple(sorted((tuple(row) for row in found), key=repr))
